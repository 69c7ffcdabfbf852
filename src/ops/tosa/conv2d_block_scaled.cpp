// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/block_scaled.h"

namespace tosaic::tosa {
namespace {

namespace operand {
constexpr std::size_t input = 0, input_scale = 1, weight = 2, weight_scale = 3, bias = 4, pad = 5, stride = 6,
                      dilation = 7;
}

Attrs window(const View& view) {
  const auto numbers = [&](std::size_t i) { return *view.constant_integers(i); };
  return {{"pad", numbers(operand::pad)},
          {"stride", numbers(operand::stride)},
          {"dilation", numbers(operand::dilation)},
          {"acc_type", DType::f32},
          {"local_bound", false}};
}
bool has_window(const View& view) {
  return view.constant_integers(operand::pad) && view.constant_integers(operand::stride) &&
         view.constant_integers(operand::dilation);
}

// CONV2D of the floats that the operands stand for: what it says of its operands holds here.
class Plain {
 public:
  explicit Plain(const View& view) {
    const auto add = [&](const TensorType& type) {
      node_.inputs.push_back(graph_.add_value("", {DType::f32, type.shape, std::nullopt}));
    };
    for (const std::size_t i : {operand::input, operand::weight, operand::bias}) add(view.in(i));
    const Bytes zero = constant_bytes(DType::f32, std::vector{0.0});
    for (int i = 0; i < 2; ++i) node_.inputs.push_back(graph_.add_value("", {DType::f32, Shape{1}, {}}, zero));
    node_.op = op::conv2d;
    node_.attrs = window(view);
  }
  View view() const { return {graph_, node_}; }
  const Op& row() const { return *find(op::conv2d); }

 private:
  Graph graph_;
  Node node_;
};

std::vector<TensorType> infer(const View& view) {
  if (!has_window(view)) return {};
  const Plain plain(view);
  return plain.row().infer(plain.view());
}

Check check(const View& view) {
  if (Check c = block_scaled::check(view, operand::input, operand::input_scale)) return c;
  if (Check c = block_scaled::check(view, operand::weight, operand::weight_scale)) return c;
  for (const auto& [i, length] : {std::pair{operand::pad, 4}, {operand::stride, 2}, {operand::dilation, 2}})
    if (Check c = check_length(view, i, length)) return c;
  if (!has_window(view)) return std::nullopt;
  const Plain plain(view);
  Check c = plain.row().check(plain.view());
  if (c) c->label = fmt::format("{}{}", view.node().op.base(), c->label.substr(c->label.find('.')));
  return c;
}

Check level(const View& view, const Level& limits) {
  if (!has_window(view)) return std::nullopt;
  const Plain plain(view);
  return plain.row().level(plain.view(), limits);
}

Status eval(const Run& run) {
  const Plain plain(run.view);
  const auto product = [&](std::size_t elements, std::size_t scales) {
    return block_scaled::as_doubles(run.in[elements], run.in[scales]);
  };
  const std::vector<double> input = product(operand::input, operand::input_scale),
                            weight = product(operand::weight, operand::weight_scale);
  const auto as_f64 = [](const TensorView& like, const std::vector<double>& values) {
    return TensorView{like.type.with(DType::f64), values.data()};
  };
  const double zero = 0;
  const TensorView no_zero{{DType::f64, Shape{1}, {}}, &zero};
  const std::vector<TensorView> in{as_f64(run.in[operand::input], input), as_f64(run.in[operand::weight], weight),
                                   run.in[operand::bias], no_zero, no_zero};
  return plain.row().eval({plain.view(), in, run.out});
}

std::vector<ValueId> in_1_0(extension::Definition& d) {
  const auto floats = [&](std::size_t elements, std::size_t scales) {
    return block_scaled::as_floats(d, d.operand(elements), d.operand(scales));
  };
  const ValueId zero = d.number(DType::f32, 1, 0);
  return {d.call(op::conv2d,
                 {floats(operand::input, operand::input_scale), floats(operand::weight, operand::weight_scale),
                  d.operand(operand::bias), zero, zero},
                 d.result(),
                 {{"pad", d.integers(d.operand(operand::pad))},
                  {"stride", d.integers(d.operand(operand::stride))},
                  {"dilation", d.integers(d.operand(operand::dilation))},
                  {"acc_type", DType::f32},
                  {"local_bound", false}})};
}

Operand shape_operand(std::string_view name) {
  return {.name = name, .type = "shape", .min_rank = 1, .max_rank = 1, .constant = true};
}
}  // namespace

Op tosa_conv2d_block_scaled() {
  TypeRows types = block_scaled::elements("element");
  std::erase_if(types, [](const TypeRow& row) { return row.types[0].second == DType::mxint8; });
  return {
      .name = "conv2d_block_scaled",
      .schema_number = 94,
      .spirv_number = 0xffff,
      .summary = "2-D convolution of block-scaled NHWC by block-scaled OHWI weights, plus bias",
      .inputs = {{"input_data", "element", 4, 4},
                 {"input_scale", block_scaled::scale_type, 4, 4},
                 {"weight_data", "element", 4, 4},
                 {"weight_scale", block_scaled::scale_type, 4, 4},
                 {"bias", "f32", 1, 1},
                 shape_operand("pad"),
                 shape_operand("stride"),
                 shape_operand("dilation")},
      .attrs = {block_scaled::size_attribute()},
      .outputs = {{"output", "f32", 4, 4}},
      .types = std::move(types),
      .newer = true,
      .infer = infer,
      .check = check,
      .level = level,
      .eval = eval,
      .in_1_0 = in_1_0,
  };
}
}  // namespace tosaic::tosa
