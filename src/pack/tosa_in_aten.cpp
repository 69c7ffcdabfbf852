// SPDX-License-Identifier: Apache-2.0
#include "pack/tosa_in_aten.h"

#include <algorithm>
#include <map>
#include <utility>

#include "ir/aten_operators.h"
#include "ir/tensor.h"
#include "lower/rules.h"
#include "ops/definitions/tosa_op.h"
#include "ops/trial.h"

namespace tosaic::packing {
namespace {

using Ints = std::vector<std::int64_t>;

// Operators whose operands and meaning are ATen's own, with broadcasting among equal ranks.
struct SameMeaning {
  Operator tosa, aten;
  std::size_t operands;
};
constexpr SameMeaning same_meaning[] = {
    {tosa::op::abs, aten::op::abs, 1},
    {tosa::op::add, aten::op::add_Tensor, 2},
    {tosa::op::bitwise_and, aten::op::bitwise_and_Tensor, 2},
    {tosa::op::bitwise_not, aten::op::bitwise_not, 1},
    {tosa::op::bitwise_or, aten::op::bitwise_or_Tensor, 2},
    {tosa::op::bitwise_xor, aten::op::bitwise_xor_Tensor, 2},
    {tosa::op::ceil, aten::op::ceil, 1},
    {tosa::op::cos, aten::op::cos, 1},
    {tosa::op::equal, aten::op::eq_Tensor, 2},
    {tosa::op::erf, aten::op::erf, 1},
    {tosa::op::exp, aten::op::exp, 1},
    {tosa::op::floor, aten::op::floor, 1},
    {tosa::op::greater, aten::op::gt_Tensor, 2},
    {tosa::op::greater_equal, aten::op::ge_Tensor, 2},
    {tosa::op::identity, aten::op::clone, 1},
    {tosa::op::log, aten::op::log, 1},
    {tosa::op::logical_and, aten::op::logical_and, 2},
    {tosa::op::logical_not, aten::op::logical_not, 1},
    {tosa::op::logical_or, aten::op::logical_or, 2},
    {tosa::op::logical_xor, aten::op::logical_xor, 2},
    {tosa::op::matmul, aten::op::bmm, 2},
    {tosa::op::maximum, aten::op::maximum, 2},
    {tosa::op::minimum, aten::op::minimum, 2},
    {tosa::op::mul, aten::op::mul_Tensor, 2},
    {tosa::op::negate, aten::op::neg, 1},
    {tosa::op::pow, aten::op::pow_Tensor_Tensor, 2},
    {tosa::op::reciprocal, aten::op::reciprocal, 1},
    {tosa::op::rsqrt, aten::op::rsqrt, 1},
    {tosa::op::select, aten::op::where_self, 3},
    {tosa::op::sigmoid, aten::op::sigmoid, 1},
    {tosa::op::sin, aten::op::sin, 1},
    {tosa::op::sub, aten::op::sub_Tensor, 2},
    {tosa::op::tanh, aten::op::tanh, 1},
};

class Spelling {
 public:
  Spelling(Graph& graph, const Node& node, const Trial& trial)
      : g_(graph), node_(node), trial_(trial), t_(trial.graph) {}

  std::optional<std::vector<Node>> run() {
    for (std::size_t i = 0; i < node_.inputs.size(); ++i)
      if (const ValueId v = trial_.operands[i]; v != no_value && !t_[v].is_constant()) of_[v] = node_.inputs[i];
    for (const Node& n : t_.nodes)
      if (n.outputs.size() != 1 || !one(n)) return std::nullopt;
    for (std::size_t i = 0; i < node_.outputs.size(); ++i) {
      if (node_.outputs[i] == no_value) continue;
      if (i >= trial_.results.size()) return std::nullopt;
      // Each result is the last call's under the program's own name.
      say(aten::op::clone, {value(trial_.results[i])}, {}, node_.outputs[i]);
    }
    return std::move(calls_);
  }

