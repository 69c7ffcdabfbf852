// SPDX-License-Identifier: Apache-2.0
// What the names of a program's graph stand for: the values of the graph that is read, and weights, which are loaded
// when something first uses them. Private to read/.
#pragma once
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "ir/graph.h"
#include "read/json.h"
#include "read/program_graph.h"

namespace tosaic {

class ProgramNames {
 protected:
  ProgramNames(const Json& graph, std::string name, const ProgramSource& source);

  // What a name stands for: a value, or weights not yet looked at.
  struct Entry {
    ValueId id = no_value;
    std::string_view kind;  // "parameter", "buffer", "constant", "custom object": not yet loaded
    std::string weight;     // fully qualified name, empty for none
  };

  void define(std::string_view name, Entry entry);
  ValueId define_tensor(std::string_view name);
  // A call's result. Complex ones are pairs, and their call says so.
  ValueId define_result(std::string_view name, Node& node);
  // A number, by the tag of its union: as_sym_int, as_sym_bool, as_sym_float.
  ValueId define_symbol(std::string_view tag, std::string_view name);

  ValueId use(std::string_view name);
  // What leaves the program: no type outside says what pairs are.
  ValueId use_real(std::string_view name);
  // Any argument but tensors and graphs.
  Attr attribute(std::string_view tag, const Json& value);

  // Where a tensor begins in the memory that it is a view of.
  std::int64_t memory_offset(ValueId v) const;
  // The same if it lies there in row-major order; otherwise -1.
  std::int64_t row_major_offset(ValueId v) const;

  const Json json_;
  const ProgramSource& source_;
  Graph graph_;
  std::unordered_map<std::string_view, Entry> scope_;

 private:
  ValueId define_value(std::string_view name, TensorType type);
  TensorType type_of(std::string_view name) const;
  bool is_complex(std::string_view name) const;
  TensorType pairs_type_of(std::string_view name) const;
  ValueId seen_as_complex(std::string_view name, ValueId pairs);
  [[noreturn]] void fail_undefined(std::string_view name) const;

  std::unordered_map<std::string_view, Json> types_;
  std::unordered_map<std::string_view, Dim> sizes_;  // the integers that follow from sizes, by name
  std::unordered_set<ValueId> complex_;              // those that are pairs
};

}  // namespace tosaic
