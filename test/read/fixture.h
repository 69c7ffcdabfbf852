// SPDX-License-Identifier: Apache-2.0
// The .pt2 files of this folder (make_pt2.py writes them), read or changed.
#pragma once
#include <gtest/gtest.h>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "formats/zip/zip.h"
#include "read/pt2.h"

namespace tosaic::test {

inline std::string fixture_path(const std::string& name) { return TOSAIC_TEST_DATA "/read/data/" + name; }

inline Bytes fixture(const std::string& name) {
  auto bytes = map_file(fixture_path(name));
  EXPECT_TRUE(bytes.ok()) << name;
  return bytes.ok() ? *bytes : Bytes();
}

struct Reading {
  Result<ExportedProgram> program;
  std::vector<Diagnostic> told;  // what went to the sink

  bool ok() const { return program.ok(); }
  const Graph& graph() const { return program->methods.at(0).graph; }
  const std::vector<std::vector<Tensor>>& samples() const { return program->methods.at(0).sample_inputs; }
  const Value* value(std::string_view name) const {
    for (const Value& v : graph().values)
      if (v.name == name) return &v;
    return nullptr;
  }
  const Node* node(std::string_view output) const {
    for (const Node& n : graph().nodes)
      for (ValueId v : n.outputs)
        if (v != no_value && graph()[v].name == output) return &n;
    return nullptr;
  }
  std::string text() const { return print(graph()); }
  // The message and all notes; "" when it went well.
  std::string why() const {
    if (program.ok()) return "";
    std::string all = program.error().code + ": " + program.error().message;
    for (const auto& n : program.error().notes) all += "\n" + n;
    return all;
  }
  std::string told_codes() const {
    std::string all;
    for (const auto& d : told) all += (all.empty() ? "" : " ") + d.code;
    return all;
  }
};

inline Reading read_bytes(const Bytes& bytes, const std::string& name = "model.pt2") {
  std::vector<Diagnostic> told;
  auto program = read_pt2(bytes, name, [&](Diagnostic d) { told.push_back(std::move(d)); });
  return {std::move(program), std::move(told)};
}

// A fixture that must read, and whose graphs must verify.
inline Reading read_fixture(const std::string& name) {
  Reading r = read_bytes(fixture(name), name);
  EXPECT_TRUE(r.ok()) << name << ": " << r.why();
  if (r.ok())
    for (const Method& m : r.program->methods) {
      Status status = verify(m.graph);
      EXPECT_TRUE(status.ok()) << name << ": " << (status.ok() ? "" : status.error().message);
    }
  return r;
}

// Writes a plain zip archive, stored or deflated.
Bytes make_zip(const std::vector<std::pair<std::string, std::string>>& records, bool deflated = false);

// The archive with records changed: by the end of their names; nothing removes a record.
using Change = std::function<std::optional<std::string>(const std::string& content)>;
Bytes with_changes(const Bytes& archive, const std::map<std::string, Change>& changes, bool deflated = false);

// Replaces text that must occur in models/model.json.
Bytes with_program_text(const std::string& fixture_name, const std::string& from, const std::string& to);

}  // namespace tosaic::test
