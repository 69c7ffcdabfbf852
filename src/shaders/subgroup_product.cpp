// SPDX-License-Identifier: Apache-2.0
// Convolutions and matrix products for CPU devices, where a subgroup is a vector register: an invocation sums 16
// columns (channels) of two rows (pixels), four products deep at a step. The weights of a step are fetched once by the
// whole subgroup and passed on by shuffles, which take a constant lane. Sizes are parameters: every layer with one kind
// of epilogue shares one module, as such drivers compile slowly.
//
// Products of 8-bit numbers are summed as floats, exactly, as long as a sum stays below 2^24, and then as integers.
#include <algorithm>
#include <cstring>

#include "shaders/kernels.h"

namespace tosaic::shaders {
namespace {

constexpr int lanes = 8, rows_of_lane = 2, columns_of_tile = 16, quads_of_tile = columns_of_tile / 4;
constexpr int depth = 4;                                    // products of a step
constexpr int rows_of_fetch = 4 * lanes / columns_of_tile;  // of the weights
constexpr int fetches = depth / rows_of_fetch;

std::int64_t rounded_up(std::int64_t n, std::int64_t to) { return (n + to - 1) / to * to; }
Dim rounded_up(const Dim& n, std::int64_t to) {
  return n.is_number() ? Dim(rounded_up(n.value(), to)) : ceil_div(n, to) * to;
}

// What is multiplied: [batches, rows, depth] by [batches or 1, depth, columns]. Of a convolution a row is an output
// pixel, whose depth is walked tap by tap.
struct Sizes {
  Dim batches = 1, rows = 0, columns = 0;
  Dim channels = 0;  // of the input, of one tap
  Dim height = 1, width = 1, out_height = 1, out_width = 1;
  std::int64_t kernel_height = 1, kernel_width = 1;
  std::int64_t stride_y = 1, stride_x = 1, before_y = 0, before_x = 0, dilation_y = 1, dilation_x = 1;
};

// An operand of quads: rows of `row` elements are filled up with `fill`.
struct Operand {
  What what;
  DType type = DType::f32;
  std::int64_t zero_point = 0;
  std::int64_t largest = 0;  // of |element - zero point|
};

Buffer bind(Kernel& s, const Operand& o) {
  if (const auto* v = std::get_if<ValueId>(&o.what)) return s.input(*v, true);
  if (const auto* scratch = std::get_if<Scratch>(&o.what)) return s.read_scratch(o.type, *scratch);
  return s.constant(o.type, std::get<Bytes>(o.what), true);
}

class Product {
 public:
  Product(Kernel& s, const Sizes& sizes, const Operand& left, const Operand& right)
      : s_(s), sizes_(sizes), integers_(left.type != DType::f32) {
    input_ = bind(s, left);
    weights_ = bind(s, right);
    place(left, right);
  }

  // Sums of the tile.
  void sum() {
    for (int i = 0; i < rows_of_lane * columns_of_tile; ++i) {
      sums_.push_back(s_.variable(s_.real(0)));
      if (integers_) totals_.push_back(s_.variable(s_.integer(0)));
    }
    const Value zero = s_.integer(0), one = s_.integer(1);
    s_.loop(zero, kernel_height_, one,
            [&](Value ky) { s_.loop(zero, kernel_width_, one, [&](Value kx) { tap(ky, kx); }); });
  }

  // Calls body(row, column, sums) for four columns of a row at a time, inside the result.
  void for_quads(const std::function<void(Value row, Value column, const Quad& sums)>& body) {
    s_.repeat(rows_of_lane * quads_of_tile, [&](int n) {
      const auto i = static_cast<std::size_t>(n / quads_of_tile);
      const int q = n % quads_of_tile;
      Quad quad;
      for (int c = 0; c < 4; ++c) quad[static_cast<std::size_t>(c)] = total(i, 4 * q + c);
      const Value column = first_column_ + 4 * q;
      s_.when(rows_[i].inside & (column < columns_), [&] { body(rows_[i].number, column, quad); });
    });
  }

