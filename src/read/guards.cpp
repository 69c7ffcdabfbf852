// SPDX-License-Identifier: Apache-2.0
#include "read/guards.h"

#include <cctype>
#include <charconv>
#include <stdexcept>
#include <vector>

namespace tosaic {
namespace {

constexpr int most_depth = 64;

// A small part of Python: integers, sizes of inputs, + - * // % and **, max and min, one comparison.
class GuardReader {
 public:
  GuardReader(std::string_view code, const SizeOf& size_of) : rest_(code), size_of_(size_of) {}

  // 0 where it holds. Throws what is no guard of that form.
  Dim violation() {
    const Dim v = comparison(0);
    skip();
    if (!rest_.empty()) unknown();
    return v;
  }

 private:
  struct Unknown : std::runtime_error {
    Unknown() : std::runtime_error("no guard on sizes") {}
  };
  [[noreturn]] static void unknown() { throw Unknown(); }

  void skip() {
    while (!rest_.empty() && std::isspace(static_cast<unsigned char>(rest_.front()))) rest_.remove_prefix(1);
  }
  bool take(std::string_view text) {
    skip();
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }
  void expect(std::string_view text) {
    if (!take(text)) unknown();
  }
  bool next_is(char c) {
    skip();
    return rest_.starts_with(c);
  }

  // Brackets may stand around the whole comparison, or around its first side.
  Dim comparison(int depth) {
    if (depth > most_depth) unknown();
    const std::string_view start = rest_;
    if (take("(")) {
      try {
        const Dim v = comparison(depth + 1);
        if (take(")")) {
          skip();
          if (rest_.empty() || next_is(')')) return v;
        }
      } catch (const Unknown&) {}
      rest_ = start;
    }
    const Dim a = sum(depth);
    if (take("==")) return at_most_one(difference_squared(a, sum(depth)));
    if (take("!=")) return Dim(1) - at_most_one(difference_squared(a, sum(depth)));
    if (take("<=")) return beyond(a, sum(depth));
    if (take(">=")) return beyond(sum(depth), a);
    if (take("<")) return beyond(a + Dim(1), sum(depth));
    if (take(">")) return beyond(sum(depth) + Dim(1), a);
    unknown();
  }
  static Dim difference_squared(const Dim& a, const Dim& b) { return (a - b) * (a - b); }
  static Dim at_most_one(const Dim& d) { return min(d, Dim(1)); }
  static Dim beyond(const Dim& a, const Dim& b) { return max(a - b, Dim(0)); }

  Dim sum(int depth) {
    if (depth > most_depth) unknown();
    Dim all = product(depth);
    while (true) {
      if (take("+"))
        all = all + product(depth);
      else if (take("-"))
        all = all - product(depth);
      else
        return all;
    }
  }
  Dim product(int depth) {
    Dim all = power(depth);
    while (true) {
      if (next_is('*') && !rest_.starts_with("**")) {
        expect("*");
        all = all * power(depth);
      } else if (take("//")) {
        all = floor_div(all, power(depth));
      } else if (take("%")) {
        all = mod(all, power(depth));
      } else {
        return all;
      }
    }
  }
  Dim power(int depth) {
    if (take("-")) return Dim(0) - power(depth + 1);
    const Dim base = atom(depth + 1);
    if (!take("**")) return base;
    const Dim exponent = atom(depth + 1);
    if (!exponent.is_number() || exponent.value() < 0 || exponent.value() > 16) unknown();
    Dim all(1);
    for (std::int64_t i = 0; i < exponent.value(); ++i) all = all * base;
    return all;
  }
  Dim atom(int depth) {
    if (depth > most_depth) unknown();
    if (take("(")) {
      const Dim inside = sum(depth + 1);
      expect(")");
      return inside;
    }
    for (const bool largest : {true, false}) {
      if (!take(largest ? "max(" : "min(")) continue;
      Dim all = sum(depth + 1);
      while (take(",")) {
        const Dim next = sum(depth + 1);
        all = largest ? max(all, next) : min(all, next);
      }
      expect(")");
      return all;
    }
    if (take("L[")) return size();
    return number();
  }
  Dim number() {
    skip();
    std::int64_t n = 0;
    const auto [end, failure] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), n);
    if (failure != std::errc()) unknown();
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    if (next_is('.')) unknown();
    return Dim(n);
  }

  // Behind "L[": the input's path, then .size()[dim].
  Dim size() {
    std::string name = key();
    while (take("[")) name += "_" + key();
    expect(".size()[");
    const Dim dim = number();
    expect("]");
    const auto found = size_of_(name, dim.value());
    if (!found) unknown();
    return *found;
  }
  // "'x']" or "0]", as it becomes a part of a name.
  std::string key() {
    std::string text;
    if (take("'")) {
      const auto close = rest_.find('\'');
      if (close == std::string_view::npos) unknown();
      for (char c : rest_.substr(0, close)) {
        const auto code = static_cast<unsigned char>(c);
        text += std::isalnum(code) ? static_cast<char>(std::tolower(code)) : '_';
      }
      rest_.remove_prefix(close + 1);
    } else {
      text = std::to_string(number().value());
    }
    expect("]");
    return text;
  }

  std::string_view rest_;
  const SizeOf& size_of_;
};

}  // namespace

std::optional<Guard> read_guard(std::string_view code, const SizeOf& size_of) {
  try {
    return Guard{guard_text(code), GuardReader(code, size_of).violation()};
  } catch (const std::exception&) { return std::nullopt; }  // too long, beyond 64 bits, or of another form
}

std::string guard_text(std::string_view code) {
  std::string text;
  while (!code.empty()) {
    const auto close = code.starts_with("L['") ? code.find("']") : std::string_view::npos;
    if (close != std::string_view::npos) {
      text += code.substr(3, close - 3);
      code.remove_prefix(close + 2);
    } else {
      text += code.front();
      code.remove_prefix(1);
    }
  }
  return text;
}

}  // namespace tosaic
