// SPDX-License-Identifier: Apache-2.0
#include "shaders/fetched_operand.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>

#include "shaders/strided_operand.h"

namespace tosaic::shaders {

Fetched::Fetched(Kernel& s, DType type, std::optional<Value> zero_point, const Dim& row, As as)
    : s_(s),
      type_(type),
      zero_point_(zero_point),
      as_(as),
      whole_(is_multiple(row, width())),
      whole_words_(is_multiple(row, 4)),
      most_(static_cast<std::uint32_t>(row.is_number() ? std::min<std::int64_t>(row.value(), width()) : width())) {}

void Fetched::bind(ValueId v) {
  across_ =
      !whole_ && most_ == width() && (as_ == As::f16 || storage_size(type_) == 4 || (as_ == As::int8 && !whole_words_));
  if (across_) last_ = s_.param(ceil_div(elements_of(s_.type(v).shape), std::int64_t{width()}) - 1);
  const bool vectors = whole_ || across_;
  const bool words = as_ == As::int8 || (as_ == As::f16 && vectors);
  buffer_ = words ? s_.input_words(v, vectors) : s_.input(v, vectors);
  if (as_ == As::int8) zeros_ = zero_point_ ? (*zero_point_ & 0xff) * 0x01010101 : s_.integer(0);
}
void Fetched::bind(ValueId v, Value apart) {
  apart_ = apart;
  whole_ = false;
  buffer_ = s_.input(v);
}
void Fetched::bind(Bytes constant) {
  buffer_ = s_.constant(as_ == As::floats ? type_ : DType::i32, std::move(constant), true);
}

Value Fetched::vectors_in(Value elements) const {
  return shift_right_unsigned(elements + (width() - 1), s_.integer(std::countr_zero(width())));
}

void Fetched::fetch(std::size_t i, Value at, Value inside, Value left) {
  if (i == slots_.size()) slots_.emplace_back();
  Slot& slot = slots_[i];
  if (across_) return fetch_across(slot, at, inside, left);
  if (!whole_) return keep(slot.made, one_by_one(at, inside, left));
  const RawQuad raw = s_.load_raw(buffer_, s_.select(inside, at, s_.integer(0)));
  keep(slot.raw, raw);
  keep(slot.inside, inside);
}

void Fetched::fetch(std::size_t i, Value at) {
  if (i == slots_.size()) slots_.emplace_back();
  keep(slots_[i].raw, s_.load_raw(buffer_, at));
}

void Fetched::fetch_across(Slot& slot, Value at, Value inside, Value left) {
  const Value from = s_.select(inside, at, s_.integer(0));
  const Value vector = shift_right_unsigned(from, s_.integer(std::countr_zero(width())));
  keep(slot.raw, s_.load_raw(buffer_, vector));
  keep(slot.next, s_.load_raw(buffer_, smallest(vector + 1, *last_)));
  keep(slot.begin, from & (width() - 1));
  keep(slot.left, s_.select(inside, left, s_.integer(0)));
}

// Of f16 a word holds two, of bytes four: words are moved first, then each by one f16 or some bytes.
Vector Fetched::joined(const Slot& slot) {
  const RawQuad first = slot.raw->get(), second = slot.next->get();
  const Value begin = slot.begin->get(), left = slot.left->get(), zero = s_.integer(0);
  std::vector<Value> words;
  for (const RawQuad* raw : {&first, &second})
    for (Word q = 0; q < 4; ++q) words.push_back(lane(raw->vector, q));
  const std::size_t per_word = width() / 4;
  for (const std::size_t by : {std::size_t{2}, std::size_t{1}}) {
    const Value moves = (begin & static_cast<std::int64_t>(per_word * by)) != zero;
    for (std::size_t i = 0; i + by < words.size(); ++i) words[i] = s_.select(moves, words[i + by], words[i]);
    words.resize(words.size() - by);
  }
  if (as_ == As::int8) return joined_bytes(words, begin, left);
  Quad four;
  if (as_ == As::floats) {
    for (Word q = 0; q < 4; ++q) four[q] = held(words[q], left > q);
    return s_.vector(four);
  }
  const Value odd = (begin & 1) != zero, half = s_.integer(16);
  for (Word q = 0; q < 4; ++q) {
    const Value shifted = shift_right_unsigned(words[q], half) | (words[q + 1] << half);
    const Value pair = s_.select(odd, shifted, words[q]);
    four[q] = s_.select(left > 2 * q + 1, pair, s_.select(left > 2 * q, pair & 0xffff, zero));
  }
  return s_.vector(four);
}

// Of five words four, from a byte of the first one on; `left` of the bytes are there.
Vector Fetched::joined_bytes(const std::vector<Value>& words, Value begin, Value left) {
  const Value zero = s_.integer(0), low = (begin & 3) << s_.integer(3), high = s_.integer(32) - low, none = low == zero;
  Quad four;
  for (Word q = 0; q < 4; ++q) {
    const Value next = words[q + 1] << (high & 31);
    const Value word = shift_right_unsigned(words[q], low) | s_.select(none, zero, next);
    const Value here = left - 4 * q, kept = (s_.integer(1) << (clamped(here, 0, 3) << s_.integer(3))) - 1;
    const Value fill = *zeros_ & ~kept;
    four[q] = s_.select(here > 3, word, (word & kept) | fill);
  }
  return s_.vector(four);
}

Vector Fetched::one_by_one(Value at, Value inside, Value left) {
  Quad four;
  if (as_ == As::int8) {
    for (std::uint32_t q = 0; q < 4; ++q) {
      const Value there = inside & (left > 4 * q);
      four[q] = s_.select(there, s_.load(buffer_, s_.select(there, at + q, s_.integer(0))), *zeros_);
    }
    return s_.vector(four);
  }
  const auto element = [&](std::uint32_t q) {
    const Value there = inside & (left > q),
                from = s_.select(there, apart_ && q > 0 ? at + *apart_ * q : at + q, s_.integer(0));
    if (as_ == As::f16 && buffer_.type == DType::f32)
      return s_.select(there, s_.packed_f16(s_.load(buffer_, from), s_.real(0)), s_.integer(0));
    if (as_ == As::f16) return s_.select(there, s_.load_bits(buffer_, from), s_.integer(0));
    return held(s_.load(buffer_, from), there);
  };
  if (as_ == As::floats) {
    for (std::uint32_t q = 0; q < 4; ++q) four[q] = element(q);
    return s_.vector(four);
  }
  for (std::uint32_t q = 0; q < 4; ++q) {
    four[q] = 2 * q < most_ ? element(2 * q) : s_.integer(0);
    if (2 * q + 1 < most_) four[q] = four[q] | element(2 * q + 1) << s_.integer(16);
  }
  return s_.vector(four);
}

Vector Fetched::vector(std::size_t i) {
  const Slot& slot = slots_[i];
  if (across_) return joined(slot);
  if (!whole_) return slot.made->get();
  const RawQuad raw = slot.raw->get();
  Quad four;
  if (!slot.inside) {
    if (as_ != As::floats) return raw.vector;
    four = s_.numbers(raw, type_);
    for (Value& number : four) number = centred(number, zero_point_);
    return s_.vector(four);
  }
  const Value inside = slot.inside->get();
  if (as_ != As::floats) {
    for (Word q = 0; q < 4; ++q) four[q] = s_.select(inside, lane(raw.vector, q), zeros_ ? *zeros_ : s_.integer(0));
  } else {
    four = s_.numbers(raw, type_);
    for (Value& number : four) number = held(number, inside);
  }
  return s_.vector(four);
}

Value Fetched::held(Value number, Value inside) {
  const Value zero = number.kind == Kind::real ? s_.real(0) : s_.integer(0);
  return s_.select(inside, centred(number, zero_point_), zero);
}

void Windows::add_row(Value number, std::optional<Value> before) {
  Row row{number < all_rows_, {}, {}};
  const Pixel pixel = pixel_at(before ? *before + number : number, axes_);
  Value at = steps_ ? steps_->begin + pixel.image * steps_->image : pixel.image;
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    row.begin.push_back(pixel.position[i] * axes_[i].stride - axes_[i].before);
    at = steps_ ? at + row.begin[i] * steps_->axes[i] : at * axes_[i].size + row.begin[i];
  }
  row.at = steps_ ? at : at * fetched_.pitch(channels_);
  rows_.push_back(std::move(row));
}

