// SPDX-License-Identifier: Apache-2.0
// What somebody decides about the precision of parts of a program, in the words of their own source:
//   features.0: int16x8      a module, with all that is in it
//   aten.softmax: int16x8    an operator, of every overload; with it, of one
//   linear_2: float          a node of the exported graph
//   model.py:42: float       a line of the source, or a file
//   encoder.*.norm: int8     * stands for any characters, ? for one
// Later lines win. Lines of a whole plan (plan.h) may stand before them. What stands after a line "method prefill" is
// about that method alone.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "ir/provenance.h"

namespace tosaic {

enum class Form : std::uint8_t { unset, floating, int8, int16x8 };
std::string_view name_of(Form form);  // "float", "int8", "int16x8"; "" where nothing is decided
std::optional<Form> form_named(std::string_view name);

struct Override {
  std::string name;
  Form form = Form::unset;
  Place place;              // where it is written
  std::string method = {};  // the one that it is about; empty: all
  std::string text() const;
};

struct PlanRequest {
  std::vector<Override> overrides;
  std::string whole;          // a whole plan, on the lines that it has in its file; empty: none
  std::string source;         // that file
  Form scheme = Form::unset;  // what it says of everything that nobody decides about: a line "scheme int16x8"
  struct OfMethod {
    std::string name, whole;  // as above
    Place place;
  };
  std::vector<OfMethod> methods;
  std::string program;  // the fingerprint of the one that it was made for: a line "program 0f3a..."; empty: not known
  Place program_at;
  bool empty() const { return overrides.empty() && !has_whole(); }
  bool has_whole() const;
  PlanRequest of(const std::string& method) const;  // what is about it
};

// Adds the lines of a plan file, or one override of a command line. Error: plan.syntax.
Status add_plan_text(PlanRequest& to, const std::string& source, std::string_view text);

// Error: plan.names-nothing.
Status names_methods(const PlanRequest& request, const std::vector<std::string>& methods);

// By the name of an exported node, the override that decides about it. Error: plan.names-nothing, with the nearest
// names.
using Deciding = std::unordered_map<std::string, const Override*>;
Result<Deciding> deciding(const std::vector<Override>& overrides, const std::vector<ExportedNode>& exported);
// A call is decided about if any of the exported nodes that it stands for is; null: it is not.
const Override* deciding_of(const Node& node, const Deciding& deciding);

}  // namespace tosaic
