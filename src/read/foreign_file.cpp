// SPDX-License-Identifier: Apache-2.0
#include "read/foreign_file.h"

#include <fmt/format.h>
#include <algorithm>
#include <string_view>

namespace tosaic {
namespace {

const char* const export_module =
    "export the PyTorch module that it was made from: torch.export.save(torch.export.export(model, args), 'model.pt2')";
const char* const load_weights =
    "load them into the module, model.load_state_dict(...), and save the program: "
    "torch.export.save(torch.export.export(model, args), 'model.pt2')";
const char* const compiled_already = "`tosaic run` runs it, `tosaic inspect` shows what is in it";

struct Kind {
  const char* what;
  const char* help;
};

// A message of protocol buffers whose first field is number 1, a small integer (ONNX's ir_version), and the second one
// of those that ModelProto has.
bool is_onnx(std::string_view file) {
  if (file.size() < 4 || file[0] != '\x08' || file[1] < 1 || file[1] > 30) return false;
  return std::string_view("\x12\x1a\x22\x28\x32\x3a\x42").find(file[2]) != std::string_view::npos;
}

// A header's length in 8 bytes, then JSON.
bool is_safetensors(std::string_view file) {
  if (file.size() < 10 || file[8] != '{') return false;
  std::uint64_t length = 0;
  for (std::size_t i = 8; i-- > 0;) length = length << 8 | static_cast<unsigned char>(file[i]);
  return length >= 2 && length <= file.size() - 8;
}

std::optional<Kind> kind_of(std::string_view file) {
  const auto identifier = file.size() >= 8 ? file.substr(4, 4) : std::string_view();
  if (is_onnx(file)) return Kind{"an ONNX model", export_module};
  if (identifier == "TFL3") return Kind{"a TFLite model", export_module};
  if (file.starts_with("\x89HDF\r\n\x1a\n")) return Kind{"an HDF5 file, as Keras writes", export_module};
  if (file.starts_with("GGUF")) return Kind{"a GGUF file: weights without a PyTorch program", load_weights};
  if (is_safetensors(file)) return Kind{"a safetensors file: weights without a program", load_weights};
  if (file.size() > 2 && file[0] == '\x80' && file[1] >= 2 && file[1] <= 5)
    return Kind{"a pickle, as torch.save wrote before torch 1.6: weights or a module, no program", load_weights};
  if (identifier.starts_with("ET")) return Kind{"an ExecuTorch program, compiled already", compiled_already};
  if (identifier == "TOSA") return Kind{"a TOSA graph, compiled already", compiled_already};
  if (identifier == "VGF1" || file.starts_with("VGF1")) return Kind{"a VGF file, compiled already", compiled_already};
  return std::nullopt;
}

}  // namespace

std::optional<Diagnostic> foreign_file(const Bytes& file, const std::string& name) {
  const auto kind = kind_of(file.text());
  if (!kind) return std::nullopt;
  return error("pt2.foreign", fmt::format("{} is {}", name, kind->what)).at({name, 0, ""}).hint(kind->help);
}

Diagnostic foreign_archive(const zip::Archive& archive, const std::string& name) {
  const auto holds = [&](std::string_view part) {
    return std::ranges::any_of(archive.entries(), [&](const zip::Entry& e) {
      return e.name.ends_with(part) || e.name.find("/" + std::string(part) + "/") != std::string::npos;
    });
  };
  if (!holds("data.pkl"))
    return error("pt2.no-program", fmt::format("{} is a zip archive, but holds no exported program", name))
        .note(fmt::format("none of its {} entries is models/NAME.json", archive.entries().size()))
        .hint(
            "write it with torch.export.save(torch.export.export(model, args), path), not torch.save or "
            "torch.jit.save");
  if (holds("code"))
    return error("pt2.no-program", fmt::format("{} is TorchScript, as torch.jit.save writes", name))
        .hint(export_module);
  return error("pt2.no-program",
               fmt::format("{} is what torch.save writes: a state_dict or a module, no exported program", name))
      .hint(load_weights);
}

}  // namespace tosaic
