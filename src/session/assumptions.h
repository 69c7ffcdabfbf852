// SPDX-License-Identifier: Apache-2.0
// What a program asserts of numbers that it computes (torch._check(n.item() < 10)), looked at whenever it runs by
// itself: ExecuTorch's programs have no place for it.
#pragma once
#include <functional>
#include <map>
#include <variant>
#include <vector>

#include "ir/graph.h"
#include "session/runnable.h"

namespace tosaic {

class Assumptions {
 public:
  Assumptions() = default;  // none
  // The tensors of whose items `graph` asserts something become outputs of it, the last ones. What follows from them in
  // other ways than by comparisons, choices and arithmetic on integers is left out.
  explicit Assumptions(Graph& graph);
  // `inner` runs that graph; without these outputs. Error of a run: run.assumption, and no state has changed.
  RunnablePtr checked(RunnablePtr inner) const;

  using Number = std::variant<std::int64_t, double>;
  using Items = std::map<std::string, Number, std::less<>>;  // by the names of what item() gives

 private:
  struct Assumption {
    std::string text;  // "u0 < 10"
    std::function<Number(const Items&)> holds;
    std::vector<std::string> items;
    LocRef loc;
  };

  class Checked;

  Status check(const std::vector<Tensor>& tensors) const;

  std::vector<Assumption> list_;
  std::vector<std::string> items_;            // of the outputs, in their order
  std::map<std::string, std::string> shown_;  // their names for people: u0
};

}  // namespace tosaic