void Windows::fetch(Value depth, Value all, std::size_t set) {
  const Value vectors = vectors_of_channels();
  std::vector<Value> tap(axes_.size());
  Value channel = depth;
  if (!axes_.empty()) {
    channel = depth % vectors;
    Value rest = depth / vectors;
    for (std::size_t i = axes_.size(); i-- > 0; rest = i > 0 ? rest / axes_[i].kernel : rest)
      tap[i] = (i > 0 ? rest % axes_[i].kernel : rest) * axes_[i].dilation;
  }
  Value offset = s_.integer(0);
  for (std::size_t i = 0; i < axes_.size(); ++i)
    if (steps_)
      offset = offset + tap[i] * steps_->axes[i];
    else
      offset = i ? offset * axes_[i].size + tap[i] : tap[i];
  const Value in_row = fetched_.scaled(channel), left = channels_ - channel * fetched_.width();
  const Value at = axes_.empty() ? in_row : (steps_ ? offset : offset * fetched_.pitch(channels_)) + in_row,
              exists = depth < all;
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    Value inside = rows_[r].exists & exists;
    for (std::size_t i = 0; i < axes_.size(); ++i)
      inside = inside & below_unsigned(rows_[r].begin[i] + tap[i], axes_[i].size);
    fetched_.fetch(set * rows_.size() + r, rows_[r].at + at, inside, left);
  }
}

