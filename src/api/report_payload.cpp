// SPDX-License-Identifier: Apache-2.0
#include "api/report_payload.h"

#include <algorithm>
#include <map>

#include "api/inspect_ethos_u.h"
#include "api/tosa_payload.h"
#include "delegates/vulkan_backend/chain.h"
#include "formats/vela/vela.h"
#include "formats/vgf/vgf_graph.h"
#include "formats/vulkan_program/vulkan_program.h"
#include "report/graph.h"
#include "report/memory.h"
#include "session/named_data.h"

namespace tosaic {
namespace {

using reporting::ShownGraph;
using reporting::ShownMemory;
using reporting::ShownNode;

// Dispatches of one tier: what they write and read are ranges of memories, which later ranges may take again.
class ShownDispatches {
 public:
  explicit ShownDispatches(const std::string& name) {
    graph_.name = name;
    graph_.kind = ShownGraph::Kind::delegate;
  }

  void add(const vulkan_program::Dispatch& dispatch) {
    const auto number = static_cast<std::uint32_t>(graph_.nodes.size());
    ShownNode node;
    node.name = dispatch.value.empty() ? std::to_string(number) : dispatch.value;
    node.op = dispatch.kernel;
    const std::size_t comma = dispatch.place.rfind(", ");
    node.place = comma == std::string::npos ? dispatch.place : dispatch.place.substr(comma + 2);
    if (comma != std::string::npos) node.module = dispatch.place.substr(0, comma);
    for (const vulkan_program::Range& range : dispatch.ranges)
      if (!range.written) add_once(node.inputs, value_in(range, number));
    for (const vulkan_program::Range& range : dispatch.ranges)
      if (range.written) add_once(node.outputs, add_value(range, node.name, number));
    graph_.nodes.push_back(std::move(node));
  }

  ShownPayload all(std::uint64_t activation_bytes) {
    memory_.name = "activations of " + graph_.name;
    memory_.how = "as the program's dispatches plan them on the device";
    memory_.arena_bytes = activation_bytes;
    reporting::set_peak(memory_);
    return {{std::move(graph_)}, std::move(memory_)};
  }

 private:
  struct Live {
    vulkan_program::Range range;
    std::uint32_t value;
    std::int64_t buffer;  // in the activations; -1: in another memory
  };

  static void add_once(std::vector<std::uint32_t>& list, std::uint32_t value) {
    if (std::ranges::find(list, value) == list.end()) list.push_back(value);
  }
  static bool meet(const vulkan_program::Range& a, const vulkan_program::Range& b) {
    return a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
  }
  // Several dispatches may write parts of one tensor: each is a value of its own.
  std::uint32_t add_value(const vulkan_program::Range& range, std::string name, std::uint32_t number) {
    const auto value = static_cast<std::uint32_t>(graph_.values.size());
    const bool constant = range.arena == vulkan_program::Arena::constants;
    graph_.values.push_back(
        {.name = std::move(name), .type = "", .bytes = range.bytes, .is_constant = constant, .scales = {}});
    std::int64_t buffer = -1;
    if (range.arena == vulkan_program::Arena::activations) {
      buffer = static_cast<std::int64_t>(memory_.buffers.size());
      memory_.buffers.push_back({value, range.bytes, range.offset, number, number});
    }
    std::vector<Live>& live = live_[range.arena];
    std::erase_if(live, [&](const Live& other) { return meet(other.range, range); });
    live.push_back({range, value, buffer});
    return value;
  }
  std::uint32_t value_in(const vulkan_program::Range& range, std::uint32_t number) {
    std::vector<Live>& live = live_[range.arena];
    const auto found = std::ranges::find_if(live, [&](const Live& l) { return meet(l.range, range); });
    if (found == live.end()) {
      const bool constant = range.arena == vulkan_program::Arena::constants;
      return add_value(range, constant ? "constant" : "input", number);
    }
    if (found->buffer >= 0) memory_.buffers[static_cast<std::size_t>(found->buffer)].last = number;
    return found->value;
  }

  ShownGraph graph_;
  ShownMemory memory_;
  std::map<vulkan_program::Arena, std::vector<Live>> live_;
};

}  // namespace

ShownPayload shown_tosa(const Graph& graph, const std::string& name) {
  ShownPayload to{reporting::shown(graph, name, ShownGraph::Kind::delegate), {}};
  to.memory = reporting::activations(graph, to.graphs[0], 0);
  return to;
}

Result<ShownPayload> show_tosa(const ProgramDelegate& of, const Bytes&, const std::string& name) {
  TOSAIC_TRY(const Graph graph, tosa_graph(of.delegate(), of.data, of.place));
  return shown_tosa(graph, name);
}

Result<ShownPayload> show_vgf(const ProgramDelegate& of, const Bytes& payload, const std::string& name) {
  TOSAIC_TRY(const Graph graph, vgf::read_graph(payload, of.place));
  return shown_tosa(graph, name);
}

Result<ShownPayload> show_dispatches(const ProgramDelegate& of, const Bytes& payload, const std::string& name) {
  TOSAIC_TRY(const vulkan_program::Program program, vulkan_program::read(payload, found_in(of.data)));
  ShownDispatches shown(name);
  if (program.tiers.empty()) return shown.all(0);
  for (const vulkan_program::Dispatch& dispatch : program.tiers[0].dispatches) shown.add(dispatch);
  return shown.all(program.tiers[0].activation_bytes);
}

Result<ShownPayload> show_chain(const ProgramDelegate& of, const Bytes& payload, const std::string& name) {
  TOSAIC_TRY(const vulkan_backend::File file, vulkan_backend::read(payload, of.place));
  TOSAIC_TRY(const Graph graph, vulkan_backend::aten_graph(file, found_in(of.data), of.place));
  return ShownPayload{reporting::shown(graph, name, ShownGraph::Kind::delegate), {}};
}

Result<ShownPayload> show_npu_operations(const ProgramDelegate& of, const Bytes& payload, const std::string& name) {
  TOSAIC_TRY(const vela::Payload stream, vela::read(payload));
  TOSAIC_TRY(const auto operations, npu_operations(stream, of.data));
  ShownGraph graph{.name = name, .kind = ShownGraph::Kind::delegate, .sequence = true};
  for (const NpuOperation& operation : operations) {
    ShownNode node;
    node.name = operation.address;
    node.op = operation.name;
    node.text = operation.text;
    graph.nodes.push_back(std::move(node));
  }
  return ShownPayload{{std::move(graph)}, {}};
}

}  // namespace tosaic