  Value columns() const { return columns_; }

 private:
  struct Row {
    Value number, inside;  // of the result, over all batches
    Value image, y, x;     // where its first tap lies
  };
  struct Read {
    Value quad, inside;
  };

  void place(const Operand& left, const Operand& right) {
    Kernel& s = s_;
    const Dim across = ceil_div(sizes_.columns, columns_of_tile), down = ceil_div(sizes_.rows, lanes * rows_of_lane);
    const Value number = s.invocation(), lane = number & (lanes - 1),
                group = shift_right_unsigned(number, s.integer(3));
    const Value column_tiles = s.param(across), row_tiles = s.param(down), rows = s.param(sizes_.rows);
    const Value tile = group % column_tiles, rest = group / column_tiles;
    const Value batch = rest / row_tiles, first_row = rest % row_tiles * (lanes * rows_of_lane) + lane;
    columns_ = s.param(sizes_.columns);
    first_column_ = tile * columns_of_tile;
    channel_quads_ = s.param(ceil_div(sizes_.channels, 4));
    column_quads_ = s.param(ceil_div(sizes_.columns, 4));
    height_ = s.param(sizes_.height), width_ = s.param(sizes_.width);
    kernel_height_ = s.param(sizes_.kernel_height), kernel_width_ = s.param(sizes_.kernel_width);
    dilation_y_ = s.param(sizes_.dilation_y), dilation_x_ = s.param(sizes_.dilation_x);
    const Value out_width = s.param(sizes_.out_width), out_height = s.param(sizes_.out_height);
    const Value stride_y = s.param(sizes_.stride_y), stride_x = s.param(sizes_.stride_x);
    const Value before_y = s.param(sizes_.before_y), before_x = s.param(sizes_.before_x);
    const Value in_batches = batch < s.param(sizes_.batches);
    for (int i = 0; i < rows_of_lane; ++i) {
      const Value row = first_row + lanes * i, last = rows - 1;
      const Value held = smallest(row, last), line = held / out_width;
      Row& made = rows_.emplace_back();
      made.number = batch * rows + row;
      made.inside = in_batches & (row < rows);
      // Of products, batches stand where images do.
      made.image = line / out_height + batch;
      made.y = line % out_height * stride_y - before_y;
      made.x = held % out_width * stride_x - before_x;
    }
    const Value weight_batch = s.param(sizes_.batches == Dim(1) ? Dim(0) : rounded_up(sizes_.channels, 4));
    // Columns beyond the last quad are those of the last one; nobody stores them.
    const Value column_quad = smallest(tile * quads_of_tile + (lane & 3), column_quads_ - 1);
    weight_lane_ = (batch * weight_batch + shift_right_unsigned(lane, s.integer(2))) * column_quads_ + column_quad;
    if (integers_) {
      zero_points_ = {s.param(left.zero_point), s.param(right.zero_point)};
      const std::int64_t most = (std::int64_t{1} << 24) / std::max<std::int64_t>(left.largest * right.largest, 1);
      at_once_ = s.param(std::clamp<std::int64_t>(most / depth, 1, 1 << 20));
    }
  }

  void tap(Value ky, Value kx) {
    std::vector<Read> reads;
    for (const Row& row : rows_) {
      const Value y = row.y + ky * dilation_y_, x = row.x + kx * dilation_x_;
      const Value inside = below_unsigned(y, height_) & below_unsigned(x, width_);
      const Value element = ((row.image * height_ + y) * width_ + x) * channel_quads_;
      reads.push_back({s_.select(inside, element, s_.integer(0)), inside});
    }
    const Value weight_row = (ky * kernel_width_ + kx) * channel_quads_;  // in steps
    const Value zero = s_.integer(0), one = s_.integer(1);
    if (!integers_) {
      s_.loop(zero, channel_quads_, one, [&](Value k) { step(reads, weight_row, k); });
      return;
    }
    s_.loop(zero, channel_quads_, at_once_, [&](Value begin) {
      s_.loop(begin, smallest(begin + at_once_, channel_quads_), one, [&](Value k) { step(reads, weight_row, k); });
      for (std::size_t i = 0; i < sums_.size(); ++i) {
        totals_[i].set(totals_[i].get() + s_.real_to_signed(sums_[i].get()));
        sums_[i].set(s_.real(0));
      }
    });
  }

