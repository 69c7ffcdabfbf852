// SPDX-License-Identifier: Apache-2.0
#include "api/way_out.h"

#include <array>
#include <string_view>

namespace tosaic {
namespace {

// The codes that begin with `code`; the first row that fits counts. A sentence goes before what the reader found, which
// becomes a note.
struct Family {
  std::string_view code, sentence, help;
};

constexpr std::string_view pt2_again = "save the program again with torch.export.save, in torch 2.9 to 2.15";
constexpr std::string_view pte_again =
    "make it again: `tosaic compile` from the .pt2, or the export of a current ExecuTorch";
constexpr std::string_view bpte_again = "bundle the program again, with ExecuTorch 1.5 or tosaic's Python package";
constexpr std::string_view payload_again = "compile the model again, with tosaic or a current ExecuTorch and Vela";
constexpr std::string_view vgf_again =
    "make it again: `tosaic compile --target vgf`, or `tosaic convert` from the .tosa";
constexpr std::string_view tosa_again = "make it again for TOSA 1.0, e.g. with `tosaic compile --emit tosa=FILE`";

constexpr std::string_view another_device =
    "choose another device (`tosaic run --list-devices`) or the CPU: --device cpu, or --target tosa-fp where the "
    "program has a Vulkan delegate";

// What there is no shader for, whatever the device.
constexpr std::string_view without_shader =
    "no Vulkan device runs it as it stands: run the program on the CPU (--device cpu), or compile its .pt2 with "
    "--target vulkan, which leaves such nodes beside the delegate";
constexpr std::string_view too_large_for_shaders =
    "no Vulkan device runs it as it stands: make the tensor smaller (the batch, say), run the program on the CPU "
    "(--device cpu), or compile its .pt2 with --target vulkan, which leaves such nodes beside the delegate";

constexpr std::array families{
    Family{"pt2.", "", pt2_again},
    Family{"pickle.", "", pt2_again},
    Family{"zip.", "", "copy or save the file again: it is damaged, or made by a tool that writes other archives"},
    Family{"pte.corrupt", "the program is damaged, or was made by another version", pte_again},
    Family{"pte.", "", pte_again},
    Family{"bpte.corrupt", "the bundled program is damaged, or was made by another version", bpte_again},
    Family{"bpte.", "", bpte_again},
    Family{"ptd.corrupt", "the data file is damaged, or was made by another version",
           "make it again, together with its program"},
    Family{"ptd.", "", "make it again, together with its program"},
    Family{"tosa-file.corrupt", "the TOSA file is damaged, or was made by another version", tosa_again},
    Family{"tosa-file.size", "", "choose smaller sizes (--sizes), or export the model for smaller inputs"},
    Family{"tosa-file.", "", tosa_again},
    Family{"vgf.corrupt", "the VGF file is damaged, or was made by another version", vgf_again},
    Family{"vgf.truncated", "the VGF file is cut short", vgf_again},
    Family{"vgf.index", "the VGF file is damaged, or was made by another version", vgf_again},
    Family{"vgf.unconnected", "the VGF file is damaged, or was made by another version", vgf_again},
    Family{"spirv.corrupt", "the shader code in the VGF file is damaged, or was made by another version", vgf_again},
    Family{"vgf.", "", vgf_again},
    Family{"spirv.", "", vgf_again},
    Family{"vela.block", "the Ethos-U payload is damaged, or was made by another version", payload_again},
    Family{"vela.truncated", "the Ethos-U payload is cut short", payload_again},
    Family{"vela.tensor", "the Ethos-U payload is damaged, or was made by another version", payload_again},
    Family{"vela.", "", payload_again},
    Family{"ethosu.undecidable", "the NPU's simulator cannot decide from public facts what the hardware would do here",
           "compile the model again with another Vela or for another product, and please report it"},
    Family{"ethosu.", "", payload_again},
    Family{"plan.", "", "`tosaic explain --plan` prints a plan of the program"},
    Family{"npy.", "", "save the array again with numpy.save or numpy.savez"},
    Family{"ir.", "", "correct the graph's text at this place"},
    Family{"domain.", "", "correct the call in the operator's file: test/ops/README.md tells its language"},
    Family{"tosa.unpredictable", "the values lead to a result that TOSA leaves open, so none is made up",
           "look for indices outside their table and divisions by zero, in the inputs or in the model"},
    Family{"tosa.", "", "the graph breaks a rule of the TOSA specification: correct it where it was made"},
    Family{"run.input", "", "`tosaic inspect` shows what the program takes; convert arrays with numpy's .astype"},
    Family{"run.state-type", "",
           "`tosaic inspect` shows what it is; convert the content with numpy's .astype or .reshape"},
    Family{"run.out-of-memory", "", "run it where there is more memory, or export the model for smaller inputs"},
    Family{"run.", "", "`tosaic inspect` shows what the program is made of"},
    Family{"kernel.", "", "run the program with ExecuTorch, or compile the model from its .pt2 with tosaic"},
    Family{"method.", "", pte_again},
    Family{"delegate.memory", "", "run it where there is more memory, or export the model for smaller inputs"},
    Family{"delegate.", "", "the program and what its delegate runs do not belong together: compile the model again"},
    Family{"model.methods", "", "export and save one model per file"},
    Family{"tensor.", "", "make the tensor with one of tosaic's constructors, and give its bytes whole"},
    Family{"calibrate.", "", "give arrays with the names, types and shapes that `tosaic inspect` shows for the inputs"},
    Family{"quantise.", "", "change the model there, or leave the quantisation to samples: --calibrate"},
    Family{"aten.unknown-operator", "",
           "of PyTorch's operators: save `ep.run_decompositions()` instead, it may be made of those that `tosaic ops` "
           "lists; of your own: say in Python what it means, tosaic.lowering(OPERATOR)"},
    Family{"aten.", "", "change the model at this line, or choose a target that takes it"},
    Family{"pack.", "", "change the model there, or choose a target that takes the operator: `tosaic explain`"},
    Family{"vulkan-backend.format", "ExecuTorch's Vulkan payload is damaged, or was made by another version",
           "write the program again with ExecuTorch 1.5"},
    Family{"vulkan-backend.", "", "write the program again with ExecuTorch 1.5, without what is refused here"},
    Family{"vulkan-program.", "", "compile the model again: `tosaic compile --target vulkan`"},
    Family{"vulkan.no-kernel", "", without_shader},
    Family{"vulkan.dtype", "", without_shader},
    Family{"vulkan.pool-window", "", without_shader},
    Family{"vulkan.storage-range", "", too_large_for_shaders},
    Family{"vulkan.", "", another_device},
    Family{"call.", "", "`tosaic::tosa_operators()` gives the schema of each call"},
    Family{"data.", "", "give each .ptd file once, and those of one program only"},
    Family{"inspect.", "", "if the ending is right, the file is damaged: make or copy it again"},
    Family{"extract.", "", "`tosaic inspect` shows what the program is made of"},
    Family{"convert.", "", "`tosaic convert --help` shows what can be made of what"},
    Family{"board.", "", "a smaller model or smaller inputs, or another memory mode: --memory-mode"},
    Family{"self-check.", "", "--no-self-check writes the program all the same; --emit vela=DIR keeps what shows it"},
    Family{"compile.", "", "`tosaic compile --help` shows what can be written, and for which targets"},
    Family{"target.", "", "choose a target that takes it, or let it run outside: without --require-full-delegation"},
    Family{"lower.", "", "choose another target, and please report the model"},
    Family{"cpu.", "", "run it on the reference interpreter: --executor interp"},
    Family{"model.", "", "change the model there and export it again"},
    Family{"peer.", "", "check that the program is there, and that it runs by itself"},
    Family{"memory.", "", "use a smaller model or fewer samples, or raise --memory-limit"},
    Family{"option.", "", "`tosaic help compile` lists the options and what they take"},
    Family{"program.", "", "`tosaic inspect` shows what the program is made of"},
    Family{"artifact.", "", "Artifact::pieces() lists what there is"},
    Family{"session.", "", "use a session in one thread at a time"},
    Family{"output.", "", "give the output a name of its own"},
    Family{"file.", "", "check the path and its permissions"},
};

}  // namespace

Diagnostic with_way_out(Diagnostic why, const std::string& file) {
  // What was asked is at fault, and not what is in the file.
  const bool asked = why.code.starts_with("option.") || why.code.starts_with("memory.none");
  if (why.place.file.empty() && !why.internal && !asked) why.place.file = file;
  if (why.internal || !why.help.empty()) return why;
  for (const Family& family : families) {
    if (!why.code.starts_with(family.code)) continue;
    if (!family.sentence.empty()) {
      why.notes.insert(why.notes.begin(), why.message);
      why.message = family.sentence;
    }
    why.help = family.help;
    break;
  }
  return why;
}

}  // namespace tosaic
