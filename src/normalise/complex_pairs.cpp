// SPDX-License-Identifier: Apache-2.0
#include "normalise/complex_pairs.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <bit>
#include <numbers>
#include <string_view>
#include <tuple>
#include <utility>

#include "ir/aten_operators.h"
#include "ir/rewriter.h"
#include "ir/tensor.h"
#include "ir/tosa_operators.h"
#include "normalise/fourier_pairs.h"
#include "normalise/pair_movement.h"
#include "ops/inconsistent.h"
#include "ops/lowering/calls.h"
#include "ops/trial.h"

namespace tosaic {
namespace {

using pairs::Of;

constexpr std::string_view mark = "complex_results";

bool among(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Val part(Val x, std::int64_t i) { return calls::slice(x, x.rank() - 1, i, 1); }  // [..., 1]
Val joined(Val re, Val im) { return calls::cat({re, im}, re.rank() - 1); }
Val taken(Val x, std::int64_t i) {
  return x.builder().aten(aten::op::select_int, {x}, {{"dim", std::int64_t{-1}}, {"index", i}});
}
Val in_pairs(Val x) {
  auto dims = x.shape().sizes();
  dims.push_back(1);
  return calls::view(x, Shape(dims));
}

Val product(Val a, Val b) {
  const Val ar = part(a, 0), ai = part(a, 1), br = part(b, 0), bi = part(b, 1);
  // One after the other: the order in which a compiler evaluates arguments is its own.
  const Val rr = calls::mul(ar, br), ii = calls::mul(ai, bi), ri = calls::mul(ar, bi), ir = calls::mul(ai, br);
  const Val re = calls::sub(rr, ii), im = calls::add(ri, ir);
  return joined(re, im);
}

Val turned(Val size, Val angle) {
  const Val cos = calls::unary(aten::op::cos, angle), sin = calls::unary(aten::op::sin, angle);
  const Val re = calls::mul(size, cos), im = calls::mul(size, sin);
  return joined(re, im);
}

Val conjugate(Val x) {
  Builder& b = x.builder();
  const std::vector<double> signs{1, -1};
  return calls::mul(x, b.constant({DType::f32, Shape{2}, std::nullopt}, constant_bytes(DType::f32, signs)));
}

Val squares(Val x) { return calls::sum(calls::mul(x, x), {x.rank() - 1}, true); }

// "aten.mul.Tensor": {"mul", "Tensor"}; empty: PyTorch's own operators alone have forms.
std::pair<std::string_view, std::string_view> name_and_overload(Operator op) {
  if (!op.is_aten()) return {};
  return {op.base(), op.overload()};
}

std::string_view transform_schema(std::string_view name, std::string_view overload) {
  const std::string_view schema = pairs::fourier_schema(name);
  if (!schema.empty()) return schema;
  return pairs::short_time_schema(overload == "default" ? std::string(name) : fmt::format("{}.{}", name, overload));
}

// One call that reads or gives complex numbers, or is made for them.
class PairCall {
 public:
  PairCall(Builder& b, Graph& graph, const Node& node, const std::vector<char>& complex)
      : b_(b), graph_(graph), node_(node), complex_(complex) {
    std::tie(name_, overload_) = name_and_overload(node_.op);
  }

  Vals said() {
    if (name_.ends_with('_')) return written();
    if (auto made = transform()) return *made;
    if (auto made = created()) return *made;
    if (auto made = taken_apart()) return *made;
    if (is_complex(0)) {  // as calls in place are once they have been made pure
      const auto made = name_ == "copy" ? std::optional<Vals>(pair(1)) : filling();
      if (made) return spread(made->front(), operand(0).shape());
    }
    if (auto made = arithmetic()) return *made;
    const ValueId first = first_complex();
    if (first != no_value)
      if (auto how = pairs::moved(node_, graph_[first].type.shape)) return same_call(*how);
    unknown();
  }

 private:
  bool is_complex(std::size_t i) const {
    return i < node_.inputs.size() && node_.inputs[i] != no_value && node_.inputs[i] < complex_.size() &&
           complex_[node_.inputs[i]];
  }
  ValueId first_complex() const {
    for (std::size_t i = 0; i < node_.inputs.size(); ++i)
      if (is_complex(i)) return node_.inputs[i];
    return no_value;
  }
  bool given(std::size_t i) const { return i < node_.inputs.size() && node_.inputs[i] != no_value; }
  Val operand(std::size_t i) {
    if (!given(i)) unknown();
    return {&b_, node_.inputs[i]};
  }
  Val real(std::size_t i) {
    const Val x = operand(i);
    return x.dtype() == DType::f32 ? x : b_.aten(aten::op::_to_copy, {x}, {{"dtype", DType::f32}});
  }
  Val pair(std::size_t i) { return is_complex(i) ? operand(i) : pairs::with_zeros(real(i)); }

  [[noreturn]] void unknown() const {
    b_.refuse("model.complex", first_complex() != no_value
                                   ? fmt::format("{} reads complex numbers, which it has no form for", node_.op)
                                   : fmt::format("{} gives complex numbers, which it has no form for", node_.op));
  }

  std::optional<Vals> transform() {
    const std::string_view text = transform_schema(name_, overload_);
    if (text.empty()) return {};
    const bool short_time = pairs::fourier_schema(name_).empty();
    auto schema = parse_schema(text);
    if (!schema.ok()) b_.refuse(schema.error().code, schema.error().message);
    std::vector<std::optional<Val>> operands;  // None was read as an attribute, as of any unknown operator
    std::size_t next = 0;
    for (const SchemaArgument& a : schema->arguments)
      if (a.is_tensor())
        operands.push_back(!node_.attrs.find(a.name) && given(next) ? std::optional(Val(&b_, node_.inputs[next++]))
                                                                    : std::nullopt);
    const Val x = is_complex(0) ? operand(0) : real(0);
    const Call call(b_, *schema, std::move(operands), node_.attrs, {});
    const Of of = is_complex(0) ? Of::pairs : Of::real;
    return short_time ? pairs::short_time(x, of, call) : pairs::fourier(x, of, call);
  }

  // A call in place is one that is not, and its result copied there: what looks at the same memory sees it.
  Vals written() {
    if (!is_complex(0)) unknown();
    name_.remove_suffix(1);
    std::optional<Vals> value;
    if (name_ == "copy")
      value = pair(1);
    else
      value = filling();
    if (!value) value = arithmetic();
    if (!value || value->size() != 1) unknown();
    // A node by hand: the builder takes what it gives for a constant where that is one, and the write would be gone.
    const ValueId self = node_.inputs[0];
    const ValueId now = graph_.add_value(graph_[self].name + ".written", graph_[self].type);
    graph_.nodes.push_back({Operator("aten.copy_.default"), {self, value->front().id()}, {}, {now}, node_.loc, {}});
    return Val(&b_, now);
  }
  std::optional<Vals> filling() {
    if (name_ == "zero") return pair_of(0, 0);
    if (name_ == "fill") return overload_ == "Tensor" ? pair(1) : other_pairs(number("value"));
    return {};
  }

  // A new tensor, of no more than a number: torch.zeros(..., dtype=torch.cfloat), whose slices are often written then.
  std::optional<Vals> created() {
    std::string_view name = name_;
    if (name.starts_with("new_")) name.remove_prefix(4);
    if (name.ends_with("_like")) name.remove_suffix(5);
    if (!among(name, {"zeros", "ones", "full", "empty", "empty_strided"}) || !node_.attrs.find(mark) ||
        node_.outputs.size() != 1 || node_.outputs[0] == no_value)
      return {};
    std::array<double, 2> parts{name == "ones" ? 1.0 : 0.0, 0.0};
    if (name == "full") parts = parts_of("fill_value");
    auto dims = graph_[node_.outputs[0]].type.shape.sizes();
    if (parts[0] == 0 && parts[1] == 0) return memory(dims, 0);
    dims.back() = 1;
    const Val re = memory(dims, parts[0]), im = memory(dims, parts[1]);
    return joined(re, im);
  }
  // A node by hand, as in `written`: what is a constant could not be written.
  Val memory(const std::vector<std::int64_t>& dims, double value) {
    const ValueId made = graph_.add_value(fmt::format("{}.{}", graph_[node_.outputs[0]].name, graph_.values.size()),
                                          {DType::f32, Shape(dims), std::nullopt});
    graph_.nodes.push_back(
        {aten::op::full, {}, {{"size", dims}, {"fill_value", value}, {"dtype", DType::f32}}, {made}, node_.loc, {}});
    return {&b_, made};
  }
  std::array<double, 2> parts_of(std::string_view name) {
    const Attr* attr = node_.attrs.find(name);
    if (!attr) unknown();
    if (const auto* n = std::get_if<std::int64_t>(attr)) return {static_cast<double>(*n), 0};
    if (const auto* n = std::get_if<double>(attr)) return {*n, 0};
    if (const auto* n = std::get_if<bool>(attr)) return {*n ? 1.0 : 0.0, 0};
    if (const auto* both = std::get_if<std::vector<double>>(attr); both && both->size() == 2)
      return {(*both)[0], (*both)[1]};
    unknown();
  }

  // Between pairs and their parts.
  std::optional<Vals> taken_apart() {
    if (among(name_, {"view_as_real", "view_as_complex", "clone", "contiguous", "alias", "detach", "lift_fresh_copy",
                      "resolve_conj", "resolve_neg", "positive", "view_as_real_copy", "view_as_complex_copy"}))
      return operand(0);
    if (among(name_, {"to", "_to_copy"})) {  // to real numbers: the imaginary parts would be lost
      if (!node_.attrs.find(mark)) return {};
      return pair(0);
    }
    if (first_complex() == no_value && among(name_, {"real", "_conj", "conj_physical"})) return operand(0);
    if (first_complex() == no_value && name_ == "angle")  // of real numbers: half a turn for those below zero
      return calls::mul(b_.aten(aten::op::_to_copy, {b_.aten(aten::op::lt_Scalar, {operand(0)}, {{"other", 0.0}})},
                                {{"dtype", DType::f32}}),
                        std::numbers::pi);
    if (name_ == "real" && is_complex(0)) return taken(operand(0), 0);
    if (name_ == "imag" && is_complex(0)) return taken(operand(0), 1);
    if (name_ == "complex" || name_ == "polar") {
      if (!given(1) || !node_.attrs.find(mark)) return {};
      Val a = in_pairs(real(0)), c = in_pairs(real(1));
      if (name_ == "polar") return turned(a, c);
      if (node_.outputs[0] == no_value) unknown();
      auto dims = graph_[node_.outputs[0]].type.shape.sizes();
      dims.back() = 1;
      a = spread(a, Shape(dims));
      c = spread(c, Shape(dims));
      return joined(a, c);
    }
    if (name_ == "abs" && is_complex(0))
      return b_.aten(aten::op::linalg_vector_norm, {operand(0)}, {{"dim", std::vector<std::int64_t>{-1}}});
    if (name_ == "angle" && is_complex(0)) {
      const Val im = taken(operand(0), 1), re = taken(operand(0), 0);
      return b_.aten(aten::op::atan2, {im, re});
    }
    return {};
  }
  Val spread(Val x, const Shape& shape) {
    return x.shape() == shape ? x : b_.aten(aten::op::expand, {x}, {{"size", shape.sizes()}});
  }

  // The other operand, of a call of two: another complex tensor, a real one, or a number of either kind.
  struct Other {
    std::optional<double> number;
    std::optional<Val> real, pairs;
  };
  Other other() {
    if (is_complex(1)) return {{}, {}, operand(1)};
    if (given(1)) return {{}, in_pairs(real(1)), {}};
    return number("other");
  }
  Other number(std::string_view name) {
    const Attr* attr = node_.attrs.find(name);
    if (!attr) unknown();
    if (const auto* n = std::get_if<std::int64_t>(attr)) return {static_cast<double>(*n), {}, {}};
    if (const auto* n = std::get_if<double>(attr)) return {*n, {}, {}};
    if (const auto* both = std::get_if<std::vector<double>>(attr); both && both->size() == 2)
      return {{}, {}, pair_of((*both)[0], (*both)[1])};
    unknown();
  }
  Val pair_of(double re, double im) {
    const std::vector<double> both{re, im};
    return b_.constant({DType::f32, Shape{2}, std::nullopt}, constant_bytes(DType::f32, both));
  }
  Val other_pairs(const Other& y) {
    if (y.pairs) return *y.pairs;
    if (y.number) return pair_of(*y.number, 0);
    return pairs::with_zeros(real(1));
  }

  std::optional<Vals> arithmetic() {
    if (among(name_, {"add", "sub", "rsub"})) {
      double alpha = 1;
      if (const Attr* attr = node_.attrs.find("alpha")) {
        if (const auto* n = std::get_if<std::int64_t>(attr))
          alpha = static_cast<double>(*n);
        else if (const auto* f = std::get_if<double>(attr))
          alpha = *f;
        else
          unknown();
      }
      Val a = pair(0), c = other_pairs(other());
      if (name_ == "rsub") std::swap(a, c);
      if (name_ == "rsub" && alpha != 1) unknown();
      c = calls::mul(c, alpha);
      return name_ == "add" ? calls::add(a, c) : calls::sub(a, c);
    }
    if (name_ == "where" && overload_ == "self" && given(0) && !is_complex(0)) {
      const Val a = pair(1), c = pair(2);
      return calls::where(in_pairs(operand(0)), a, c);
    }
    if (name_ == "mul") return multiplied();
    if (name_ == "div" && overload_ != "Tensor_mode" && overload_ != "Scalar_mode") return divided();
    if (auto made = multiplied_in_parts()) return made;
    if (!is_complex(0)) return {};
    const Val x = operand(0);
    if (among(name_, {"_conj", "conj", "conj_physical", "_conj_physical"})) return conjugate(x);
    if (among(name_, {"mH", "adjoint", "matrix_H"}) && x.rank() > 2)
      return calls::transpose(conjugate(x), x.rank() - 3, x.rank() - 2);
    if (name_ == "neg") return calls::unary(aten::op::neg, x);
    if (name_ == "square") return product(x, x);
    if (name_ == "pow" && node_.attrs.find("exponent") && two(*node_.attrs.find("exponent"))) return product(x, x);
    if (name_ == "reciprocal") {
      const Val above = conjugate(x), below = squares(x);
      return b_.aten(aten::op::div_Tensor, {above, below});
    }
    if (name_ == "log") {
      const Val size = calls::mul(calls::log(squares(x)), 0.5);
      const Val angle = b_.aten(aten::op::atan2, {part(x, 1), part(x, 0)});
      return joined(size, angle);
    }
    if (name_ == "exp") {
      const Val size = calls::exp(part(x, 0)), angle = part(x, 1);
      return turned(size, angle);
    }
    return {};
  }
  static bool two(const Attr& n) { return n == Attr(std::int64_t{2}) || n == Attr(2.0); }

  Vals multiplied() {
    const Other y = other();
    if (!is_complex(0)) {
      if (!y.pairs) unknown();
      return calls::mul(in_pairs(real(0)), *y.pairs);
    }
    const Val x = operand(0);
    if (y.number) return calls::mul(x, *y.number);
    return y.real ? calls::mul(x, *y.real) : product(x, *y.pairs);
  }

  Vals divided() {
    const Other y = other();
    if (y.number) return b_.aten(aten::op::div_Scalar, {pair(0)}, {{"other", *y.number}});
    if (y.real) return b_.aten(aten::op::div_Tensor, {pair(0), *y.real});
    const Val above = product(pair(0), conjugate(*y.pairs)), below = squares(*y.pairs);
    return b_.aten(aten::op::div_Tensor, {above, below});
  }

  // A product of the first `end` operands in whatever way, linear in each: the call on every combination of their
  // parts. An even number of imaginary ones makes a real part, and every pair of these turns its sign.
  Val product_of_parts(std::size_t end) {
    std::optional<Val> sums[2];
    std::vector<std::size_t> complex;
    for (std::size_t i = 0; i < end; ++i)
      if (is_complex(i)) complex.push_back(i);
    if (complex.size() > 6) unknown();
    Attrs attrs;
    for (const auto& [name, attr] : node_.attrs)
      if (name != mark && name != "argument_order") attrs.set(name, attr);
    for (std::size_t which = 0; which < std::size_t{1} << complex.size(); ++which) {
      std::vector<std::optional<Val>> operands;
      for (std::size_t i = 0, k = 0; i < end; ++i)
        operands.push_back(is_complex(i) ? taken(operand(i), (which >> k++) & 1) : real(i));
      for (std::size_t i = end; i < node_.inputs.size(); ++i) operands.emplace_back();  // a bias is added later
      const int imaginary = std::popcount(which);
      const Val term = b_.aten(node_.op, std::move(operands), attrs);
      std::optional<Val>& sum = sums[imaginary % 2];
      const bool minus = imaginary / 2 % 2 == 1;
      if (!sum)
        sum = minus ? calls::unary(aten::op::neg, term) : term;
      else
        sum = minus ? calls::sub(*sum, term) : calls::add(*sum, term);
    }
    const Val re = in_pairs(*sums[0]), im = in_pairs(*sums[1]);
    return joined(re, im);
  }
  // The bias of a convolution has one number for each of the channels, which stand before `spatial` dims.
  std::optional<Vals> multiplied_in_parts() {
    if (first_complex() == no_value) return {};
    if (among(name_, {"matmul", "mm", "bmm", "mv", "dot", "outer", "ger", "inner", "einsum", "tensordot"}))
      return product_of_parts(node_.inputs.size());
    const bool linear = name_ == "linear";
    const int spatial = name_ == "conv1d" ? 1 : name_ == "conv2d" ? 2 : name_ == "conv3d" ? 3 : 0;
    if ((!linear && spatial == 0) || node_.inputs.size() < 2) return {};
    const Val y = product_of_parts(2);
    if (!given(2)) return y;
    Val bias = pair(2);
    if (spatial > 0) {
      std::vector<std::int64_t> dims(static_cast<std::size_t>(spatial) + 2, 1);
      dims.front() = bias.dim(0);
      dims.back() = 2;
      bias = calls::view(bias, Shape(dims));
    }
    return calls::add(y, bias);
  }

  Vals same_call(const pairs::Moved& how) {
    const bool list =
        among(name_, {"cat", "concat", "stack", "slice_scatter", "select_scatter"});  // of which some may be real
    std::vector<std::optional<Val>> operands;
    for (std::size_t i = 0; i < node_.inputs.size(); ++i)
      operands.push_back(!given(i) ? std::nullopt : std::optional(list ? pair(i) : operand(i)));
    return b_.aten_all(how.op, std::move(operands), how.attrs);
  }

  Builder& b_;
  Graph& graph_;
  const Node& node_;
  const std::vector<char>& complex_;
  std::string_view name_, overload_;
};

class PairWriter {
 public:
  explicit PairWriter(Graph& graph) : graph_(graph), complex_(graph.values.size(), 0) {}

  Status run() {
    const auto concerns = [](const Node& n) { return n.attrs.find(mark) || has_form_on_pairs(n.op); };
    if (std::none_of(graph_.nodes.begin(), graph_.nodes.end(), concerns)) return {};
    Rewriter out(graph_);
    for (Node& node : out.nodes()) {
      const bool gives = node.attrs.find(mark) != nullptr;
      const bool takes =
          std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId v) { return v != no_value && complex_[v]; });
      if (!gives && !takes && !has_form_on_pairs(node.op)) {
        out.keep(std::move(node));
        continue;
      }
      if (node.op.is_aten() && node.op.base().starts_with("_assert")) continue;  // what the types say
      if (gives && !std::ranges::all_of(node.outputs, [&](ValueId v) { return v == no_value || may_be_pairs(v); }))
        return located(
            error(std::string(inconsistent_model), node.op.text() + " gives complex numbers that are no pairs")
                .hint("the file is damaged or was changed by hand: save the program again"),
            node.loc);
      if (auto done = say(node); !done.ok()) return done;
      for (ValueId v : node.outputs)
        if (v != no_value && gives) complex_[v] = 1;
    }
    return {};
  }

