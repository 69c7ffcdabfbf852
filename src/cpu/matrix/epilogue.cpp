// SPDX-License-Identifier: Apache-2.0
#include "cpu/matrix/epilogue.h"

#include "ir/tosa_operators.h"

#include <algorithm>
#include <limits>

namespace tosaic::cpu {
namespace {

// The only reader of `value` when it is an untaken node of this operator that reads it as its first operand.
std::optional<std::uint32_t> follower(const Planning& planning, ValueId value, Operator op) {
  const auto user = planning.only_user(value);
  if (!user || planning.taken[*user]) return std::nullopt;
  const Node& node = planning.node(*user);
  if (node.op != op || node.inputs[0] != value) return std::nullopt;
  return user;
}

// Brings shifts up to least_column_shift, and multipliers along with them; false: those would not fit i32.
bool raise_shifts(std::vector<std::int32_t>& multiplier, std::vector<std::int8_t>& shift) {
  for (std::size_t i = 0; i < shift.size(); ++i) {
    const int left = std::max(least_column_shift - shift[i], 0);
    const std::int64_t raised = std::int64_t{multiplier[i]} << left;
    if (raised > std::numeric_limits<std::int32_t>::max()) return false;
    multiplier[i] = static_cast<std::int32_t>(raised);
    shift[i] = static_cast<std::int8_t>(shift[i] + left);
  }
  return true;
}

// To i8 of sums of i32, to i16 of sums of i48.
bool absorb_rescale(const Planning& planning, Epilogue& e) {
  const auto user = follower(planning, e.direct, tosa::op::rescale);
  if (!user) return false;
  const Node& node = planning.node(*user);
  if (!planning.only_first_computed(node)) return false;
  const DType out = planning.type(e.direct).dtype == DType::i48 ? DType::i16 : DType::i8;
  if (planning.type(node.outputs[0]).dtype != out || node.attrs.get<bool>("output_unsigned") ||
      node.attrs.get<std::string>("rounding_mode") == "double_round")
    return false;
  const auto all = [&](std::size_t input, auto& to) {
    const Value& value = planning.graph[node.inputs[input]];
    for (std::size_t i = 0; i < static_cast<std::size_t>(value.type.shape.elements()); ++i)
      to.push_back(static_cast<typename std::remove_reference_t<decltype(to)>::value_type>(
          element_as_integer(value.type.dtype, value.constant.data(), i)));
  };
  std::vector<std::int32_t> multiplier;
  std::vector<std::int8_t> shift;
  all(1, multiplier);
  all(2, shift);
  if (!raise_shifts(multiplier, shift)) return false;
  e.multiplier = std::move(multiplier);
  e.shift = std::move(shift);
  e.output_zp = only_scalar(planning.graph, node.inputs[4]);
  e.lowest_quantised = static_cast<std::int32_t>(range_of(out).lowest);
  e.highest_quantised = static_cast<std::int32_t>(range_of(out).highest);
  e.rescaled = true;
  e.direct = node.outputs[0];
  e.nodes.push_back(*user);
  return true;
}

void absorb_clamp(const Planning& planning, Epilogue& e) {
  const auto user = follower(planning, e.direct, tosa::op::clamp);
  if (!user) return;
  const Node& node = planning.node(*user);
  if (planning.type(e.direct).dtype == DType::f32) {
    if (node.attrs.get_or<std::string>("nan_mode", "propagate") != "propagate") return;
    e.lowest = static_cast<float>(node.attrs.get<double>("min_val"));
    e.highest = static_cast<float>(node.attrs.get<double>("max_val"));
  } else {
    if (!e.rescaled) return;
    e.lowest_quantised = static_cast<std::int32_t>(node.attrs.get<std::int64_t>("min_val"));
    e.highest_quantised = static_cast<std::int32_t>(node.attrs.get<std::int64_t>("max_val"));
  }
  e.direct = node.outputs[0];
  e.nodes.push_back(*user);
}

// Does the node make quantised values of the sums of a product that has no step yet? That one does so before they leave
// its registers; here, they would have to go through memory first, in four times as many bytes.
bool finishes_another(const Planning& planning, std::uint32_t n, ValueId own) {
  const Node& node = planning.node(n);
  if (node.op != tosa::op::rescale || node.inputs[0] == own) return false;
  const std::int32_t maker = planning.producer[node.inputs[0]];
  if (maker < 0 || planning.taken[static_cast<std::size_t>(maker)]) return false;
  const Node& product = planning.node(static_cast<std::uint32_t>(maker));
  if (tosa::find(product.op)->elementwise || product.inputs.empty()) return false;  // a variable's content has none
  const DType in = planning.type(product.inputs[0]).dtype;
  if (in != DType::i8 && in != DType::i16) return false;
  Epilogue its;
  its.direct = node.inputs[0];
  return absorb_rescale(planning, its);
}

// What else follows, as a chain.
void absorb_epilogue(const Planning& planning, Epilogue& e) {
  plan::Fusing fusing = chaining(planning);
  fusing.can = [&planning, &e, can = std::move(fusing.can)](std::uint32_t n) {
    return can(n) && !finishes_another(planning, n, e.direct);
  };
  plan::longest_epilogue(planning, fusing, e.direct, [&](const std::vector<std::uint32_t>& nodes) {
    e.chain = Chain::make(planning.graph, nodes, e.direct);
    if (!e.chain) return false;
    e.output = e.chain->output();
    e.nodes.insert(e.nodes.end(), nodes.begin(), nodes.end());
    std::sort(e.nodes.begin(), e.nodes.end());
    return true;
  });
}

}  // namespace

Epilogue find_epilogue(const Planning& planning, std::uint32_t n, bool rescales, bool tail) {
  Epilogue e;
  e.direct = e.output = planning.node(n).outputs[0];
  e.lowest = -std::numeric_limits<float>::infinity();
  e.highest = std::numeric_limits<float>::infinity();
  if (planning.type(e.direct).dtype == DType::f32 || (rescales && absorb_rescale(planning, e)))
    absorb_clamp(planning, e);
  e.output = e.direct;
  e.element = static_cast<std::int64_t>(storage_size(planning.type(e.direct).dtype));
  if (tail) absorb_epilogue(planning, e);
  return e;
}

bool shares_columns(const Planning& planning, std::int64_t rows, int max_rows, std::int64_t weights) {
  return planning.threads > 1 && rows <= max_rows && weights >= 1 << 18;
}

void Epilogue::describe(Step& step) const {
  step.nodes.insert(step.nodes.end(), nodes.begin(), nodes.end());
  std::sort(step.nodes.begin(), step.nodes.end());
  step.writes = {output};
  if (chain) step.reads.insert(step.reads.end(), chain->reads().begin(), chain->reads().end());
}

}  // namespace tosaic::cpu
