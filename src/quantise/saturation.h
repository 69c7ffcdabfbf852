// SPDX-License-Identifier: Apache-2.0
// Which values of a tensor mean something. A mask puts -1e9 among attention scores so that a softmax after them gives
// 0 there; scales that hold -1e9 hold nothing else. Going backwards from the functions that saturate (exp, sigmoid),
// every tensor gets the bounds beyond which its readers cannot distinguish values: these share the outermost quantised
// value.
#pragma once
#include <array>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "ir/graph.h"
#include "quantise/observe.h"

namespace tosaic {

class Saturation {
 public:
  explicit Saturation(const Graph& graph);

  // One look at a tensor; `range` is that of its finite elements.
  void see(ValueId v, std::span<const float> x, const Range& range);

  // After all samples. `steps[v]`: quantised values between the ends of v's range.
  void resolve(const std::vector<int>& steps);
  const Range& seen(ValueId v) const { return seen_[v].range; }
  // The range of what means something in v, where much of what was seen does not.
  const std::optional<Range>& meaningful(ValueId v) const { return meaningful_[v]; }
  // v holds NaN, or infinities that its readers do tell from the rest.
  bool left_out(ValueId v) const;
  // `node` makes y, logarithms of shares (log_softmax): the masked ones saturate, even where they leave the program.
  bool logarithms_saturate(const Node& node, ValueId y) const;
  // v is part of what a masked tensor is computed from, and nothing else: its quantised values share a wide range's
  // fate.
  bool joins_masked(ValueId v) const { return joins_masked_[v] != 0; }

 private:
  static constexpr double infinity = std::numeric_limits<double>::infinity();
  // Everything below `lowest` is the same to the readers, and everything above `highest`.
  struct Cut {
    double lowest = -infinity, highest = infinity;
    bool any() const { return lowest > -infinity || highest < infinity; }
  };
  struct Seen {
    Range range;
    bool below = false, above = false, nan = false;  // holds infinities, NaN
  };
  // The negative results of a maximum (whole rows may be masked), or logarithms of shares, by order of magnitude.
  struct Magnitudes {
    std::array<double, 256> smallest, largest;
    Magnitudes() {
      smallest.fill(infinity);
      largest.fill(0);
    }
  };

  bool only_moves_logarithms(const Node& node) const;
  Cut behind(const Node& node, std::size_t operand, const std::vector<int>& steps) const;
  Cut before_sum(const Node& node, std::size_t operand, const Cut& y) const;
  Cut before_function(const Node& node, const Cut& y, int steps) const;
  Range extent(ValueId v) const;
  Range held(ValueId v) const;
  static double lowest_unmasked(const Magnitudes& m, const Range& seen, double far);
  double lowest_maximum(ValueId v) const;
  double lowest_logarithm(ValueId v, int steps) const;

  const Graph& graph_;
  std::vector<Seen> seen_;
  std::vector<Cut> cuts_;
  std::vector<std::optional<Range>> meaningful_;
  std::vector<char> joins_masked_, is_output_, read_;
  std::vector<char> function_;  // read by more than maxima
  std::map<ValueId, Magnitudes> maxima_, logarithms_;
};

}  // namespace tosaic
