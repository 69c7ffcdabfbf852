// SPDX-License-Identifier: Apache-2.0
// PyTorch operator schemas, parsed from PyTorch's own notation: argument names, kinds and defaults.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"

namespace tosaic {

struct SchemaArgument {
  std::string name;
  std::string type;  // "Tensor", "Tensor?", "Tensor[]", "Tensor?[]", "int", "SymInt[2]", "Scalar", "float?", ...
  bool keyword_only = false;
  bool written = false;  // Tensor(a!): the call changes it
  bool has_default = false;
  Attr default_value;  // monostate: None
  bool is_tensor() const { return type.starts_with("Tensor"); }
  bool is_tensor_list() const { return type == "Tensor[]" || type == "Tensor?[]"; }
  bool is_optional() const { return type.ends_with("?") || type == "Tensor?[]"; }
};

struct Schema {
  std::string ns;        // "aten"
  std::string name;      // "add", "relu_"
  std::string overload;  // "Tensor", "default" when PyTorch's is empty
  std::vector<SchemaArgument> arguments;
  std::vector<std::string> returns;  // types: "Tensor", "Tensor[]"
  bool in_place = false;             // name ends in '_' and self is written
  bool view = false;                 // the result looks at self's memory: it returns Tensor(a)
  bool looks_anew = false;           // unsqueeze_: a view that takes the place of self, of which nothing is written
  std::string full_name() const { return ns + "." + name + "." + overload; }
  const SchemaArgument* argument(std::string_view name) const;
};

// Refuses (internal error) a text that is not a schema: the texts are part of our source.
Result<Schema> parse_schema(std::string_view text);

}  // namespace tosaic
