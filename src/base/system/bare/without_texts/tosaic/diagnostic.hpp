// SPDX-License-Identifier: Apache-2.0
// Instead of include/tosaic/diagnostic.hpp in a build without texts: an error is its code. What people would read is
// taken, and kept nowhere.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace tosaic {

enum class Severity : std::uint8_t { note, warning, error };

struct MessageText {
  constexpr MessageText() = default;
  template <class Said>
  constexpr MessageText(const Said&) {}  // NOLINT: texts come as literals and as strings
  constexpr bool empty() const { return true; }
  constexpr operator std::string_view() const { return {}; }  // NOLINT: as strings do
};

struct Place {
  MessageText file;
  std::int64_t line = 0;
  MessageText text;
};

struct MessageTexts {
  constexpr void push_back(MessageText) {}
  constexpr void emplace_back(MessageText) {}
  constexpr const MessageText* begin() const { return nullptr; }
  constexpr const MessageText* end() const { return nullptr; }
  constexpr void insert(const MessageText*, MessageText) {}
};

struct Diagnostic {
  Severity severity = Severity::error;
  bool internal = false;
  std::string code;
  [[no_unique_address]] MessageText message;
  [[no_unique_address]] Place place;
  [[no_unique_address]] MessageText context;
  [[no_unique_address]] MessageTexts notes;
  [[no_unique_address]] MessageText help;

  Diagnostic&& at(const Place&) && { return std::move(*this); }
  Diagnostic&& note(MessageText) && { return std::move(*this); }
  Diagnostic&& hint(MessageText) && { return std::move(*this); }
};

}  // namespace tosaic
