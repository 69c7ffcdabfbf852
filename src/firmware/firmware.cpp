// SPDX-License-Identifier: Apache-2.0
#include "firmware/firmware.h"

#include <fmt/format.h>
#include <algorithm>
#include <map>

#include "base/diagnostic.h"
#include "c_source/names.h"
#include "c_source/print.h"
#include "c_source/types.h"
#include "firmware/npu_source.h"
#include "firmware/whole_program.h"
#include "ir/tosa_operators.h"

namespace tosaic::firmware {
namespace {

using c_source::c_type;
using c_source::ConstantArray;

std::string without(std::string_view text, std::string_view what) {
  std::string made;
  for (char c : text) made += what.find(c) == std::string_view::npos ? c : ' ';
  return made;
}

// A method, printed.
struct Method {
  std::string call;  // "net_run", or "net_prefill" where there are several
  WholeProgram whole;
  c_source::Printed printed;
  std::vector<NpuCall> npu;
  const MethodSource* source = nullptr;

  const TensorType& input(std::size_t i) const { return whole.graph[whole.graph.inputs[i]].type; }
  const TensorType& output(std::size_t i) const { return whole.graph[whole.graph.outputs[i]].type; }
  // "const int8_t *x, float *y"
  std::string parameters() const {
    std::string list;
    const auto add = [&](const TensorType& type, std::string_view qualifier, const std::string& as) {
      list += fmt::format("{}{}{} *{}", list.empty() ? "" : ", ", qualifier, c_type(type.dtype), as);
    };
    for (std::size_t i = 0; i < whole.inputs; ++i) add(input(i), "const ", fmt::format("in{}", i));
    for (std::size_t i = 0; i < whole.outputs; ++i) add(output(i), "", fmt::format("out{}", i));
    return list.empty() ? "void" : list;
  }
};

class Writer {
 public:
  Writer(std::span<const MethodSource> sources, const FirmwareOptions& options)
      : sources_(sources), options_(options), name_(options.name) {}

  Result<std::vector<SourceFile>> files() {
    if (name_ != c_source::name_in_c(name_))
      return error("firmware.name", fmt::format("'{}' is no name in C", name_)).hint("choose letters, digits and _");
    for (const MethodSource& source : sources_) TOSAIC_CHECK(print(source));
    gather_constants();
    gather_states();
    for (const Method& m : methods_) {
      memory_.arenas.push_back({m.source->name, m.printed.arena_bytes, m.printed.at_peak});
      for (const NpuCall& call : m.npu) memory_.npu_flash += call.flash_bytes, memory_.npu_ram += call.ram_bytes;
    }
    for (const StateMemory& state : states_) memory_.states += 2 * state.type.storage_bytes();
    TOSAIC_CHECK(fits(memory_, options_.limits));
    std::vector<SourceFile> files{
        {name_ + ".h", header()}, {name_ + ".c", source()}, {name_ + "_weights.c", weights()}};
    if (has_npu()) files.push_back({name_ + "_npu.c", npu_file()});
    files.push_back({name_ + "_test.c", self_test()});
    for (const auto& [file, text] : c_source::mcu_files()) files.push_back({std::string(file), std::string(text)});
    files.push_back({"CMakeLists.txt", cmake()});
    files.push_back({"memory.json", memory_file()});
    return files;
  }

 private:
  Status print(const MethodSource& source) {
    Method method;
    method.source = &source;
    const std::string prefix = sources_.size() == 1 ? name_ : name_ + "_" + c_source::name_in_c(source.name);
    method.call = sources_.size() == 1 ? name_ + "_run" : prefix;
    TOSAIC_TRY(method.whole, whole_program(source.outer, source.lowered, !source.npu_payloads.empty(), prefix));
    TOSAIC_TRY(method.printed,
               c_source::print_function(method.whole.graph, prefix, c_source::Linkage::internal, options_.kernels));
    for (const Node& node : method.whole.graph.nodes)
      if (node.op == tosa::op::custom) {
        TOSAIC_TRY(NpuCall call, npu_call(method.whole.graph, node, source.npu_payloads));
        method.npu.push_back(std::move(call));
      }
    methods_.push_back(std::move(method));
    return {};
  }

  bool has_npu() const {
    return std::ranges::any_of(methods_, [](const Method& m) { return !m.npu.empty(); });
  }

  bool with_cmsis_nn() const { return options_.kernels == c_source::Kernels::cmsis_nn; }

  void gather_constants() {
    for (const Method& m : methods_)
      for (const ConstantArray& array : m.printed.constants) {
        constants_.push_back(&array);
        memory_.weights += array.data.size();
      }
  }

  std::string banner(std::string_view what) const {
    return fmt::format("/* {}: {}. Made by {} for {}. */\n", what, name_, without(options_.made_by, "*/\n\r\\"),
                       options_.target);
  }