  Value centred(Value number, std::size_t operand) {
    return integers_ ? s_.signed_to_real(number - zero_points_[operand]) : number;
  }

  void step(const std::vector<Read>& reads, Value weight_row, Value k) {
    std::vector<Quad> inputs, weights;
    for (const Read& r : reads) {
      Quad& quad = inputs.emplace_back(s_.load_quad(input_, r.quad + k));
      for (Value& v : quad) v = s_.select(r.inside, centred(v, 0), s_.real(0));
    }
    const Value at = (weight_row + k) * depth * column_quads_ + weight_lane_;
    for (int f = 0; f < fetches; ++f) {
      const Value from = f == 0 ? at : at + column_quads_ * (f * rows_of_fetch);
      Quad& quad = weights.emplace_back(s_.load_quad(weights_, from));
      for (Value& v : quad) v = centred(v, 1);
    }
    std::vector<Value> sums;
    for (const Variable& v : sums_) sums.push_back(v.get());
    for (int column = 0; column < columns_of_tile; ++column)
      for (int d = 0; d < depth; ++d) {
        const Quad& held = weights[static_cast<std::size_t>(d / rows_of_fetch)];
        const int lane = d % rows_of_fetch * quads_of_tile + column / 4;
        const Value weight = s_.shuffle(held[static_cast<std::size_t>(column % 4)], s_.integer(lane));
        for (std::size_t i = 0; i < inputs.size(); ++i) {
          Value& sum = sums[i * columns_of_tile + static_cast<std::size_t>(column)];
          sum = add_product(sum, inputs[i][static_cast<std::size_t>(d)], weight);
        }
      }
    for (std::size_t i = 0; i < sums.size(); ++i) sums_[i].set(sums[i]);
  }

  Value total(std::size_t row, int column) {
    const std::size_t i = row * columns_of_tile + static_cast<std::size_t>(column);
    return integers_ ? totals_[i].get() : sums_[i].get();
  }