 private:
  bool may_be_pairs(ValueId v) const {
    const TensorType& type = graph_[v].type;
    return type.dtype == DType::f32 && !type.quantised() && type.rank() > 0 && type.shape[type.rank() - 1] == Dim(2);
  }

  Status say(const Node& node) {
    Builder b(graph_);
    b.keep_aten(true);
    b.set_loc(node.loc);
    try {
      const Vals made = PairCall(b, graph_, node, complex_).said();
      for (std::size_t i = 0; i < node.outputs.size(); ++i) {
        const ValueId v = node.outputs[i];
        if (v == no_value) continue;
        if (i >= made.size() || made[i].type().shape != graph_[v].type.shape)
          b.refuse("model.complex",
                   fmt::format("{} gives {}, but {} where its pairs are computed", node.op, to_string(graph_[v].type),
                               i < made.size() ? to_string(made[i].type()) : "nothing"));
        graph_.nodes.push_back({aten::op::alias, {made[i].id()}, {}, {v}, node.loc, {}});
      }
    } catch (const Refusal& refusal) {
      Diagnostic why = refusal.why;
      if (why.help.empty())
        why.help =
            "take complex numbers apart before it: torch.view_as_real(x) gives pairs, x.real and x.imag the parts";
      return why;
    } catch (const UnknownSize& why) { return unknown_size(node, why); }
    complex_.resize(graph_.values.size(), 0);
    return {};
  }

  Graph& graph_;
  std::vector<char> complex_;
};

}  // namespace

bool has_form_on_pairs(Operator op) {
  const auto [name, overload] = name_and_overload(op);
  return !transform_schema(name, overload).empty() ||
         among(name, {"view_as_real", "view_as_complex", "real", "imag", "complex", "polar", "angle", "_conj",
                      "conj_physical", "resolve_conj", "resolve_neg"});
}

Status say_complex_in_pairs(Graph& graph) {
  TOSAIC_CHECK(PairWriter(graph).run());
  for (Node& node : graph.nodes)
    for (Graph& body : node.regions) TOSAIC_CHECK(say_complex_in_pairs(body));
  return {};
}

}  // namespace tosaic