 private:
  const TensorType& type(ValueId v) const { return t_[v].type; }

  // The value in the program that stands for one of the lowered graph.
  ValueId value(ValueId v) {
    auto [known, fresh] = of_.try_emplace(v, no_value);
    if (fresh) known->second = g_.add_value(name("v"), type(v), t_[v].constant);
    return known->second;
  }
  std::string name(const char* stem) const {
    const ValueId first =
        *std::find_if(node_.outputs.begin(), node_.outputs.end(), [](ValueId v) { return v != no_value; });
    return g_[first].name + "." + stem + std::to_string(g_.values.size());
  }

  void say(Operator op, std::vector<ValueId> inputs, Attrs attrs, ValueId output) {
    calls_.push_back({op, std::move(inputs), std::move(attrs), {output}, node_.loc, {}});
  }
  ValueId made(Operator op, std::vector<ValueId> inputs, Attrs attrs, TensorType result) {
    const ValueId v = g_.add_value(name("t"), std::move(result));
    say(op, std::move(inputs), std::move(attrs), v);
    return v;
  }
  std::optional<Ints> integers(const Node& n, std::size_t i) const { return tosa::View(t_, n).constant_integers(i); }

  bool one(const Node& n) {
    const Operator op = n.op;
    const ValueId out = value(n.outputs[0]);
    for (const SameMeaning& same : same_meaning)
      if (op == same.tosa) {
        if (op == tosa::op::mul && integers(n, 2).value_or(Ints{1}) != Ints{0}) return false;  // a shift
        if (type(n.inputs[0]).dtype != type(n.outputs[0]).dtype && (op == tosa::op::mul || op == tosa::op::matmul))
          return false;
        std::vector<ValueId> operands;
        for (std::size_t i = 0; i < same.operands; ++i) operands.push_back(value(n.inputs[i]));
        say(same.aten, std::move(operands), {}, out);
        return true;
      }
    return layout(op, n, out) || reduction(op, n, out) || indexed(op, n, out) || convolution(op, n, out) ||
           conversion(op, n, out);
  }

  // CONV2D has its channels last, in weights, too.
  bool convolution(Operator op, const Node& n, ValueId out) {
    if (op != tosa::op::conv2d || type(n.inputs[2]).shape != Shape{type(n.outputs[0]).shape.size(3)}) return false;
    const auto pad = n.attrs.get<Ints>("pad");
    if (!is_float(type(n.inputs[0]).dtype) || pad[0] != pad[1] || pad[2] != pad[3]) return false;
    const auto permuted = [&](ValueId v, TensorType t, const Ints& dims) {
      Shape to = t.shape;
      for (int i = 0; i < to.rank(); ++i) to.set(i, t.shape[static_cast<int>(dims[static_cast<std::size_t>(i)])]);
      return made(aten::op::permute_copy, {v}, {{"dims", dims}}, {t.dtype, to, {}});
    };
    const Ints channels_first{0, 3, 1, 2};
    const ValueId x = permuted(value(n.inputs[0]), type(n.inputs[0]), channels_first),
                  w = permuted(value(n.inputs[1]), type(n.inputs[1]), channels_first);
    const TensorType& y = type(n.outputs[0]);
    const ValueId first = made(aten::op::convolution, {x, w, value(n.inputs[2])},
                               {{"stride", n.attrs.get<Ints>("stride")},
                                {"padding", Ints{pad[0], pad[2]}},
                                {"dilation", n.attrs.get<Ints>("dilation")},
                                {"transposed", false},
                                {"output_padding", Ints{0, 0}},
                                {"groups", std::int64_t{1}}},
                               {y.dtype, {y.shape.size(0), y.shape.size(3), y.shape.size(1), y.shape.size(2)}, {}});
    say(aten::op::permute_copy, {first}, {{"dims", Ints{0, 2, 3, 1}}}, out);
    return true;
  }

