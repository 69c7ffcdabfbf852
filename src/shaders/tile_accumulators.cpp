// SPDX-License-Identifier: Apache-2.0
#include "shaders/tile_accumulators.h"

#include "shaders/axes.h"

namespace tosaic::shaders {
namespace {

Value number(const TileAccumulators& sums, Value x) { return x.kind == sums.kind ? x : x.shader->real_of(x); }

Value sum_at(Kernel& s, const TileAccumulators& sums, Value at, Value part) {
  Value all = number(sums, s.load(sums.memory, at, part));
  for (std::uint32_t t = 1; t < sums.parts; ++t)
    all = all + number(sums, s.load(sums.memory, at + t * sums.rows * sums.pitch, part));
  return all;
}

}  // namespace

Quad accumulators_at(Kernel& s, const TileAccumulators& sums, Value at) {
  Quad all;
  for (std::uint32_t t = 0; t < sums.parts; ++t) {
    const Vector v = s.load(sums.memory, at + t * sums.rows * sums.pitch);
    for (Word q = 0; q < 4; ++q) {
      const Value x = number(sums, lane(v, q));
      all[q] = t == 0 ? x : all[q] + x;
    }
  }
  return all;
}

void store_at(Kernel& s, const TileAccumulators& sums, Value at, const Quad& made) {
  Quad all = made;
  for (Value& x : all)
    if (x.kind != sums.memory.kind) x = x.kind == Kind::real ? s.bits_of(x) : s.real_of(x);
  s.store(sums.memory, at, s.vector(all));
}

Quad made_at(Kernel& s, const TileAccumulators& sums, Value at, bool real) {
  const Vector v = s.load(sums.memory, at);
  Quad all;
  for (Word q = 0; q < 4; ++q) {
    all[q] = lane(v, q);
    if (real != (all[q].kind == Kind::real)) all[q] = real ? s.real_of(all[q]) : s.bits_of(all[q]);
  }
  return all;
}

struct Sink::Taken {
  Value there, at;  // at: a quad's or an element's number
  Quad results;     // or one
};

Sink::Sink(Kernel& s, const Finish& end, const tosa::View* biased, bool by_quads, Value first_column, Value all_rows,
           Value all_columns, Value before, Value apart)
    : s_(s),
      end_(end),
      biased_(biased),
      by_quads_(by_quads),
      first_column_(first_column),
      all_rows_(all_rows),
      all_columns_(all_columns),
      before_(before),
      apart_(apart) {}

void Sink::prepare(std::uint32_t columns, std::uint32_t invocations) {
  if (!biased_ || !by_quads_ || invocations % (columns / 4) != 0) return;
  const Value column = first_column_ + s_.local() % s_.integer(columns / 4) * 4;
  const Value quad = shift_right_unsigned(column, s_.integer(2));
  bias_ = bias_quad_at(s_, *biased_, s_.select(column < all_columns_, quad, s_.integer(0)));
}

Sink::Taken Sink::taken(const TileAccumulators& sums, Value first_row, Value number, bool may_be_beyond) const {
  const std::uint32_t wide = by_quads_ ? sums.columns / 4 : sums.columns, size = sums.rows * wide;
  const Value inside = number % s_.integer(size);  // as it is, said so that it is seen
  const Value row = inside / s_.integer(wide), place = inside % s_.integer(wide), zero = s_.integer(0);
  const Value from = row * sums.pitch + (by_quads_ ? place : place / s_.integer(4));
  const Value column = first_column_ + (by_quads_ ? place * 4 : place), line = first_row + row;
  Taken t{(line < all_rows_) & (column < all_columns_), zero, {}};
  if (may_be_beyond) t.there = t.there & (number < size);
  const Value element = before_ + line * apart_ + column, known = s_.select(t.there, column, zero);
  t.at = s_.select(t.there, by_quads_ ? shift_right_unsigned(element, s_.integer(2)) : element, zero);
  if (!by_quads_) {
    Value sum = sum_at(s_, sums, from, place % s_.integer(4));
    if (scaled_) sum = scaled_({sum}, s_.select(t.there, line, zero), known)[0];
    t.results[0] = end_.finished(s_, t.at, biased_ ? sum + bias_at(s_, *biased_, known) : sum);
    return t;
  }
  Quad all = accumulators_at(s_, sums, from);
  if (scaled_) all = scaled_(all, s_.select(t.there, line, zero), known);
  if (biased_) {
    const Quad bias = bias_ ? *bias_ : bias_quad_at(s_, *biased_, shift_right_unsigned(known, s_.integer(2)));
    for (std::size_t q = 0; q < 4; ++q) all[q] = all[q] + bias[q];
  }
  t.results = raw_ ? all : end_.finished_quad(s_, t.at, all);
  return t;
}

void Sink::store(const Taken& t) const {
  s_.when(t.there, [&] {
    if (raw_)
      s_.store_quad(*raw_, t.at, t.results);
    else if (by_quads_)
      end_.store_finished(s_, t.at, t.results);
    else
      end_.store_finished(s_, t.at, t.results[0]);
  });
}

void Sink::take(const TileAccumulators& sums, Value first_row) const {
  const std::uint32_t size = sums.rows * (by_quads_ ? sums.columns / 4 : sums.columns);
  s_.loop(s_.integer(0), s_.integer(size), s_.integer(sums.invocations),
          [&](Value begin) { store(taken(sums, first_row, begin + s_.local(), size % sums.invocations != 0)); });
}

}  // namespace tosaic::shaders
