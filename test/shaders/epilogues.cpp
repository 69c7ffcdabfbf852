// SPDX-License-Identifier: Apache-2.0
// A seeded search for what kernels and the elementwise nodes computed with them do to each other: every kernel that
// there is (the rows of shaders/kernels.cpp), shapes by class (1, 2, 3, odd, whole quads, more), results seen in other
// shapes before and between the nodes after them; f32, f32 kept in f16, and quantised values; on every tier,
// computed here and by the device, against the interpreter. TOSAIC_TAIL_SEEDS=100 looks at so many programs of each
// kernel's operator instead of a few, from TOSAIC_TAIL_SEED on.
#include <set>

#include "cpu/channel_groups.h"
#include "shaders/computed.h"
#include "shaders/half_precision.h"
#include "shaders/heads.h"
#include "shaders/kernels.h"
#include "shaders/prepare.h"

namespace tosaic::test {
namespace {

using shaders::KernelRow;
using shaders::Precision;

std::uint32_t number_of(const char* variable, std::uint32_t otherwise) {
  const char* given = std::getenv(variable);
  return given ? static_cast<std::uint32_t>(std::strtoul(given, nullptr, 10)) : otherwise;
}

enum class Mode : std::uint8_t { floats, f16, quantised };
constexpr const char* names[] = {"f32", "f32 in f16", "i8"};

class Search {
 public:
  Search(std::uint32_t seed, Mode mode)
      : net(seed), real(mode != Mode::quantised), type(real ? DType::f32 : DType::i8), in_f16_(mode == Mode::f16) {}

  Net net;
  const bool real;
  const DType type;  // of what operators take

  std::int64_t integer(std::int64_t lowest, std::int64_t highest) { return net.integer(lowest, highest); }
  bool coin() { return integer(0, 1) == 1; }
  // Of each class of sizes as often.
  std::int64_t size() {
    switch (integer(0, 5)) {
      case 0: return 1;
      case 1: return 2;
      case 2: return 3;
      case 3: return 5 + 2 * integer(0, 2);
      case 4: return 4 * integer(1, 3);
      default: return integer(17, 35);
    }
  }
  // Where floats are kept in f16, some that are computed: a program's inputs stay what they are.
  ValueId input(const Shape& shape) {
    const ValueId x = given(shape);
    return in_f16_ && integer(0, 3) ? net.node("tanh", {x}) : x;
  }
  ValueId given(Shape shape) { return net.input(type, std::move(shape), real ? -1 : -128, real ? 1 : 127); }
  // Rows of products, of which few are another kernel's.
  std::int64_t few_or_many() { return coin() ? integer(1, 8) : integer(9, 30); }
  ValueId weight(Shape shape) { return net.constant(type, std::move(shape), real ? -1 : -127, real ? 1 : 127); }
  ValueId bias(std::int64_t channels) {
    return net.constant(sums(), {coin() ? channels : 1}, real ? -1 : -9000, real ? 1 : 9000);
  }
  DType sums() const { return real ? DType::f32 : DType::i32; }
  ValueId zero_point() { return net.numbers(type, {real ? 0 : integer(-20, 20)}); }

  // What follows: elementwise nodes, and views between them.
  ValueId epilogue(ValueId v) {
    for (std::int64_t left = integer(1, 3); left > 0; --left) {
      if (coin()) v = seen_otherwise(v);
      v = step(v);
    }
    return coin() ? seen_otherwise(v) : v;
  }

 private:
  const bool in_f16_;

