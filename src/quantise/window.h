// SPDX-License-Identifier: Apache-2.0
// Which elements of its operand a layer multiplies its weight with, and where these stand. Private to quantise/.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ir/graph.h"
#include "quantise/observed_program.h"

namespace tosaic {

using Ints = std::vector<std::int64_t>;
std::int64_t product(std::span<const std::int64_t> sizes);

// Where a layer reads x, in PyTorch's terms; a linear layer has no spatial dims.
struct Window {
  ValueId x = no_value;
  Ints input;                              // sizes of x: any dims, channels, spatial
  Ints output;                             // sizes of the result: the same dims, and its spatial ones
  Ints kernel, stride, padding, dilation;  // one per spatial dim; padding: before the first
  std::int64_t groups = 1;
  bool transposed = false;  // an element of x meets all of the kernel, but where the result ends
  std::size_t channel() const { return input.size() - kernel.size() - 1; }
  std::int64_t channels() const { return input[channel()]; }
  bool operator==(const Window&) const = default;
};

// Of a call whose operand 1 is its weight. nullopt: it has no such form, or no sizes.
std::optional<Window> window_of(const Graph& graph, const Node& node);

// The taps of a layer's weight, a run for each pair of channels: f(that of the result, that of the operand, run).
template <class F>
void for_each_run(const Window& window, const Shape& weight, const F& f) {
  const auto rows = static_cast<std::size_t>(weight.size(0)), columns = static_cast<std::size_t>(weight.size(1)),
             groups = static_cast<std::size_t>(window.groups);
  for (std::size_t r = 0; r < rows; ++r)
    for (std::size_t c = 0; c < columns; ++c) {
      const std::size_t other = r / (rows / groups) * columns + c;  // the columns of its group
      if (window.transposed)
        f(other, r, r * columns + c);
      else
        f(r, other, r * columns + c);
    }
}

// A tensor's elements as they are in memory. `offsets`: the element at some indices stands at the sum of what each
// dim has for its index.
struct Placed {
  const float* x;
  std::vector<Ints> offsets;
  Bytes copy = {};  // of elements that had to be moved
};
// Dims as one: what it has for each of its indices.
Ints joined(std::span<const Ints> offsets);

// One look at a tensor: elements of `type`, which `moves` bring to where they are to stand. Where that is, is found out
// for the first who asks. All that it is made of outlives it.
class Look {
 public:
  Look(std::span<const float> x, const TensorType& type, const std::vector<Move>& moves)
      : x_(x), type_(type), moves_(moves) {}
  std::int64_t count() const { return std::ssize(x_); }
  const Placed& placed() const;

 private:
  std::span<const float> x_;
  const TensorType& type_;
  const std::vector<Move>& moves_;
  mutable std::optional<Placed> placed_;
};

}  // namespace tosaic
