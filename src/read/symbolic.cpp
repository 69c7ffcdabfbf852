// SPDX-License-Identifier: Apache-2.0
// srepr := name | number | 'text' | name '(' [argument {',' argument}] ')'      argument := [key '='] srepr
#include "read/symbolic.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <initializer_list>
#include <vector>

namespace tosaic {
namespace {

constexpr int max_depth = 64;

// numerator / denominator, while PyTorch computes with real numbers on the way to an integer.
struct Ratio {
  Dim numerator, denominator = 1;
  // The quotient of two integers as a double: floor, ceil and trunc still give what they give of the ratio (below
  // 2^53), further arithmetic need not.
  bool rounded = false;
  bool whole() const { return denominator == Dim(1); }
};

struct Term {
  std::optional<Ratio> value;  // nothing: no number that Dim can say
  std::string text;            // of what is none
  Term(Ratio ratio) : value(ratio) {}
  Term(Dim dim) : value(Ratio{dim, 1, false}) {}
  explicit Term(std::string words) : text(std::move(words)) {}
  std::string spelled() const {
    if (!value) return text;
    return to_string(value->numerator) + (value->whole() ? "" : "/" + to_string(value->denominator));
  }
};

bool at_least(const Dim& d, std::int64_t n) {
  const Bounds b = d.bounds();
  return b.lowest && *b.lowest >= n;
}

// A double that is a ratio of small integers; others round when they are computed with.
std::optional<Ratio> exact_ratio(double real) {
  constexpr double most = 1 << 30;
  for (std::int64_t denominator = 1; denominator <= 1 << 20; denominator *= 2) {
    const double numerator = real * static_cast<double>(denominator);
    if (numerator == std::trunc(numerator) && std::abs(numerator) < most)
      return Ratio{static_cast<std::int64_t>(numerator), denominator, false};
  }
  return std::nullopt;
}

// With numbers as denominators, what divides goes: 2*s0/2 is s0.
Ratio reduced(Ratio r) {
  if (!r.denominator.is_number() || r.denominator == Dim(1) || r.denominator == Dim(0)) return r;
  if (mod(r.numerator, r.denominator) == Dim(0)) return {floor_div(r.numerator, r.denominator), 1, false};
  return r;
}
Ratio sum(const Ratio& a, const Ratio& b) {
  if (a.denominator == b.denominator) return reduced({a.numerator + b.numerator, a.denominator, false});
  return reduced({a.numerator * b.denominator + b.numerator * a.denominator, a.denominator * b.denominator, false});
}
Ratio product(const Ratio& a, const Ratio& b) {
  return reduced({a.numerator * b.numerator, a.denominator * b.denominator, false});
}

class Reader {
 public:
  Reader(std::string_view text, const RangeOf& range_of) : rest_(text), range_of_(range_of) {}
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
    return Term(Dim(n));
  }

  std::optional<Term> expression(int depth) {
    if (depth > max_depth) return std::nullopt;
    skip_spaces();
    if (take('\'')) {
      auto close = rest_.find('\'');
      if (close == std::string_view::npos) return std::nullopt;
      Term t{std::string(rest_.substr(0, close))};
      rest_.remove_prefix(close + 1);
      return t;
    }
    auto name = word();
    if (name.empty()) return std::nullopt;
    if (!take('(')) {
      if (auto n = number(name)) return n;
      return Term{std::string(name)};
    }
    std::vector<Term> arguments;
    for (bool first = true; !take(')'); first = false) {
      if (!first && !take(',')) return std::nullopt;
      // A keyword argument (positive=True, precision=53) says nothing that range_constraints do not.
      const auto start = rest_;
      const bool keyword = !word().empty() && take('=');
      if (!keyword) rest_ = start;
      auto argument = expression(depth + 1);
      if (!argument) return std::nullopt;
      if (!keyword) arguments.push_back(std::move(*argument));
    }
    return call(name, arguments);
  }

