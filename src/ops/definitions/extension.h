// SPDX-License-Identifier: Apache-2.0
// Operators of tosaic's own ("tosaic.scaled_product"), in private graphs of executors: one node where TOSA has a
// pattern of many. Each has a row as TOSA's operators have, and its definition in TOSA. Files hold TOSA alone:
// verify_graph knows none of these.
#pragma once
#include <limits>
#include <memory>
#include <vector>

#include "ir/extension_operators.h"
#include "ops/definitions/tosa_op.h"

namespace tosaic::extension {

class Definition;

// A node that may be the last one of a definition.
struct Ending {
  Operator op;
  TensorType result;
  std::vector<TensorType> operands, viewed;  // viewed: what RESHAPE made the operands of, or they themselves
};

// A node of an operator, without its values. Of types of operands only what the definition reads off them counts.
struct Form {
  std::vector<TensorType> operands;
  Attrs attrs;
  std::vector<TensorType> results;
};

struct Op {
  tosa::Op row;
  // Appends nodes that compute the same, the last one a result; gives what they make as the node's results. Sizes are
  // numbers.
  std::vector<ValueId> (*to_tosa)(Definition& definition) = nullptr;
  // The forms whose definitions are raised where a program holds them (plan/raise_definitions.h), of those that may end
  // with such a node. Each reduces a tensor with as many elements as the node's result, or an operand of it, has: else
  // nothing is looked for. nullptr: none.
  std::vector<Form> (*forms)(const Ending& ending) = nullptr;
};
const Op* find(Operator op);  // nullptr: it is none of these
// Does the node hold to its row? Sizes that are no numbers are not looked at.
tosa::Check verify_node(const tosa::View& view);
// With each by its definition. nullopt: there are none.
std::optional<Graph> in_tosa(const Graph& graph);
// In TOSA 1.0 as far as that has the types: what 1.1 adds by its definition as well.
std::optional<Graph> in_tosa_1_0(const Graph& graph);

// A form as a node, and its definition: a graph of the node's operands and results, whose values have the same numbers.
struct Pattern {
  Node node;
  Graph definition;
};
// Of all operators whose forms end so. They are kept, for a program is asked about many times.
std::shared_ptr<const std::vector<Pattern>> patterns(const Ending& ending);

// The words in which definitions are written, and the node that is defined.
class Definition {
 public:
  Definition(Graph& graph, const Node& node) : graph_(graph), node_(node) {}

  const Graph& graph() const { return graph_; }
  const Node& node() const { return node_; }
  bool has(std::size_t operand) const { return operand < node_.inputs.size(); }
  ValueId operand(std::size_t i) const { return node_.inputs[i]; }
  const TensorType& type(ValueId v) const { return graph_[v].type; }
  const TensorType& result() const { return graph_[node_.outputs[0]].type; }
  std::vector<std::int64_t> integers(ValueId constant) const;

  ValueId call(Operator op, std::vector<ValueId> inputs, TensorType type, Attrs attrs = {});
  ValueId unary(Operator op, ValueId v) { return call(op, {v}, type(v)); }
  ValueId cast(ValueId v, DType to) { return call(tosa::op::cast, {v}, type(v).with(to)); }
  static constexpr double infinity = std::numeric_limits<double>::infinity();
  ValueId clamp(ValueId v, double lowest, double highest = infinity);
  // Of all elements along an axis: REDUCE_MIN, REDUCE_MAX, REDUCE_SUM.
  ValueId reduce(Operator op, ValueId v, std::int64_t axis);
  // Of operands that broadcast to the first one's shape.
  ValueId add(ValueId a, ValueId b) { return call(tosa::op::add, {a, b}, type(a)); }
  ValueId sub(ValueId a, ValueId b) { return call(tosa::op::sub, {a, b}, type(a)); }
  ValueId mul(ValueId a, ValueId b);
  // a where `condition` is true, b elsewhere; of a's shape.
  ValueId select(ValueId condition, ValueId a, ValueId b) { return call(tosa::op::select, {condition, a, b}, type(a)); }
  // The same elements in another shape; of a constant, the same bytes.
  ValueId shaped(ValueId v, Shape shape);
  // So many along an axis, from `begin` on.
  ValueId slice(ValueId v, int axis, std::int64_t begin, std::int64_t size);
  // All elements of a tensor of so many dims of 1.
  ValueId number(DType type, int rank, double value);
  ValueId constant(DType type, Shape shape, std::vector<double> values);

