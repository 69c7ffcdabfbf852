// SPDX-License-Identifier: Apache-2.0
// JSON as the .pt2 reader wants it: every access either gives the type asked for or throws ReadError
// (pt2.bad-json) naming the key. Over simdjson's DOM. Private to read/.
#pragma once
#include <simdjson.h>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"

namespace tosaic {

class Json {
 public:
  Json() = default;
  Json(simdjson::dom::element element, std::string_view key) : element_(element), key_(key) {}

  // Members: absent and null are the same thing (older writers leave null members out).
  Json at(std::string_view key) const;
  std::optional<Json> find(std::string_view key) const;
  // A tagged union: the one member that is not null.
  std::pair<std::string_view, Json> tagged() const;

  std::string_view text() const;
  std::int64_t integer() const;
  double number() const;  // also the strings "Infinity", "-Infinity" and "NaN"
  bool flag() const;
  std::vector<Json> items() const;
  std::vector<std::pair<std::string_view, Json>> members() const;
  bool is_null() const { return element_.is_null(); }
  std::string_view key() const { return key_; }
  std::string source() const { return simdjson::minify(element_); }  // as JSON text again

 private:
  [[noreturn]] void mismatch(const char* wanted) const;
  simdjson::dom::element element_;
  std::string_view key_;  // of the member that this is, or that holds it
};

class JsonDocument {
 public:
  // Throws pt2.bad-json when `text` is not JSON. `name` is for messages.
  JsonDocument(std::string_view text, const std::string& name);
  Json root() const { return root_; }

 private:
  simdjson::dom::parser parser_;
  Json root_;
};

}  // namespace tosaic
