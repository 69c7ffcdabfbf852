// SPDX-License-Identifier: Apache-2.0
// The operations. Each reads the registers, checks all it will touch, computes, and stores through the OutputStage,
// which it hands back for the trace.
#pragma once
#include <optional>

#include "ethosu/output.h"

namespace tosaic::ethosu {

Result<OutputStage> run_convolution(Context& context, bool depthwise, bool weights_from_ifm2);
Result<OutputStage> run_pool(Context& context, std::uint32_t mode);
Result<OutputStage> run_elementwise(Context& context, std::uint32_t mode);
Result<OutputStage> run_resize(Context& context, std::uint32_t mode);
Status run_dma(Context& context);

// What the operation does with sums between operations: nothing on U55 and U65.
Result<Accumulation> accumulation_of(const Registers& registers);
// The sums that an operation starts from, in the OFM's shape; empty: zero.
Result<std::vector<std::int64_t>> initial_sums(Context& context, Sums from, const Shape3& shape);

// The inputs of CONV, DEPTHWISE, POOL: row by row over the window's extent, zero point off, padding and upscaling
// resolved. Input and OFM may overlap: the input is then copied first.
class WindowInput {
 public:
  static Result<WindowInput> create(Context& context, const OutputStage& out, const Kernel& kernel, std::int64_t depth);
  const Shape3& window() const { return window_; }  // without padding, after upscaling
  const Padding& padding() const { return padding_; }
  const Operand& operand() const { return operand_; }
  std::int64_t depth() const { return window_.c; }
  // The stored row and column behind row or column i of the window; -1: a zero that upscaling inserts.
  std::int64_t stored(std::int64_t i) const {
    if (upscale_ == Upscale::none) return i;
    if (upscale_ == Upscale::zeros && i % 2 != (mutated("upscale.phase") ? 1 : 0)) return -1;
    return i / 2;
  }
  // Row y of the window, [w][stride] with `depth()` channels used.
  void read(Scratch& scratch, std::int64_t y, std::int64_t* to) const;
  void read(Scratch& scratch, std::int64_t y, std::int16_t* to, std::int64_t stride) const;
  bool fits_int16() const;

 private:
  template <class T>
  void spread(const T* stored_row, T* to, std::int64_t stride) const;
  Operand operand_;
  Padding padding_;
  Upscale upscale_ = Upscale::none;
  Shape3 window_;
  FeatureMap map_;
  std::shared_ptr<std::vector<std::byte>> copy_;
};

}  // namespace tosaic::ethosu
