// SPDX-License-Identifier: Apache-2.0
#include "ops/row_calls.h"

#include <fmt/format.h>
#include <algorithm>
#include <deque>

#include "ops/definitions/verify.h"

namespace tosaic {
namespace {

bool is_call(const tosa::Op& row) {
  return !row.newer && !row.inputs.empty() && !row.outputs.empty() && row.infer &&
         std::none_of(row.attrs.begin(), row.attrs.end(),
                      [](const tosa::AttrDef& a) { return a.kind == tosa::AttrKind::string; }) &&
         std::none_of(row.outputs.begin(), row.outputs.end(), [](const tosa::Operand& o) { return o.list; });
}

// Calls are of TOSA 1.0, as targets are.
bool is_newer(const tosa::TypeRow& types) {
  static const tosa::Spec older = tosa::Spec::everything_in_1_0();
  return !admits(older, types);
}

// Do the operands leave the result's dtype open: are there two for the same types of everything else? Then the call
// says it.
bool leaves_open(const tosa::Op& row) {
  const auto others = [&](tosa::TypeRow types) {
    std::erase_if(types.types, [&](const auto& bound) { return bound.first == row.outputs[0].type; });
    return types.types;
  };
  const auto is_result = [&](const tosa::Operand& o) { return o.type == row.outputs[0].type && !o.constant; };
  if (std::any_of(row.inputs.begin(), row.inputs.end(), is_result)) return false;
  for (const tosa::TypeRow& a : row.types)
    for (const tosa::TypeRow& b : row.types)
      if (a.types != b.types && !is_newer(a) && !is_newer(b) && others(a) == others(b) && !others(a).empty())
        return true;
  return false;
}

std::string_view attribute_type(tosa::AttrKind kind) {
  switch (kind) {
    case tosa::AttrKind::i32: return "int";
    case tosa::AttrKind::boolean: return "bool";
    case tosa::AttrKind::i32_list: return "int[]";
    case tosa::AttrKind::dtype: return "ScalarType";
    case tosa::AttrKind::number: return "Scalar";
    default: return "str";
  }
}

// As PyTorch writes it; shape operands are lists of numbers.
std::string schema_of(const tosa::Op& row, std::string_view overload) {
  std::string text = fmt::format("tosaic::{}{}(", row.name, overload);
  for (const tosa::Operand& o : row.inputs)
    text += fmt::format("{}{} {}", text.back() == '(' ? "" : ", ",
                        o.type == "shape" ? "int[]"
                        : o.list          ? "Tensor[]"
                                          : "Tensor",
                        o.name);
  if (!row.attrs.empty() || leaves_open(row)) text += ", *";
  for (const tosa::AttrDef& a : row.attrs)
    text += fmt::format(", {} {}{}", attribute_type(a.kind), a.name,
                        a.kind == tosa::AttrKind::nan_mode ? "='propagate'" : "");
  if (leaves_open(row)) text += ", ScalarType? result=None";
  text += ") -> ";
  if (row.outputs.size() == 1) return text + "Tensor";
  for (std::size_t i = 0; i < row.outputs.size(); ++i) text += i == 0 ? "(Tensor" : ", Tensor";
  return text + ")";
}

// How quantised values follow, where the row says it: only one tensor, element by element, is a table; what chooses
// among the elements of one tensor keeps its quantised values, among those of several brings them to one scale.
Rule rule_of(const tosa::Op& row) {
  const auto is_data = [&](const tosa::Operand& o) { return o.type == row.outputs[0].type; };
  const auto computed =
      std::count_if(row.inputs.begin(), row.inputs.end(), [](const tosa::Operand& o) { return !o.constant; });
  const auto data = std::count_if(row.inputs.begin(), row.inputs.end(), is_data);
  if (row.outputs.size() != 1 || data == 0 || !is_data(row.outputs[0])) return Rule::float_only;
  if (row.elementwise && computed == 1 && is_data(row.inputs[0])) return Rule::pointwise;
  if (!row.chooses()) return Rule::float_only;
  return data == 1 && !row.inputs[0].list ? Rule::transparent : Rule::joined;
}

Attr attribute(const Call& call, const tosa::AttrDef& def, bool real) {
  switch (def.kind) {
    case tosa::AttrKind::i32: return call.integer(def.name);
    case tosa::AttrKind::boolean: return call.flag(def.name);
    case tosa::AttrKind::i32_list: return call.ints(def.name);
    case tosa::AttrKind::dtype: return call.dtype(def.name).value();
    case tosa::AttrKind::number: return real ? Attr(call.number(def.name)) : Attr(call.integer(def.name));
    default: return call.text(def.name);
  }
}

// The operator on plain integers or floats.
Vals lower_plain(Builder& b, const Call& call, const tosa::Op& row, const std::vector<Val>& operands) {
  Attrs attrs;
  for (const tosa::AttrDef& def : row.attrs)
    attrs.set(std::string(def.name), attribute(call, def, is_float(operands[0].dtype())));
  const Operator op(fmt::format("tosa.{}", row.name));
  Node node{op, {}, attrs, {}, b.loc(), {}};
  for (Val v : operands) node.inputs.push_back(v.id());
  std::optional<DType> result;
  if (leaves_open(row)) result = call.dtype("result");
  const std::size_t values = b.graph().values.size();
  if (result) node.outputs.push_back(b.graph().add_value("result", {*result, {}, {}}));
  const auto broken = tosa::verify_operands({b.graph(), node}, tosa::Spec::everything_in_1_0());
  b.graph().values.resize(values);
  if (broken) b.refuse("tosa." + broken->label, broken->message);
  return b.tosa_all(op, operands, std::move(attrs), result);
}

bool takes(const tosa::Op& row, DType dtype) {
  return std::any_of(row.types.begin(), row.types.end(), [&](const tosa::TypeRow& types) {
    return !is_newer(types) && std::find(types.types.begin(), types.types.end(),
                                         std::pair{row.outputs[0].type, dtype}) != types.types.end();
  });
}

Vals lower_row(Builder& b, const Call& call) {
  const tosa::Op& row = *tosa::find(call.schema().name);
  std::vector<Val> operands;
  std::optional<Scales> scales;  // of the quantised values among which is chosen
  for (const tosa::Operand& o : row.inputs) {
    if (o.type == "shape") {
      operands.push_back(b.shape_constant(call.ints(o.name)));
      continue;
    }
    std::vector<std::optional<Val>> given{call.tensor(o.name)};
    if (o.list) given = call.tensors(o.name);
    for (auto& v : given) {
      if (call.overload() == "default" && v->type().quantised() && o.type == row.outputs[0].type) {
        if (!takes(row, v->dtype())) v = b.as_i32(*v);
        scales = v->type().scales;
      }
      operands.push_back(*v);
    }
  }
  Vals results = lower_plain(b, call, row, operands);
  if (scales)
    for (Val& v : results)
      if (!v.type().quantised()) v = b.relabelled(v, v.type().with(scales));
  return results;
}

}  // namespace

std::vector<AtenOp> row_calls() {
  static std::deque<std::string> texts;  // which the schemas look at
  std::vector<AtenOp> calls;
  for (const tosa::Op& row : tosa::all()) {
    if (!is_call(row)) continue;
    AtenOp call;
    for (std::string_view overload : {"", ".integer"})
      call.schemas.push_back(texts.emplace_back(schema_of(row, overload)));
    call.summary = row.summary;
    call.rule = rule_of(row);
    call.overload_rules = {{"integer", Rule::index}};
    call.lower = {lower_row};
    calls.push_back(std::move(call));
  }
  return calls;
}

}  // namespace tosaic
