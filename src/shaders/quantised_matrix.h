// SPDX-License-Identifier: Apache-2.0
// A quantised matrix as a shader reads it (quantised_weights.h).
#pragma once
#include <bit>

#include "shaders/quantised_weights.h"

namespace tosaic::shaders {

// Its scales, four rows' next to each other.
class GroupScales {
 public:
  GroupScales(Kernel& s, const QuantisedMatrix& m, const Buffer& scales)
      : s_(s), scales_(scales), groups_(s.param(m.depth / m.group)) {
    const std::int64_t words = m.group / m.per_word();
    is_shift_ = std::has_single_bit(static_cast<std::uint64_t>(words));
    group_ = s.param(is_shift_ ? std::countr_zero(static_cast<std::uint64_t>(words)) : words);
  }
  Value group_of(Value word) const { return is_shift_ ? shift_right_unsigned(word, group_) : word / group_; }
  Quad of_group(Value quad, Value group) const { return s_.load_quad(scales_, quad * groups_ + group); }

 private:
  Kernel& s_;
  const Buffer scales_;
  const Value groups_;
  Value group_;
  bool is_shift_ = false;
};

// The matrix as a shader reads it, whose words lie along its rows.
class QuantisedByRow {
 public:
  QuantisedByRow(Kernel& s, const QuantisedMatrix& m)
      : s_(s),
        bits_(m.bits),
        per_(m.per_word()),
        words_(s.constant(DType::i32, m.words)),
        scales_buffer_(s.constant(DType::f32, m.scales, true)),
        row_(s.param(m.depth / m.per_word())),
        scales_(s, m, scales_buffer_) {}
  std::int64_t per_word() const { return per_; }
  Value words() const { return row_; }  // of a row

  // What four rows' weights in word `at` are: one by one those that it has.
  struct Read {
    Value word;
    Vector scale;
  };
  Read read(Value quad, Value at) const {
    const Value group = scales_.group_of(at), word = s_.load(words_, quad * row_ + at);
    return {word, s_.vector(scales_.of_group(quad, group))};
  }
  // Those of one column of the word's, of as many as it has.
  Vector weights(const Read& read, Value which) const {
    Quad four;
    for (Word q = 0; q < 4; ++q) four[q] = number(read.word, q, which) * lane(read.scale, q);
    return s_.vector(four);
  }
  // Of one row alone, whose place among the four is known when it runs; `which` as well.
  Value weight(Value quad, Value row, Value at, Value which) const {
    const Read r = read(quad, at);
    Value scale = lane(r.scale, 0);
    for (Word q = 1; q < 4; ++q) scale = s_.select(row == q, lane(r.scale, q), scale);
    const Value shift = row * 8 + which * 4, code = shift_right_unsigned(r.word, shift);
    return as_real(code) * scale;
  }

 private:
  Value number(Value word, Word row, Value which) const {
    return as_real(shift_right_unsigned(word, s_.integer(std::int64_t{row} * 8) + which * 4));
  }
  // The code in the lowest bits.
  Value as_real(Value bits) const {
    if (bits_ == 4) return s_.signed_to_real((bits & 15) - 8);
    const Value up = s_.integer(24);
    return s_.signed_to_real(shift_right_signed(bits << up, up));
  }

  Kernel& s_;
  const int bits_;
  const std::int64_t per_;
  const Buffer words_, scales_buffer_;
  const Value row_;
  const GroupScales scales_;
};

// What is fetched of it for the places of an invocation, to be used later.
class FetchedWeights {
 public:
  explicit FetchedWeights(Kernel& s, const QuantisedMatrix& m) : s_(s), quantised_(s, m) {}
  // Column `k` of four rows; any, if `inside` is false.
  void fetch(std::size_t i, Value quad, Value k, Value inside) {
    const Value per = s_.integer(quantised_.per_word());
    const QuantisedByRow::Read read =
        quantised_.read(s_.select(inside, quad, s_.integer(0)), s_.select(inside, k / per, s_.integer(0)));
    if (i == slots_.size())
      slots_.push_back({s_.variable(read.word), s_.variable(read.scale), s_.variable(k % per)});
    else {
      slots_[i].word.set(read.word);
      slots_[i].scale.set(read.scale);
      slots_[i].which.set(k % per);
    }
  }
  Vector vector(std::size_t i) const {
    const Slot& p = slots_[i];
    return quantised_.weights({p.word.get(), p.scale.get()}, p.which.get());
  }

 private:
  struct Slot {
    Variable word;
    VectorVariable scale;
    Variable which;
  };
  Kernel& s_;
  const QuantisedByRow quantised_;
  std::vector<Slot> slots_;
};

}  // namespace tosaic::shaders
