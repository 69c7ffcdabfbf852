// SPDX-License-Identifier: Apache-2.0
// Where another compiler makes the payloads, and one of them fails or is wrong: which node of the delegate its compiler
// cannot take, found by compiling parts of it; and how the program is marked for another try without it.
#pragma once
#include <functional>
#include <optional>
#include <string>

#include "pipeline/self_check.h"

namespace tosaic {

// What is wrong with a part of a region that is compiled by itself, if anything is.
using WrongWith = std::function<std::optional<Fault>(const Graph& part, const GivenInputs& inputs)>;

struct Culprit {
  std::size_t node = 0;      // of the region
  bool right_alone = false;  // in a delegate of its own it is what it should be
};

// The first node with which the nodes before it are wrong. The place that the fault names is looked at first.
Culprit find_culprit(const Graph& region, const Fault& fault, const WrongWith& wrong_with);

// What becomes of nodes that are not compiled rightly, round by round: first a delegate of their own, where that is
// right, then the CPU.
class SetAside {
 public:
  // Marks the node (of a region) in the program's graph, or in the body where it is. Of nodes that are alike the second
  // marks all of them.
  void mark(Graph& program, const Node& node, const Graph& region, bool right_alone, const Diagnostic& why,
            const std::string& target);
  // All nodes of a region: outside.
  void mark_all(Graph& program, const Graph& region, const Diagnostic& why, const std::string& target);
  bool empty() const { return marked_.empty(); }
  std::vector<Diagnostic> warnings() const;

 private:
  struct Marked {
    LocRef loc;
    Operator op;
    std::string kind;
    bool outside;
    Diagnostic why;
    std::size_t count = 1;  // of nodes alike
  };
  Marked& entry(const Node& node, std::string kind, bool outside, const Diagnostic& why);
  std::vector<Marked> marked_;
  std::string target_;
};

}  // namespace tosaic
