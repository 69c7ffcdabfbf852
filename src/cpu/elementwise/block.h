// SPDX-License-Identifier: Apache-2.0
// Elementwise arithmetic on blocks: a kernel reads and writes a few thousand neighbouring elements that lie in the
// first-level cache. Chains (chain.h) string them together. f16 and bf16 live in blocks as f32 that hold only
// numbers of the narrow type: every operation is followed by a rounding, which gives the correctly rounded result
// (24 bits are at least 2 x 11 + 2).
#pragma once
#include <cstdint>
#include <vector>

#include "ir/dtype.h"
#include "ir/tosa_operators.h"

// What chains do besides: they load, round and store narrow floats, and compute a RESCALE in three parts.
namespace tosaic::cpu::block {
TOSAIC_OPERATOR(load, "block.load", "block", "load", "")
TOSAIC_OPERATOR(round, "block.round", "block", "round", "")
TOSAIC_OPERATOR(store, "block.store", "block", "store", "")
TOSAIC_OPERATOR(widen, "block.widen", "block", "widen", "")
TOSAIC_OPERATOR(scale, "block.scale", "block", "scale", "")
TOSAIC_OPERATOR(narrow, "block.narrow", "block", "narrow", "")
}  // namespace tosaic::cpu::block

namespace tosaic::cpu {

// Constants of one operation; each kernel reads those that its operator has.
struct BlockConstants {
  std::int64_t lowest = 0, highest = 0;               // CLAMP of integers, limits of RESCALE's output
  float lowest_f32 = 0, highest_f32 = 0;              // CLAMP of floats
  std::int32_t input_zp = 0, output_zp = 0;           // RESCALE, NEGATE
  int shift = 0;                                      // MUL
  std::vector<std::int32_t> multiplier, scale_shift;  // RESCALE; per channel: repeated to channels + block
  std::int64_t channels = 1;
  const void* table = nullptr;              // TABLE
  std::vector<std::int8_t> computed_table;  // where it is not the graph's
  std::vector<BlockConstants> operands;     // joined_kernel: the RESCALEs of the two operands
};

struct Block {
  std::int64_t count;
  std::int64_t first;  // index of the first element in the whole tensor (which channel it is)
  const void* in[3];
  void* out;  // overlaps no input
  const BlockConstants* constants;
};
using BlockKernel = void (*)(const Block&);

// What is asked for: the operator and the dtypes in memory form (f16 and bf16 count as f32 here).
struct BlockKey {
  Operator op;  // TOSA's, or of `block`
  DType in, out;
  bool ignore_nan = false;                               // CLAMP, MAXIMUM, MINIMUM
  bool rounded = false;                                  // ARITHMETIC_RIGHT_SHIFT
  bool input_unsigned = false, output_unsigned = false;  // RESCALE
  bool per_channel = false, double_round = false;
};
// The kernel for the instruction set in use; null: there is none.
BlockKernel block_kernel(const BlockKey& key);
// ADD, SUB or MUL of i32 (unshifted) between RESCALEs from and to i8 with one scale each; null: not with these
// constants.
BlockKernel joined_kernel(Operator op, const BlockConstants& constants);
// block_kernel's three parts, a file each.
BlockKernel integer_kernel(const BlockKey& key);
BlockKernel float_kernel(const BlockKey& key);
BlockKernel rescale_kernel(const BlockKey& key);

}  // namespace tosaic::cpu