  // A state of several methods is one: by its name.
  struct StateMemory {
    std::string name;
    TensorType type;
    Bytes initial;
  };
  void gather_states() {
    for (const Method& m : methods_)
      for (std::size_t i = 0; i < m.whole.states.size(); ++i) {
        const State& state = m.whole.states[i];
        if (std::ranges::find(states_, state.name, &StateMemory::name) == states_.end())
          states_.push_back({state.name, m.input(m.whole.inputs + i), state.initial});
      }
  }
  std::string state_name(const std::string& of) const {
    const auto found = std::ranges::find(states_, of, &StateMemory::name);
    return fmt::format("{}_state{}", name_, found - states_.begin());
  }

  std::string header() const {
    const std::string guard = c_source::macro_name(name_) + "_H";
    std::string text = banner("How a program calls the model");
    text += fmt::format(
        "#ifndef {0}\n#define {0}\n#include <stdint.h>\n\n#ifdef __cplusplus\nextern \"C\" {{\n#endif\n\n", guard);
    text += fmt::format("/* Bytes of static memory for activations. */\n#define {}_ARENA_BYTES {}\n\n",
                        c_source::macro_name(name_), memory_.arena());
    if (!states_.empty())
      text += fmt::format(
          "/* The model has {} states, which stay from run to run. This gives them their first\n   "
          "contents: before the first run, and to begin anew. */\nvoid {}_init(void);\n\n",
          states_.size(), name_);
    if (has_npu())
      text += fmt::format(
          "/* 0 where the NPU did its work in the last run, and else what went wrong (see {}_npu.c). "
          "*/\nint {}_status(void);\n\n",
          name_, name_);
    for (const Method& m : methods_) {
      for (std::size_t i = 0; i < m.whole.inputs; ++i) text += about(m, "IN", i, m.input(i), name_of_input(m, i));
      for (std::size_t i = 0; i < m.whole.outputs; ++i) text += about(m, "OUT", i, m.output(i), "");
      text += fmt::format("void {}({});\n\n", m.call, m.parameters());
    }
    return text + "#ifdef __cplusplus\n}\n#endif\n#endif\n";
  }
  std::string name_of_input(const Method& m, std::size_t i) const {
    return m.source->outer[m.source->outer.inputs[i]].name;
  }

  // Shape, size, and how integers stand for reals.
  std::string about(const Method& m, std::string_view which, std::size_t i, const TensorType& type,
                    const std::string& tensor) const {
    const std::string stem = fmt::format("{}_{}{}", c_source::macro_name(m.call), which, i);
    std::string text = fmt::format("/* {}{}: {} */\n#define {}_ELEMENTS {}\n", which == "IN" ? "in" : "out", i,
                                   without(tensor.empty() ? to_string(type) : tensor + ", " + to_string(type), "*/"),
                                   stem, type.shape.elements());
    if (type.quantised() && type.scales->per_tensor())
      text += fmt::format("/* real = scale * (q - zero point) */\n#define {0}_SCALE {1}\n#define {0}_ZERO_POINT {2}\n",
                          stem, c_source::c_number(type.scales->scale[0]), type.scales->zero_point[0]);
    return text;
  }

  std::string source() const {
    std::string text = banner("The model's steps, one function each");
    text += fmt::format("#include \"{}.h\"\n\n#include \"tosaic_lanes.h\"\n\n", name_);
    if (with_cmsis_nn())
      text +=
          "#include \"arm_nnfunctions.h\"\n#ifndef CMSIS_NN_USE_SINGLE_ROUNDING\n"
          "#error \"this file and CMSIS-NN need -DCMSIS_NN_USE_SINGLE_ROUNDING\"\n#endif\n\n";
    for (const ConstantArray* array : constants_)
      text += fmt::format("extern const {} {}[];\n", c_type(array->type.dtype), array->name);
    if (!constants_.empty()) text += "\n";
    for (const Method& m : methods_)
      for (const NpuCall& call : m.npu) text += call.declaration + ";\n";
    for (const StateMemory& state : states_) {
      const std::string as = state_name(state.name);
      text += fmt::format("/* {} */\nstatic {} {}[{}] TOSAIC_ARENA;\n", without(state.name, "*/"),
                          c_type(state.type.dtype), as, state.type.shape.elements());
    }
    for (const Method& m : methods_) text += "\n" + m.printed.code + run_function(m);
    if (!states_.empty()) text += init_function();
    return text;
  }
  // Gives states to the printed function, and keeps what it makes of them.
  std::string run_function(const Method& m) const {
    std::string arguments, before, after;
    const auto add = [&](const std::string& argument) { arguments += (arguments.empty() ? "" : ", ") + argument; };
    for (std::size_t i = 0; i < m.whole.inputs; ++i) add(fmt::format("in{}", i));
    for (const State& state : m.whole.states) add(state_name(state.name));
    for (std::size_t i = 0; i < m.whole.outputs; ++i) add(fmt::format("out{}", i));
    for (std::size_t i = 0; i < m.whole.states.size(); ++i) {
      const TensorType& type = m.output(m.whole.outputs + i);
      before += fmt::format("  static {} next{}[{}] TOSAIC_ARENA;\n", c_type(type.dtype), i, type.shape.elements());
      after += fmt::format("  memcpy({}, next{}, {});\n", state_name(m.whole.states[i].name), i, type.storage_bytes());
      add(fmt::format("next{}", i));
    }
    return fmt::format("void {}({}) {{\n{}  {}({});\n{}}}\n", m.call, m.parameters(), before, m.printed.function,
                       arguments, after);
  }

