// SPDX-License-Identifier: Apache-2.0
// What a PyTorch operator is to tosaic: its meaning in TOSA. One file per operator, under ops/aten/, or ops/executorch/
// and ops/torchao/ for those that these libraries add; overloads and in-place variants share it. Support, refusal
// reasons, reference semantics, int8 arithmetic, documentation and tests are all computed from this.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ops/builder.h"
#include "ops/rules/rule.h"
#include "ops/schema.h"

namespace tosaic {

// Several values from a lowering; one Val converts by itself.
struct Vals : std::vector<Val> {
  Vals() = default;
  Vals(Val v);
  Vals(std::initializer_list<Val> v);
  Vals(std::vector<Val> v);
};

// One call being lowered: its arguments by schema name, defaults filled in.
class Call {
 public:
  Call(Builder& builder, const Schema& schema, std::vector<std::optional<Val>> operands, const Attrs& attrs,
       std::vector<TensorType> declared);

  // Tensors. `tensors` gives a Tensor[] or Tensor?[] argument.
  Val tensor(std::string_view name) const;
  std::optional<Val> optional_tensor(std::string_view name) const;
  std::vector<std::optional<Val>> tensors(std::string_view name) const;

  // Everything else; a symbolic or wrongly typed argument is refused with its name.
  bool has(std::string_view name) const;  // in the schema and not None
  std::int64_t integer(std::string_view name) const;
  double number(std::string_view name) const;  // int, float or bool Scalar
  bool is_float_scalar(std::string_view name) const;
  bool flag(std::string_view name) const;
  std::vector<std::int64_t> ints(std::string_view name) const;  // a lone int counts as a list of one
  std::vector<double> numbers(std::string_view name) const;
  std::string text(std::string_view name) const;
  std::optional<DType> dtype(std::string_view name) const;
  // An int argument that names a dim of a rank-`rank` tensor, made non-negative; refused when out of range.
  int axis(std::string_view name, int rank) const;
  // An int[] (or int, or None: all dims) of dims, non-negative, ascending, unique.
  std::vector<int> axes(std::string_view name, int rank) const;
  // ints(name) repeated to `count` when it holds one, e.g. stride=[2] for a 2-D pool.
  std::vector<std::int64_t> spread(std::string_view name, int count) const;

  const Schema& schema() const { return schema_; }
  std::string_view overload() const { return schema_.overload; }
  // The types that the exported program declares for the outputs (empty when the call was made by a lowering).
  const std::vector<TensorType>& declared() const { return declared_; }
  Builder& builder() const { return builder_; }

 private:
  const Attr& attr(std::string_view name) const;
  Builder& builder_;
  const Schema& schema_;
  std::vector<std::optional<Val>> operands_;  // one per tensor operand, a list in place
  const Attrs& attrs_;
  std::vector<TensorType> declared_;
};

using Lowering = Vals (*)(Builder&, const Call&);

// How a call is said in core ATen (ops/core_form.h).
struct CoreCall;
using CoreForm = std::optional<Node> (*)(const CoreCall&);

struct AtenOp {
  // PyTorch's own schema text, one per overload: "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor".
  // Other namespaces carry their prefix: "quantized_decomposed::...".
  std::vector<std::string_view> schemas;
  std::string_view summary;  // one sentence
  Rule rule = Rule::float_only;
  std::vector<std::pair<std::string_view, Rule>> overload_rules = {};  // overloads that follow another rule
  std::vector<Lowering> lower;  // in preference order; the first that the target accepts wins
  // Interesting inputs, one call each, in the small language of test/ops/README.md:
  //   "x(1,3,8,8), x(4,3,3,3), None, [2,2]"   or   "Scalar: x(2,3), 2.5"  for another overload
  std::vector<std::string_view> domain;
  // Where ExecuTorch's kernels go by another operator's name. None: by this one's, or nothing but elements are moved.
  CoreForm core = nullptr;
  // Overloads whose out-variant departs from PyTorch's rule (kernels/out_variant.h): {"max.dim", "dim_max"}.
  std::vector<std::pair<std::string_view, std::string_view>> out_overloads = {};
  // Its rounding is mended where it shows: the attribute "exact" of a call, which normalise/seen_rounding.cpp gives.
  bool has_exact_form = false;
  // Calls that stay float in programs of integers, though their rule has an integer form. None: there are no such.
  bool (*stays_float)(const Graph& graph, const Node& call) = nullptr;
  // What its results lie between, where that does not follow from the bounds of the TOSA operators in its lowering.
  std::optional<tosa::Bounds> bounds = {};
};

struct FoundOp {
  const AtenOp* op = nullptr;
  const Schema* schema = nullptr;
  Rule rule = Rule::float_only;  // of this overload
};
// Overloads of in-place variants (aten.add_.Tensor) too. Null members when unknown.
FoundOp find_aten(Operator op);
struct NamedAtenOp {
  std::string_view file;  // the operator's file name without ending
  AtenOp op;
};
const std::vector<NamedAtenOp>& all_aten();

// Lowers one ATen node whose operands are already values of `builder`'s graph. Recurses until only TOSA is
// left. Throws Refusal.
Vals lower_call(Builder& builder, Operator op, std::vector<std::optional<Val>> operands, const Attrs& attrs,
                const std::vector<TensorType>& declared);

}  // namespace tosaic
