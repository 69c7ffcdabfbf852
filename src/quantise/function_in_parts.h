// SPDX-License-Identifier: Apache-2.0
// A function of a tensor whose values span more than the quantised values of one scale, and the table after them, can
// follow: sums of which the samples show a part alone. The sum s is held in several tensors, each clamped to a part of
// what it can be, of which the ends differ by a small factor,
//   f(s) = f(min(s, T)) * f(max(s, T)) / f(T)       for powers as 1/s
//   f(s) = f(min(s, T)) + f(max(s, T)) - f(T)       for logarithms
// which holds for every f and T: one of the two clamped tensors is s, the other one T. Only tensors of one element per
// row are computed more than once.
#pragma once
#include <optional>
#include <vector>

#include "ir/rewriter.h"
#include "ops/composer.h"
#include "ops/lowering/calls.h"
#include "quantise/steps.h"

namespace tosaic {

// A call's results at points, if each follows from its own point.
std::optional<std::vector<double>> results_at(const Graph& graph, const Node& node, std::vector<double> at);

// A function of a sum: calls whose first operand alone is computed, of the sum and then of each other.
struct Way {
  std::size_t reduction = 0;
  std::vector<std::size_t> calls;
  // Calls between the two that are made once more for each part, too: where the last one gives h, this one's operand is
  // at most factor * h^exponent.
  struct Between {
    std::size_t call = 0;
    double factor = 1, exponent = 1;
  };
  std::vector<Between> base;
  std::vector<std::size_t> products;  // calls that multiply rows by the function
};

// `at` ascends; the sum is between its first and its last. Up to at[usual] the sum is small, as few rows have it: what
// the function has there beyond f(at[usual]) is a factor of its own, 1 for all others, by which products are multiplied
// again. So it takes nothing of the quantised values that the usual ones have.
struct Ends {
  std::vector<double> at;
  std::size_t usual = 0;
  bool empty() const { return at.empty(); }
};

// Writes such functions anew, in parts.
class InParts {
 public:
  // `inner` grows with the graph's values, and `certain` receives the ranges of those that are made. `room`: products
  // of parts may be so much larger than the samples'; 0: they have the range of the samples. `closed`: the sum may be
  // beyond the ends, where it saturates.
  InParts(Graph& graph, std::vector<char>& inner, CertainRanges& certain, double room, bool closed);
  const std::vector<Node>& nodes() const { return nodes_; }
  // False: the function cannot be asked.
  bool hold(const Way& way, const Ends& ends);
  void finish();

 private:
  class Values;
  CertainRange held(CertainRange range) const;
  std::vector<std::optional<Val>> with_first(const Node& node, Val v);
  Val sum_of_part(const Way& way, double highest);
  Val function_of_part(const Way& way, const Values& values, const Ends& ends, std::size_t i);
  Val repeated(Val all, bool certain);
  Val beyond_usual(const Way& way, const Values& values, const Ends& ends);
  void multiply_again(const Way& way, Val factor);

  Graph& graph_;
  std::vector<char>& inner_;
  CertainRanges& certain_;
  const double room_;
  const bool closed_;
  Rewriter out_;
  std::vector<Node>& nodes_ = out_.nodes();
  std::vector<std::vector<Node>> instead_;  // of a call
  std::vector<std::size_t> later_;          // calls that repeat elements, behind all others
  Composer b_;
};

}  // namespace tosaic