void Windows::fetch(Value depth, std::size_t set) {
  for (std::size_t r = 0; r < rows_.size(); ++r)
    fetched_.fetch(set * rows_.size() + r, s_.select(rows_[r].exists, rows_[r].at, s_.integer(0)) + depth);
}

Value Windows::vectors_of_channels() {
  if (!vectors_) vectors_ = fetched_.vectors_in(channels_);
  return *vectors_;
}

std::optional<Windows::Steps> bind_image(Kernel& s, Fetched& fetched, ValueId v, std::int64_t unit) {
  const auto strided = find_strided_image(s.work(), v, unit);
  if (!strided || (strided->channels != 1 && fetched.as_int8())) {
    fetched.bind(v);
    return std::nullopt;
  }
  if (strided->channels != 1 || s.type(strided->value).dtype != s.type(v).dtype)
    fetched.bind(strided->value, s.param(strided->channels));
  else
    fetched.bind(strided->value);
  const auto step = [&](std::int64_t elements) { return s.param(fetched.units(elements)); };
  Windows::Steps steps{step(strided->offset), step(strided->strides[0]), {}};
  for (std::size_t i = 1; i < strided->strides.size(); ++i) steps.axes.push_back(step(strided->strides[i]));
  return steps;
}

Bytes packed_weights(const Bytes& weights, DType type, std::int64_t columns, std::int64_t taps, std::int64_t channels,
                     std::int64_t unit, std::int64_t groups) {
  const std::size_t size = storage_size(type);
  const auto filled = [unit](std::int64_t n) { return static_cast<std::size_t>((n + unit - 1) / unit * unit); };
  const std::size_t wide = filled(columns), deep = filled(channels);
  const auto tap_count = static_cast<std::size_t>(taps), channel_count = static_cast<std::size_t>(channels);
  const auto group_count = static_cast<std::size_t>(groups);
  std::byte* to = nullptr;
  Bytes packed = Bytes::fresh(group_count * tap_count * deep * wide * size, to);
  std::memset(to, 0, packed.size());
  const std::byte* from = weights.data();
  for (std::size_t group = 0; group < group_count; ++group, to += tap_count * deep * wide * size)
    for (std::size_t column = 0; column < static_cast<std::size_t>(columns); ++column)
      for (std::size_t tap = 0; tap < tap_count; ++tap)
        for (std::size_t c = 0; c < channel_count; ++c, from += size)
          std::memcpy(to + ((tap * deep + c) * wide + column) * size, from, size);
  return packed;
}

Bytes packed_columns(const Bytes& weights, std::int64_t columns, std::int64_t depth, std::int64_t unit) {
  if (depth % unit == 0) return weights;
  const auto count = static_cast<std::size_t>(columns), own = static_cast<std::size_t>(depth),
             deep = static_cast<std::size_t>((depth + unit - 1) / unit * unit);
  std::byte* to = nullptr;
  Bytes packed = Bytes::fresh(count * deep, to);
  std::memset(to, 0, packed.size());
  for (std::size_t c = 0; c < count; ++c) std::memcpy(to + c * deep, weights.data() + c * own, own);
  return packed;
}

FirstSums first_sums(Kernel& s, const Bytes& weights, std::int64_t columns, Value zero_point) {
  std::vector<std::int32_t> sums;
  const std::size_t of_column = weights.size() / static_cast<std::size_t>(std::max<std::int64_t>(columns, 1));
  const auto quantised = weights.as<std::int8_t>();
  for (std::size_t begin = 0; begin < quantised.size(); begin += of_column)
    sums.push_back(std::accumulate(quantised.data() + begin, quantised.data() + begin + of_column, 0));
  return {s.constant(DType::i32, Bytes::of(sums), true), s.integer(0) - zero_point};
}

}  // namespace tosaic::shaders
