// SPDX-License-Identifier: Apache-2.0
// The table of ATen operators, the arguments of a call, and lowering one call.
#include "ops/op.h"

#include <fmt/format.h>
#include <algorithm>
#include <deque>
#include <map>
#include <unordered_map>

#include "base/generated_list.h"
#include "ir/marks.h"
#include "ops/half_precision.h"
#include "ops/row_calls.h"
#include "ops/unknown_operator.h"

namespace tosaic {

std::span<const ListEntry<AtenOp>> aten_list();

namespace {

Rule rule_of(const AtenOp& op, const Schema& schema) {
  for (const auto& [overload, rule] : op.overload_rules)
    if (overload == schema.overload) return rule;
  return op.rule;
}

struct Table {
  std::vector<NamedAtenOp> ops;
  std::vector<AtenOp> rows = row_calls();  // found by name like the others, but nobody's to list
  std::deque<Schema> schemas;
  std::unordered_map<Operator, FoundOp> by_operator;

  Table() {
    for (const auto& entry : aten_list()) ops.push_back({entry.file, entry.make()});
    for (const NamedAtenOp& named : ops) add(named.op);
    for (const AtenOp& row : rows) add(row);
    for (const NamedAtenOp& named : ops) add_views_in_place(named.op);
  }

  void add(const AtenOp& op) {
    for (auto text : op.schemas) {
      auto schema = parse_schema(text);
      if (!schema.ok()) continue;  // test/ops asserts that every schema parses
      const Schema& kept = schemas.emplace_back(*std::move(schema));
      by_operator.emplace(Operator(kept.full_name()), FoundOp{&op, &kept, rule_of(op, kept)});
    }
  }