  Kernel& s_;
  const Sizes sizes_;
  const bool integers_;
  Buffer input_, weights_;
  Value columns_, first_column_, channel_quads_, column_quads_, height_, width_, kernel_height_, kernel_width_,
      dilation_y_, dilation_x_, weight_lane_, at_once_;
  std::vector<Value> zero_points_;
  std::vector<Row> rows_;
  std::vector<Variable> sums_, totals_;
};

// `bias`: one number for each column, or one for all; no_value: none.
void finish(Kernel& s, Product& product, const Finish& end, ValueId bias, bool quads) {
  const Value columns = product.columns();
  const bool shared = bias != no_value && s.type(bias).shape.elements() == 1;
  const Buffer bias_buffer = bias != no_value ? s.input(bias, quads && !shared) : Buffer();
  const std::optional<Value> one = shared ? std::optional(s.load(bias_buffer, s.integer(0))) : std::nullopt;
  product.for_quads([&](Value row, Value column, const Quad& sums) {
    const Value index = row * columns + column;
    Quad all = sums;
    if (quads) {
      Quad add;
      if (bias != no_value && !shared) add = s.load_quad(bias_buffer, shift_right_unsigned(column, s.integer(2)));
      for (std::size_t c = 0; c < 4; ++c)
        if (bias != no_value) all[c] = all[c] + (shared ? *one : add[c]);
      return end.store_from(s, index, all);
    }
    s.repeat(4, [&](int c) {
      const Value at = column + c;
      s.when(at < columns, [&] {
        Value sum = all[static_cast<std::size_t>(c)];
        if (bias != no_value) sum = sum + (shared ? *one : s.load(bias_buffer, at));
        end.store(s, index + c, sum);
      });
    });
  });
}

MadeList product_of(const Work& work, std::string name, const Sizes& sizes, const Operand& left, const Operand& right,
                    ValueId bias, const Finish& end, std::vector<Made> before) {
  const Dim tiles =
      ceil_div(sizes.columns, columns_of_tile) * ceil_div(sizes.rows, lanes * rows_of_lane) * sizes.batches;
  Kernel s(work, std::move(name), Groups{tiles, lanes});
  Product product(s, sizes, left, right);
  product.sum();
  finish(s, product, end, bias, end.has_quads(work.graph, sizes.columns));
  if (!s.fits()) return std::nullopt;
  before.push_back(s.made());
  return before;
}

// ---- operands of quads

// [outer, rows, columns] with rows and columns filled up to multiples of four.
struct Padded {
  Dim outer = 1, rows = 1, columns = 1;
  bool fills_rows = false;
  Dim new_rows() const { return fills_rows ? rounded_up(rows, 4) : rows; }
  Dim new_columns() const { return rounded_up(columns, 4); }
  bool changes() const { return new_rows() != rows || new_columns() != columns; }
  Dim elements() const { return outer * new_rows() * new_columns(); }
};

// The value itself, or a copy that a dispatch before makes at the end of the scratch memory.
Operand filled_up(const Work& work, ValueId v, const Padded& p, std::int64_t zero_point, std::vector<Made>& before,
                  std::uint64_t& scratch_bytes) {
  Operand operand{v, work.graph[v].type.dtype, zero_point};
  if (!p.changes()) return operand;
  constexpr std::uint64_t alignment = vulkan_program::alignment;
  const std::uint64_t bytes = static_cast<std::uint64_t>(most(p.elements())) * storage_size(operand.type);
  const Scratch to{scratch_bytes, (bytes + 15) / 16 * 16};
  scratch_bytes = (to.offset + to.bytes + alignment - 1) / alignment * alignment;
  Kernel s(work, "pad", floor_div(p.elements(), 4));
  const Value row_quads = s.param(floor_div(p.new_columns(), 4)), columns = s.param(p.columns);
  const Value new_rows = s.param(p.new_rows()), rows = s.param(p.rows), fill = s.param(zero_point);
  const Value line = s.index() / row_quads, column = s.index() % row_quads * 4;
  const Value row = line % new_rows, from = (line / new_rows * rows + row) * columns + column;
  const Buffer input = s.input(v), output = s.write_scratch(operand.type, to);
  Quad quad;
  for (int c = 0; c < 4; ++c) {
    const Value inside = (row < rows) & (column + c < columns);
    const Value number = s.load(input, s.select(inside, from + c, s.integer(0)));
    const Value otherwise = number.kind == Kind::real ? s.signed_to_real(fill) : fill;
    quad[static_cast<std::size_t>(c)] = s.select(inside, number, otherwise);
  }
  s.store_quad(output, s.index(), quad);
  before.push_back(s.made());
  operand.what = to;
  return operand;
}

// Constant weights [columns, taps, channels] as [taps, channels, columns], both filled up.
Bytes laid(const Bytes& weights, std::int64_t columns, std::int64_t taps, std::int64_t channels, std::size_t size,
           std::int64_t fill) {
  const auto wide = static_cast<std::size_t>(rounded_up(columns, 4)),
             deep = static_cast<std::size_t>(rounded_up(channels, 4));
  std::byte* to = nullptr;
  const std::size_t bytes = static_cast<std::size_t>(taps) * deep * wide * size;
  Bytes result = Bytes::fresh(bytes, to);
  std::memset(to, static_cast<int>(fill), bytes);  // of floats it is 0
  const auto n = static_cast<std::size_t>(columns), c = static_cast<std::size_t>(channels),
             t = static_cast<std::size_t>(taps);
  for (std::size_t column = 0; column < n; ++column)
    for (std::size_t tap = 0; tap < t; ++tap)
      for (std::size_t channel = 0; channel < c; ++channel)
        std::memcpy(to + ((tap * deep + channel) * wide + column) * size,
                    weights.data() + ((column * t + tap) * c + channel) * size, size);
  return result;
}

std::int64_t zero_point(const tosa::View& view, std::size_t operand, DType type) {
  return is_float(type) ? 0 : (*view.constant_integers(operand))[0];
}
std::int64_t farthest(std::int64_t zero_point) { return std::max(127 - zero_point, zero_point + 128); }
std::int64_t farthest(const Bytes& numbers, DType type, std::int64_t zero_point) {
  std::int64_t most = 1;
  if (storage_size(type) == 1)
    for (const std::int8_t n : numbers.as<std::int8_t>()) most = std::max<std::int64_t>(most, std::abs(n - zero_point));
  return most;
}

bool multiplies(DType a, DType b, DType sum) {
  return (a == DType::f32 && b == DType::f32 && sum == DType::f32) ||
         (a == DType::i8 && (b == DType::i8 || b == DType::i4) && sum == DType::i32);
}

}  // namespace

bool takes_subgroup_convolution(const tosa::View& view) {
  return multiplies(view.in(0).dtype, view.in(1).dtype, view.out().dtype) && !view.constant(1).null();
}

MadeList make_subgroup_convolution(const Work& work, const Node& node, const Finish& end) {
  const tosa::View view(work.graph, node);
  const Shape &in = view.in(0).shape, &weight = view.in(1).shape, &out = view.out().shape;
  const auto &pad = view.ints("pad"), &stride = view.ints("stride"), &dilation = view.ints("dilation");
  Sizes sizes;
  const std::int64_t columns = out.size(3), channels = in.size(3);
  sizes.rows = out[0] * out[1] * out[2];
  sizes.columns = columns, sizes.channels = channels;
  sizes.height = in[1], sizes.width = in[2];
  sizes.out_height = out[1], sizes.out_width = out[2];
  sizes.kernel_height = weight.size(1), sizes.kernel_width = weight.size(2);
  sizes.stride_y = stride[0], sizes.stride_x = stride[1];
  sizes.before_y = pad[0], sizes.before_x = pad[2];
  sizes.dilation_y = dilation[0], sizes.dilation_x = dilation[1];
  const DType type = view.in(1).dtype;
  const std::int64_t weight_zp = zero_point(view, 4, type);
  const Bytes& numbers = view.constant(1);
  std::vector<Made> before;
  std::uint64_t scratch = 0;
  const Padded pixels{1, in[0] * in[1] * in[2], channels};
  Operand left = filled_up(work, node.inputs[0], pixels, zero_point(view, 3, view.in(0).dtype), before, scratch);
  left.largest = farthest(left.zero_point);
  const Operand right{
      laid(numbers, columns, sizes.kernel_height * sizes.kernel_width, channels, storage_size(type), weight_zp), type,
      weight_zp, farthest(numbers, type, weight_zp)};
  return product_of(work, "conv2d", sizes, left, right, node.inputs[2], end, std::move(before));
}

bool takes_subgroup_matmul(const tosa::View& view) {
  return multiplies(view.in(0).dtype, view.in(1).dtype, view.out().dtype);
}

MadeList make_subgroup_matmul(const Work& work, const Node& node, const Finish& end) {
  const tosa::View view(work.graph, node);
  const Shape &a = view.in(0).shape, &out = view.out().shape;
  Sizes sizes;
  sizes.batches = out[0], sizes.rows = sizes.width = sizes.out_width = out[1], sizes.columns = out[2];
  sizes.channels = a[2];
  std::vector<Made> before;
  std::uint64_t scratch = 0;
  Operand left = filled_up(work, node.inputs[0], {1, sizes.batches * sizes.rows, sizes.channels},
                           zero_point(view, 2, view.in(0).dtype), before, scratch);
  Operand right = filled_up(work, node.inputs[1], {sizes.batches, sizes.channels, sizes.columns, true},
                            zero_point(view, 3, view.in(1).dtype), before, scratch);
  left.largest = farthest(left.zero_point), right.largest = farthest(right.zero_point);
  return product_of(work, "matmul", sizes, left, right, no_value, end, std::move(before));
}

}  // namespace tosaic::shaders
