// SPDX-License-Identifier: Apache-2.0
// Products by weights that are codes, and rows of tables of codes: an invocation makes four columns of some rows, or of
// a few rows a work group a few columns, whose invocations divide the depth. What a weight stands for is computed where
// it is used.
#include <bit>

#include "shaders/axes.h"
#include "shaders/coded_weights.h"

namespace tosaic::shaders {
namespace {

constexpr std::int64_t few_rows = 8;          // of which each is a work group's
constexpr std::uint32_t wide = 2, deep = 64;  // quads of columns of a work group, and invocations along the depth
constexpr std::int64_t rows_at_once = 8;      // of an invocation

// The matrix as a shader reads it.
class Codes {
 public:
  Codes(Kernel& s, const CodedMatrix& m)
      : s_(s),
        bits_(m.bits),
        per_(m.per_word()),
        words_(s.constant(DType::i32, m.words)),
        scales_(s.constant(DType::f32, m.scales, true)),
        row_(s.param(m.depth / m.per_word())),
        groups_(s.param(m.depth / m.group)) {
    const std::int64_t words = m.group / m.per_word();
    is_shift_ = std::has_single_bit(static_cast<std::uint64_t>(words));
    group_ = s.param(is_shift_ ? std::countr_zero(static_cast<std::uint64_t>(words)) : words);
  }
  std::int64_t per_word() const { return per_; }
  Value words() const { return row_; }  // of a row

  // What four rows' weights in word `at` are: one by one those that it has.
  struct Read {
    Value word;
    Quad scale;
  };
  Read read(Value quad, Value at) const {
    const Value group = is_shift_ ? shift_right_unsigned(at, group_) : at / group_;
    return {s_.load(words_, quad * row_ + at), s_.load_quad(scales_, quad * groups_ + group)};
  }
  Quad weights(const Read& read, std::int64_t which) const {
    Quad four;
    for (Word q = 0; q < 4; ++q) four[q] = number(read.word, q, s_.integer(which)) * read.scale[q];
    return four;
  }
  // Of one row alone, whose place among the four is known when it runs; `which` as well.
  Value weight(Value quad, Value lane, Value at, Value which) const {
    const Read r = read(quad, at);
    Value scale = r.scale[0];
    for (Word q = 1; q < 4; ++q) scale = s_.select(lane == q, r.scale[q], scale);
    const Value shift = lane * 8 + which * 4, code = shift_right_unsigned(r.word, shift);
    return as_number(code) * scale;
  }

 private:
  Value number(Value word, Word row, Value which) const {
    return as_number(shift_right_unsigned(word, s_.integer(std::int64_t{row} * 8) + which * 4));
  }
  // The code in the lowest bits.
  Value as_number(Value bits) const {
    if (bits_ == 4) return s_.signed_to_real((bits & 15) - 8);
    const Value up = s_.integer(24);
    return s_.signed_to_real(shift_right_signed(bits << up, up));
  }

