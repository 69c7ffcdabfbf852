// SPDX-License-Identifier: Apache-2.0
// A chain: elementwise nodes that together compute one tensor, run block by block so that what they hand to each
// other never leaves the first-level cache. Chains are steps of their own, and the epilogue of convolutions.
#pragma once
#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "cpu/elementwise/block.h"
#include "cpu/step.h"
#include "plan/expression.h"
#include "plan/groups.h"

namespace tosaic::cpu {

class Chain {
 public:
  static constexpr std::int64_t block_elements = 1024;

  // The nodes of a group (plan/groups.h). `streamed`: a value of the output's number of elements that the caller
  // computes and hands over piece by piece. `tables`: may what depends on one i8 operand alone become a table?
  // Null when some node has no kernel.
  enum class Tables : std::uint8_t { none, of_bytes };
  static std::shared_ptr<const Chain> make(const Graph& graph, const std::vector<std::uint32_t>& nodes,
                                           ValueId streamed = no_value, Tables tables = Tables::of_bytes);

  ValueId output() const { return output_; }
  std::int64_t elements() const { return elements_; }
  const std::vector<ValueId>& reads() const { return reads_; }
  std::size_t scratch_bytes() const { return scratch_bytes_; }
  std::size_t instructions() const { return instructions_.size(); }
  // What an element of a row of the output is computed from, besides the same rows: rows are those of the last axis.
  std::vector<ValueId> read_beyond_rows(std::int64_t row) const;

  // Computes elements [begin, end) of the output. `streamed` points at element `begin` of the streamed value.
  void run(const Frame& frame, std::int64_t begin, std::int64_t end, const void* streamed, std::byte* scratch) const;

 private:
  friend struct ChainBuilder;
  // Where the elements of an operand come from, for output element i.
  enum class Access : std::uint8_t {
    streamed,  // the caller's memory
    full,      // element i
    pattern,   // a constant, or a small tensor, repeated: element i % period
    repeated,  // element i % period of a longer tensor
    strided,   // any other broadcast
  };
  struct Input {
    ValueId value = no_value;
    Access access = Access::full;
    std::size_t size = 0;  // of an element
    std::int64_t period = 1;
    std::vector<std::int64_t> dims, strides;  // strided: collapsed dims of the output, innermost last
    std::vector<std::byte> constant_pattern;  // pattern of a constant: period + block_elements elements
    std::size_t memory = 0;                   // scratch of an expanded operand
  };
  struct Instruction {
    BlockKernel kernel = nullptr;
    std::array<int, 3> in{-1, -1, -1};  // registers
    int out = -1;
    std::shared_ptr<BlockConstants> constants;
  };

  static void expand(const Input& input, const std::byte* from, std::int64_t first, std::int64_t count, std::byte* to);

  ValueId output_ = no_value;
  std::size_t output_size_ = 0;
  std::int64_t elements_ = 0;
  std::vector<ValueId> reads_;
  std::vector<Input> inputs_;              // registers 0 .. inputs - 1
  std::vector<Instruction> instructions_;  // instruction i computes register inputs + i
  std::vector<std::size_t> register_memory_;
  std::size_t scratch_bytes_ = 0;
};

// May this node be part of a chain?
bool chainable(const Graph& graph, std::uint32_t node);
// What chains can take of what is left.
plan::Fusing chaining(const Planning& planning);

bool take_chain(Planning& planning, std::uint32_t node);

}  // namespace tosaic::cpu
