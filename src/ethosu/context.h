// SPDX-License-Identifier: Apache-2.0
// What one run works with: registers, memory, tables, chaining buffers, decoded weights, threads and the work that is
// still allowed.
#pragma once
#include <map>
#include <memory>

#include "base/system/thread_pool.h"
#include "ethosu/container.h"
#include "ethosu/operands.h"
#include "ethosu/scratch.h"
#include "ethosu/weight_order.h"

namespace tosaic::ethosu {

// Decoded weights, arranged densely and, for the fast kernels, packed.
struct DecodedWeights {
  Weights dense;
  std::int64_t largest = 0;          // |w|
  std::int64_t largest_sum = 0;      // of |w| over one output channel
  std::vector<std::int16_t> packed;  // conv_kernel.h
};

// Weights decoded so far: by place, content, and everything that their order depends on.
class WeightCache {
 public:
  using Key = std::vector<std::int64_t>;
  std::shared_ptr<const DecodedWeights> find(const Key& key) const {
    const auto it = entries_.find(key);
    return it == entries_.end() ? nullptr : it->second;
  }
  void keep(Key key, std::shared_ptr<const DecodedWeights> weights) {
    held_values_ += weights->dense.values.size() + weights->packed.size();
    if (held_values_ > most_values) {  // weights that change at every run must not pile up
      entries_.clear();
      held_values_ = weights->dense.values.size() + weights->packed.size();
    }
    entries_[std::move(key)] = std::move(weights);
  }

 private:
  static constexpr std::size_t most_values = std::size_t{1} << 28;
  std::map<Key, std::shared_ptr<const DecodedWeights>> entries_;
  std::size_t held_values_ = 0;
};

// A feature map that stays inside the NPU (U85), dense.
struct ChainBuffer {
  Layout layout;
  Shape3 shape;
  std::vector<std::byte> bytes;
};

struct Context {
  const Config& config;
  Registers registers;
  Regions regions;
  int constant_region = 0;
  std::vector<std::byte> internal;  // SHRAM (U55, U65) or the LUT memory (U85)
  std::map<int, ChainBuffer> chains;
  std::vector<std::int64_t> accumulators;  // U85, kept between operations
  Shape3 accumulator_shape;
  bool accumulators_kept = false;
  WeightCache& weights;
  ThreadPool& pool;
  std::vector<Scratch>& scratch;  // one for each thread of the pool
  bool slow = false;              // the plain loops everywhere: the fast kernels' oracle
  double work_left = 0;
  // U85: what a conditional branch asks, known after an operation with one result.
  enum class Flag : std::uint8_t { unknown, off, on } result_flag = Flag::unknown;

  // Takes `work` (about one multiplication or element each) from what this run may do. Error: ethosu.too-much-work.
  Status spend(double work);
};

// A map of the operand, checked, wherever it lives. Chained maps must have the shape and type they were written with.
Result<FeatureMap> place_operand(Context& context, const Operand& operand, const Shape3& shape, bool write,
                                 const char* what);

// Largest number of elements that an operation's working copies may have.
constexpr std::int64_t most_elements = std::int64_t{1} << 27;

}  // namespace tosaic::ethosu
