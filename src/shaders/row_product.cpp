// SPDX-License-Identifier: Apache-2.0
// Products of few rows, a vector and a matrix above all: what takes time is reading the weights. A work group makes a
// few columns of one row; its invocations divide the depth.
#include "shaders/row_product.h"

#include "shaders/fetched_operand.h"
#include "shaders/product.h"

namespace tosaic::shaders {
namespace {

using namespace row_product;

constexpr std::uint32_t at_once = 4;  // reads that wait together

std::int64_t channels_of(const tosa::View& view) { return view.in(0).shape.size(view.in(0).shape.rank() - 1); }

}  // namespace

bool has_few_rows(const tosa::View& view) {
  return has_tiles(view) && is_plain(view) && most(rows_of_product(view)) <= most_rows && channels_of(view) >= shortest;
}

VectorVariable sum_of_part(Kernel& s, const tosa::View& view, Buffer input, Buffer weights, const PartOfRow& of) {
  const Value zero = is_float(view.out().dtype) ? s.real(0) : s.integer(0);
  const VectorVariable sum = s.variable(s.splat(zero));
  s.loop(of.part, of.depth, s.integer(of.deep * at_once), [&](Value begin) {
    std::vector<Value> x;
    std::vector<RawQuad> w;
    for (std::uint32_t i = 0; i < at_once; ++i) {
      const Value k = begin + i * of.deep, inside = (k < of.depth) & of.there;
      const Value element = s.load(input, s.select(inside, of.row * of.depth + k, s.integer(0)));
      x.push_back(s.select(inside, centred(element, of.input_zero), zero));
      w.push_back(s.load_raw(weights, s.select(inside, of.weights(k), s.integer(0))));
    }
    for (std::uint32_t i = 0; i < at_once; ++i) {
      Quad numbers = s.numbers(w[i], view.in(1).dtype);
      for (Value& number : numbers) number = centred(number, of.weight_zero);
      sum.set(sum.get() + s.vector(numbers) * x[i]);
    }
  });
  return sum;
}

void store_row_sums(Kernel& s, const tosa::View& view, const Finish& end, const VectorVariable& sum,
                    const RowOfQuads& of, const std::function<Value(Value sum, Value column)>& finished) {
  const Value local = s.local(), part = local / s.integer(wide);
  const Shared memory = s.shared(sum.get().kind, wide * deep);
  s.store(memory, local, sum.get());
  for (std::uint32_t half = deep / 2; half > 0; half /= 2) {
    s.barrier();
    s.when(part < half, [&] {
      sum.set(sum.get() + s.load(memory, (local + half * wide) % s.integer(wide * deep)));
      s.store(memory, local, sum.get());
    });
  }
  s.barrier();
  const Value column = of.first * 4 + local;
  s.when((local < 4 * wide) & (column < of.all_columns) & (of.row < of.all_rows), [&] {
    const Value folded = s.load(memory, local / s.integer(4), local % s.integer(4));
    end.store(s, of.row * of.all_columns + column,
              finished ? finished(folded, column) : folded + bias_at(s, view, column));
  });
}

MadeList make_row_product(const Work& work, const Node& node, const Finish& end) {
  const tosa::View view(work.graph, node);
  const std::int64_t columns = view.in(1).shape.size(0), depth = channels_of(view);
  const Dim rows = end.row_apart() ? Dim(1) : rows_of_product(view);
  const std::int64_t across = (columns + 4 * wide - 1) / (4 * wide);
  Kernel s(work, std::string(tosa::find(node.op)->name), Groups{rows * across, wide * deep});
  const Value local = s.local(), group = s.group(), tiles = s.param(across), all = s.param(depth);
  const Value all_columns = s.param(columns), row = group / tiles, first = group % tiles * wide;
  const Value column = first + local % s.integer(wide), part = local / s.integer(wide);
  const Value fours = shift_right_unsigned(all_columns + 3, s.integer(2));
  const auto in_zp = zero_point(s, view, 0, 3), weight_zp = zero_point(s, view, 1, 4);
  const Buffer input = s.input(end.row_apart() ? end.row_apart()->input : node.inputs[0]);
  const DType type = view.in(1).dtype;
  const Buffer weights = s.constant(type, packed_weights(view.constant(1), type, columns, 1, depth), true);
  const Value there = (column < fours) & (row < s.param(rows));
  const VectorVariable sum =
      sum_of_part(s, view, input, weights,
                  {row, all, part, there, deep, in_zp, weight_zp, [&](Value k) { return k * fours + column; }});
  store_row_sums(s, view, end, sum, {row, first, all_columns, s.param(rows)});
  return one(s);
}

}  // namespace tosaic::shaders
