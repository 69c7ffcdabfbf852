// SPDX-License-Identifier: Apache-2.0
#include "ethosu/output.h"

#include <fmt/format.h>
#include <algorithm>
#include <atomic>

namespace tosaic::ethosu {
namespace {

constexpr std::int64_t scale_entry_bytes = 10;

std::uint64_t little_endian(const std::byte* from, int bytes) {
  std::uint64_t value = 0;
  for (int i = 0; i < bytes; ++i) value |= std::to_integer<std::uint64_t>(from[i]) << (8 * i);
  return value;
}
std::int64_t sign_extend(std::uint64_t value, int bits) {
  return static_cast<std::int64_t>(value << (64 - bits)) >> (64 - bits);
}

// Bytes of the internal memory, or an error.
Result<const std::byte*> table_bytes(const Context& context, std::int64_t offset, std::int64_t bytes) {
  if (offset < 0 || offset + bytes > static_cast<std::int64_t>(context.internal.size()))
    return error("ethosu.table", fmt::format("a table of {} bytes at {} lies outside the {} bytes of internal memory",
                                             bytes, offset, context.internal.size()));
  return context.internal.data() + offset;
}

}  // namespace

Status OutputStage::read_table(Context& context) {
  const Registers& r = context.registers;
  const std::uint64_t function = r.get<"ACTIVATION", "activation_function">();
  if (function == 0) return {};
  std::int64_t offset = 0, entries = 256, bytes = 1;
  const bool sign = ofm_.layout.type.is_signed;
  const int ofm_bytes = ofm_.layout.type.bytes;
  if (!r.u85()) {
    if (function < 16 || function > 23)
      return error("ethosu.undecidable",
                   fmt::format("activation function {}: the built-in tanh and sigmoid are not documented", function));
    offset = static_cast<std::int64_t>(context.internal.size()) - 2048 + 256 * static_cast<std::int64_t>(function - 16);
    if (mutated("table.slot")) offset ^= 256;
    const std::uint64_t range = r.get<"ACTIVATION", "activation_clip_range">();
    if (ofm_bytes == 1)
      table_kind_ = Table::direct, table_offset_ = sign ? 128 : 0;
    else if (ofm_bytes == 4 && (range == 2 || range == 3))
      table_kind_ = Table::direct, bytes = 4, table_offset_ = range == 3 ? 128 : 0;
    else if (ofm_bytes == 2 && sign)
      table_kind_ = Table::interpolated;
    else
      return error("ethosu.undecidable",
                   fmt::format("a table for an OFM of {} bytes with clip range {}", ofm_bytes, range));
  } else {
    switch (function) {
      case 1: table_offset_ = 0; break;
      case 4: table_offset_ = 128; break;
      case 5: table_offset_ = 128, bytes = 2; break;
      case 7: table_offset_ = 128, bytes = 4; break;
      case 8: table_kind_ = Table::interpolated; break;
      case 9: table_kind_ = Table::interpolated_wide; break;
      default: return error("ethosu.undecidable", fmt::format("activation function {} is not documented", function));
    }
    if (table_kind_ == Table::none) table_kind_ = Table::direct;
    const bool interpolates = table_kind_ != Table::direct;
    offset = static_cast<std::int64_t>(r.get<"ACTIVATION", "table">()) * (interpolates ? 2048 : 256 * bytes);
  }
  if (table_kind_ != Table::direct) entries = 512, bytes = 4;
  TOSAIC_TRY(const std::byte* from, table_bytes(context, offset, entries * bytes));
  for (std::int64_t i = 0; i < entries; ++i, from += bytes) {
    const std::uint64_t bits = little_endian(from, static_cast<int>(bytes));
    if (table_kind_ == Table::direct) {
      table_.push_back(ofm_.layout.type.is_signed ? sign_extend(bits, static_cast<int>(8 * bytes))
                                                  : static_cast<std::int64_t>(bits));
    } else {
      table_.push_back(sign_extend(bits & 0xffff, 16));
      slopes_.push_back(sign_extend(bits >> 16, 16));
    }
  }
  return {};
}

Status OutputStage::read_scale_stream(Context& context) {
  const Registers& r = context.registers;
  const std::int64_t channels = ofm_.shape.c;
  const int cores = context.config.cores;
  const bool u85 = r.u85(), wide = u85 && r.get<"ACC_FORMAT", "acc_format">() == 1;
  const int region = static_cast<int>(r.get<"SCALE_REGION", "region">());
  bias_.resize(static_cast<std::size_t>(channels));
  scales_.resize(static_cast<std::size_t>(channels));
  for (int core = 0; core < cores; ++core) {
    const std::int64_t count = (channels + cores - 1 - core) / cores;
    if (count == 0) continue;
    const std::int64_t base = core == 0 ? r.signed40<"SCALE_BASE">() : r.signed40<"SCALE1_BASE">();
    const auto length =
        static_cast<std::int64_t>(core == 0 ? r.get<"SCALE_LENGTH", "length">() : r.get<"SCALE1_LENGTH", "length">());
    if (length < count * scale_entry_bytes)
      return error("ethosu.scales",
                   fmt::format("{} bytes of scales for {} channels of {} bytes", length, count, scale_entry_bytes));
    TOSAIC_TRY(const auto bytes, range(context.regions, region, base, length, false, "the scale stream"));
    for (std::int64_t i = 0; i < count; ++i) {
      const std::byte* entry = bytes.data() + i * scale_entry_bytes;
      const auto channel = static_cast<std::size_t>(
          mutated("scales.u65_interleave") && cores > 1 ? i + core * (channels / 2) : i * cores + core);
      Scale& scale = scales_[channel];
      if (!u85) {
        bias_[channel] = sign_extend(little_endian(entry, 5), 40);
        scale = {static_cast<std::uint32_t>(little_endian(entry + 5, 4)),
                 static_cast<std::uint8_t>(little_endian(entry + 9, 1) & 63)};
      } else {
        bias_[channel] = wide ? sign_extend(little_endian(entry, 6), 48) : sign_extend(little_endian(entry, 4), 32);
        scale = {static_cast<std::uint32_t>(wide ? little_endian(entry + 6, 2) & 0x7fff
                                                 : little_endian(entry + 4, 4) & 0x7fffffff),
                 static_cast<std::uint8_t>(little_endian(entry + 8, 1) & 63),
                 static_cast<std::uint8_t>(r.get<"OFM_SCALE", "dbl_rnd">())};
      }
      if (mutated("scales.no_bias")) bias_[channel] = 0;
    }
  }
  return {};
}

// Tables for values below 2^31: product and rounding in 64 bits.
Status OutputStage::prepare_narrow() {
  narrow_ = scaling_ != Scaling::none && (rounding_ == Rounding::natural || rounding_ == Rounding::double_round) &&
            std::all_of(scales_.begin(), scales_.end(), fits_narrow) &&
            (table_kind_ == Table::none || table_kind_ == Table::direct);
  if (!narrow_) return {};
  for (std::size_t c = 0; c < static_cast<std::size_t>(ofm_.shape.c); ++c)
    narrow_scales_.add(bias_.empty() ? 0 : bias_[c], scales_[scales_.size() == 1 ? 0 : c], rounding_);
  return {};
}

// The type whose range ACTIVATION asks results to lie in.
Result<ElementType> OutputStage::clip_range(const Registers& r) const {
  const ElementType type = ofm_.layout.type, u8{1, false}, i8{1, true}, i16{2, true};
  if (r.u85()) {
    const std::uint64_t function = r.get<"ACTIVATION", "activation_function">();
    if (function == 1) return u8;
    if (function >= 4 && function <= 7) return i8;
    return function == 8 || function == 9 ? i16 : type;
  }
  switch (r.get<"ACTIVATION", "activation_clip_range">()) {
    case 0: return type;
    case 2: return u8;
    case 3: return i8;
    case 5: return i16;
    default: return error("ethosu.reserved", "the activation clip range has a reserved value");
  }
}

Status OutputStage::read_clip(const Registers& r) {
  if (ofm_.layout.type.bytes >= 4 && table_kind_ == Table::none) return {};
  clips_ = true;
  const auto low = r.get<"ACTIVATION_MIN", "clip_boundary">(), high = r.get<"ACTIVATION_MAX", "clip_boundary">();
  const bool sign = ofm_.layout.type.is_signed;
  clip_low_ = sign ? static_cast<std::int16_t>(low) : static_cast<std::int64_t>(low);
  clip_high_ = sign ? static_cast<std::int16_t>(high) : static_cast<std::int64_t>(high);
  TOSAIC_TRY(const ElementType range, clip_range(r));
  // "No clip": what does not fit the type is unknown, and is caught below; a table's index is in range anyway.
  if (r.u85() && r.get<"ACTIVATION", "activation_clip_range">() == 1) {
    clips_ = table_kind_ != Table::none;
    clip_low_ = INT64_MIN, clip_high_ = INT64_MAX;
  }
  clip_low_ = std::max(clip_low_, range.lowest());
  clip_high_ = std::min(clip_high_, range.highest());
  if (mutated("clip.ignored")) clip_low_ = range.lowest(), clip_high_ = range.highest();
  if (clip_low_ > clip_high_) return error("ethosu.clip", fmt::format("clip from {} to {}", clip_low_, clip_high_));
  return {};
}

Result<OutputStage> OutputStage::create(Context& context, Scaling scaling, const Accumulation& accumulation) {
  const Registers& r = context.registers;
  OutputStage stage;
  TOSAIC_TRY(stage.ofm_, ofm_operand(r));
  Output& ofm = stage.ofm_;
  stage.scaling_ = scaling;
  const bool reshaped = ofm.transpose != Transpose::hwc || ofm.reverse != Reverse::none;
  const auto [h, w, c] = ofm.shape;
  TOSAIC_CHECK(context.spend(static_cast<double>(h) * static_cast<double>(w) * static_cast<double>(c)));
  if (accumulation.from != Sums::kept) context.accumulators_kept = false;
  if (accumulation.stays != (ofm.storage == Storage::none))
    return error("ethosu.undecidable", accumulation.stays ? "accumulators that stay in the NPU and are also stored"
                                                          : "a result that is neither stored nor kept");
  if ((reshaped || accumulation.stays) && ofm.shape.elements() > most_elements)
    return error("ethosu.too-large", fmt::format("an OFM of {} elements", ofm.shape.elements()));
  if (accumulation.stays) {
    stage.stays_ = true;
    stage.kept_.resize(static_cast<std::size_t>(ofm.shape.elements()));
    return stage;
  }
  TOSAIC_TRY(stage.map_, place_operand(context, ofm, ofm.stored_shape(), true, "OFM"));
  if (reshaped) stage.permuted_.resize(static_cast<std::size_t>(ofm.shape.elements()));
  TOSAIC_CHECK(stage.read_table(context));
  TOSAIC_CHECK(stage.read_clip(r));
  stage.scales_.assign(1, Scale{});
  if (scaling != Scaling::none) {
    TOSAIC_TRY(stage.rounding_, ofm_rounding(r));
    if (scaling == Scaling::global) stage.scales_[0] = ofm_scale(r);
    if (scaling == Scaling::per_channel) { TOSAIC_CHECK(stage.read_scale_stream(context)); }
  }
  TOSAIC_CHECK(stage.prepare_narrow());
  return stage;
}

std::int64_t OutputStage::largest_bias() const {
  std::int64_t largest = 0;
  for (const std::int64_t b : bias_) largest = std::max(largest, std::abs(b));
  return largest;
}

std::int64_t OutputStage::look_up(std::int64_t value) const {
  if (table_kind_ == Table::direct) {
    const auto index = static_cast<std::size_t>(value + table_offset_) & 255;
    return table_[mutated("table.index") ? index ^ 128 : index];
  }
  const auto index = static_cast<std::size_t>((value + 32768) >> 7) & 511;
  const std::int64_t fraction = value & 127;
  const std::int64_t product = slopes_[index] * fraction;
  if (table_kind_ == Table::interpolated_wide) return (table_[index] << 7) + product;
  const std::int64_t rounded = mutated("table.interpolation") ? product >> 7 : (product + 64) >> 7;
  return std::clamp<std::int64_t>(table_[index] + rounded, -32768, 32767);
}

std::int64_t OutputStage::finish(std::int64_t value, std::int64_t channel) {
  const bool many = scales_.size() > 1;
  if (!bias_.empty()) value += bias_[static_cast<std::size_t>(channel)];
  if (scaling_ != Scaling::none)
    value = rescale(value, scales_[many ? static_cast<std::size_t>(channel) : 0], rounding_);
  value += ofm_.zero_point;
  if (clips_) value = std::clamp(value, clip_low_, clip_high_);
  if (table_kind_ != Table::none) value = look_up(value);
  const ElementType type = ofm_.layout.type;
  // 32 bits: signed or unsigned is the reader's business, 33 bits are nobody's.
  const bool fits = type.bytes == 4
                        ? value >= INT32_MIN && value <= static_cast<std::int64_t>(UINT32_MAX) -
                                                             (type.is_signed ? INT32_MAX + std::int64_t{1} : 0)
                        : value >= type.lowest() && value <= type.highest();
  if (!fits) std::atomic_ref(overflow_).store(true, std::memory_order_relaxed);
  return value;
}

// As [pixels][depth] in 32 bits; null: that is not enough for them.
static std::int32_t* narrowed(Scratch& scratch, const std::int64_t* sums, std::int64_t pixels, std::int64_t depth,
                              std::int64_t stride) {
  std::int32_t* to = Scratch::of(scratch.narrowed, pixels * depth);
  std::int64_t lost = 0;
  for (std::int64_t x = 0; x < pixels; ++x)
    for (std::int64_t c = 0; c < depth; ++c) {
      const std::int64_t sum = sums[x * stride + c];
      to[x * depth + c] = static_cast<std::int32_t>(sum);
      lost |= sum ^ to[x * depth + c];
    }
  return lost == 0 ? to : nullptr;
}

void OutputStage::finish_row(Scratch& scratch, std::int64_t y, std::int64_t c0, std::int64_t c1, std::int64_t* sums,
                             std::int64_t stride) {
  const std::int64_t width = ofm_.shape.w, depth = c1 - c0;
  if (stays_) {  // bias and scale come with the operation that stores
    for (std::int64_t x = 0; x < width; ++x)
      std::copy_n(sums + x * stride, depth, kept_.data() + (y * width + x) * ofm_.shape.c + c0);
    return;
  }
  if (finishes_narrow() && bias_.empty())
    if (std::int32_t* narrow = narrowed(scratch, sums, width, depth, stride))
      return finish_row(scratch, y, c0, c1, narrow, depth);
  std::int64_t* row = Scratch::of(scratch.finished, width * depth);
  for (std::int64_t x = 0; x < width; ++x)
    for (std::int64_t c = 0; c < depth; ++c) row[x * depth + c] = finish(sums[x * stride + c], c0 + c);
  if (!permuted_.empty()) {
    for (std::int64_t x = 0; x < width; ++x)
      std::copy_n(row + x * depth, depth, permuted_.data() + (y * width + x) * ofm_.shape.c + c0);
    return;
  }
  map_.write_row(y, 0, width, c0, c1, row);
}

void OutputStage::finish_row(Scratch& scratch, std::int64_t y, std::int64_t c0, std::int64_t c1, std::int32_t* sums,
                             std::int64_t stride) {
  const std::int64_t width = ofm_.shape.w, depth = c1 - c0;
  if (!finishes_narrow()) {
    std::int64_t* wide = Scratch::of(scratch.widened, width * depth);
    for (std::int64_t x = 0; x < width; ++x)
      for (std::int64_t c = 0; c < depth; ++c) wide[x * depth + c] = sums[x * stride + c];
    return finish_row(scratch, y, c0, c1, wide, depth);
  }
  std::int32_t* row = Scratch::of(scratch.narrow_finished, width * depth);
  finish_pixels({narrow_scales_, c0, depth, ofm_.zero_point, clip_low_, clip_high_, sums, width, stride, row});
  if (table_kind_ == Table::direct)
    for (std::int64_t i = 0; i < width * depth; ++i) row[i] = static_cast<std::int32_t>(look_up(row[i]));
  map_.write_row(y, 0, width, c0, c1, row);
}

Status OutputStage::close(Context& context) {
  if (stays_) {
    context.accumulators = std::move(kept_);
    context.accumulator_shape = ofm_.shape;
    context.accumulators_kept = !mutated("accumulators.kept");
    return {};
  }
  if (overflow_)
    return error("ethosu.overflow", "a result does not fit the OFM's type; what the hardware stores then is not known");
  if (permuted_.empty()) return {};
  const auto [h, w, c] = ofm_.shape;
  const Shape3 stored = map_.shape();
  std::vector<std::int64_t> row(static_cast<std::size_t>(stored.w * stored.c));
  // The step in the result, in operation order, that belongs to one step along each stored axis.
  const std::int64_t step_h = w * c, step_w = c, step_c = 1;
  std::int64_t a = step_h, b = step_w, d = step_c;
  switch (ofm_.transpose) {
    case Transpose::hwc: break;
    case Transpose::whc: a = step_w, b = step_h; break;
    case Transpose::hcw: b = step_c, d = step_w; break;
    case Transpose::wch: a = step_w, b = step_c, d = step_h; break;
    case Transpose::chw: a = step_c, b = step_h, d = step_w; break;
    case Transpose::cwh: a = step_c, b = step_w, d = step_h; break;
  }
  const auto at = [&](std::int64_t i, std::int64_t size, Reverse axis) {
    return ofm_.reverse == axis ? size - 1 - i : i;
  };
  for (std::int64_t y = 0; y < stored.h; ++y) {
    for (std::int64_t x = 0; x < stored.w; ++x)
      for (std::int64_t z = 0; z < stored.c; ++z)
        row[static_cast<std::size_t>(x * stored.c + z)] = permuted_[static_cast<std::size_t>(
            at(y, stored.h, Reverse::h) * a + at(x, stored.w, Reverse::w) * b + at(z, stored.c, Reverse::c) * d)];
    map_.write_row(y, 0, stored.w, 0, stored.c, row.data());
  }
  return {};
}

}  // namespace tosaic::ethosu
