// SPDX-License-Identifier: Apache-2.0
// States that several methods keep together: the quantised values that one of them writes are the quantised values that
// the others read, so each state has one range in all of them. Tensors that share a scale with a state take part, and
// so do other states that share it in any of the methods.
#include <map>
#include <string>
#include <utility>

#include "quantise/calibration.h"

namespace tosaic {
namespace {

// The states whose scales depend on each other, by the name of one of them.
class Families {
 public:
  const std::string& of(const std::string& state) {
    const std::string& next = parent_.try_emplace(state, state).first->second;
    return next == state ? next : of(next);
  }
  void join(const std::string& a, const std::string& b) {
    const std::string family = of(a);
    parent_[of(b)] = family;
  }

 private:
  std::map<std::string, std::string> parent_;
};

struct Seen {
  Range range;
  bool exact = false;
};

// The groups of one method that hold states: each with one that it holds.
struct Held {
  std::string state;
  ValueId content;
};
using Groups = std::map<ValueId, Held>;

Groups groups_of_states(Calibration::Impl& method, const std::map<std::string, std::size_t>& methods_with,
                        Families& families) {
  Groups groups;
  const Graph& graph = method.found.graph;
  const QuantisationPlan& plan = method.found.plan;
  const auto& states = method.states.states();
  const std::size_t inputs = graph.inputs.size() - states.size(), outputs = graph.outputs.size() - states.size();
  for (std::size_t i = 0; i < states.size(); ++i) {
    if (methods_with.at(states[i].name) < 2) continue;
    for (const ValueId v : {graph.inputs[inputs + i], graph.outputs[outputs + i]}) {
      if (!plan.quantised[v]) continue;
      const auto [known, fresh] = groups.try_emplace(plan.group[v], Held{states[i].name, v});
      if (!fresh) families.join(known->second.state, states[i].name);
    }
  }
  return groups;
}

// Copies in 8 bits of wider tensors keep their part of the range.
void widen(Range& copy, const Range& from, const Range& to) {
  if (from.highest > 0) copy.highest *= to.highest / from.highest;
  if (from.lowest < 0) copy.lowest *= to.lowest / from.lowest;
}

}  // namespace

void share_state_ranges(std::span<Calibration* const> methods) {
  std::map<std::string, std::size_t> methods_with;
  for (Calibration* method : methods)
    for (const State& state : method->impl().states.states()) ++methods_with[state.name];
  Families families;
  std::vector<Groups> groups;
  for (Calibration* method : methods) groups.push_back(groups_of_states(method->impl(), methods_with, families));
  std::map<std::string, Seen> seen;
  for (std::size_t m = 0; m < methods.size(); ++m)
    for (const auto& [group, held] : groups[m]) {
      Seen& family = seen[families.of(held.state)];
      family.range.include(methods[m]->impl().found.ranges[held.content]);
      family.exact |= methods[m]->impl().exact[group] != 0;
    }
  for (std::size_t m = 0; m < methods.size(); ++m) {
    Calibrated& found = methods[m]->impl().found;
    for (ValueId v = 0; v < found.ranges.size(); ++v) {
      const auto group = groups[m].find(found.plan.group[v]);
      if (!found.plan.quantised[v] || group == groups[m].end()) continue;
      const Seen& family = seen.at(families.of(group->second.state));
      if (const auto copy = found.narrow.find(v); copy != found.narrow.end())
        widen(copy->second, found.ranges[v], family.range);
      found.ranges[v] = family.range;
      methods[m]->impl().exact[group->first] = family.exact;
    }
  }
}

Calibration::Calibration(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Calibration::Calibration(Calibration&&) noexcept = default;
Calibration& Calibration::operator=(Calibration&&) noexcept = default;
Calibration::~Calibration() = default;

}  // namespace tosaic
