// SPDX-License-Identifier: Apache-2.0
#include "read/json.h"

#include <fmt/format.h>
#include <limits>

#include "read/read_error.h"

namespace tosaic {
namespace {
// Graphs nest in graphs (control flow): about eight levels of JSON each. simdjson refuses what is deeper.
constexpr std::size_t max_depth = 512;

const char* kind_of(const simdjson::dom::element& element) {
  using simdjson::dom::element_type;
  switch (element.type()) {
    case element_type::ARRAY: return "a list";
    case element_type::OBJECT: return "an object";
    case element_type::INT64:
    case element_type::UINT64:
    case element_type::DOUBLE: return "a number";
    case element_type::STRING: return "a string";
    case element_type::BOOL: return "true or false";
    case element_type::NULL_VALUE: return "null";
  }
  return "something else";
}
}  // namespace

void Json::mismatch(const char* wanted) const {
  fail("pt2.bad-json", fmt::format("'{}' must be {}, but is {}", key_, wanted, kind_of(element_)));
}

std::optional<Json> Json::find(std::string_view key) const {
  simdjson::dom::object object;
  if (element_.get(object)) mismatch("an object");
  simdjson::dom::element member;
  if (object.at_key(key).get(member) || member.is_null()) return std::nullopt;
  return Json(member, key);
}

Json Json::at(std::string_view key) const {
  auto member = find(key);
  if (!member) fail("pt2.bad-json", fmt::format("'{}' lacks its member '{}'", key_, key));
  return *member;
}

std::pair<std::string_view, Json> Json::tagged() const {
  simdjson::dom::object object;
  if (element_.get(object)) mismatch("an object");
  for (auto [key, member] : object)
    if (!member.is_null()) return {key, Json(member, key)};
  fail("pt2.bad-json", fmt::format("'{}' must hold one of its alternatives, but is empty", key_));
}

std::string_view Json::text() const {
  std::string_view text;
  if (element_.get(text)) mismatch("a string");
  return text;
}

std::int64_t Json::integer() const {
  std::int64_t value = 0;
  if (element_.get(value)) mismatch("a 64-bit integer");
  return value;
}

double Json::number() const {
  double value = 0;
  if (!element_.get(value)) return value;
  std::string_view text;
  if (!element_.get(text)) {
    if (text == "Infinity") return std::numeric_limits<double>::infinity();
    if (text == "-Infinity") return -std::numeric_limits<double>::infinity();
    if (text == "NaN") return std::numeric_limits<double>::quiet_NaN();
  }
  mismatch("a number");
}

bool Json::flag() const {
  bool value = false;
  if (element_.get(value)) mismatch("true or false");
  return value;
}

std::vector<Json> Json::items() const {
  simdjson::dom::array array;
  if (element_.get(array)) mismatch("a list");
  std::vector<Json> items;
  items.reserve(array.size());
  for (auto item : array) items.emplace_back(item, key_);
  return items;
}

std::vector<std::pair<std::string_view, Json>> Json::members() const {
  simdjson::dom::object object;
  if (element_.get(object)) mismatch("an object");
  std::vector<std::pair<std::string_view, Json>> members;
  members.reserve(object.size());
  for (auto [key, member] : object) members.emplace_back(key, Json(member, key));
  return members;
}

JsonDocument::JsonDocument(std::string_view text, const std::string& name) {
  if (auto code = parser_.allocate(text.size(), max_depth))
    fail("pt2.bad-json", fmt::format("{} cannot be read: {}", name, simdjson::error_message(code)));
  simdjson::dom::element element;
  // The parser copies the text, because it reads a few bytes beyond the end.
  if (auto code = parser_.parse(text.data(), text.size(), true).get(element))
    fail("pt2.bad-json", fmt::format("{} is not valid JSON: {}", name, simdjson::error_message(code)));
  root_ = Json(element, "the document");
}

}  // namespace tosaic
