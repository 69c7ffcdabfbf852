// SPDX-License-Identifier: Apache-2.0
// Holds a node to the standard: the rules that are the same for every operator, read off its row, and then the
// row's own. Labels are "<operator>.<rule>".
#include <algorithm>
#include <climits>

#include "ops/definitions/rest.h"
#include "ops/definitions/row.h"
#include "ops/definitions/verify.h"

namespace tosaic::tosa {
namespace {

std::string label(const Op& op, std::string_view rule) { return fmt::format("{}.{}", op.name, rule); }

// The value bound to each operand of a list of operands, a tensor list taking all that remain.
struct Bound {
  const Operand* operand;
  ValueId value;
};
std::vector<Bound> bind(const std::vector<Operand>& operands, const std::vector<ValueId>& values) {
  std::vector<Bound> bound;
  for (std::size_t i = 0; i < values.size(); ++i)
    bound.push_back({&operands[std::min(i, operands.size() - 1)], values[i]});
  return bound;
}

// ---- number of operands
Check check_count(const Op& op, const View& view, const std::vector<Operand>& operands,
                  const std::vector<ValueId>& values, std::string_view what) {
  const bool list = !operands.empty() && operands.back().list;
  const std::size_t least = operands.size() - (list ? 1 : 0);
  if (list ? values.size() < least : values.size() != operands.size())
    return broken(label(op, "operands"), "{} has {} {}s, TOSA wants {}{}", op.name, values.size(), what,
                  list ? "at least " : "", least);
  for (std::size_t i = 0; i < values.size(); ++i)
    if (values[i] >= view.graph().values.size())
      return broken(label(op, "operands"), "{} {} of {} is missing", what, i, op.name);
  return std::nullopt;
}

// ---- attributes
bool fits_i32(std::int64_t v) { return v >= INT32_MIN && v <= INT32_MAX; }
bool one_of(const Attr& attr, std::initializer_list<std::string_view> words) {
  const auto* text = std::get_if<std::string>(&attr);
  return text && std::find(words.begin(), words.end(), *text) != words.end();
}
// nullptr: fine; else what the attribute should have been.
const char* wrong_attribute(AttrKind kind, const Attr& attr, DType element) {
  const auto* number = std::get_if<std::int64_t>(&attr);
  switch (kind) {
    case AttrKind::i32: return number && fits_i32(*number) ? nullptr : "an i32";
    case AttrKind::boolean: return std::holds_alternative<bool>(attr) ? nullptr : "a boolean";
    case AttrKind::i32_list: {
      const auto* list = std::get_if<std::vector<std::int64_t>>(&attr);
      return list && std::all_of(list->begin(), list->end(), fits_i32) ? nullptr : "a list of i32";
    }
    case AttrKind::nan_mode: return one_of(attr, {"propagate", "ignore"}) ? nullptr : "\"propagate\" or \"ignore\"";
    case AttrKind::rounding_mode:
      return one_of(attr, {"single_round", "inexact_round", "double_round"})
                 ? nullptr
                 : "\"single_round\", \"inexact_round\" or \"double_round\"";
    case AttrKind::resize_mode: return one_of(attr, {"nearest", "bilinear"}) ? nullptr : "\"nearest\" or \"bilinear\"";
    case AttrKind::dtype: return std::holds_alternative<DType>(attr) ? nullptr : "a dtype";
    case AttrKind::string: return std::holds_alternative<std::string>(attr) ? nullptr : "a string";
    case AttrKind::number:
      if (is_float(element)) return std::holds_alternative<double>(attr) ? nullptr : "a real number";
      return number && *number >= range_of(element).lowest && *number <= range_of(element).highest
                 ? nullptr
                 : "an integer that the operand's dtype holds";
  }
  return nullptr;
}

Check check_attributes(const Op& op, const View& view) {
  const DType element = view.inputs() ? view.in(0).dtype : DType::i32;
  for (const AttrDef& def : op.attrs) {
    const Attr* attr = view.node().attrs.find(def.name);
    // A body's name in the file: the body itself, which is here, needs none.
    if (!attr && def.kind == AttrKind::string && !view.node().regions.empty()) continue;
    if (!attr) return broken(label(op, "attributes"), "{} lacks its attribute {}", op.name, def.name);
    if (const char* wanted = wrong_attribute(def.kind, *attr, element))
      return broken(label(op, "attributes"), "attribute {} of {} must be {}", def.name, op.name, wanted);
  }
  for (const auto& [name, attr] : view.node().attrs)
    if (std::none_of(op.attrs.begin(), op.attrs.end(),
                     [&wanted = name](const AttrDef& def) { return def.name == wanted; }))
      return broken(label(op, "attributes"), "{} has no attribute {}", op.name, name);
  return std::nullopt;
}

// ---- ranks and dims
Check check_ranks(const Op& op, const View& view, const std::vector<Bound>& bound) {
  for (const auto& [operand, id] : bound) {
    const TensorType& type = view.graph()[id].type;
    if (type.rank() < operand->min_rank || type.rank() > operand->max_rank) {
      const std::string wanted = operand->max_rank == operand->min_rank ? fmt::format("{}", operand->min_rank)
                                 : operand->max_rank >= 64
                                     ? fmt::format("at least {}", operand->min_rank)
                                     : fmt::format("{}..{}", operand->min_rank, operand->max_rank);
      return broken(label(op, "rank"), "{} of {} has rank {}, TOSA wants {}", operand->name, op.name, type.rank(),
                    wanted);
    }
    if (type.dtype == DType::shape) continue;  // the shape of a rank-0 tensor has no element
    std::int64_t bytes = static_cast<std::int64_t>(storage_size(type.dtype));
    for (std::int64_t dim : type.shape.sizes()) {
      if (dim < 1)
        return broken(label(op, "dimension"), "{} of {} has shape [{}]: every dim must be at least 1", operand->name,
                      op.name, to_string(type.shape));
      if (__builtin_mul_overflow(bytes, dim, &bytes))
        return broken(label(op, "dimension"), "{} of {} has shape [{}], which takes 2^63 bytes or more", operand->name,
                      op.name, to_string(type.shape));
    }
  }
  return std::nullopt;
}

// ---- types
// The dtype that `row` gives `variable`; a name of a dtype stands for itself; nullopt: the row leaves it open.
std::optional<DType> dtype_in(const TypeRow& row, std::string_view variable) {
  for (const auto& [name, dtype] : row.types)
    if (name == variable) return dtype;
  return dtype_named(variable);
}

struct Typed {
  std::string_view name, variable;
  DType dtype;
};
// Everything about the node that has a dtype which its row may constrain.
std::vector<Typed> typed_things(const Op& op, const View& view, const std::vector<Bound>& in,
                                const std::vector<Bound>& out) {
  std::vector<Typed> things;
  for (const auto* side : {&in, &out})
    for (const auto& [operand, id] : *side)
      if (!operand->type.empty()) things.push_back({operand->name, operand->type, view.graph()[id].type.dtype});
  for (const AttrDef& def : op.attrs)
    if (def.kind == AttrKind::dtype && def.name == "acc_type")
      things.push_back({def.name, "acc", view.dtype(def.name)});
  return things;
}

std::string needs_text(const TypeRow& row) {
  std::string out;
  for (Feature f : row.needs) out += fmt::format("{}{}", out.empty() ? "" : " or ", name_of(f));
  if (row.and_needs) out += fmt::format(" and {}", name_of(*row.and_needs));
  return out;
}
std::string listed(const std::vector<std::string>& words) {
  std::string out;
  for (std::size_t i = 0; i < words.size(); ++i)
    out += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + words[i];
  return out;
}

std::string called(const Spec& spec) {
  const std::string text = spec.text();
  const bool all = text == Spec::everything().text() || text == Spec::everything_in_1_0().text();
  return all ? "TOSA" : fmt::format("the target, {},", text);
}

Check check_types(const Op& op, const View& view, const Spec& spec, const std::vector<Bound>& in,
                  const std::vector<Bound>& out) {
  if (op.types.empty()) return std::nullopt;
  const std::vector<Typed> things = typed_things(op, view, in, out);
  const TypeRow *closest = nullptr, *foreign = nullptr;  // the row that agrees with most things from the first on; one
                                                         // that agrees with all, but is for other targets
  std::size_t agreed = 0;
  for (const TypeRow& row : op.types) {
    std::size_t n = 0;
    while (n < things.size() && dtype_in(row, things[n].variable).value_or(things[n].dtype) == things[n].dtype) ++n;
    if (n == things.size()) {
      if (admits(spec, row)) return std::nullopt;
      if (!foreign) foreign = &row;
    }
    if (!closest || n > agreed) closest = &row, agreed = n;
  }
  if (foreign) {
    const DType shown = foreign->types.empty() ? DType::f32 : foreign->types.front().second;
    return broken(label(op, "type"), "{} of {} is for targets with {}; this one is {}", op.name, name_of(shown),
                  needs_text(*foreign), spec.text());
  }
  const Typed& wrong = things[agreed];
  // What may stand there in the rows that agree up to it: on this target, and on others.
  std::vector<std::string> here, elsewhere;
  for (const TypeRow& row : op.types) {
    bool same_so_far = true;
    for (std::size_t i = 0; i < agreed; ++i)
      same_so_far = same_so_far && dtype_in(row, things[i].variable).value_or(things[i].dtype) == things[i].dtype;
    if (!same_so_far) continue;
    auto& words = admits(spec, row) ? here : elsewhere;
    std::string word(name_of(*dtype_in(row, wrong.variable)));
    if (&words == &elsewhere) word += fmt::format(" with {}", needs_text(row));
    if (std::find(words.begin(), words.end(), word) == words.end()) words.push_back(std::move(word));
  }
  std::string given;
  for (std::size_t i = 0; i < agreed; ++i)
    given += fmt::format("{}{} {}", i ? ", " : " next to ", things[i].name, name_of(things[i].dtype));
  const std::string takes = here.empty() ? fmt::format("has no {}, others have it for {}", op.name, listed(elsewhere))
                                         : fmt::format("takes {}", listed(here));
  return broken(label(op, "type"), "{} of {} is {}{}; {} {}", wrong.name, op.name, name_of(wrong.dtype), given,
                called(spec), takes);
}

// A rounding mode other than the single one is an extension.
Check check_rounding(const Op& op, const View& view, const Spec& spec) {
  for (const AttrDef& def : op.attrs) {
    if (def.kind != AttrKind::rounding_mode) continue;
    const std::string& mode = view.text(def.name);
    const Feature needed = mode == "double_round" ? Feature::doubleround : Feature::inexactround;
    if (mode != "single_round" && !spec.has(needed))
      return broken(label(op, "rounding-mode"), "{} with {} needs {}, the target has {}", op.name, mode,
                    name_of(needed), spec.text());
  }
  return std::nullopt;
}

// ---- constants
Check check_constants(const Op& op, const View& view, const Spec& spec, const std::vector<Bound>& in) {
  for (const auto& [operand, id] : in) {
    const Value& value = view.graph()[id];
    if (operand->constant && !value.is_constant() && !spec.has(Feature::dynamic))
      return broken(label(op, "constant"), "{} of {} must be a compile-time constant without EXT-DYNAMIC",
                    operand->name, op.name);
    if (value.is_constant() && value.constant.size() != value.type.storage_bytes())
      return broken(label(op, "constant"), "{} of {} holds {} bytes, its type {} needs {}", operand->name, op.name,
                    value.constant.size(), to_string(value.type), value.type.storage_bytes());
  }
  return std::nullopt;
}

// ---- the outputs are what the operands imply
Check check_outputs(const Op& op, const View& view) {
  if (!op.infer) return std::nullopt;
  const std::vector<TensorType> wanted = op.infer(view);
  for (std::size_t i = 0; i < std::min(wanted.size(), view.node().outputs.size()); ++i) {
    const TensorType& found = view.out(i);
    if (found.shape.sizes() != wanted[i].shape.sizes())
      return broken(label(op, "output-shape"), "output {} of {} has shape [{}], its operands imply [{}]", i, op.name,
                    to_string(found.shape), to_string(wanted[i].shape));
    if (found.dtype != wanted[i].dtype)
      return broken(label(op, "type"), "output {} of {} is {}, its operands imply {}", i, op.name, name_of(found.dtype),
                    name_of(wanted[i].dtype));
  }
  return std::nullopt;
}

// ---- level: rank, tensor size, list length
Check check_level(const Op& op, const View& view, const Level& level, const std::vector<Bound>& bound) {
  std::int64_t listed_values = 0;
  for (const auto& [operand, id] : bound) {
    const TensorType& type = view.graph()[id].type;
    if (operand->list && ++listed_values > level.max_tensor_list)
      return broken(label(op, "level-list"), "{} of {} has more than {} tensors", operand->name, op.name,
                    level.max_tensor_list);
    if (type.dtype == DType::shape) continue;
    if (type.rank() > level.max_rank)
      return broken(label(op, "level-rank"), "{} of {} has rank {}, the level allows {}", operand->name, op.name,
                    type.rank(), level.max_rank);
    // The bytes of a tensor must be a tensor_size_t, that is below 2^max_log2_size (spec "Tensors").
    if (type.storage_bytes() >> level.max_log2_size)
      return broken(label(op, "level-size"), "{} of {}, {}, takes 2^{} bytes or more, the limit of the level",
                    operand->name, op.name, to_string(type), level.max_log2_size);
  }
  return std::nullopt;
}

Status verify_nested(const Graph& graph, const Spec& spec, std::int64_t depth) {
  // Outputs may not be shapes either, but the conformance tests of CONST_SHAPE return theirs.
  for (ValueId id : graph.inputs)
    if (graph[id].type.dtype == DType::shape)
      return error("tosa.graph.shape-input",
                   fmt::format("{} is a shape, which no graph takes as input", graph[id].name));
  for (const Node& node : graph.nodes) {
    if (Check failed = verify_node(View(graph, node), spec))
      return located(error("tosa." + failed->label, failed->message), node.loc);
    if (!node.regions.empty() && depth >= spec.level.max_nesting)
      return located(
          error(fmt::format("tosa.{}.level-nesting", node.op.base()),
                fmt::format("control flow is nested deeper than {}, the limit of the level", spec.level.max_nesting)),
          node.loc);
    for (const Graph& region : node.regions) TOSAIC_CHECK(verify_nested(region, spec, depth + 1));
  }
  return {};
}

}  // namespace

Check verify_operands(const View& view, const Spec& spec) {
  const Node& node = view.node();
  const Op* op = find(node.op);
  if (!op) return broken("unknown-operator", "TOSA has no operator '{}'", node.op);
  if (Check c = check_count(*op, view, op->inputs, node.inputs, "input")) return c;
  if (Check c = check_attributes(*op, view)) return c;
  const std::vector<Bound> in = bind(op->inputs, node.inputs);
  if (Check c = check_ranks(*op, view, in)) return c;
  if (Check c = check_types(*op, view, spec, in, bind(op->outputs, node.outputs))) return c;
  if (Check c = check_rounding(*op, view, spec)) return c;
  if (Check c = check_constants(*op, view, spec, in)) return c;
  if (Check c = op->check ? op->check(view) : std::nullopt) return c;
  return check_rest(view);
}

Check verify_as(const Op& op, const View& view, const Spec& spec) {
  const Node& node = view.node();
  if (op.newer && !spec.has(Feature::v1_1))
    return broken(label(op, "version"), "{} is an operator of TOSA 1.1; the target is {}", op.name, spec.text());
  if (Check c = check_count(op, view, op.inputs, node.inputs, "input")) return c;
  if (Check c = check_count(op, view, op.outputs, node.outputs, "output")) return c;
  if (Check c = check_attributes(op, view)) return c;
  const std::vector<Bound> in = bind(op.inputs, node.inputs), out = bind(op.outputs, node.outputs);
  if (Check c = check_ranks(op, view, in)) return c;
  if (Check c = check_ranks(op, view, out)) return c;
  if (Check c = check_types(op, view, spec, in, out)) return c;
  if (Check c = check_rounding(op, view, spec)) return c;
  if (Check c = check_constants(op, view, spec, in)) return c;
  if (Check c = op.check ? op.check(view) : std::nullopt) return c;
  if (Check c = spec.has(sizes_vary) ? std::nullopt : check_rest(view)) return c;
  if (Check c = check_outputs(op, view)) return c;
  if (Check c = check_level(op, view, spec.level, in)) return c;
  if (Check c = check_level(op, view, spec.level, out)) return c;
  if (Check c = op.level ? op.level(view, spec.level) : std::nullopt) return c;
  return spec.product ? spec.product->check(view) : std::nullopt;
}

bool admits(const Spec& spec, const TypeRow& row) {
  return (!row.and_needs || spec.has(*row.and_needs)) &&
         (row.needs.empty() || std::any_of(row.needs.begin(), row.needs.end(), [&](Feature f) { return spec.has(f); }));
}

Check verify_node(const View& view, const Spec& spec) {
  const Op* op = find(view.node().op);
  if (!op) return broken("unknown-operator", "TOSA 1.0 has no operator '{}'", view.node().op);
  return verify_as(*op, view, spec);
}

bool needs_1_1(const View& view) {
  const Op* op = find(view.node().op);
  if (!op || op->newer) return op != nullptr;
  static const Spec older = Spec::everything_in_1_0();
  return check_types(*op, view, older, bind(op->inputs, view.node().inputs), bind(op->outputs, view.node().outputs))
      .has_value();
}

Status check_run_time_operands(const Run& run) {
  const Node& node = run.view.node();
  const Op& op = *find(node.op);
  const std::vector<Bound> in = bind(op.inputs, node.inputs);
  const auto unknown = [&](const Bound& b) { return b.operand->constant && !run.view.graph()[b.value].is_constant(); };
  if (std::none_of(in.begin(), in.end(), unknown)) return {};
  Graph known;  // this node alone, with the values of those operands
  Node copy{node.op, {}, node.attrs, {}, node.loc, {}};
  for (std::size_t i = 0; i < in.size(); ++i) {
    Value value = run.view.graph()[in[i].value];
    if (unknown(in[i])) value.constant = converted(run.in[i], value.type.dtype);
    copy.inputs.push_back(known.add_value(value.name, value.type, value.constant));
  }
  for (ValueId id : node.outputs) copy.outputs.push_back(known.add_value("", run.view.graph()[id].type));
  const View view(known, copy);
  Check failed = op.check ? op.check(view) : std::nullopt;
  if (!failed) failed = check_rest(view);
  if (!failed) failed = check_outputs(op, view);
  if (failed) return error("tosa." + failed->label, failed->message);
  return {};
}

Status verify_graph(const Graph& graph, const Spec& spec) {
  TOSAIC_CHECK(verify(graph));
  return verify_nested(graph, spec, 0);
}

}  // namespace tosaic::tosa
