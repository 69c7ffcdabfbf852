// SPDX-License-Identifier: Apache-2.0
// The output stage that all operations share: bias, scale, zero point, clip, table, and the store, with transposition.
#pragma once
#include "ethosu/context.h"
#include "ethosu/finish_kernel.h"

namespace tosaic::ethosu {

enum class Scaling : std::uint8_t {
  none,         // values pass
  global,       // OFM_SCALE
  per_channel,  // bias and scale of every channel, from the scale stream
};

// U85: where an operation's sums start, and whether they stay inside the NPU for the next one.
enum class Sums : std::uint8_t { reset, kept, in_ifm2 };
struct Accumulation {
  Sums from = Sums::reset;
  bool stays = false;
};

class OutputStage {
 public:
  // Reads the registers, checks the OFM. `shape`: in operation order.
  static Result<OutputStage> create(Context& context, Scaling scaling, const Accumulation& accumulation = {});

  const Output& ofm() const { return ofm_; }
  const Shape3& shape() const { return ofm_.shape; }
  const FeatureMap& map() const { return map_; }
  bool stores() const { return ofm_.storage != Storage::none; }
  // The scale that `global` applies; operations with a scale of their own change it.
  const Scale& global_scale() const { return scales_.front(); }
  Rounding rounding() const { return rounding_; }
  // Largest |bias|, for those who accumulate in 32 bits.
  std::int64_t largest_bias() const;
  // Accumulators in 32 bits can be finished by the short way.
  bool narrow() const { return narrow_; }

  // Finishes channels [c0, c1) of row y: sums are [w][stride] with c1 - c0 used. Rows and channel ranges are
  // independent of each other, so threads may share them.
  void finish_row(Scratch& scratch, std::int64_t y, std::int64_t c0, std::int64_t c1, std::int64_t* sums,
                  std::int64_t stride);
  void finish_row(Scratch& scratch, std::int64_t y, std::int64_t c0, std::int64_t c1, std::int32_t* sums,
                  std::int64_t stride);
  // After the last row: stores what waits for that, or leaves the sums in the context. Error: ethosu.overflow when a
  // value did not fit and the hardware's answer is unknown.
  Status close(Context& context);

 private:
  OutputStage() = default;
  Status read_scale_stream(Context& context);
  Status read_table(Context& context);
  Status read_clip(const Registers& registers);
  Result<ElementType> clip_range(const Registers& registers) const;
  Status prepare_narrow();
  std::int64_t look_up(std::int64_t value) const;
  std::int64_t finish(std::int64_t value, std::int64_t channel);

  Output ofm_;
  FeatureMap map_;
  bool stays_ = false;  // the sums, in kept_
  std::vector<std::int64_t> kept_;
  Scaling scaling_ = Scaling::none;
  Rounding rounding_ = Rounding::natural;
  std::vector<Scale> scales_;  // one, or one per channel
  std::vector<std::int64_t> bias_;
  bool clips_ = false;
  std::int64_t clip_low_ = 0, clip_high_ = 0;
  enum class Table : std::uint8_t { none, direct, interpolated, interpolated_wide } table_kind_ = Table::none;
  std::int64_t table_offset_ = 0;
  std::vector<std::int64_t> table_, slopes_;
  bool narrow_ = false;
  bool finishes_narrow() const { return narrow_ && permuted_.empty() && clips_; }
  NarrowScales narrow_scales_;
  std::vector<std::int64_t> permuted_;  // the whole result, when it is stored transposed or reversed
  bool overflow_ = false;               // several threads may set it
};

}  // namespace tosaic::ethosu
