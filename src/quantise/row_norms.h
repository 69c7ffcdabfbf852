// SPDX-License-Identifier: Apache-2.0
// Norms over rows of unlike size. x * rsqrt(mean(x^2) + eps), x / max(norm(x), eps) and their like give numbers of one
// size whatever the row's, but between the two stands a sum of squares: of rows that differ by a factor of 1000 it
// spans six orders of magnitude, more than 16 bits hold, and the table of 1/sqrt after it has no knots for the small.
// A factor per row cancels out of such a norm. So every row is first brought to about one size, by a factor that may be
// any rough function of its largest element, and the norm is that of the scaled row.
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "ir/graph.h"
#include "quantise/steps.h"

namespace tosaic {

// One call on the way from the size of a row to the factor that its elements get, as a function of that size.
struct SizeStep {
  enum class Kind : std::uint8_t { moves, power, line, at_least };
  std::size_t node = 0;
  std::size_t operand = 0;  // which of the call's operands is v
  Kind kind = Kind::moves;
  double exponent = 1, factor = 1;  // power: factor * v^exponent
  double slope = 1, offset = 0;     // line: slope * v + offset; at_least: max(v, offset)
  ValueId added = no_value;         // a computed tensor in the offset's place
  bool offsets() const { return kind == Kind::line || kind == Kind::at_least; }
};

struct RowNorm {
  enum class Kind : std::uint8_t { squares, magnitudes, plain };
  ValueId rows = no_value;    // the tensor whose rows are measured
  ValueId source = no_value;  // x where those are x - mean(x), else the rows themselves
  ValueId mean = no_value;    // of x
  Kind kind = Kind::plain;    // by their squares, by their magnitudes, or as they are
  bool alike = false;         // the rows of the samples are of about one size
  std::size_t reduction = 0;  // the sum, mean or maximum of these
  ValueId size = no_value;    // what that gives
  std::vector<SizeStep> steps;
  double floor = 0;           // the eps: smaller sizes count as this one
  std::size_t product = 0;    // the call that multiplies the rows by steps(size)
  ValueId result = no_value;  // what that gives
  std::size_t operand = 0;    // which of its operands are the rows
  double degree() const { return kind == Kind::squares ? 2 : 1; }
};

// Does the call move elements of its first operand and do nothing else?
bool only_moves(const Graph& graph, const Node& node);

std::vector<RowNorm> find_row_norms(const Graph& graph);
// The dims that a reduction names, from the front, ascending; all where it names none.
std::vector<std::int64_t> row_dims(const Node& reduction, int rank);

// The sizes of rows that the samples show.
class RowSizes {
 public:
  explicit RowSizes(std::vector<RowNorm> norms);
  const std::vector<RowNorm>& norms() const { return norms_; }
  void see(ValueId v, std::span<const float> elements);
  // By what factor the largest and the smallest row differ. Rows smaller than eps do not count: their results are
  // small, too.
  double unlikeness(const RowNorm& norm) const;
  double smallest(const RowNorm& norm) const { return seen_.at(norm.size).smallest; }
  double largest(const RowNorm& norm) const { return seen_.at(norm.size).largest; }

 private:
  struct Sizes {
    double floor = 0, smallest = 0, largest = 0;
  };
  std::vector<RowNorm> norms_;
  std::map<ValueId, Sizes> seen_;
};

// What has been done about unlike rows.
struct ScaledRows {
  std::set<ValueId> done;            // rows that are of one size, as nearly as it gets
  std::map<ValueId, ValueId> means;  // means of rows, and these: a mean may be as large
};

// Writes the norms anew, of rows that are scaled. Per value: `largest`, the largest magnitude of its elements; `wide`,
// it has 16 bits; `inner` grows with the graph's values, and `certain` receives the ranges of factors and scaled rows.
void scale_rows(Graph& graph, std::vector<RowNorm> norms, const std::vector<double>& largest,
                const std::vector<char>& wide, std::vector<char>& inner, CertainRanges& certain, ScaledRows& scaled);

}  // namespace tosaic
