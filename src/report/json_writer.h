// SPDX-License-Identifier: Apache-2.0
// JSON, written member by member; what is empty can be left out.
#pragma once
#include <fmt/format.h>
#include <cmath>
#include <concepts>
#include <string>
#include <string_view>

#include "base/diagnostic.h"

namespace tosaic::reporting {

class JsonWriter {
 public:
  // body() writes the members, or the items.
  template <class F>
  void object(F&& body) {
    around('{', '}', body);
  }
  template <class F>
  void array(F&& body) {
    around('[', ']', body);
  }
  template <class F>
  void object(std::string_view name, F&& body) {
    key(name);
    object(body);
  }
  template <class F>
  void array(std::string_view name, F&& body) {
    key(name);
    array(body);
  }
  template <class T>
  void member(std::string_view name, const T& value) {
    key(name);
    item(value);
  }
  template <class T>
  void member_unless_empty(std::string_view name, const T& values) {
    if (values.empty()) return;
    if constexpr (std::convertible_to<T, std::string_view>)
      member(name, values);
    else
      array(name, [&] {
        for (const auto& value : values) item(value);
      });
  }
  // `json` is JSON already; empty: null.
  void raw_member(std::string_view name, std::string_view json) {
    key(name);
    raw_item(json.empty() ? "null" : json);
  }
  void raw_item(std::string_view json) { put(json); }

  void item(std::string_view text) { put(json_quote(text)); }
  void item(const std::string& text) { item(std::string_view(text)); }
  void item(const char* text) { item(std::string_view(text)); }
  void item(bool value) { put(value ? "true" : "false"); }
  void item(double value) { put(std::isfinite(value) ? fmt::format("{}", value) : "null"); }
  template <std::integral T>
  void item(T value) {
    put(std::to_string(value));
  }

  std::string take() { return std::move(out_); }

 private:
  template <class F>
  void around(char begin, char end, F&& body) {
    comma();
    out_ += begin;
    first_ = true;
    body();
    out_ += end;
    first_ = false;
  }
  void key(std::string_view name) {
    comma();
    out_ += json_quote(name) + ": ";
    first_ = true;  // its value takes no comma
  }
  void put(std::string_view text) {
    comma();
    out_ += text;
  }
  void comma() {
    if (!first_) out_ += ", ";
    first_ = false;
  }

  std::string out_;
  bool first_ = true;
};

}  // namespace tosaic::reporting
