// SPDX-License-Identifier: Apache-2.0
// The core of the Builder: appending and folding nodes, constants, shapes, element-wise arithmetic.
// builder_integer.cpp has the quantised forms, builder_tensor.cpp convolution, pooling, matmul and resize.
#include "ops/builder.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "ir/tosa_operators.h"
#include "ops/definitions/rest.h"
#include "ops/op.h"

namespace tosaic {

void Builder::refuse(std::string code, std::string message) const {
  throw Refusal{located(error(std::move(code), std::move(message)), loc_)};
}

std::string Builder::fresh_name(std::string_view stem) { return fmt::format("{}.{}", stem, counter_++); }

// ---- nodes

bool Builder::folded(const tosa::Op& op, Node& node, const TensorType& type, Bytes& result) const {
  // Without folding, weights stay where they are; what must be a constant for an operator's sake (a pad's value, one
  // group's bias) is small.
  constexpr std::size_t always_folded_bytes = 1 << 16;
  if ((!fold_ && type.storage_bytes() > always_folded_bytes) || !op.eval || node.inputs.empty() ||
      node.outputs.size() != 1 || !node.regions.empty())
    return false;
  for (ValueId v : node.inputs)
    if (!graph_[v].is_constant()) return false;
  std::optional<Bytes> content = tosa::constant_result(graph_, node, op, type);
  if (!content) return false;
  result = *std::move(content);
  return true;
}

Val Builder::tosa(Operator op, std::initializer_list<Val> operands, Attrs attrs) {
  return tosa_all(op, std::vector<Val>(operands), std::move(attrs)).front();
}
Val Builder::tosa(Operator op, std::vector<Val> operands, Attrs attrs) {
  return tosa_all(op, std::move(operands), std::move(attrs)).front();
}
Val Builder::typed(Operator op, std::vector<Val> operands, Attrs attrs, DType result) {
  return tosa_all(op, std::move(operands), std::move(attrs), result).front();
}
Val Builder::unary(Operator op, Val x) { return tosa(op, {x}); }
Val Builder::aten(Operator op, std::vector<std::optional<Val>> operands, Attrs attrs) {
  return aten_all(op, std::move(operands), std::move(attrs)).front();
}
Val Builder::relabelled(Val x, TensorType type) { return retyped(tosa(tosa::op::identity, {x}), std::move(type)); }

std::vector<Val> Builder::tosa_all(Operator op, std::vector<Val> operands, Attrs attrs, std::optional<DType> result) {
  const tosa::Op* row = tosa::find(op);
  if (!row) refuse("internal", fmt::format("there is no TOSA operator '{}'", op));
  Node node;
  node.op = op;
  node.attrs = std::move(attrs);
  node.loc = loc_;
  for (Val v : operands) node.inputs.push_back(v.id());
  // The output exists before its type is inferred, so that rules may look at the dtype asked for.
  node.outputs.push_back(graph_.add_value(fresh_name(op.base()), {result.value_or(DType::f32), {}, {}}));
  auto types = row->infer(tosa::View(graph_, node));
  for (std::size_t i = 1; i < types.size(); ++i)
    node.outputs.push_back(graph_.add_value(fresh_name(op.base()), types[i]));
  if (result) types[0].dtype = *result;
  graph_[node.outputs[0]].type = types[0];
  std::vector<Val> results;
  for (ValueId v : node.outputs) results.emplace_back(this, v);
  // ERROR_IFs are the partitioner's to see, but a node that breaks one has no meaning: refuse it here.
  const tosa::View view(graph_, node);
  tosa::Check broken = row->check ? row->check(view) : std::nullopt;
  if (!broken && !(spec_ && spec_->has(tosa::sizes_vary))) broken = tosa::check_rest(view);
  if (broken) refuse("tosa." + broken->label, fmt::format("{}: {}", op, broken->message));
  if (Bytes data; types.size() == 1 && folded(*row, node, types[0], data))
    graph_[node.outputs[0]].constant = std::move(data);
  else
    graph_.nodes.push_back(std::move(node));
  return results;
}

std::vector<Val> Builder::aten_all(Operator op, std::vector<std::optional<Val>> operands, Attrs attrs) {
  return lower_call(*this, op, std::move(operands), attrs, {});
}

bool Builder::accepts_from(std::size_t first_node) const {
  if (!spec_) return true;
  for (std::size_t n = first_node; n < graph_.nodes.size(); ++n)
    if (tosa::verify_node(tosa::View(graph_, graph_.nodes[n]), *spec_)) return false;
  return true;
}

Diagnostic Builder::why_not_from(std::size_t first_node) const {
  for (std::size_t n = first_node; n < graph_.nodes.size(); ++n)
    if (auto broken = tosa::verify_node(tosa::View(graph_, graph_.nodes[n]), *spec_))
      return located(error("target.unsupported", broken->message).note("rule " + broken->label), graph_.nodes[n].loc);
  return internal_error("no reason for a refusal");
}

Val Builder::retyped(Val x, TensorType type) {
  graph_[x.id()].type = std::move(type);
  return x;
}

// ---- constants

Val Builder::constant(TensorType type, Bytes data, std::string name) {
  return Val(this, graph_.add_value(fresh_name(name.empty() ? "const" : name), std::move(type), std::move(data)));
}

Val Builder::scalar(double value, DType type) { return filled(value, type, Shape{}); }

Val Builder::filled(double value, DType type, const Shape& shape) {
  std::vector<double> values(static_cast<std::size_t>(shape.elements()), value);
  return constant({type, shape, std::nullopt}, constant_bytes(type, values));
}

Val Builder::integers(std::span<const std::int64_t> values, DType type, const Shape& shape) {
  return constant({type, shape, std::nullopt}, constant_bytes(type, values));
}

Val Builder::shape_constant(std::vector<std::int64_t> values) {
  Shape shape{static_cast<std::int64_t>(values.size())};
  return constant({DType::shape, shape, std::nullopt}, Bytes::of(std::move(values)), "shape");
}

Val Builder::like(Val x, double value) {
  if (!x.type().quantised()) return scalar(value, x.dtype());
  const Scales& s = *x.type().scales;
  auto range = quantised_range(x.type());
  double code = std::nearbyint(value / s.scale[0]) + static_cast<double>(s.zero_point[0]);
  code = std::clamp(code, static_cast<double>(range.lowest), static_cast<double>(range.highest));
  Val v = scalar(code, x.dtype());
  return retyped(v, v.type().with(Scales{{s.scale[0]}, {s.zero_point[0]}, -1, s.lowest, s.highest}));
}

// ---- shapes

namespace {
// Where a per-channel axis goes in a reshape: to the dim (or pair of dims, split in two) of the same extent
// that has the same number of elements before it.
std::optional<Scales> reshaped_scales(const TensorType& from, const Shape& to) {
  if (!from.scales || from.scales->per_tensor()) return from.scales;
  std::int64_t before = 1, n = from.shape.size(from.scales->axis);
  for (int i = 0; i < from.scales->axis; ++i) before *= from.shape.size(i);
  std::int64_t passed = 1;
  for (int i = 0; i < to.rank(); ++i) {
    bool whole = to[i] == n, split = i + 1 < to.rank() && to[i] * to[i + 1] == n;
    if (passed == before && (whole || split)) {
      Scales s = *from.scales;
      s.axis = i;
      return s;
    }
    passed *= to.size(i);
  }
  return std::nullopt;
}
}  // namespace

Val Builder::reshape(Val x, Shape shape) {
  if (x.shape() == shape) return x;
  if (shape.elements() != x.shape().elements())
    refuse("aten.reshape-size", fmt::format("shape {} cannot become {}", to_string(x.shape()), to_string(shape)));
  TensorType type = x.type().with(shape).with(reshaped_scales(x.type(), shape));
  if (x.is_constant()) return constant(type, graph_[x.id()].constant);
  return retyped(tosa(tosa::op::reshape, {x, shape_constant(shape.sizes())}), type);
}

Val Builder::transpose(Val x, std::vector<int> permutation) {
  if (static_cast<int>(permutation.size()) != x.rank())
    refuse("aten.permute-rank",
           fmt::format("{} dims cannot permute a tensor of rank {}", permutation.size(), x.rank()));
  bool identity = true;
  for (int i = 0; i < x.rank(); ++i) identity &= permutation[static_cast<std::size_t>(i)] == i;
  if (identity) return x;
  TensorType type = x.type();
  std::vector<std::int64_t> dims;
  for (int p : permutation) dims.push_back(x.dim(p));
  type.shape = Shape(dims);
  if (type.scales && !type.scales->per_tensor())
    type.scales->axis =
        static_cast<int>(std::find(permutation.begin(), permutation.end(), type.scales->axis) - permutation.begin());
  std::vector<std::int64_t> perms(permutation.begin(), permutation.end());
  return retyped(tosa(tosa::op::transpose, {x}, {{"perms", perms}}), type);
}

Val Builder::slice(Val x, std::vector<std::int64_t> start, std::vector<std::int64_t> size) {
  if (Shape(size) == x.shape()) return x;
  TensorType type = x.type().with(Shape(size));
  if (type.scales && !type.scales->per_tensor() && type.shape.size(type.scales->axis) != x.dim(type.scales->axis)) {
    Scales& s = *type.scales;
    auto first = start[static_cast<std::size_t>(s.axis)], count = type.shape.size(s.axis);
    s.scale = {s.scale.begin() + first, s.scale.begin() + first + count};
    s.zero_point = {s.zero_point.begin() + first, s.zero_point.begin() + first + count};
  }
  return retyped(tosa(tosa::op::slice, {x, shape_constant(std::move(start)), shape_constant(std::move(size))}), type);
}

Val Builder::slice_axis(Val x, int axis, std::int64_t start, std::int64_t size) {
  std::vector<std::int64_t> starts(static_cast<std::size_t>(x.rank()), 0), sizes = x.shape().sizes();
  starts[static_cast<std::size_t>(axis)] = start;
  sizes[static_cast<std::size_t>(axis)] = size;
  return slice(x, std::move(starts), std::move(sizes));
}

Val Builder::concat(std::vector<Val> parts, int axis) {
  if (parts.size() == 1) return parts[0];
  TensorType first = parts.at(0).type();
  for (Val p : parts) {
    if (p.dtype() != first.dtype)
      refuse("aten.mixed-dtypes", fmt::format("concatenation of {} and {}", name_of(first.dtype), name_of(p.dtype())));
    bool fits = p.rank() == first.rank() && axis < p.rank();
    for (int i = 0; fits && i < p.rank(); ++i) fits = i == axis || p.dim(i) == first.shape.size(i);
    if (!fits)
      refuse("aten.concat-shape", fmt::format("shapes {} and {} cannot be concatenated along dim {}",
                                              to_string(first.shape), to_string(p.shape()), axis));
  }
  Val result = tosa(tosa::op::concat, std::move(parts), {{"axis", std::int64_t{axis}}});
  return retyped(result, result.type().with(first.scales));
}

Val Builder::pad(Val x, std::vector<std::int64_t> before, std::vector<std::int64_t> after, double value) {
  std::vector<std::int64_t> padding;
  bool nothing = true;
  for (std::size_t i = 0; i < before.size(); ++i) {
    padding.push_back(before[i]);
    padding.push_back(after[i]);
    nothing &= before[i] == 0 && after[i] == 0;
  }
  if (nothing) return x;
  Val fill = reshape(like(x, value), Shape{1});
  Val result = tosa(tosa::op::pad, {x, shape_constant(std::move(padding)), fill});
  return retyped(result, result.type().with(x.type().scales));
}

Val Builder::tile(Val x, std::vector<std::int64_t> multiples) {
  if (std::all_of(multiples.begin(), multiples.end(), [](auto m) { return m == 1; })) return x;
  Val result = tosa(tosa::op::tile, {x, shape_constant(std::move(multiples))});
  return retyped(result, result.type().with(x.type().scales));
}

Val Builder::broadcast_to(Val x, const Shape& shape) {
  if (x.rank() > shape.rank())
    refuse("aten.expand-rank", fmt::format("shape {} cannot expand to {}", to_string(x.shape()), to_string(shape)));
  std::vector<std::int64_t> dims(static_cast<std::size_t>(shape.rank() - x.rank()), 1);
  dims.insert(dims.end(), x.shape().sizes().begin(), x.shape().sizes().end());
  std::vector<std::int64_t> multiples;
  for (int i = 0; i < shape.rank(); ++i) {
    auto have = dims[static_cast<std::size_t>(i)];
    if (have != 1 && have != shape.size(i))
      refuse("aten.expand-size", fmt::format("shape {} cannot expand to {}", to_string(x.shape()), to_string(shape)));
    multiples.push_back(have == shape.size(i) ? 1 : shape.size(i));
  }
  return tile(reshape(x, Shape(dims)), std::move(multiples));
}

Val Builder::squeeze(Val x, const std::vector<int>& axes) {
  std::vector<std::int64_t> dims;
  for (int i = 0; i < x.rank(); ++i)
    if (x.dim(i) != 1 || std::find(axes.begin(), axes.end(), i) == axes.end()) dims.push_back(x.dim(i));
  return reshape(x, Shape(dims));
}

Val Builder::unsqueeze(Val x, int axis) {
  auto dims = x.shape().sizes();
  dims.insert(dims.begin() + axis, 1);
  return reshape(x, Shape(dims));
}

// ---- arithmetic

Val Builder::binary(Operator op, Val a, Val b, Attrs attrs) {
  if (a.dtype() != b.dtype())
    refuse("aten.mixed-dtypes", fmt::format("{} of {} and {}", op.base(), name_of(a.dtype()), name_of(b.dtype())));
  auto ranked = [&](Val v, int rank) {
    if (v.rank() == rank) return v;
    std::vector<std::int64_t> dims(static_cast<std::size_t>(rank - v.rank()), 1);
    dims.insert(dims.end(), v.shape().sizes().begin(), v.shape().sizes().end());
    return reshape(v, Shape(dims));
  };
  const int rank = std::max(a.rank(), b.rank());
  a = ranked(a, rank);
  b = ranked(b, rank);
  for (int i = 0; i < rank; ++i)
    if (a.dim(i) != b.dim(i) && a.dim(i) != 1 && b.dim(i) != 1)
      refuse("aten.broadcast",
             fmt::format("shapes {} and {} do not broadcast", to_string(a.shape()), to_string(b.shape())));
  if (op == tosa::op::mul)
    return tosa(op, {a, b, integers(std::vector<std::int64_t>{0}, DType::i8, Shape{1})}, std::move(attrs));
  if (op == tosa::op::maximum || op == tosa::op::minimum)
    if (!attrs.find("nan_mode")) attrs.set("nan_mode", std::string("propagate"));
  return tosa(op, {a, b}, std::move(attrs));
}

Val Builder::unify(Operator op, Val a, Val b) {
  if (!a.type().quantised() && !b.type().quantised()) return binary(op, a, b);
  if (a.type().scales != b.type().scales)
    refuse("quantise.scale-mismatch",
           fmt::format("{} of {} and {}", op.base(), to_string(a.type()), to_string(b.type())));
  Val result = binary(op, a, b);
  return retyped(result, result.type().with(a.type().scales));
}

Val Builder::add(Val a, Val b) { return unify(tosa::op::add, a, b); }
Val Builder::sub(Val a, Val b) { return unify(tosa::op::sub, a, b); }

Val Builder::mul(Val a, Val b) {
  if (!a.type().quantised() || !b.type().quantised()) return binary(tosa::op::mul, a, b);
  const Scales &s = *a.type().scales, &t = *b.type().scales;
  if (!s.per_tensor() || !t.per_tensor() || s.zero_point[0] != 0 || t.zero_point[0] != 0)
    refuse("quantise.product-form", fmt::format("mul of {} and {}", to_string(a.type()), to_string(b.type())));
  Val result = binary(tosa::op::mul, a, b);
  return retyped(result, result.type().with(Scales{{s.scale[0] * t.scale[0]}, {0}}));
}

Val Builder::scaled(Val x, double factor) {
  if (!x.type().quantised()) return factor == 1.0 ? x : binary(tosa::op::mul, x, scalar(factor, x.dtype()));
  if (factor < 0) {
    x = as_i32(x);
    Val zero = like(x, 0);
    return scaled(sub(zero, x), -factor);
  }
  if (!(factor > 0) || std::isinf(factor))
    refuse("quantise.factor", fmt::format("a quantised tensor times {}", factor));
  if (factor == 1.0) return x;
  TensorType type = x.type();
  for (double& s : type.scales->scale) s *= factor;
  return relabelled(x, type);  // the same integers under another scale
}

Val Builder::maximum(Val a, Val b) { return extreme(tosa::op::maximum, a, b); }
Val Builder::minimum(Val a, Val b) { return extreme(tosa::op::minimum, a, b); }

Val Builder::extreme(Operator op, Val a, Val b) {
  if (!a.type().quantised() || a.dtype() == DType::i32) return unify(op, a, b);
  // MAXIMUM and MINIMUM take i32 only; the operands share scale and zero point, so quantised values compare as they
  // are.
  TensorType type = a.type();
  if (b.type().scales != type.scales)
    refuse("quantise.scale-mismatch",
           fmt::format("{} of {} and {}", op.base(), to_string(a.type()), to_string(b.type())));
  Val result = unify(op, as_i32(a), as_i32(b));
  return rescale(result, type.with(result.shape()));
}

Val Builder::select(Val condition, Val a, Val b) {
  const int rank = std::max({condition.rank(), a.rank(), b.rank()});
  auto ranked = [&](Val v) {
    std::vector<std::int64_t> dims(static_cast<std::size_t>(rank - v.rank()), 1);
    dims.insert(dims.end(), v.shape().sizes().begin(), v.shape().sizes().end());
    return reshape(v, Shape(dims));
  };
  if (a.dtype() != b.dtype() || a.type().scales != b.type().scales)
    refuse("aten.mixed-dtypes", fmt::format("select of {} and {}", to_string(a.type()), to_string(b.type())));
  Val result = tosa(tosa::op::select, {ranked(condition), ranked(a), ranked(b)});
  return retyped(result, result.type().with(a.type().scales));
}

Val Builder::negate(Val x) {
  Val zero = zero_point(x);
  Val result = tosa(tosa::op::negate, {x, zero, zero});
  return retyped(result, result.type().with(x.type().scales));
}

Val Builder::cast(Val x, DType to) {
  const DType from = x.dtype();
  if (from == to) return x;
  if (to == DType::boolean) {
    if (x.type().quantised())
      return typed(tosa::op::cast, {as_i32(x)}, {}, to);  // 0 is the zero point's quantised value
    if (!is_float(from)) return typed(tosa::op::cast, {x}, {}, to);
    return tosa(tosa::op::logical_not, {binary(tosa::op::equal, x, scalar(0, from))});
  }
  if (from == DType::boolean && is_float(to)) {
    if (spec() && !spec()->has(tosa::Feature::pro_int)) return select(x, scalar(1, to), scalar(0, to));
    return cast(typed(tosa::op::cast, {x}, {}, DType::i8), to);
  }
  if (is_float(from) && is_integer(to)) {                       // PyTorch truncates toward zero, TOSA rounds to nearest
    if (to == DType::u8) return cast(cast(x, DType::i32), to);  // which wraps
    Val positive = binary(tosa::op::greater_equal, x, scalar(0, from));
    x = select(positive, unary(tosa::op::floor, x), unary(tosa::op::ceil, x));
  }
  return typed(tosa::op::cast, {x}, {}, to);
}

Val Builder::reduce(Operator op, Val x, const std::vector<int>& axes, bool keep) {
  TensorType type = x.type();
  if (type.dtype == DType::u8)  // TOSA's bytes are signed
    return cast(reduce(op, cast(x, DType::i32), axes, keep), DType::u8);
  for (int axis : axes) {
    Attrs attrs{{"axis", std::int64_t{axis}}};
    if (op == tosa::op::reduce_max || op == tosa::op::reduce_min) attrs.set("nan_mode", std::string("propagate"));
    x = tosa(op, {x}, attrs);
    x = retyped(x, x.type().with(type.scales));
  }
  return keep ? x : squeeze(x, axes);
}

}  // namespace tosaic