  bool layout(Operator op, const Node& n, ValueId out) {
    const ValueId x = value(n.inputs[0]);
    if (op == tosa::op::reshape) {
      say(aten::op::view_copy, {x}, {{"size", g_[out].type.shape.sizes()}}, out);
    } else if (op == tosa::op::transpose) {
      say(aten::op::permute_copy, {x}, {{"dims", n.attrs.get<Ints>("perms")}}, out);
    } else if (op == tosa::op::tile) {
      say(aten::op::repeat, {x}, {{"repeats", *integers(n, 1)}}, out);
    } else if (op == tosa::op::reverse) {
      say(aten::op::flip, {x}, {{"dims", Ints{n.attrs.get<std::int64_t>("axis")}}}, out);
    } else if (op == tosa::op::concat) {
      std::vector<ValueId> parts;
      for (ValueId v : n.inputs) parts.push_back(value(v));
      say(aten::op::cat, std::move(parts), {{"dim", n.attrs.get<std::int64_t>("axis")}}, out);
    } else if (op == tosa::op::pad) {
      return pad(n, x, out);
    } else if (op == tosa::op::slice) {
      slice(n, x, out);
    } else {
      return false;
    }
    return true;
  }

  // PyTorch names the last dim first.
  bool pad(const Node& n, ValueId x, ValueId out) {
    const auto sizes = integers(n, 1);
    const Value& fill = t_[n.inputs[2]];
    if (!sizes || !fill.is_constant()) return false;
    Ints padding;
    for (std::size_t d = sizes->size() / 2; d-- > 0;)
      padding.insert(padding.end(), {(*sizes)[2 * d], (*sizes)[2 * d + 1]});
    Attrs attrs{{"pad", padding}};
    if (is_float(fill.type.dtype))
      attrs.set("value", element_as_double(fill.type.dtype, fill.constant.data(), 0));
    else
      attrs.set("value", element_as_integer(fill.type.dtype, fill.constant.data(), 0));
    say(aten::op::constant_pad_nd, {x}, std::move(attrs), out);
    return true;
  }

  void slice(const Node& n, ValueId x, ValueId out) {
    const Ints start = *integers(n, 1), size = *integers(n, 2);
    std::vector<std::int64_t> changed;
    for (std::size_t d = 0; d < start.size(); ++d)
      if (size[d] != g_[x].type.shape.size(static_cast<int>(d))) changed.push_back(static_cast<std::int64_t>(d));
    for (std::int64_t d : changed) {
      const auto at = static_cast<std::size_t>(d);
      TensorType cut = g_[x].type;
      cut.shape.set(static_cast<int>(d), size[at]);
      Attrs attrs{{"dim", d}, {"start", start[at]}, {"end", start[at] + size[at]}, {"step", std::int64_t{1}}};
      if (d == changed.back())
        say(aten::op::slice_copy_Tensor, {x}, std::move(attrs), out);
      else
        x = made(aten::op::slice_copy_Tensor, {x}, std::move(attrs), cut);
    }
    if (changed.empty()) say(aten::op::clone, {x}, {}, out);
  }