 private:
  ValueId sizes(const std::vector<std::int64_t>& list);
  Graph& graph_;
  const Node& node_;
};

// ---- constants that are quantised by groups: i8 [n][k], and a scale for each group of neighbours in a row, [n][k /
// group]. With `run` a byte holds two values of 4 bits, one of either half of a run of so many; `by_columns`: [k][n].
namespace quantised {
inline constexpr const char *run = "run", *by_columns = "by_columns";
// Breaks a rule of theirs?
tosa::Check check(const tosa::View& view, std::size_t values, std::size_t scales);
std::int64_t rows(const tosa::View& view, std::size_t scales);
std::int64_t depth(const tosa::View& view, std::size_t values, std::size_t scales);
// As floats, [n][1][1][k].
ValueId as_floats(Definition& d, std::size_t values, std::size_t scales);
}  // namespace quantised

// Operands of tosaic.scaled_product; the last two are given where its input is i8 with scales by row.
namespace scaled_product {
inline constexpr std::size_t input = 0, values = 1, bias = 2, scales = 3, row_scale = 4, row_zero = 5;
}
// Of tosaic.scaled_gather.
namespace scaled_gather {
inline constexpr std::size_t values = 0, indices = 1, scales = 2;
}

// Of tosaic.grouped_conv2d: those of CONV2D, and the same attributes. The weight [OC, KH, KW, IC / groups] has the
// groups' one after the other.
namespace grouped_conv2d {
inline constexpr std::size_t input = 0, weight = 1, bias = 2;
std::int64_t groups(const tosa::View& view);
}  // namespace grouped_conv2d

// Of tosaic.quantise_rows, whose results are int8, a scale and a zero point for each row: no scale is less than
// `least_scale`; without `keeps_dim` its definition computes them in tensors that have no dim for the row's elements.
namespace quantise_rows {
inline constexpr std::size_t input = 0;
inline constexpr std::size_t quantised = 0, scale = 1, zero = 2;
inline constexpr const char *least_scale = "least_scale", *keeps_dim = "keeps_dim";
}  // namespace quantise_rows

// Operands of tosaic.softmax: its rows lie along an axis. The mask is not always given: booleans that broadcast, and
// what it hides has no weight. `safe`: rows that are -infinity alone, or hidden as a whole, give zeros, not NaN.
namespace softmax {
inline constexpr std::size_t input = 0, mask = 1;
inline constexpr const char *axis = "axis", *safe = "safe";
}  // namespace softmax
// Of tosaic.attention: query [n, s, d], key [n, d, t], value [n, t, e], then what is added to the scores, with
// `biased`, and a mask of booleans, with `masked`. These broadcast to `scores`, the shape that the scores [n, s, t]
// then have.
namespace attention {
inline constexpr std::size_t query = 0, key = 1, value = 2, last_operand = value;
inline constexpr const char *scores = "scores", *biased = "biased", *masked = "masked";
ValueId bias(const Node& node);  // no_value: it has none
ValueId mask(const Node& node);
}  // namespace attention
// Of tosaic.layer_norm and tosaic.rms_norm, whose rows lie along the last dim. The number epsilon is a constant; with
// `weighted` and `biased` a weight, then a bias follow, each a row that broadcasts.
namespace norm {
inline constexpr std::size_t input = 0, epsilon = 1;
inline constexpr const char *weighted = "weighted", *biased = "biased";
ValueId weight(const Node& node);  // no_value: it has none
ValueId bias(const Node& node);
tosa::Op row(std::string_view name, std::string_view summary);
std::vector<Form> forms(const Ending& ending);
ValueId mean(Definition& d, ValueId x);
// x / sqrt(mean(x * x) + epsilon) * weight + bias
ValueId normalised(Definition& d, ValueId x);
}  // namespace norm

}  // namespace tosaic::extension