  Term call(std::string_view name, const std::vector<Term>& a) {
    if (name == "Symbol" && a.size() == 1 && !a[0].value) return Term(Dim(Symbol{a[0].text, range_of_(a[0].text)}));
    if (name == "Float" && !a.empty()) return real(a[0].spelled());
    std::vector<Ratio> r;
    for (const Term& t : a)
      if (t.value) r.push_back(*t.value);
    if (!r.empty() && r.size() == a.size()) {
      try {
        if (auto known = function(name, r)) return *known;
      } catch (const std::overflow_error&) {  // said in words, like a function that is not known
      } catch (const std::domain_error&) {}
    }
    std::string text(name);
    for (std::size_t i = 0; i < a.size(); ++i) text += (i ? ", " : "(") + a[i].spelled();
    return Term(text + (a.empty() ? "()" : ")"));
  }
  static Term real(const std::string& text) {
    double value = 0;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (failure == std::errc() && end == text.data() + text.size())
      if (auto ratio = exact_ratio(value)) return *ratio;
    return Term(text);
  }

  static std::optional<Term> function(std::string_view name, const std::vector<Ratio>& a) {
    const auto named = [&](std::initializer_list<std::string_view> names) {
      return std::find(names.begin(), names.end(), name) != names.end();
    };
    if (a.size() == 1) {
      if (named({"Integer", "ToFloat", "Identity"})) return a[0];
      if (named({"FloorToInt", "floor", "OpaqueUnaryFn_floor"})) return floor_div(a[0].numerator, a[0].denominator);
      if (named({"CeilToInt", "ceiling"})) return ceil_div(a[0].numerator, a[0].denominator);
      if (named({"TruncToInt"}) && at_least(a[0].numerator, 0) && at_least(a[0].denominator, 1))
        return floor_div(a[0].numerator, a[0].denominator);
      if (named({"TruncToInt"}) && a[0].whole()) return a[0];
    }
    if (std::any_of(a.begin(), a.end(), [](const Ratio& r) { return r.rounded; })) return std::nullopt;
    if (named({"Add", "Mul"})) {
      Ratio r = a[0];
      for (std::size_t i = 1; i < a.size(); ++i) r = name == "Add" ? sum(r, a[i]) : product(r, a[i]);
      return r;
    }
    if (named({"Pow", "PowByNatural"}) && a.size() == 2) return power(a[0], a[1]);
    if (named({"Rational", "IntTrueDiv", "FloatTrueDiv"}) && a.size() == 2) {
      Ratio r = product(a[0], {a[1].denominator, a[1].numerator, false});
      r.rounded = name != "Rational";
      return r;
    }
    if (!std::all_of(a.begin(), a.end(), [](const Ratio& r) { return r.whole(); })) return std::nullopt;
    return integer_function(name, a);
  }

  static std::optional<Term> integer_function(std::string_view name, const std::vector<Ratio>& a) {
    if ((name == "Max" || name == "Min")) {
      Dim r = a[0].numerator;
      for (std::size_t i = 1; i < a.size(); ++i) r = name == "Max" ? max(r, a[i].numerator) : min(r, a[i].numerator);
      return Term(r);
    }
    if (a.size() == 3 && name == "ModularIndexing")
      return Term(mod(floor_div(a[0].numerator, a[1].numerator), a[2].numerator));
    if (a.size() != 2) return std::nullopt;
    const Dim &x = a[0].numerator, &y = a[1].numerator;
    if (name == "FloorDiv" || name == "CleanDiv") return Term(floor_div(x, y));
    if (name == "CeilDiv") return Term(ceil_div(x, y));
    // Of a negative number they differ: Mod is defined for others only.
    if (name == "Mod" || name == "PythonMod") return Term(mod(x, y));
    return std::nullopt;
  }

  static std::optional<Term> power(const Ratio& base, const Ratio& exponent) {
    if (!exponent.whole() || !exponent.numerator.is_number()) return std::nullopt;
    const std::int64_t n = exponent.numerator.value();
    if (n == -1) return Term(Ratio{base.denominator, base.numerator, false});
    if (n < 0 || n > 8) return std::nullopt;
    Ratio r{1, 1, false};
    for (std::int64_t i = 0; i < n; ++i) r = product(r, base);
    return Term(r);
  }

  std::string_view rest_;
  const RangeOf& range_of_;
};

}  // namespace

Dim read_symbolic(std::string_view srepr, const RangeOf& range_of) {
  std::string text(srepr);
  if (auto term = Reader(srepr, range_of).whole()) {
    if (term->value && term->value->whole()) return term->value->numerator;
    text = term->spelled();
  }
  constexpr std::size_t longest = 200;
  if (text.size() > longest) {
    text.resize(longest);
    text += "...";
  }
  return Symbol{std::move(text), {}};
}

}  // namespace tosaic