  bool reduction(Operator op, const Node& n, ValueId out) {
    if (!tosa::is_reduction(op) && op != tosa::op::argmax) return false;
    const ValueId x = value(n.inputs[0]);
    const auto axis = n.attrs.get<std::int64_t>("axis");
    const Ints dims{axis};
    if (op == tosa::op::reduce_sum)
      say(aten::op::sum_dim_IntList, {x}, {{"dim", dims}, {"keepdim", true}, {"dtype", g_[out].type.dtype}}, out);
    else if (op == tosa::op::reduce_max)
      say(aten::op::amax, {x}, {{"dim", dims}, {"keepdim", true}}, out);
    else if (op == tosa::op::reduce_min)
      say(aten::op::amin, {x}, {{"dim", dims}, {"keepdim", true}}, out);
    else if (op == tosa::op::reduce_product)
      say(aten::op::prod_dim_int, {x}, {{"dim", axis}, {"keepdim", true}, {"dtype", g_[out].type.dtype}}, out);
    else if (op == tosa::op::reduce_any)
      say(aten::op::any_dim, {x}, {{"dim", axis}, {"keepdim", true}}, out);
    else if (op == tosa::op::reduce_all)  // none is false
      say(aten::op::logical_not,
          {made(aten::op::any_dim, {made(aten::op::logical_not, {x}, {}, g_[x].type)},
                {{"dim", axis}, {"keepdim", true}}, g_[out].type)},
          {}, out);
    else if (op == tosa::op::argmax)
      converted(made(aten::op::argmax, {x}, {{"dim", axis}, {"keepdim", false}}, g_[out].type.with(DType::i64)), out);
    else
      return false;
    return true;
  }

  // [N,K,C] by [N,W]: torch.gather and torch.scatter want int64 indices of the result's shape.
  bool indexed(Operator op, const Node& n, ValueId out) {
    if (op != tosa::op::gather && op != tosa::op::scatter) return false;
    const ValueId x = value(n.inputs[0]), rows = value(n.inputs[1]);
    const Shape& shape = g_[rows].type.shape;
    const std::int64_t width = g_[x].type.shape.size(2);
    const TensorType row{DType::i64, {shape.size(0), shape.size(1), 1}, {}},
        all{DType::i64, {shape.size(0), shape.size(1), width}, {}};
    const ValueId wide = made(aten::op::_to_copy, {rows}, {{"dtype", DType::i64}}, g_[rows].type.with(DType::i64));
    ValueId index = made(aten::op::view_copy, {wide}, {{"size", row.shape.sizes()}}, row);
    if (width != 1) index = made(aten::op::expand_copy, {index}, {{"size", all.shape.sizes()}}, all);
    if (op == tosa::op::gather)
      say(aten::op::gather, {x, index}, {{"dim", std::int64_t{1}}}, out);
    else
      say(aten::op::scatter_src, {x, index, value(n.inputs[2])}, {{"dim", std::int64_t{1}}}, out);
    return true;
  }

  bool conversion(Operator op, const Node& n, ValueId out) {
    const ValueId x = value(n.inputs[0]);
    if (op == tosa::op::cast) {
      // CAST rounds; what lowerings cast to integers is whole already.
      converted(x, out);
    } else if (op == tosa::op::intdiv) {
      say(aten::op::div_Tensor_mode, {x, value(n.inputs[1])}, {{"rounding_mode", std::string("trunc")}}, out);
    } else if (op == tosa::op::clamp) {
      say(aten::op::clamp, {x}, {{"min", *n.attrs.find("min_val")}, {"max", *n.attrs.find("max_val")}}, out);
    } else {
      return false;
    }
    return true;
  }
  void converted(ValueId x, ValueId out) { say(aten::op::_to_copy, {x}, {{"dtype", g_[out].type.dtype}}, out); }

  Graph& g_;
  const Node& node_;
  const Trial& trial_;
  const Graph& t_;
  std::map<ValueId, ValueId> of_;
  std::vector<Node> calls_;
};

}  // namespace

std::optional<std::vector<Node>> tosa_in_aten(Graph& graph, const Node& node, const std::vector<char>& used) {
  for (ValueId v : node.inputs)
    if (v != no_value && !graph[v].type.shape.is_static()) return std::nullopt;
  Node read = node;
  for (ValueId& v : read.outputs)
    if (v != no_value && !used[v]) v = no_value;
  const auto trial = try_node(graph, read, {.fold = true, .lowering = lower_node});
  if (!trial.ok()) return std::nullopt;
  return Spelling(graph, read, *trial).run();
}

}  // namespace tosaic::packing
