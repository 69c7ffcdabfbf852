// SPDX-License-Identifier: Apache-2.0
#include "normalise/pair_forms.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <bit>
#include <iterator>
#include <numbers>
#include <tuple>
#include <utility>

#include "ir/aten_operators.h"
#include "ir/marks.h"
#include "ir/program_operators.h"
#include "ir/tensor.h"
#include "normalise/complex_pairs.h"
#include "normalise/fourier_pairs.h"
#include "normalise/pair_movement.h"
#include "ops/lowering/calls.h"

namespace tosaic {
namespace {

using pairs::Of;

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
    const Form* form = form_of(name_);
    if (form && form->is & writes && !is_complex(0)) form = nullptr;
    if (auto made = form ? (this->*form->say)() : std::nullopt)  // what writes was a call in place, made pure
      return form->is & writes ? spread(made->front(), operand(0).shape()) : *made;
    const ValueId first = first_complex();
    if (first != no_value)
      if (auto how = pairs::moved(node_, graph_[first].type.shape)) return same_call(*how);
    unknown();
  }

  // Operators' form on pairs, in whichever overload; nothing: it has none of these arguments.
  struct Form {
    std::array<Operator, 10> ops;
    std::optional<Vals> (PairCall::*say)();
    unsigned is = 0;
  };
  static constexpr unsigned apart = 1,  // between pairs and their parts, or a new tensor: no call in place
      of_complex = 2,                   // PyTorch has it for complex numbers alone
      writes = 4;                       // into its first operand, which has to be complex
  static const Form* form_of(std::string_view name);

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
    const Form* form = form_of(name_);
    const auto value = form && !(form->is & apart) ? (this->*form->say)() : std::nullopt;
    if (!value || value->size() != 1) unknown();
    // A node by hand: the builder takes what it gives for a constant where that is one, and the write would be gone.
    const ValueId self = node_.inputs[0];
    const ValueId now = graph_.add_value(graph_[self].name + ".written", graph_[self].type);
    graph_.nodes.push_back({Operator("aten.copy_.default"), {self, value->front().id()}, {}, {now}, node_.loc, {}});
    return Val(&b_, now);
  }
  std::optional<Vals> copied() { return pair(1); }
  std::optional<Vals> zeroed() { return pair_of(0, 0); }
  std::optional<Vals> filled() { return overload_ == "Tensor" ? pair(1) : other_pairs(number("value")); }

  // A new tensor, of no more than a number: torch.zeros(..., dtype=torch.cfloat), whose slices are often written then.
  std::optional<Vals> made_zeros() { return created({0, 0}); }
  std::optional<Vals> made_ones() { return created({1, 0}); }
  std::optional<Vals> made_full() {
    return has_mark(node_, mark::complex_results) ? created(parts_of("fill_value")) : std::nullopt;
  }
  std::optional<Vals> created(const std::array<double, 2>& parts) {
    if (!has_mark(node_, mark::complex_results) || node_.outputs.size() != 1 || node_.outputs[0] == no_value) return {};
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

  // ---- between pairs and their parts
  std::optional<Vals> same() { return operand(0); }
  std::optional<Vals> converted() {  // to real numbers: the imaginary parts would be lost
    return has_mark(node_, mark::complex_results) ? std::optional<Vals>(pair(0)) : std::nullopt;
  }
  std::optional<Vals> real_part() { return is_complex(0) ? taken(operand(0), 0) : operand(0); }
  std::optional<Vals> imaginary_part() {
    return is_complex(0) ? std::optional<Vals>(taken(operand(0), 1)) : std::nullopt;
  }
  std::optional<Vals> of_polar() {
    if (!given(1) || !has_mark(node_, mark::complex_results)) return {};
    const Val size = in_pairs(real(0)), angle = in_pairs(real(1));
    return turned(size, angle);
  }
  std::optional<Vals> of_parts() {
    if (!given(1) || !has_mark(node_, mark::complex_results)) return {};
    Val re = in_pairs(real(0)), im = in_pairs(real(1));
    if (node_.outputs[0] == no_value) unknown();
    auto dims = graph_[node_.outputs[0]].type.shape.sizes();
    dims.back() = 1;
    re = spread(re, Shape(dims));
    im = spread(im, Shape(dims));
    return joined(re, im);
  }
  std::optional<Vals> magnitude() {
    if (!is_complex(0)) return {};
    return b_.aten(aten::op::linalg_vector_norm, {operand(0)}, {{"dim", std::vector<std::int64_t>{-1}}});
  }
  std::optional<Vals> argument() {
    if (!is_complex(0))  // half a turn for those below zero
      return calls::mul(b_.aten(aten::op::_to_copy, {b_.aten(aten::op::lt_Scalar, {operand(0)}, {{"other", 0.0}})},
                                {{"dtype", DType::f32}}),
                        std::numbers::pi);
    const Val im = taken(operand(0), 1), re = taken(operand(0), 0);
    return b_.aten(aten::op::atan2, {im, re});
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

  // ---- arithmetic
  double alpha() {
    const Attr* attr = node_.attrs.find("alpha");
    if (!attr) return 1;
    if (const auto* n = std::get_if<std::int64_t>(attr)) return static_cast<double>(*n);
    if (const auto* f = std::get_if<double>(attr)) return *f;
    unknown();
  }
  std::optional<Vals> sum() {
    const double factor = alpha();
    const Val a = pair(0), c = other_pairs(other());
    return calls::add(a, calls::mul(c, factor));
  }
  std::optional<Vals> difference() {
    const double factor = alpha();
    const Val a = pair(0), c = other_pairs(other());
    return calls::sub(a, calls::mul(c, factor));
  }
  std::optional<Vals> difference_from() {
    const double factor = alpha();
    const Val a = pair(0), c = other_pairs(other());
    if (factor != 1) unknown();
    return calls::sub(c, calls::mul(a, factor));
  }
  std::optional<Vals> chosen() {
    if (overload_ != "self" || !given(0) || is_complex(0)) return {};
    const Val a = pair(1), c = pair(2);
    return calls::where(in_pairs(operand(0)), a, c);
  }
  std::optional<Vals> conjugated() { return is_complex(0) ? conjugate(operand(0)) : operand(0); }
  std::optional<Vals> conjugate_transposed() {
    if (!is_complex(0) || operand(0).rank() < 3) return {};
    const Val x = operand(0);
    return calls::transpose(conjugate(x), x.rank() - 3, x.rank() - 2);
  }
  std::optional<Vals> negated() {
    return is_complex(0) ? std::optional<Vals>(calls::unary(aten::op::neg, operand(0))) : std::nullopt;
  }
  std::optional<Vals> squared() {
    return is_complex(0) ? std::optional<Vals>(product(operand(0), operand(0))) : std::nullopt;
  }
  std::optional<Vals> power() {
    const Attr* exponent = node_.attrs.find("exponent");
    return exponent && two(*exponent) ? squared() : std::nullopt;
  }
  std::optional<Vals> inverse() {
    if (!is_complex(0)) return {};
    const Val above = conjugate(operand(0)), below = squares(operand(0));
    return b_.aten(aten::op::div_Tensor, {above, below});
  }
  std::optional<Vals> logarithm() {
    if (!is_complex(0)) return {};
    const Val x = operand(0), size = calls::mul(calls::log(squares(x)), 0.5);
    const Val angle = b_.aten(aten::op::atan2, {part(x, 1), part(x, 0)});
    return joined(size, angle);
  }
  std::optional<Vals> exponential() {
    if (!is_complex(0)) return {};
    const Val x = operand(0), size = calls::exp(part(x, 0)), angle = part(x, 1);
    return turned(size, angle);
  }
  static bool two(const Attr& n) { return n == Attr(std::int64_t{2}) || n == Attr(2.0); }

  std::optional<Vals> multiplied() {
    const Other y = other();
    if (!is_complex(0)) {
      if (!y.pairs) unknown();
      return calls::mul(in_pairs(real(0)), *y.pairs);
    }
    const Val x = operand(0);
    if (y.number) return calls::mul(x, *y.number);
    return y.real ? calls::mul(x, *y.real) : product(x, *y.pairs);
  }

  std::optional<Vals> divided() {
    if (overload_ == "Tensor_mode" || overload_ == "Scalar_mode") return {};
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
      if (name != mark::complex_results.name && name != mark::argument_order.name) attrs.set(name, attr);
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
  std::optional<Vals> product_of_all() {
    return first_complex() == no_value ? std::nullopt : std::optional<Vals>(product_of_parts(node_.inputs.size()));
  }
  // The bias of a convolution has one number for each of the channels, which stand before `spatial` dims.
  template <int spatial>
  std::optional<Vals> weighted() {
    if (first_complex() == no_value || node_.inputs.size() < 2) return {};
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
    using namespace aten::op;
    constexpr Operator lists[] = {cat, concat, stack, slice_scatter, select_scatter};  // of which some may be real
    const bool list = std::ranges::any_of(lists, [&](Operator op) { return op.base() == name_; });
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

const PairCall::Form* PairCall::form_of(std::string_view name) {
  using namespace aten::op;
  using P = PairCall;
  static constexpr Form forms[] = {
      {{zeros, new_zeros, zeros_like, empty_memory_format, new_empty, empty_like, empty_strided, new_empty_strided},
       &P::made_zeros,
       apart},
      {{ones, new_ones, ones_like}, &P::made_ones, apart},
      {{full, new_full, full_like}, &P::made_full, apart},
      {{clone, contiguous, alias, detach, lift_fresh_copy, positive, view_as_real_copy, view_as_complex_copy},
       &P::same,
       apart},
      {{view_as_real, view_as_complex, resolve_conj, resolve_neg}, &P::same, apart | of_complex},
      {{to_dtype, _to_copy}, &P::converted, apart},
      {{aten::op::real}, &P::real_part, apart | of_complex},
      {{imag}, &P::imaginary_part, apart | of_complex},
      {{aten::op::complex}, &P::of_parts, apart | of_complex},
      {{polar}, &P::of_polar, apart | of_complex},
      {{aten::op::angle}, &P::argument, apart | of_complex},
      {{aten::op::abs}, &P::magnitude, apart},
      {{_conj, conj_physical}, &P::conjugated, of_complex},
      {{conj, _conj_physical}, &P::conjugated},
      {{mH, adjoint, matrix_H}, &P::conjugate_transposed},
      {{copy}, &P::copied, writes},
      {{zero}, &P::zeroed, writes},
      {{fill_Scalar}, &P::filled, writes},
      {{add_Tensor}, &P::sum},
      {{sub_Tensor}, &P::difference},
      {{rsub_Tensor}, &P::difference_from},
      {{mul_Tensor}, &P::multiplied},
      {{div_Tensor}, &P::divided},
      {{where_self}, &P::chosen},
      {{neg}, &P::negated},
      {{square}, &P::squared},
      {{pow_Tensor_Scalar}, &P::power},
      {{reciprocal}, &P::inverse},
      {{aten::op::log}, &P::logarithm},
      {{aten::op::exp}, &P::exponential},
      {{aten::op::linear}, &P::weighted<0>},
      {{conv1d}, &P::weighted<1>},
      {{conv2d}, &P::weighted<2>},
      {{conv3d}, &P::weighted<3>},
      {{matmul, mm, bmm, mv, dot, outer, ger, inner, einsum, tensordot}, &P::product_of_all},
  };
  const auto found = std::ranges::find_if(forms, [&](const Form& form) {
    return !name.empty() && std::ranges::any_of(form.ops, [&](Operator op) { return op.base() == name; });
  });
  return found == std::end(forms) ? nullptr : found;
}

}  // namespace

Vals pairs::in_pairs(Builder& b, Graph& graph, const Node& node, const std::vector<char>& complex) {
  return PairCall(b, graph, node, complex).said();
}

bool has_form_on_pairs(Operator op) {
  const auto [name, overload] = name_and_overload(op);
  const PairCall::Form* form = PairCall::form_of(name);
  return !transform_schema(name, overload).empty() || (form && form->is & PairCall::of_complex);
}

}  // namespace tosaic
