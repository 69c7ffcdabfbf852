// SPDX-License-Identifier: Apache-2.0
#include "read/program_names.h"

#include <fmt/format.h>
#include <algorithm>

#include "ir/marks.h"
#include "ir/program_operators.h"
#include "ops/op.h"
#include "read/program_arguments.h"
#include "read/read_error.h"

namespace tosaic {

ProgramNames::ProgramNames(const Json& graph, std::string name, const ProgramSource& source)
    : json_(graph), source_(source) {
  graph_.name = std::move(name);
  for (const auto& [value, meta] : graph.at("tensor_values").members()) types_.emplace(value, meta);
  if (auto symbols = graph.find("sym_int_values"))
    for (const auto& [value, content] : symbols->members()) sizes_.emplace(value, source.types.size(content));
}

void ProgramNames::define(std::string_view name, Entry entry) {
  if (!scope_.emplace(name, std::move(entry)).second)
    fail("pt2.duplicate-name", fmt::format("two values of graph '{}' are named '{}'", graph_.name, name));
}

ValueId ProgramNames::define_value(std::string_view name, TensorType type) {
  const ValueId id = graph_.add_value(std::string(name), std::move(type));
  define(name, {id, "", ""});
  return id;
}
TensorType ProgramNames::type_of(std::string_view name) const {
  auto meta = types_.find(name);
  if (meta == types_.end()) fail("pt2.bad-json", fmt::format("tensor_values does not state the type of '{}'", name));
  return source_.types.tensor_type(meta->second, fmt::format("tensor '{}'", name));
}

ValueId ProgramNames::define_tensor(std::string_view name) { return define_value(name, type_of(name)); }
ValueId ProgramNames::define_result(std::string_view name, Node& node) {
  if (!is_complex(name)) return define_tensor(name);
  set_mark(node, mark::complex_results, true);
  const ValueId id = define_value(name, pairs_type_of(name));

  complex_.insert(id);
  return id;
}

bool ProgramNames::is_complex(std::string_view name) const {
  const auto meta = types_.find(name);
  return meta != types_.end() && ProgramTypes::is_complex(meta->second);
}
TensorType ProgramNames::pairs_type_of(std::string_view name) const {
  return source_.types.pairs_type(types_.at(name), fmt::format("tensor '{}'", name));
}

ValueId ProgramNames::use(std::string_view name) {
  auto found = scope_.find(name);
  if (found == scope_.end()) fail_undefined(name);
  Entry& entry = found->second;
  if (entry.id != no_value) return entry.id;
  if (entry.kind == "custom object")
    unsupported(fmt::format("'{}' is a custom class object", name), "export a model of plain tensors");
  Tensor tensor = source_.weights.load(entry.weight, entry.kind);
  const bool complex = is_complex(name);
  const TensorType declared = complex ? pairs_type_of(name) : type_of(name);
  if (declared.dtype != tensor.type.dtype || declared.shape != tensor.type.shape)
    fail(error("pt2.weight-mismatch", fmt::format("the program takes {} '{}' as {}, but {} is stored", entry.kind,
                                                  entry.weight, to_string(declared), to_string(tensor.type)))
             .hint("the file is damaged: save the program again"));
  entry.id =
      graph_.add_value(complex ? fmt::format("{}.pairs", name) : std::string(name), declared, std::move(tensor.data));
  if (complex) entry.id = seen_as_complex(name, entry.id);
  return entry.id;
}
// Complex constants are pairs that a call sees as such: nothing but calls says of its results what they are.
ValueId ProgramNames::seen_as_complex(std::string_view name, ValueId pairs) {
  const ValueId id = graph_.add_value(std::string(name), graph_[pairs].type);
  graph_.nodes.push_back(
      {aten::op::view_as_complex, {pairs}, {{std::string(mark::complex_results.name), true}}, {id}, {}, {}});
  complex_.insert(id);
  return id;
}

ValueId ProgramNames::use_real(std::string_view name) {
  const ValueId v = use(name);
  if (complex_.contains(v)) type_of(name);  // which refuses it
  return v;
}

void ProgramNames::fail_undefined(std::string_view name) const {
  for (const Json& node : json_.at("nodes").items())
    for (const Json& output : node.at("outputs").items()) {
      auto [tag, value] = output.tagged();
      auto names = tensor_names(tag, value);
      if (names && std::find(names->begin(), names->end(), name) != names->end())
        fail("pt2.use-before-definition",
             fmt::format("value '{}' is used before the node that makes it: the nodes form a cycle or are out of order",
                         name));
    }
  fail("pt2.undefined-value", fmt::format("value '{}' is used, but nothing defines it", name));
}

std::int64_t ProgramNames::memory_offset(ValueId v) const {
  auto meta = types_.find(graph_[v].name);
  if (meta == types_.end()) return 0;
  auto offset = meta->second.find("storage_offset");
  return offset ? ProgramTypes::plain_integer(*offset, fmt::format("tensor '{}'", graph_[v].name)) : 0;
}

std::int64_t ProgramNames::row_major_offset(ValueId v) const {
  auto meta = types_.find(graph_[v].name);
  if (meta == types_.end() || !graph_[v].type.shape.is_static()) return -1;
  const std::string what = fmt::format("tensor '{}'", graph_[v].name);
  const auto strides = ProgramTypes::plain_integers(meta->second.at("strides"), what);
  const Shape& shape = graph_[v].type.shape;
  std::int64_t expected = 1;
  for (int i = shape.rank() - 1; i >= 0; expected *= shape.size(i--))
    if (shape.size(i) != 1 &&
        (static_cast<std::size_t>(i) >= strides.size() || strides[static_cast<std::size_t>(i)] != expected))
      return -1;
  return memory_offset(v);
}

Attr ProgramNames::attribute(std::string_view tag, const Json& value) {
  return read_attribute(tag, value, [this](std::string_view name) -> std::optional<Dim> {
    const auto known = sizes_.find(name);
    if (known != sizes_.end() && known->second.is_number()) return known->second;
    if (!scope_.contains(name)) fail_undefined(name);
    return known != sizes_.end() ? std::optional(known->second) : std::nullopt;
  });
}

ValueId ProgramNames::define_symbol(std::string_view tag, std::string_view name) {
  const ValueId id = define_value(name, {tag == "as_sym_int"    ? DType::i64
                                         : tag == "as_sym_bool" ? DType::boolean
                                                                : DType::f64,
                                         Shape(), std::nullopt});
  if (const auto known = sizes_.find(name); tag == "as_sym_int" && known != sizes_.end())
    graph_[id].size = known->second;
  return id;
}

}  // namespace tosaic
