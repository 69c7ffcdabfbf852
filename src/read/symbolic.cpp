// SPDX-License-Identifier: Apache-2.0
// srepr := name | number | 'text' | name '(' [argument {',' argument}] ')'      argument := [key '='] srepr
#include "read/symbolic.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <initializer_list>
#include <vector>

namespace tosaic {
namespace {

constexpr int max_depth = 64;

// How tightly the outermost operator of a text binds: decides where brackets go.
enum Binding { comparison, sum, product, atom };

struct Term {
  std::string text;
  Binding binding = atom;
  Bounds bounds;
  std::optional<std::int64_t> exact() const {
    return bounds.lowest && bounds.lowest == bounds.highest ? bounds.lowest : std::nullopt;
  }
};

using MaybeInt = std::optional<std::int64_t>;
MaybeInt plus(MaybeInt a, MaybeInt b) {
  std::int64_t r;
  return a && b && !__builtin_add_overflow(*a, *b, &r) ? MaybeInt(r) : std::nullopt;
}
MaybeInt times(MaybeInt a, MaybeInt b) {
  std::int64_t r;
  return a && b && !__builtin_mul_overflow(*a, *b, &r) ? MaybeInt(r) : std::nullopt;
}
std::int64_t floor_div(std::int64_t a, std::int64_t b) { return a / b - ((a % b != 0) && ((a < 0) != (b < 0))); }

Bounds product_bounds(const Bounds& a, const Bounds& b) {
  // With non-negative factors, which sizes are, each bound stands for itself even when the other is missing.
  if (a.lowest && b.lowest && *a.lowest >= 0 && *b.lowest >= 0)
    return {times(a.lowest, b.lowest), times(a.highest, b.highest)};
  MaybeInt corners[] = {times(a.lowest, b.lowest), times(a.lowest, b.highest), times(a.highest, b.lowest),
                        times(a.highest, b.highest)};
  Bounds r{corners[0], corners[0]};
  for (const MaybeInt& c : corners) {
    if (!c) return {};
    r.lowest = std::min(*r.lowest, *c);
    r.highest = std::max(*r.highest, *c);
  }
  return r;
}

class Reader {
 public:
  Reader(std::string_view text, const SymbolBounds& bounds_of) : rest_(text), bounds_of_(bounds_of) {}
  std::optional<Term> whole() {
    auto term = expression(0);
    skip_spaces();
    return term && rest_.empty() ? term : std::nullopt;
  }