  Kernel& s_;
  const int bits_;
  const std::int64_t per_;
  const Buffer words_, scales_;
  const Value row_, groups_;
  Value group_;
  bool is_shift_ = false;
};

Dim rows_of(const tosa::View& view) {
  std::vector<Dim> pixels = view.out().shape.dims();
  pixels.pop_back();
  return product_of(pixels);
}

}  // namespace

bool takes_coded_product(const tosa::View& view) { return has_codes(view.graph(), view.node()); }
bool takes_few_coded_rows(const tosa::View& view) {
  return takes_coded_product(view) && most(rows_of(view)) <= few_rows;
}
bool takes_coded_gather(const tosa::View& view) { return has_codes(view.graph(), view.node()); }

MadeList make_coded_product(const Work& work, const Node& node, const Finish& end) {
  const tosa::View view(work.graph, node);
  const auto matrix = coded_matrix(work.graph, node);
  if (!matrix) return std::nullopt;
  const std::int64_t columns = matrix->rows;
  const Dim rows = rows_of(view);
  const std::int64_t at_once = std::min(rows_at_once, most(rows));
  Kernel s(work, std::string(tosa::find(node.op)->name), ceil_div(rows, at_once) * matrix->quads());
  const Codes codes(s, *matrix);
  const Value quads = s.param(matrix->quads()), quad = s.index() % quads, first = s.index() / quads * at_once;
  const Value all_rows = s.param(rows), all_columns = s.param(columns), depth = s.param(matrix->depth);
  const Buffer input = s.input(node.inputs[0]);
  std::vector<Value> begins;
  std::vector<VectorVariable> sums;
  for (std::int64_t r = 0; r < at_once; ++r) {
    begins.push_back(smallest(first + r, all_rows - 1) * depth);
    sums.push_back(s.variable(s.splat(s.real(0))));
  }
  s.loop(s.integer(0), codes.words(), s.integer(1), [&](Value at) {
    const Codes::Read read = codes.read(quad, at);
    for (std::int64_t i = 0; i < codes.per_word(); ++i) {
      const Vector weights = s.vector(codes.weights(read, i));
      for (std::size_t r = 0; r < sums.size(); ++r)
        sums[r].set(sums[r].get() + weights * s.load(input, begins[r] + at * codes.per_word() + i));
    }
  });
  for (std::size_t r = 0; r < sums.size(); ++r) {
    const Value row = first + static_cast<std::int64_t>(r);
    s.repeat(4, [&](int q) {
      const Value column = quad * 4 + q;
      s.when((row < all_rows) & (column < all_columns), [&] {
        end.store(s, row * all_columns + column, lane(sums[r].get(), static_cast<Word>(q)) + bias_at(s, view, column));
      });
    });
  }
  return one(s);
}

MadeList make_coded_row_product(const Work& work, const Node& node, const Finish& end) {
  const tosa::View view(work.graph, node);
  const auto matrix = coded_matrix(work.graph, node);
  if (!matrix) return std::nullopt;
  const std::int64_t columns = matrix->rows;
  const Dim rows = rows_of(view);
  const std::int64_t across = (matrix->quads() + wide - 1) / wide;
  Kernel s(work, std::string(tosa::find(node.op)->name), Groups{rows * across, wide * deep});
  const Codes codes(s, *matrix);
  const Value local = s.local(), tiles = s.param(across), quads = s.param(matrix->quads());
  const Value row = s.group() / tiles, first = s.group() % tiles * wide, depth = s.param(matrix->depth);
  const Value quad = first + local % s.integer(wide), part = local / s.integer(wide), all_columns = s.param(columns);
  const Value there = (quad < quads) & (row < s.param(rows));
  const Buffer input = s.input(node.inputs[0]);
  const VectorVariable sum = s.variable(s.splat(s.real(0)));
  const Value begin = s.select(there, row * depth, s.integer(0)), own = s.select(there, quad, s.integer(0));
  s.loop(part, codes.words(), s.integer(deep), [&](Value at) {
    const Codes::Read read = codes.read(own, at);
    for (std::int64_t i = 0; i < codes.per_word(); ++i)
      sum.set(sum.get() + s.vector(codes.weights(read, i)) * s.load(input, begin + at * codes.per_word() + i));
  });
  const Shared memory = s.shared(Kind::real, wide * deep);
  s.store(memory, local, sum.get());
  for (std::uint32_t half = deep / 2; half > 0; half /= 2) {
    s.barrier();
    s.when(part < half, [&] {
      sum.set(sum.get() + s.load(memory, (local + half * wide) % s.integer(wide * deep)));
      s.store(memory, local, sum.get());
    });
  }
  s.barrier();
  const Value column = first * 4 + local;
  s.when((local < 4 * wide) & (column < all_columns) & (row < s.param(rows)), [&] {
    const Value folded = s.load(memory, local / s.integer(4), local % s.integer(4));
    end.store(s, row * all_columns + column, folded + bias_at(s, view, column));
  });
  return one(s);
}

MadeList make_coded_gather(const Work& work, const Node& node, const Finish& end) {
  const tosa::View view(work.graph, node);
  const Shape& table = view.in(0).shape;
  const auto matrix = coded_matrix(work.graph, node);
  if (!matrix) return std::nullopt;
  Kernel s(work, "gather", elements_of(view.out().shape));
  const Codes codes(s, *matrix);
  const Value channels = s.param(table[2]), rows = s.param(table[1]), channel = s.index() % channels;
  const Value asked = s.load(s.input(node.inputs[1]), s.index() / channels);
  const Value row = smallest(largest(asked, s.integer(0)), rows - 1), per = s.integer(codes.per_word());
  end.store(s, s.index(), codes.weight(row / s.integer(4), row % s.integer(4), channel / per, channel % per));
  return one(s);
}

}  // namespace tosaic::shaders