  std::string init_function() const {
    std::string text, body;
    for (const StateMemory& state : states_) {
      const std::string as = state_name(state.name);
      const bool zeros =
          state.initial.null() || std::all_of(state.initial.data(), state.initial.data() + state.initial.size(),
                                              [](std::byte b) { return b == std::byte{}; });
      if (zeros) {
        body += fmt::format("  memset({}, 0, {});\n", as, state.type.storage_bytes());
      } else {
        const ConstantArray initial{as + "_initial", state.type, state.initial};
        text += c_source::print_array(initial);
        body += fmt::format("  memcpy({}, {}, {});\n", as, initial.name, state.type.storage_bytes());
      }
    }
    return fmt::format("\n{}\nvoid {}_init(void) {{\n{}}}\n", text, name_, body);
  }

  std::string weights() const {
    std::string text = banner("Weights and tables") + "#include \"tosaic_mcu.h\"\n\n";
    for (const ConstantArray* array : constants_) {
      text += fmt::format("extern const {} {}[];\n", c_type(array->type.dtype), array->name);
      text += c_source::print_array(*array, c_source::Linkage::external);
    }
    if (constants_.empty()) text += "typedef int tosaic_no_weights;\n";
    return text;
  }

  std::string npu_file() const {
    std::vector<NpuCall> calls;
    for (const Method& m : methods_) calls.insert(calls.end(), m.npu.begin(), m.npu.end());
    return banner("What the NPU does") + npu_source(calls, name_);
  }

  // A sample of each method, what the PC makes of it, and a main that compares.
  std::string self_test() const {
    std::string text = banner("A self-test: a sample, and the bytes that the PC makes of it");
    text += fmt::format("#include <stdio.h>\n#include <string.h>\n\n#include \"tosaic_mcu.h\"\n#include \"{}.h\"\n\n",
                        name_);
    text +=
        "static int differing(const char *what, const void *got, const void *wanted, size_t bytes) {\n"
        "  size_t wrong = 0;\n"
        "  for (size_t i = 0; i < bytes; ++i) wrong += ((const char *)got)[i] != ((const char *)wanted)[i];\n"
        "  printf(\"%s: %u of %u bytes differ\\n\", what, (unsigned)wrong, (unsigned)bytes);\n"
        "  return wrong != 0;\n}\n\n"
        "/* floats: within 1e-5 of the largest, as C libraries differ in the last bits */\n"
        "static int far(const char *what, const float *got, const float *wanted, size_t count) {\n"
        "  float most = 0, worst = 0;\n"
        "  for (size_t i = 0; i < count; ++i) {\n"
        "    if (fabsf(wanted[i]) > most) most = fabsf(wanted[i]);\n"
        "    if (!(fabsf(got[i] - wanted[i]) <= worst)) worst = fabsf(got[i] - wanted[i]);\n  }\n"
        "  printf(\"%s: %u floats, %u millionths of the largest apart\\n\", what, (unsigned)count,\n"
        "         (unsigned)(most > 0 ? worst / most * 1e6f : worst * 1e6f));\n"
        "  return !(worst <= 1e-5f * most);\n}\n\n";
    std::string body, helpers;
    for (std::size_t k = 0; k < methods_.size(); ++k) {
      const Method& m = methods_[k];
      if (m.source->sample.size() != m.whole.inputs || m.source->results.size() != m.whole.outputs) continue;
      std::string arguments, checks;
      for (std::size_t i = 0; i < m.whole.inputs; ++i) {
        const ConstantArray array{fmt::format("sample{}_{}", k, i), m.input(i), m.source->sample[i].data};
        helpers += c_source::print_array(array);
        arguments += (arguments.empty() ? "" : ", ") + array.name;
      }
      for (std::size_t i = 0; i < m.whole.outputs; ++i) {
        const TensorType& type = m.output(i);
        const ConstantArray array{fmt::format("wanted{}_{}", k, i), type, m.source->results[i].data};
        helpers += c_source::print_array(array);
        helpers += fmt::format("static {} got{}_{}[{}];\n", c_type(type.dtype), k, i, type.shape.elements());
        arguments += fmt::format("{}got{}_{}", arguments.empty() ? "" : ", ", k, i);
        checks += is_float(type.dtype)
                      ? fmt::format("  failed |= far(\"{0} output {2}\", got{1}_{2}, wanted{1}_{2}, {3});\n", m.call, k,
                                    i, type.shape.elements())
                      : fmt::format("  failed |= differing(\"{0} output {2}\", got{1}_{2}, wanted{1}_{2}, {3});\n",
                                    m.call, k, i, type.storage_bytes());
      }
      if (!states_.empty()) body += fmt::format("  {}_init();\n", name_);
      body += fmt::format("  {}({});\n{}", m.call, arguments, checks);
    }
    if (body.empty()) body = "  puts(\"there is no sample in it\");\n";
    return text + helpers +
           fmt::format(
               "\nint main(void) {{\n  int failed = 0;\n  (void)differing;\n  (void)far;\n{}{}  return failed;\n}}\n",
               body,
               has_npu() ? fmt::format("  if ({0}_status() != 0) printf(\"NPU: %d\\n\", {0}_status()), "
                                       "failed = 1;\n",
                                       name_)
                         : "");
  }