 private:
  void skip_spaces() {
    while (!rest_.empty() && rest_.front() == ' ') rest_.remove_prefix(1);
  }
  bool take(char c) {
    skip_spaces();
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  std::string_view word() {
    skip_spaces();
    std::size_t n = 0;
    while (n < rest_.size() && (std::isalnum(static_cast<unsigned char>(rest_[n])) || rest_[n] == '_' ||
                                rest_[n] == '.' || (n == 0 && rest_[n] == '-')))
      ++n;
    auto w = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return w;
  }
  static std::optional<Term> number(std::string_view w) {
    std::int64_t n = 0;
    auto [end, failure] = std::from_chars(w.data(), w.data() + w.size(), n);
    if (failure != std::errc() || end != w.data() + w.size()) return std::nullopt;
    return Term{std::string(w), atom, {n, n}};
  }

  std::optional<Term> expression(int depth) {
    if (depth > max_depth) return std::nullopt;
    skip_spaces();
    if (take('\'')) {
      auto close = rest_.find('\'');
      if (close == std::string_view::npos) return std::nullopt;
      Term t{std::string(rest_.substr(0, close)), atom, {}};
      rest_.remove_prefix(close + 1);
      return t;
    }
    auto name = word();
    if (name.empty()) return std::nullopt;
    if (!take('(')) {
      if (auto n = number(name)) return n;
      return Term{std::string(name), atom, {}};
    }
    std::vector<Term> arguments;
    for (bool first = true; !take(')'); first = false) {
      if (!first && !take(',')) return std::nullopt;
      // A keyword argument (positive=True, precision=53) says nothing that a reader of sizes needs.
      const auto start = rest_;
      const bool keyword = !word().empty() && take('=');
      if (!keyword) rest_ = start;
      auto argument = expression(depth + 1);
      if (!argument) return std::nullopt;
      if (!keyword) arguments.push_back(std::move(*argument));
    }
    return call(name, std::move(arguments));
  }

  static std::string bracketed(const Term& t, Binding least) { return t.binding < least ? "(" + t.text + ")" : t.text; }
  static std::string joined(const std::vector<Term>& terms, std::string_view between, Binding least) {
    std::string out;
    for (const Term& t : terms) {
      if (!out.empty()) out += between;
      out += bracketed(t, least);
    }
    return out;
  }

  std::optional<Term> call(std::string_view name, std::vector<Term> a) {
    auto named = [&](std::initializer_list<std::string_view> names) {
      return std::find(names.begin(), names.end(), name) != names.end();
    };
    if (named({"Symbol"}) && a.size() == 1) return Term{a[0].text, atom, bounds_of_(a[0].text)};
    if (named({"Integer", "Float"}) && !a.empty()) return a[0];
    if (named({"Rational"}) && a.size() == 2) return Term{a[0].text + "/" + a[1].text, product, {}};
    if (named({"ToFloat", "TruncToInt", "CeilToInt", "FloorToInt", "Identity"}) && a.size() == 1) return a[0];
    if (named({"Add"}) && a.size() >= 2) return add(std::move(a));
    if (named({"Mul"}) && a.size() >= 2) {
      Term r{joined(a, "*", product), product, a[0].bounds};
      for (std::size_t i = 1; i < a.size(); ++i) r.bounds = product_bounds(r.bounds, a[i].bounds);
      if (a[0].exact() == -1) r.text = "-" + joined({a.begin() + 1, a.end()}, "*", product);
      return r;
    }
    if (named({"Pow"}) && a.size() == 2) {
      Term r{bracketed(a[0], atom) + "^" + bracketed(a[1], atom), product, {}};
      if (auto n = a[1].exact(); n && *n > 0 && *n <= 8) {
        r.bounds = a[0].bounds;
        for (std::int64_t i = 1; i < *n; ++i) r.bounds = product_bounds(r.bounds, a[0].bounds);
      }
      return r;
    }
    if (named({"FloorDiv", "CleanDiv", "IntTrueDiv", "FloatTrueDiv", "CeilDiv"}) && a.size() == 2)
      return divide(name, a);
    if (named({"Mod", "PythonMod"}) && a.size() == 2) {
      Term r{bracketed(a[0], product) + " % " + bracketed(a[1], atom), product, {}};
      if (auto n = a[1].exact(); n && *n > 0) r.bounds = {0, *n - 1};
      return r;
    }
    if (named({"Max", "Min"}) && !a.empty()) return extreme(name == "Max", a);
    std::string_view relation = named({"Equality", "Eq"})            ? " == "
                                : named({"Unequality", "Ne"})        ? " != "
                                : named({"GreaterThan", "Ge"})       ? " >= "
                                : named({"LessThan", "Le"})          ? " <= "
                                : named({"StrictGreaterThan", "Gt"}) ? " > "
                                : named({"StrictLessThan", "Lt"})    ? " < "
                                                                     : "";
    if (!relation.empty() && a.size() == 2) return Term{joined(a, relation, sum), comparison, {}};
    return Term{std::string(name) + "(" + joined(a, ", ", comparison) + ")", atom, {}};
  }

  // Numbers last, and subtraction where a term is negative: "s77 - 1".
  static Term add(std::vector<Term> a) {
    std::stable_partition(a.begin(), a.end(), [](const Term& t) { return !t.exact(); });
    Term r{"", sum, {0, 0}};
    for (const Term& t : a) {
      std::string text = bracketed(t, sum);
      if (r.text.empty())
        r.text = text;
      else if (text.front() == '-')
        r.text += " - " + text.substr(1);
      else
        r.text += " + " + text;
      r.bounds = {plus(r.bounds.lowest, t.bounds.lowest), plus(r.bounds.highest, t.bounds.highest)};
    }
    return r;
  }

  static Term divide(std::string_view name, const std::vector<Term>& a) {
    const bool exact = name == "IntTrueDiv" || name == "FloatTrueDiv";
    Term r{bracketed(a[0], product) + (exact ? "/" : "//") + bracketed(a[1], atom), product, {}};
    if (name == "CeilDiv") r = {"ceil(" + a[0].text + "/" + bracketed(a[1], atom) + ")", atom, {}};
    auto n = a[1].exact();
    if (n && *n > 0 && !exact) {
      const std::int64_t up = name == "CeilDiv" ? *n - 1 : 0;
      if (auto lowest = plus(a[0].bounds.lowest, up)) r.bounds.lowest = floor_div(*lowest, *n);
      if (auto highest = plus(a[0].bounds.highest, up)) r.bounds.highest = floor_div(*highest, *n);
    }
    return r;
  }

  static Term extreme(bool largest, const std::vector<Term>& a) {
    Term r{(largest ? "max(" : "min(") + joined(a, ", ", comparison) + ")", atom, a[0].bounds};
    for (const Term& t : a) {
      auto pick = [&](MaybeInt x, MaybeInt y) -> MaybeInt {
        if (!x || !y) return std::nullopt;
        return largest ? std::max(*x, *y) : std::min(*x, *y);
      };
      // One bounded argument is enough for max's lower and min's upper bound.
      auto pick_either = [&](MaybeInt x, MaybeInt y) { return x && y ? pick(x, y) : x ? x : y; };
      r.bounds.lowest =
          largest ? pick_either(r.bounds.lowest, t.bounds.lowest) : pick(r.bounds.lowest, t.bounds.lowest);
      r.bounds.highest =
          largest ? pick(r.bounds.highest, t.bounds.highest) : pick_either(r.bounds.highest, t.bounds.highest);
    }
    return r;
  }

  std::string_view rest_;
  const SymbolBounds& bounds_of_;
};

}  // namespace

namespace {
// What the text form of the IR can hold between brackets.
bool is_readable(std::string_view text) {
  int depth = 0;
  for (char c : text) {
    depth += (c == '(') - (c == ')');
    if (depth < 0 || c < ' ' || c > '~') return false;
  }
  return depth == 0 && !text.empty();
}
}  // namespace

SymbolicExpression read_symbolic(std::string_view srepr, const SymbolBounds& bounds_of) {
  if (auto term = Reader(srepr, bounds_of).whole(); term && is_readable(term->text))
    return {std::move(term->text), term->bounds};
  return {is_readable(srepr) ? std::string(srepr) : "unreadable", {}};
}

}  // namespace tosaic