  ValueId seen_otherwise(ValueId v) {
    std::int64_t rest = net.graph[v].type.shape.elements();
    Sizes sizes;
    for (std::int64_t dims = integer(0, 3); dims > 0; --dims) {
      Sizes divisors;
      for (std::int64_t d = 1; d <= rest; ++d)
        if (rest % d == 0) divisors.push_back(d);
      sizes.push_back(divisors[static_cast<std::size_t>(integer(0, std::ssize(divisors) - 1))]);
      rest /= sizes.back();
    }
    sizes.insert(sizes.begin() + integer(0, std::ssize(sizes)), rest);
    return shaped(net, v, sizes);
  }
  // Repeated along some of the dims.
  Shape broadcast_shape(const Shape& whole) {
    Sizes sizes = whole.sizes();
    for (std::int64_t& size : sizes)
      if (coin()) size = 1;
    return Shape(sizes);
  }
  ValueId step(ValueId v) {
    const Shape shape = net.graph[v].type.shape;
    switch (net.graph[v].type.dtype) {
      case DType::f32: return step_of_reals(v, shape);
      case DType::i32: return step_of_sums(v, shape);
      case DType::boolean:
        return coin() ? net.node("logical_not", {v})
                      : net.node("logical_xor", {v, net.input(DType::boolean, broadcast_shape(shape), 0, 1)});
      default:
        if (coin())
          return net.rescale(v, DType::i8, 30, 32, shape.rank() > 0 && coin(), integer(-9, 9), integer(-9, 9));
        return net.node(
            "clamp", {v},
            {{"min_val", std::int64_t{-100}}, {"max_val", std::int64_t{90}}, {"nan_mode", std::string("propagate")}});
    }
  }
  // None of them makes much of a small difference.
  ValueId step_of_reals(ValueId v, const Shape& shape) {
    const auto number = [&](double x) { return net.constant(DType::f32, Shape(Sizes(shape.sizes().size(), 1)), x, x); };
    switch (integer(0, 6)) {
      case 0: return net.node("add", {v, number(1e-6)});
      case 1: return net.node("add", {v, net.constant(DType::f32, broadcast_shape(shape), -1, 1)});
      case 2: return product(net, v, net.constant(DType::f32, broadcast_shape(shape), -1, 1));
      case 3: return net.node("sub", {net.input(DType::f32, broadcast_shape(shape), -1, 1), v});
      case 4: return net.node("tanh", {v});
      case 5: return net.node("select", {net.node("greater", {v, number(0)}), v, product(net, v, number(0.25))});
      default:
        return net.node("maximum", {v, net.input(DType::f32, shape, -1, 1)}, {{"nan_mode", std::string("propagate")}});
    }
  }
  ValueId step_of_sums(ValueId v, const Shape& shape) {
    switch (integer(0, 3)) {
      case 0: return net.node("add", {v, net.constant(DType::i32, broadcast_shape(shape), -1000, 1000)});
      case 1:
        return net.node("maximum", {v, net.input(DType::i32, broadcast_shape(shape), -1000, 1000)},
                        {{"nan_mode", std::string("propagate")}});
      default: return net.rescale(v, DType::i8, 36, 42, shape.rank() > 0 && coin(), 0, integer(-9, 9));
    }
  }
};

// ---- one operator each, of any sizes. no_value: it has no quantised values.

ValueId rows_by(Search& s, ValueId x, ValueId w, std::int64_t depth, std::int64_t columns) {
  Net& net = s.net;
  const std::int64_t rows = net.graph[x].type.shape.elements() / depth;
  return net.node("conv2d",
                  {shaped(net, x, {1, 1, rows, depth}), shaped(net, w, {columns, 1, 1, depth}), s.bias(columns),
                   net.zero(DType::f32), net.zero(DType::f32)},
                  steps({0, 0, 0, 0}, {1, 1}, DType::f32));
}

// [rows][depth] of quantised values with scales for groups of them.
ValueId quantised_table(Search& s, std::int64_t rows, std::int64_t depth) {
  Net& net = s.net;
  const std::int64_t group = s.coin() ? depth : depth / 4;
  const ValueId quantised = net.constant(DType::i8, {rows, depth / group, group}, -8, 7),
                scales = net.constant(DType::f32, {rows, depth / group, 1}, 0.01, 0.1);
  return shaped(net, product(net, net.node("cast", {quantised}, {}, DType::f32), scales), {rows, depth});
}

ValueId quantised_rows(Search& s) {
  if (!s.real) return no_value;
  const std::int64_t depth = 16 * s.integer(1, 4), columns = s.size();
  return rows_by(s, s.input({s.few_or_many(), depth}), quantised_table(s, columns, depth), depth, columns);
}

// Quantised values with a scale for each row, by such weights.
ValueId int8_gemm(Search& s) {
  if (!s.real) return no_value;
  Net& net = s.net;
  const std::int64_t depth = 16 * s.integer(1, 4), columns = s.size(), rows = s.few_or_many();
  ValueId x = net.node("cast", {net.input(DType::i8, {rows, depth}, -128, 127)}, {}, DType::f32);
  if (s.coin())
    x = net.node("sub", {x, net.node("cast", {net.input(DType::i8, {rows, 1}, -128, 127)}, {}, DType::f32)});
  x = product(net, x, net.input(DType::f32, {rows, 1}, 0.001, 0.01));
  return rows_by(s, x, quantised_table(s, columns, depth), depth, columns);
}

ValueId conv2d_of(Search& s, bool linear, std::int64_t channels) {
  Net& net = s.net;
  const std::int64_t out = s.size();
  const std::int64_t side = linear ? 1 : 3, pad = side / 2;
  const ValueId x = s.input({s.integer(1, 2), linear ? 1 : s.integer(1, 6), s.coin() ? 2 : s.size(), channels});
  return net.node("conv2d", {x, s.weight({out, side, side, channels}), s.bias(out), s.zero_point(), net.zero(s.type)},
                  steps({pad, pad, pad, pad}, {1, 1}, s.sums()));
}

ValueId make_conv2d(Search& s) {
  const bool linear = s.coin();
  return conv2d_of(s, linear, linear && s.coin() ? 64 * s.integer(1, 5) : s.coin() ? 4 * s.integer(1, 4) : s.size());
}

ValueId make_conv3d(Search& s, std::int64_t channels) {
  const std::int64_t out = s.size();
  const ValueId x = s.input({1, s.integer(1, 3), s.integer(1, 4), s.integer(1, 5), channels});
  return s.net.node("conv3d", {x, s.weight({out, 1, 2, 3, channels}), s.bias(out), s.zero_point(), s.net.zero(s.type)},
                    {{"pad", Sizes{0, 0, 0, 1, 1, 1}},
                     {"stride", Sizes{1, 1, 1}},
                     {"dilation", Sizes{1, 1, 1}},
                     {"acc_type", s.sums()},
                     {"local_bound", false}});
}

ValueId make_depthwise(Search& s) {
  const std::int64_t channels = s.size(), times = s.integer(0, 3) ? 1 : 2;
  const ValueId x = s.input({s.integer(1, 2), s.integer(1, 6), s.size(), channels});
  return s.net.node(
      "depthwise_conv2d",
      {x, s.weight({3, 3, channels, times}), s.bias(channels * times), s.zero_point(), s.net.zero(s.type)},
      steps({1, 1, 1, 1}, {1, 1}, s.sums()));
}

// A plain convolution, and a depthwise one that goes on in the same dispatch.
ValueId make_before_depthwise(Search& s) {
  const std::int64_t channels = 4 * s.integer(1, 5);
  const ValueId x = s.input({1, s.integer(2, 7), s.integer(2, 7), s.size()});
  ValueId v = plain(s.net, x, channels, {1, 1}, {0, 0, 0, 0}, {1, 1});
  if (!s.real) v = s.net.rescale(v, DType::i8, 38, 42, s.coin());
  return s.net.node("depthwise_conv2d",
                    {v, s.weight({3, 3, channels, 1}), s.bias(channels), s.zero_point(), s.net.zero(s.type)},
                    steps({1, 1, 1, 1}, {1, 1}, s.sums()));
}

// Plain convolutions, but for those with rows before their first result.
ValueId make_transposed(Search& s) {
  const std::int64_t channels = s.size(), out = s.size(), stride = s.integer(1, 2);
  const ValueId x = s.input({1, s.integer(1, 4), s.integer(1, 5), channels});
  return s.net.node("transpose_conv2d",
                    {x, s.weight({out, 2, 3, channels}), s.bias(out), s.zero_point(), s.net.zero(s.type)},
                    {{"out_pad", Sizes{s.integer(0, 1), 0, 0, 0}},
                     {"stride", Sizes{stride, stride}},
                     {"acc_type", s.sums()},
                     {"local_bound", false}});
}

ValueId make_matmul(Search& s, std::int64_t unit) {
  Net& net = s.net;
  const std::int64_t depth = unit * s.size(), columns = unit * s.size();
  const std::int64_t batches = s.size(), rows = s.size();
  return net.node(
      "matmul", {s.input({batches, rows, depth}), s.input({batches, depth, columns}), s.zero_point(), s.zero_point()});
}

// Quantised values whose scales stand after the product.
ValueId make_quantised_matmul(Search& s, bool by_int8) {
  if (!s.real) return no_value;
  Net& net = s.net;
  const std::int64_t depth = 16 * s.integer(1, 4), columns = s.size(), rows = s.few_or_many();
  const ValueId quantised = net.node("cast", {net.constant(DType::i8, {1, depth, columns}, -128, 127)}, {}, DType::f32);
  ValueId x = s.input({1, rows, depth});
  if (by_int8)
    x = product(net, net.node("cast", {net.input(DType::i8, {1, rows, depth}, -128, 127)}, {}, DType::f32),
                net.input(DType::f32, {1, rows, 1}, 0.001, 0.01));
  const ValueId v = net.node("matmul", {x, quantised, net.zero(DType::f32), net.zero(DType::f32)});
  return product(net, v, net.constant(DType::f32, {1, 1, columns}, 0.0001, 0.001));
}

ValueId int8_matmul(Search& s) {
  if (s.real) return no_value;
  Net& net = s.net;
  const std::int64_t depth = 16 * s.integer(1, 4), columns = s.size(), rows = s.few_or_many();
  return net.node("matmul",
                  {net.input(DType::i8, {1, rows, depth}, -128, 127),
                   net.constant(DType::i8, {1, depth, columns}, -128, 127), net.zero(DType::i8), net.zero(DType::i8)});
}

ValueId pooled(Search& s, bool mean) {
  const bool whole = s.coin();
  const std::int64_t height = s.integer(2, 6), width = whole ? s.integer(2, 20) : s.integer(2, 6);
  const ValueId x = s.input({s.integer(1, 2), height, width, s.size()});
  Attrs attrs{
      {"kernel", whole ? Sizes{height, width} : Sizes{2, 2}}, {"stride", Sizes{1, 1}}, {"pad", Sizes{0, 0, 0, 0}}};
  if (!mean) attrs.set("nan_mode", std::string("propagate"));
  if (mean) attrs.set("acc_type", s.sums());
  const ValueId zero = s.net.zero(s.type);
  return mean ? s.net.node("avg_pool2d", {x, zero, zero}, attrs) : s.net.node("max_pool2d", {x}, attrs);
}

Shape any_shape(Search& s, std::int64_t rank) {
  Sizes sizes;
  for (std::int64_t d = 0; d < rank; ++d) sizes.push_back(s.size());
  while (Shape(sizes).elements() > 1000) *std::ranges::max_element(sizes) /= 2;
  if (s.coin()) sizes[static_cast<std::size_t>(s.integer(0, rank - 1))] = 300;  // a long line
  return Shape(sizes);
}

ValueId reduced(Search& s, std::string_view op) {
  const std::int64_t rank = s.integer(1, 4);
  const bool boolean_value = op == "reduce_all" || op == "reduce_any",
             bounds = op == "reduce_min" || op == "reduce_max";
  if (op == "reduce_product" && !s.real) return no_value;
  const Shape shape = any_shape(s, rank);
  const ValueId x = boolean_value      ? s.net.input(DType::boolean, shape, 0, 1)
                    : s.real || bounds ? s.input(shape)
                                       : s.net.input(DType::i32, shape, -999, 999);
  Attrs attrs{{"axis", s.integer(0, rank - 1)}};
  if (bounds) attrs.set("nan_mode", std::string("propagate"));
  return s.net.node(std::string(op), {x}, attrs);
}

ValueId make_argmax(Search& s) {
  const std::int64_t rank = s.integer(1, 4);
  const ValueId x = s.given(any_shape(s, rank));  // values of f16 are alike too often
  return s.net.node("argmax", {x}, {{"axis", s.integer(0, rank - 1)}, {"nan_mode", std::string("propagate")}});
}

ValueId make_gather(Search& s) {
  Net& net = s.net;
  const std::int64_t rows = s.size(), batches = s.coin() ? 1 : s.size(), wide = s.size();
  return net.node("gather", {s.input({batches, rows, wide}),
                             net.input(DType::i32, {batches, s.size()}, 0, static_cast<double>(rows - 1))});
}

ValueId quantised_gather(Search& s) {
  if (!s.real) return no_value;
  const std::int64_t rows = s.size(), depth = 16 * s.integer(1, 4);
  const ValueId which = s.net.input(DType::i32, {1, s.size()}, 0, static_cast<double>(rows - 1));
  return s.net.node("gather", {shaped(s.net, quantised_table(s, rows, depth), {1, rows, depth}), which});
}

ValueId make_scatter(Search& s) {
  const std::int64_t rows = s.size(), wide = s.size();
  const double last = static_cast<double>(rows - 1);
  const ValueId which = s.net.constant(DType::i32, {1, 1}, last, last);
  return s.net.node("scatter", {s.input({1, rows, wide}), which, s.input({1, 1, wide})});
}

ValueId make_resize(Search& s) {
  Net& net = s.net;
  const std::int64_t height = s.integer(2, 5), width = s.integer(2, 5);
  const ValueId x = s.input({1, height, width, s.size()});
  const bool linear = s.coin();
  return net.node("resize", {x, net.shape({2, 1, 2, 1}), net.shape({0, 0}), net.shape({1, 1})},
                  {{"mode", std::string(linear ? "bilinear" : "nearest")}},
                  s.real   ? s.type
                  : linear ? DType::i32
                           : s.type);
}

// Of rows that a group has at once, whole or not, and that it does not take.
ValueId make_integer_attention(Search& s) {
  if (s.real) return no_value;
  const IntegerHeads heads{s.integer(16, 40), s.integer(1, 3), 8 * s.integer(2, 6), s.coin() ? 0 : s.integer(-90, 90)};
  return attended_integers(s.net, heads);
}

// Of `least` to `most` units of channels, in and out.
ValueId make_groups(Search& s, std::int64_t unit, std::int64_t least, std::int64_t most) {
  const std::int64_t in = unit * s.integer(least, most), out = unit * s.integer(least, most);
  const ChannelGroups shape{s.integer(1, 2), s.integer(1, 6), s.integer(1, 9), s.integer(2, 4), in, out};
  return convolved_groups(s.net, shape, s.input({shape.images, shape.height, shape.width, shape.groups * shape.in}));
}

struct Maker {
  std::string_view op;
  ValueId (*make)(Search& s);
};
constexpr Maker makers[] = {
    {"argmax", make_argmax},
    {"avg_pool2d", [](Search& s) { return pooled(s, true); }},
    {"conv2d", make_conv2d},
    {"conv2d", make_before_depthwise},
    {"scaled_product", quantised_rows},
    {"scaled_product", int8_gemm},
    {"conv3d", [](Search& s) { return make_conv3d(s, s.coin() ? 4 * s.integer(1, 3) : s.size()); }},
    {"depthwise_conv2d", make_depthwise},
    {"gather", make_gather},
    {"matmul", [](Search& s) { return make_matmul(s, 1); }},
    {"scaled_product", [](Search& s) { return make_quantised_matmul(s, false); }},
    {"scaled_product", [](Search& s) { return make_quantised_matmul(s, true); }},
    {"max_pool2d", [](Search& s) { return pooled(s, false); }},
    {"reduce_all", [](Search& s) { return reduced(s, "reduce_all"); }},
    {"reduce_any", [](Search& s) { return reduced(s, "reduce_any"); }},
    {"reduce_max", [](Search& s) { return reduced(s, "reduce_max"); }},
    {"reduce_min", [](Search& s) { return reduced(s, "reduce_min"); }},
    {"reduce_product", [](Search& s) { return reduced(s, "reduce_product"); }},
    {"reduce_sum", [](Search& s) { return reduced(s, "reduce_sum"); }},
    {"resize", make_resize},
    {"scatter", make_scatter},
    {"transpose_conv2d", make_transposed},
    {"matmul", int8_matmul},
    {"scaled_gather", quantised_gather},
    {"matmul", [](Search& s) { return make_matmul(s, 4); }},
    {"conv2d", [](Search& s) { return conv2d_of(s, s.coin(), 128); }},
    {"conv3d", [](Search& s) { return make_conv3d(s, 24); }},
    {"matmul", make_integer_attention},
    {"grouped_conv2d", [](Search& s) { return make_groups(s, 1, 1, 7); }},
    {"grouped_conv2d", [](Search& s) { return make_groups(s, 4, 1, 3); }},
    {"grouped_conv2d", [](Search& s) { return make_groups(s, 4, 4, 9); }},
};

// Rows that would be asked first for a node of the program.
void note_rows(const Graph& given, Mode mode, std::set<const KernelRow*>& seen) {
  const Graph ready = shaders::prepared(given), graph = mode == Mode::f16 ? shaders::in_half_precision(ready) : ready;
  for (const Node& node : graph.nodes)
    for (const vulkan_program::TierId tier : every_tier())
      for (const KernelRow& row : shaders::kernel_rows(node)) {
        if (!row.tiers.has(tier) || (row.takes && !row.takes(tosa::View(graph, node)))) continue;
        seen.insert(&row);
        break;
      }
}

bool has_one_result(std::string_view op) { return !op.ends_with("fft2d"); }  // others take nothing after them

TEST(Epilogues, OfEveryKernel) {
  const std::uint32_t count = number_of("TOSAIC_TAIL_SEEDS", 3), first = number_of("TOSAIC_TAIL_SEED", 1);
  std::set<const KernelRow*> seen;
  for (const Maker& maker : makers)
    for (const Mode mode : {Mode::floats, Mode::f16, Mode::quantised})
      for (std::uint32_t seed = first; seed < first + count; ++seed) {
        Search s(1000 * static_cast<std::uint32_t>(&maker - makers) + seed, mode);
        const ValueId made = maker.make(s);
        if (made == no_value) continue;
        s.net.output(s.epilogue(made));
        const std::string what = fmt::format("{} {}, seed {}", maker.op, names[static_cast<int>(mode)], seed);
        SCOPED_TRACE(what);
        const Status right = tosa::verify_graph(s.net.graph, tosa::Spec::everything());
        ASSERT_TRUE(right.ok()) << render(right.error(), false);
        note_rows(s.net.graph, mode, seen);
        const bool f16 = mode == Mode::f16;
        const double loose = f16 ? 2e-2 : 1e-4;
        expect_of_every_tier(s.net, {loose, loose}, what, f16 ? Precision::fp16 : Precision::fp32);
        if (HasFailure()) {
          ADD_FAILURE() << print(s.net.graph);
          return;
        }
      }
  for (const KernelRow& row : shaders::kernel_rows()) {
    if (!has_one_result(row.op.base())) continue;
    EXPECT_TRUE(std::ranges::any_of(makers, [&](const Maker& m) { return m.op == row.op.base(); }))
        << row.op.base() << ": add a maker";
    EXPECT_TRUE(seen.contains(&row)) << "row " << &row - shaders::kernel_rows().data() << ", " << row.op.base()
                                     << ", is not among the programs";
  }
}

// One row by one column, seen as matrices whose rows are whole quads.
TEST(Epilogues, DotProductsOfPairs) {
  for (const std::int64_t columns : {1, 2, 3, 5})
    for (const char* op : {"reciprocal", "exp", "tanh"}) {
      Net net(1);
      const ValueId q = net.input(DType::f32, {48, 1, 8}, 0.1, 1), k = net.input(DType::f32, {48, 8, columns}, 0.1, 1);
      const ValueId dots = net.node("matmul", {q, k, net.zero(DType::f32), net.zero(DType::f32)});
      const ValueId seen = shaped(net, dots, {1, 4, 12 * columns});
      net.output(net.node(op, {net.node("add", {seen, net.constant(DType::f32, {1, 1, 1}, 1e-6, 1e-6)})}));
      expect_of_every_tier(net, {1e-5, 1e-5}, fmt::format("{} columns, {}", columns, op));
    }
}

}  // namespace
}  // namespace tosaic::test