  // PyTorch has some views in an in-place form, too. Their arguments are the view's; where it has one overload, that of
  // the in-place form has no name (transpose.int, transpose_).
  void add_views_in_place(const AtenOp& op) {
    std::map<std::string, int> overloads;
    for (auto text : op.schemas)
      if (auto schema = parse_schema(text); schema.ok()) ++overloads[schema->name];
    for (auto text : op.schemas) {
      auto schema = parse_schema(text);
      if (!schema.ok() || !schema->view || schema->returns != std::vector<std::string>{"Tensor"}) continue;
      if (overloads[schema->name] == 1) schema->overload = "default";
      schema->name += '_';
      schema->looks_anew = true;
      const Schema& kept = schemas.emplace_back(*std::move(schema));
      by_operator.emplace(Operator(kept.full_name()), FoundOp{&op, &kept, rule_of(op, kept)});
    }
  }
};

const Table& table() {
  static const Table t;
  return t;
}

std::string quoted(std::string_view name) { return fmt::format("argument '{}'", name); }

}  // namespace

FoundOp find_aten(Operator op) {
  const auto& t = table();
  auto it = t.by_operator.find(op);
  return it == t.by_operator.end() ? FoundOp{} : it->second;
}

const std::vector<NamedAtenOp>& all_aten() { return table().ops; }

std::optional<Val> Call::optional_tensor(std::string_view name) const {
  auto groups = tensors(name);
  return groups.empty() ? std::nullopt : groups.front();
}

Vals::Vals(Val v) : std::vector<Val>{v} {}
Vals::Vals(std::initializer_list<Val> v) : std::vector<Val>(v) {}
Vals::Vals(std::vector<Val> v) : std::vector<Val>(std::move(v)) {}

Call::Call(Builder& builder, const Schema& schema, std::vector<std::optional<Val>> operands, const Attrs& attrs,
           std::vector<TensorType> declared)
    : builder_(builder),
      schema_(schema),
      operands_(std::move(operands)),
      attrs_(attrs),
      declared_(std::move(declared)) {}

Val Call::tensor(std::string_view name) const {
  auto v = optional_tensor(name);
  if (!v) builder_.refuse("aten.missing-tensor", fmt::format("{} of {} is missing", quoted(name), schema_.full_name()));
  if (v->shape().is_empty())
    builder_.refuse("aten.empty-tensor", fmt::format("{} of {} has shape {}: TOSA has no tensors without elements",
                                                     quoted(name), schema_.full_name(), to_string(v->shape())));
  return *v;
}

std::vector<std::optional<Val>> Call::tensors(std::string_view name) const {
  std::size_t singles = 0;
  for (const auto& a : schema_.arguments)
    if (a.is_tensor() && !a.is_tensor_list()) ++singles;
  std::size_t next = 0;
  for (const auto& a : schema_.arguments) {
    if (!a.is_tensor()) continue;
    std::size_t count = a.is_tensor_list() ? operands_.size() - std::min(singles, operands_.size()) : 1;
    if (a.name == name) {
      auto first = std::min(next, operands_.size()), last = std::min(next + count, operands_.size());
      for (std::size_t i = first; a.type == "Tensor[]" && i < last; ++i)
        if (!operands_[i])
          builder_.refuse("aten.missing-tensor", fmt::format("{} of {} holds None", quoted(name), schema_.full_name()));
      return {operands_.begin() + static_cast<std::ptrdiff_t>(first),
              operands_.begin() + static_cast<std::ptrdiff_t>(last)};
    }
    next += count;
  }
  return {};
}

const Attr& Call::attr(std::string_view name) const {
  static const Attr none;
  if (const Attr* a = attrs_.find(name)) {
    if (const auto* s = std::get_if<SymbolicArgument>(a))
      builder_.refuse("aten.symbolic-argument", fmt::format("{} of {} is the symbolic size {}, known only at run time",
                                                            quoted(name), schema_.full_name(), s->name));
    return *a;
  }
  const SchemaArgument* argument = schema_.argument(name);
  if (argument && argument->has_default) return argument->default_value;
  if (argument && argument->is_optional()) return none;
  builder_.refuse("aten.missing-argument", fmt::format("{} of {} is missing", quoted(name), schema_.full_name()));
}

bool Call::has(std::string_view name) const {
  const SchemaArgument* argument = schema_.argument(name);
  if (!argument) return attrs_.find(name) != nullptr;  // what a stage found out about the call
  if (argument->is_tensor()) return optional_tensor(name).has_value();
  const Attr* a = attrs_.find(name);
  if (!a) a = &argument->default_value;
  return !std::holds_alternative<std::monostate>(*a);
}

std::int64_t Call::integer(std::string_view name) const {
  const Attr& a = attr(name);
  if (const auto* i = std::get_if<std::int64_t>(&a)) return *i;
  if (const auto* b = std::get_if<bool>(&a)) return *b;
  if (const auto* d = std::get_if<double>(&a); d && *d == static_cast<double>(static_cast<std::int64_t>(*d)))
    return static_cast<std::int64_t>(*d);
  builder_.refuse("aten.argument-type", fmt::format("{} of {} must be an integer", quoted(name), schema_.full_name()));
}

double Call::number(std::string_view name) const {
  const Attr& a = attr(name);
  if (const auto* d = std::get_if<double>(&a)) return *d;
  if (const auto* i = std::get_if<std::int64_t>(&a)) {
    // The two ends saturate on their way back; in between a double would be another number.
    const bool exact = *i == INT64_MAX || static_cast<std::int64_t>(static_cast<double>(*i)) == *i;
    if (!exact)
      builder_.refuse("aten.argument-range",
                      fmt::format("{} of {} is {}, which no double holds", quoted(name), schema_.full_name(), *i));
    return static_cast<double>(*i);
  }
  if (const auto* b = std::get_if<bool>(&a)) return *b;
  builder_.refuse("aten.argument-type", fmt::format("{} of {} must be a number", quoted(name), schema_.full_name()));
}

bool Call::is_float_scalar(std::string_view name) const { return std::holds_alternative<double>(attr(name)); }

bool Call::flag(std::string_view name) const {
  const Attr& a = attr(name);
  if (const auto* b = std::get_if<bool>(&a)) return *b;
  if (const auto* i = std::get_if<std::int64_t>(&a)) return *i != 0;
  builder_.refuse("aten.argument-type",
                  fmt::format("{} of {} must be True or False", quoted(name), schema_.full_name()));
}

std::vector<std::int64_t> Call::ints(std::string_view name) const {
  const Attr& a = attr(name);
  if (const auto* list = std::get_if<std::vector<std::int64_t>>(&a)) return *list;
  if (const auto* i = std::get_if<std::int64_t>(&a)) return {*i};
  if (std::holds_alternative<std::monostate>(a)) return {};
  if (const auto* list = std::get_if<std::vector<SymbolicArgument>>(&a)) {
    std::string symbols;
    for (const auto& s : *list)
      symbols += (symbols.empty() ? "" : ", ") + (s.name.empty() && s.size ? to_string(*s.size) : s.name);
    builder_.refuse("aten.symbolic-argument", fmt::format("{} of {} is [{}], known only at run time", quoted(name),
                                                          schema_.full_name(), symbols));
  }
  builder_.refuse("aten.argument-type",
                  fmt::format("{} of {} must be a list of integers", quoted(name), schema_.full_name()));
}

std::vector<double> Call::numbers(std::string_view name) const {
  const Attr& a = attr(name);
  if (const auto* list = std::get_if<std::vector<double>>(&a)) return *list;
  auto whole = ints(name);
  return {whole.begin(), whole.end()};
}

std::string Call::text(std::string_view name) const {
  const Attr& a = attr(name);
  if (const auto* s = std::get_if<std::string>(&a)) return *s;
  builder_.refuse("aten.argument-type", fmt::format("{} of {} must be a string", quoted(name), schema_.full_name()));
}

std::optional<DType> Call::dtype(std::string_view name) const {
  if (!has(name)) return std::nullopt;
  const Attr& a = attr(name);
  if (const auto* t = std::get_if<DType>(&a)) return *t;
  builder_.refuse("aten.argument-type", fmt::format("{} of {} must be a dtype", quoted(name), schema_.full_name()));
}

int Call::axis(std::string_view name, int rank) const {
  std::int64_t i = integer(name), limit = std::max(rank, 1);
  if (i < -limit || i >= limit)
    builder_.refuse("aten.dim-range", fmt::format("{} of {} is {}, outside a tensor of rank {}", quoted(name),
                                                  schema_.full_name(), i, rank));
  return static_cast<int>(i < 0 ? i + limit : i);
}

std::vector<int> Call::axes(std::string_view name, int rank) const {
  std::vector<int> result;
  auto dims = ints(name);
  if (!has(name) || dims.empty()) {
    for (int i = 0; i < rank; ++i) result.push_back(i);
    return result;
  }
  for (auto d : dims) {
    if (d < -rank || d >= std::max(rank, 1))
      builder_.refuse("aten.dim-range", fmt::format("{} of {} holds {}, outside a tensor of rank {}", quoted(name),
                                                    schema_.full_name(), d, rank));
    if (rank > 0) result.push_back(static_cast<int>(d < 0 ? d + rank : d));
  }
  std::sort(result.begin(), result.end());
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

std::vector<std::int64_t> Call::spread(std::string_view name, int count) const {
  auto list = ints(name);
  if (list.size() == 1) list.resize(static_cast<std::size_t>(count), list[0]);
  if (list.size() != static_cast<std::size_t>(count) && !list.empty())
    builder_.refuse("aten.argument-length", fmt::format("{} of {} has {} elements instead of {}", quoted(name),
                                                        schema_.full_name(), list.size(), count));
  return list;
}

namespace {
// Lowerings count and number places in i32; outside delegates, where i64 stays i64, the program may say so.
Vals widened_counts(Builder& builder, Vals results, const std::vector<TensorType>& declared) {
  for (std::size_t i = 0; i < results.size() && i < declared.size(); ++i)
    if (declared[i].dtype == DType::i64 && results[i].dtype() == DType::i32)
      results[i] = builder.cast(results[i], DType::i64);
  return results;
}
}  // namespace

namespace {
Vals lowered_as_it_stands(Builder& builder, const FoundOp& found, std::vector<std::optional<Val>> operands,
                          const Attrs& attrs, const std::vector<TensorType>& declared) {
  Call call(builder, *found.schema, std::move(operands), attrs, declared);
  std::optional<Refusal> first;
  for (Lowering lowering : found.op->lower) {
    const auto nodes = builder.graph().nodes.size(), values = builder.graph().values.size();
    try {
      Vals results = widened_counts(builder, lowering(builder, call), declared);
      if (found.op->lower.size() == 1 || builder.accepts_from(nodes)) return results;
      if (!first) first = Refusal{builder.why_not_from(nodes)};
    } catch (Refusal& refusal) {
      if (!first) first = std::move(refusal);
    }
    builder.graph().nodes.resize(nodes);
    builder.graph().values.resize(values);
  }
  if (first) throw *first;
  builder.refuse("aten.no-lowering", fmt::format("operator {} has no lowering", found.schema->full_name()));
}
}  // namespace

Vals lower_call(Builder& builder, Operator op, std::vector<std::optional<Val>> operands, const Attrs& attrs,
                const std::vector<TensorType>& declared) {
  FoundOp found = find_aten(op);
  if (!found.op) throw Refusal{located(unknown_operator(op), builder.loc())};
  // The calls that a lowering makes are as exact as the one that it lowers.
  Builder::Scope scope(builder);
  if (find_mark(attrs, mark::exact)) scope->exact = true;
  return half_precision::lowered(builder, operands, attrs,
                                 [&](std::vector<std::optional<Val>> given, const Attrs& named) {
                                   return lowered_as_it_stands(builder, found, std::move(given), named, declared);
                                 });
}

}  // namespace tosaic
