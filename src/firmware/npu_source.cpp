// SPDX-License-Identifier: Apache-2.0
#include "firmware/npu_source.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cstring>

#include "c_source/print.h"
#include "c_source/types.h"

namespace tosaic::firmware {

std::string_view npu_invoke();  // device/mcu/npu_invoke.c

namespace {

constexpr std::size_t regions = 8;  // of a command stream

std::uint64_t end_of(const vela::Tensor& t) {
  return static_cast<std::uint64_t>(t.offset) + static_cast<std::uint64_t>(t.bytes());
}

// Bytes of each region but the weights': what the payload says of the scratch memory, and where tensors end elsewhere.
std::array<std::uint64_t, regions> region_bytes(const vela::Payload& payload) {
  std::array<std::uint64_t, regions> bytes{};
  bytes[vela::scratch_region] = payload.scratch_bytes;
  for (const auto* tensors : {&payload.inputs, &payload.outputs})
    for (const vela::Tensor& t : *tensors) {
      std::uint64_t& region = bytes[static_cast<std::size_t>(t.region)];
      region = std::max(region, end_of(t));
    }
  return bytes;
}

std::string byte_array(const std::string& name, const Bytes& data, std::string_view section) {
  std::string text = fmt::format("static const unsigned char {}[{}] {} = {{", name, data.size(), section);
  for (std::size_t i = 0; i < data.size(); ++i) {
    if (i % 24 == 0) text += "\n  ";
    fmt::format_to(std::back_inserter(text), "{},", std::to_integer<int>(data.data()[i]));
  }
  return text + "\n};\n";
}

}  // namespace

Result<NpuCall> npu_call(const Graph& graph, const Node& node, std::span<const Bytes> payloads) {
  NpuCall call;
  call.name = node.attrs.get<std::string>("operator_name");
  const std::size_t number = std::stoul(call.name.substr(call.name.rfind("npu") + 3));
  TOSAIC_TRY(call.payload, vela::read(payloads[number]));
  if (call.payload.commands.external() || call.payload.weights.external())
    return error("firmware.external", "the delegate's weights or commands are in a file of their own")
        .hint("leave out --external");
  std::string parameters;
  const auto add = [&](ValueId v, std::string_view qualifier, std::string_view stem, std::size_t i) {
    parameters += fmt::format("{}{}{} *{}{}", parameters.empty() ? "" : ", ", qualifier,
                              c_source::c_type(graph[v].type.dtype), stem, i);
  };
  for (std::size_t i = 0; i < node.inputs.size(); ++i) add(node.inputs[i], "const ", "in", i);
  for (std::size_t i = 0; i < node.outputs.size(); ++i) add(node.outputs[i], "", "out", i);
  call.declaration = fmt::format("void {}({})", call.name, parameters);
  call.flash_bytes = call.payload.commands.data.size() + call.payload.weights.data.size();
  for (std::uint64_t bytes : region_bytes(call.payload)) call.ram_bytes += bytes;
  return call;
}

std::string npu_source(std::span<const NpuCall> calls, const std::string& name) {
  std::string text = fmt::format("#include \"{}.h\"\n\n#include <stddef.h>\n\n#include \"tosaic_mcu.h\"\n", name);
  text += npu_invoke();
  text += fmt::format("\nint {}_status(void) {{ return last_status; }}\n", name);
  for (const NpuCall& call : calls) {
    text += "\n" + byte_array(call.name + "_commands", call.payload.commands.data, "TOSAIC_WEIGHTS");
    text += byte_array(call.name + "_weights", call.payload.weights.data, "TOSAIC_WEIGHTS");
    const auto bytes = region_bytes(call.payload);
    std::size_t count = 1;
    std::string list = fmt::format("{{(void *){0}_weights, sizeof {0}_weights}}", call.name);
    for (std::size_t r = 1; r < regions; ++r) {
      if (bytes[r] > 0)
        text += fmt::format("static unsigned char {}_region{}[{}] TOSAIC_ARENA;\n", call.name, r, bytes[r]);
      if (bytes[r] > 0) count = r + 1;
    }
    for (std::size_t r = 1; r < count; ++r)
      list += bytes[r] > 0 ? fmt::format(", {{{0}_region{1}, sizeof {0}_region{1}}}", call.name, r) : ", {NULL, 0}";
    text += fmt::format("{} {{\n  region regions[] = {{{}}};\n", call.declaration, list);
    const auto at = [&](const vela::Tensor& t) {
      return fmt::format("{}_region{} + {}", call.name, t.region, t.offset);
    };
    for (std::size_t i = 0; i < call.payload.inputs.size(); ++i)
      text += fmt::format("  memcpy({}, in{}, {});\n", at(call.payload.inputs[i]), i, call.payload.inputs[i].bytes());
    for (std::size_t r = 1; r < count; ++r)
      if (bytes[r] > 0) text += fmt::format("  TOSAIC_NPU_FLUSH({0}_region{1}, sizeof {0}_region{1});\n", call.name, r);
    text += fmt::format("  last_status = invoke({0}_commands, sizeof {0}_commands, regions, {1});\n", call.name, count);
    for (std::size_t r = 1; r < count; ++r)
      if (bytes[r] > 0)
        text += fmt::format("  TOSAIC_NPU_INVALIDATE({0}_region{1}, sizeof {0}_region{1});\n", call.name, r);
    for (std::size_t i = 0; i < call.payload.outputs.size(); ++i)
      text +=
          fmt::format("  memcpy(out{}, {}, {});\n", i, at(call.payload.outputs[i]), call.payload.outputs[i].bytes());
    text += "}\n";
  }
  return text;
}

}  // namespace tosaic::firmware