  std::string cmake() const {
    return fmt::format(
        "# {0}: cmake -B build -DCMAKE_TOOLCHAIN_FILE=... && cmake --build build\n"
        "cmake_minimum_required(VERSION 3.16)\n"
        "project({0} C)\n"
        "if(NOT CMAKE_BUILD_TYPE)\n  set(CMAKE_BUILD_TYPE Release)\nendif()\n"
        "add_library({0} STATIC {0}.c {0}_weights.c{1} tosaic_mcu.c)\n"
        "target_include_directories({0} PUBLIC ${{CMAKE_CURRENT_SOURCE_DIR}})\n"
        "target_compile_features({0} PUBLIC c_std_11)\n"
        "# Products and sums of floats are rounded one by one, as on the PC.\n"
        "target_compile_options({0} PRIVATE -ffp-contract=off -ffunction-sections -fdata-sections)\n"
        "target_link_libraries({0} PUBLIC m)\n"
        "{2}"
        "add_executable({0}_test EXCLUDE_FROM_ALL {0}_test.c)\n"
        "target_link_libraries({0}_test PRIVATE {0})\n",
        name_, has_npu() ? fmt::format(" {}_npu.c", name_) : "",
        with_cmsis_nn() ? fmt::format("# The target of CMSIS-NN's own CMakeLists.txt.\n"
                                      "target_link_libraries({0} PUBLIC cmsis-nn)\n"
                                      "target_compile_definitions(cmsis-nn PUBLIC CMSIS_NN_USE_SINGLE_ROUNDING)\n",
                                      name_)
                        : "");
  }

  std::string memory_file() const;

  std::span<const MethodSource> sources_;
  const FirmwareOptions& options_;
  const std::string& name_;
  std::vector<Method> methods_;
  std::vector<const ConstantArray*> constants_;
  std::vector<StateMemory> states_;
  BoardMemory memory_;
};

// What lies where, in bytes, for people and for scripts.
std::string Writer::memory_file() const {
  std::uint64_t io = 0;
  std::string layers;
  for (const Method& m : methods_) {
    for (std::size_t i = 0; i < m.whole.inputs; ++i) io += m.input(i).storage_bytes();
    for (std::size_t i = 0; i < m.whole.outputs; ++i) io += m.output(i).storage_bytes();
    for (const c_source::PrintedStep& step : m.printed.steps)
      layers +=
          fmt::format("{}    {{\"function\": {}, \"operators\": {}, \"source\": {}}}", layers.empty() ? "" : ",\n",
                      json_quote(step.function), json_quote(step.operators), json_quote(step.place));
  }
  return fmt::format(
      "{{\n  \"target\": {},\n{}  \"caller\": {{\"inputs_and_outputs\": {}}},\n  \"layers\": [\n{}\n  ]\n}}\n",
      json_quote(options_.target), memory_members(memory_), io, layers);
}

}  // namespace

Result<std::vector<SourceFile>> firmware_files(std::span<const MethodSource> methods, const FirmwareOptions& options) {
  return Writer(methods, options).files();
}

bool is_firmware_file(std::string_view name) {
  return name.ends_with(".c") || name.ends_with(".h") || name == "CMakeLists.txt" || name == "memory.json";
}

}  // namespace tosaic::firmware
