// SPDX-License-Identifier: Apache-2.0
#include "firmware/whole_program.h"

#include <fmt/format.h>
#include <algorithm>
#include <map>
#include <set>

#include "ir/inlined_body.h"
#include "ir/marks.h"
#include "ir/program_operators.h"
#include "ir/states.h"
#include "ir/tosa_operators.h"
#include "lower/lower.h"
#include "tidy/tidy.h"

namespace tosaic::firmware {
namespace {

bool calls_delegate(const Node& node) {
  return node.op == op::delegate || std::ranges::any_of(node.regions, [](const Graph& body) {
           return std::ranges::any_of(body.nodes, calls_delegate);
         });
}

class Flattening {
 public:
  Flattening(Graph outer, std::span<const Graph> lowered, bool elsewhere, const std::string& name)
      : outer_(std::move(outer)), lowered_(lowered), elsewhere_(elsewhere), name_(name) {}

  Result<WholeProgram> run() {
    made_.inputs = outer_.inputs.size();
    made_.outputs = outer_.outputs.size();
    const StatesAsTensors hidden(outer_);
    made_.states = hidden.states();
    TOSAIC_CHECK(sizes_are_numbers());
    last_reader_.assign(outer_.values.size(), 0);
    for (std::size_t n = 0; n < outer_.nodes.size(); ++n)
      for (ValueId v : outer_.nodes[n].inputs)
        if (v != no_value) last_reader_[v] = n;
    for (ValueId v : outer_.outputs) last_reader_[v] = outer_.nodes.size();
    for (ValueId v : outer_.inputs) made_.graph.inputs.push_back(value(v));
    for (std::size_t n = 0; n < outer_.nodes.size(); ++n) {
      const Node& node = outer_.nodes[n];
      if (node.op != op::delegate) {
        if (calls_delegate(node))
          return located(error("firmware.control-flow",
                               fmt::format("a body of {} calls a delegate, which firmware cannot", node.op))
                             .hint("compile with --target tosa-int to a .pte, which runs it"),
                         node.loc);
        host_.push_back(n);
        continue;
      }
      TOSAIC_CHECK(lower_host(n));
      delegate(node);
    }
    TOSAIC_CHECK(lower_host(outer_.nodes.size()));
    for (ValueId v : outer_.outputs) made_.graph.outputs.push_back(value(v));
    drop_dead(made_.graph);
    return std::move(made_);
  }

 private:
  Status sizes_are_numbers() const {
    for (ValueId v : outer_.inputs)
      if (const Value& value = outer_[v]; !value.type.shape.is_static())
        return error("firmware.sizes", fmt::format("input '{}' is {}: firmware has memory for one size", value.name,
                                                   to_string(value.type)))
            .hint("choose the sizes: --sizes NAME=SIZE");
    return {};
  }

  // The value of the whole that stands for one of the outer graph.
  ValueId value(ValueId v) {
    const auto [known, added] = of_.try_emplace(v, no_value);
    if (added) {
      const Value& from = outer_[v];
      known->second = made_.graph.add_value(fresh(from.name), from.type, from.constant);
    }
    return known->second;
  }
  // The name, unless another value has it.
  std::string fresh(const std::string& name) {
    return names_.insert(name).second ? name : fmt::format("{}.{}", name, made_.graph.values.size());
  }

  void put(const Graph& body, std::span<const ValueId> inputs, std::span<const ValueId> outputs, const LocRef& holder) {
    std::vector<ValueId> given;
    for (ValueId v : inputs) given.push_back(value(v));
    InlinedBody inlined =
        inlined_body(made_.graph, body, given, holder, [&](const std::string& name) { return fresh(name); });
    for (Node& node : inlined.nodes) made_.graph.nodes.push_back(std::move(node));
    for (std::size_t i = 0; i < outputs.size(); ++i)
      if (outputs[i] != no_value) of_[outputs[i]] = inlined.results[i];
  }

  void delegate(const Node& node) {
    const std::int64_t region = *find_mark(node, mark::region);
    if (!elsewhere_) return put(lowered_[static_cast<std::size_t>(region)], node.inputs, node.outputs, node.loc);
    Node call{.op = tosa::op::custom,
              .inputs = {},
              .attrs = {{"operator_name", fmt::format("{}_npu{}", name_, region)},
                        {"domain_name", std::string("tosaic")},
                        {"implementation_attrs", std::string()}},
              .outputs = {},
              .loc = node.loc,
              .regions = {}};
    for (ValueId v : node.inputs) call.inputs.push_back(value(v));
    for (ValueId v : node.outputs) call.outputs.push_back(value(v));
    made_.graph.nodes.push_back(std::move(call));
  }

  // What stands between two delegates, or before node `next`, as one graph: lowered, tidied, put in place.
  Status lower_host(std::size_t next) {
    if (host_.empty()) return {};
    Graph part;
    std::map<ValueId, ValueId> in_part;
    std::vector<ValueId> inputs, outputs;  // of the outer graph
    const auto copied = [&](ValueId v) {
      const auto [known, added] = in_part.try_emplace(v, no_value);
      if (added) known->second = part.add_value(outer_[v].name, outer_[v].type, outer_[v].constant);
      return known->second;
    };
    for (const std::size_t n : host_) {
      Node node = outer_.nodes[n];
      for (ValueId& v : node.inputs) {
        if (v == no_value) continue;
        const bool is_new = !in_part.contains(v);
        const ValueId inside = copied(v);
        if (is_new && !outer_[v].is_constant()) {
          inputs.push_back(v);
          part.inputs.push_back(inside);
        }
        v = inside;
      }
      for (ValueId& v : node.outputs) {
        if (v == no_value) continue;
        const ValueId inside = copied(v);
        if (last_reader_[v] >= next) {
          outputs.push_back(v);
          part.outputs.push_back(inside);
        }
        v = inside;
      }
      part.nodes.push_back(std::move(node));
    }
    host_.clear();
    drop_dead(part);
    TOSAIC_TRY(Lowered lowered, lower(part));
    tidy(lowered.graph);
    put(lowered.graph, inputs, outputs, {});
    return {};
  }

  Graph outer_;
  std::span<const Graph> lowered_;
  bool elsewhere_;
  const std::string& name_;
  WholeProgram made_;
  std::map<ValueId, ValueId> of_;
  std::set<std::string> names_;
  std::vector<std::size_t> last_reader_;  // by value: the last node that reads it
  std::vector<std::size_t> host_;         // nodes outside delegates, not yet lowered
};

}  // namespace

Result<WholeProgram> whole_program(const Graph& outer, std::span<const Graph> lowered, bool elsewhere,
                                   const std::string& name) {
  return Flattening(outer, lowered, elsewhere, name).run();
}

}  // namespace tosaic::firmware
