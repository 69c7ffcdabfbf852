// SPDX-License-Identifier: Apache-2.0
#include "api/payload_forms.h"

#include <fmt/format.h>
#include <algorithm>
#include <iterator>

#include "api/inspect_ethos_u.h"
#include "api/inspect_graph.h"
#include "api/inspect_vgf.h"
#include "api/inspect_vulkan.h"
#include "api/inspect_vulkan_backend.h"
#include "api/report_payload.h"
#include "api/tosa_payload.h"
#include "base/delegate_ids.h"
#include "delegates/vulkan_backend/chain.h"
#include "formats/tosa/tosa_file.h"
#include "formats/vela/vela.h"
#include "formats/vgf/vgf.h"
#include "formats/vulkan_program/vulkan_program.h"
#include "session/named_data.h"

namespace tosaic {
namespace {

constexpr const char* indent = "    ";

// ---- TOSA
Result<Inspection> tosa_shown(const ProgramDelegate& of, const Bytes& payload, const InspectOptions&) {
  const std::string name = of.delegate().id + " payload";
  const auto graph = tosa_graph(of.delegate(), of.data, name);
  return Inspection{graph.ok() ? inspect_tosa(*graph, payload, name).text : "", ""};
}
Result<Rope> tosa_whole(const ProgramDelegate& of, const Bytes& payload) {
  if (!has_constants_outside(of.delegate())) return Rope(payload);
  TOSAIC_TRY(const Graph graph, tosa_graph(of.delegate(), of.data, of.place));
  return tosa_file::write(graph);
}

// ---- VGF
Result<Inspection> vgf_shown(const ProgramDelegate& of, const Bytes& payload, const InspectOptions&) {
  auto inner = inspect_vgf(payload, of.delegate().id + " payload");
  if (!inner.ok()) return std::move(inner.error()).at({of.place, 0, ""});
  return inner;
}

// ---- compute shaders
Result<Inspection> shaders_shown(const ProgramDelegate& of, const Bytes& payload, const InspectOptions&) {
  auto inner = inspect_vulkan(payload, of.data, indent);
  if (!inner.ok()) return std::move(inner.error()).at({of.place, 0, ""});
  return inner;
}
Result<Rope> shaders_whole(const ProgramDelegate& of, const Bytes& payload) {
  const auto alone = vulkan_program::read(payload);
  if (alone.ok() || alone.error().code != "vulkan-program.constant-outside") return Rope(payload);
  TOSAIC_TRY(const vulkan_program::Program whole, vulkan_program::read(payload, found_in(of.data)));
  return vulkan_program::write(whole);
}

// ---- chains of PyTorch's operators
Result<Inspection> chain_shown(const ProgramDelegate& of, const Bytes& payload, const InspectOptions&) {
  return inspect_vulkan_backend(payload, of.place, indent);
}
// As the text of a graph, which `compile` and `run` read.
Result<Rope> chain_as_text(const ProgramDelegate& of, const Bytes& payload) {
  TOSAIC_TRY(const vulkan_backend::File file, vulkan_backend::read(payload, of.place));
  TOSAIC_TRY(const Graph graph, vulkan_backend::aten_graph(file, found_in(of.data), of.place));
  const std::string text = print(graph, ConstantText::all);
  return Rope(Bytes::copy(text.data(), text.size()));
}

// ---- command streams
bool is_stream(const Bytes& payload) { return payload.text().starts_with("vela_bin_stream"); }

// The tensors of a delegate's call with the scales that the conversions next to it state.
std::vector<ProgramTensor> delegate_tensors(const pte::Plan& plan, std::size_t delegate) {
  const auto value = [&](std::int32_t i) -> const pte::Value& { return plan.values[static_cast<std::size_t>(i)]; };
  std::vector<ProgramTensor> tensors;
  for (const pte::Instruction& instruction : plan.instructions) {
    const auto* call = std::get_if<pte::DelegateCall>(&instruction);
    if (!call || static_cast<std::size_t>(call->delegate) != delegate) continue;
    for (std::int32_t v : call->args) {
      const auto* known = std::get_if<pte::TensorValue>(&value(v));
      ProgramTensor tensor{
          known ? to_string(TensorType{
                      known->dtype, Shape(std::vector<std::int64_t>(known->sizes.begin(), known->sizes.end())), {}})
                : "no tensor"};
      for (const pte::Instruction& other : plan.instructions) {
        const auto* kernel = std::get_if<pte::KernelCall>(&other);
        if (!kernel || kernel->args.size() < 3) continue;
        const std::string& op = plan.operators[static_cast<std::size_t>(kernel->op)].name;
        const bool gives = op == "quantized_decomposed::quantize_per_tensor" && kernel->args.back() == v;
        const bool takes = op == "quantized_decomposed::dequantize_per_tensor" && kernel->args[0] == v;
        const auto* scale = std::get_if<double>(&value(kernel->args[1]));
        const auto* zero = std::get_if<std::int64_t>(&value(kernel->args[2]));
        if ((gives || takes) && scale && zero) tensor = {tensor.type, true, *scale, *zero};
      }
      tensors.push_back(std::move(tensor));
    }
    break;
  }
  return tensors;
}

// A payload that cannot be read is shown as that: the program around it is worth seeing all the same.
Result<Inspection> stream_shown(const ProgramDelegate& of, const Bytes& bytes, const InspectOptions& options) {
  auto payload = vela::read(bytes);
  auto inner = payload.ok() ? inspect_ethos_u(*payload, delegate_tensors(of.plan, of.index), of.data, options, indent)
                            : Result<Inspection>(payload.error());
  if (inner.ok()) return inner;
  if (payload.ok() || options.disassemble || options.registers) return std::move(inner.error()).at({of.place, 0, ""});
  return Inspection{fmt::format("{}unreadable {}\n", indent, payload.error().message),
                    fmt::format("{{\"error\": {}}}", json_quote(payload.error().message))};
}
// A stream alone is worth nothing without what the program keeps elsewhere: the file holds all of it.
Result<Rope> stream_whole(const ProgramDelegate& of, const Bytes& payload) {
  TOSAIC_TRY(vela::Payload stream, vela::read(payload));
  if (!stream.commands.external() && !stream.weights.external()) return Rope(payload);
  TOSAIC_TRY(stream.commands.data, vela::resolve(stream.commands, "commands", &of.data));
  TOSAIC_TRY(stream.weights.data, vela::resolve(stream.weights, "weights", &of.data));
  stream.commands.external_key.clear();
  stream.weights.external_key.clear();
  TOSAIC_TRY(Bytes whole, vela::write(stream));
  return Rope(std::move(whole));
}

const PayloadForm forms[] = {
    {delegate_ids::tosa, tosa_file::is_tosa, "tosa", tosa_shown, show_tosa, "tosa", tosa_whole},
    {delegate_ids::vgf, vgf::is_vgf, "vgf", vgf_shown, show_vgf, "vgf", nullptr},
    {delegate_ids::vulkan, vulkan_program::is_program, "vulkan", shaders_shown, show_dispatches, "bin", shaders_whole},
    {delegate_ids::vulkan_backend, vulkan_backend::is_payload, "vulkan_backend", chain_shown, show_chain, "txt",
     chain_as_text},
    {delegate_ids::ethos_u, is_stream, "ethos_u", stream_shown, show_npu_operations, "vela", stream_whole},
};

template <class F>
const PayloadForm* first_form(F&& is) {
  const auto found = std::ranges::find_if(forms, is);
  return found == std::end(forms) ? nullptr : found;
}

}  // namespace

const PayloadForm* form_of(const Bytes& payload) {
  return first_form([&](const PayloadForm& form) { return form.is(payload); });
}
const PayloadForm* form_of(const ProgramDelegate& payload) {
  if (const PayloadForm* told = form_of(payload.delegate().payload.joined())) return told;
  return first_form([&](const PayloadForm& form) { return form.delegate == payload.delegate().id; });
}

}  // namespace tosaic
