// SPDX-License-Identifier: Apache-2.0
// Dims as text, and back:
//   ranged := expression ['for' range {',' range}] | range        range := name 'in' [number] '..' [number]
//   expression := product {('+' | '-') product}                   product := factor {('*' | '//' | '%') factor}
//   factor := '-' factor | number | name | '(' expression ')' | ('max' | 'min') '(' expression {',' expression} ')'
// Names that are no identifiers, or words of this text, are quoted.
#include <fmt/format.h>
#include <algorithm>
#include <charconv>
#include <map>

#include "ir/dim_form.h"
#include "ir/quoted.h"

namespace tosaic {
namespace {

constexpr int max_depth = 64;

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string name_text(const std::string& name) {
  bool plain = !name.empty() && !is_digit(name[0]) && name != "max" && name != "min" && name != "in" && name != "for";
  for (char c : name) plain = plain && (is_letter(c) || is_digit(c));
  return plain ? name : text::quoted(name);
}
std::string range_text(const Symbol& symbol) { return name_text(symbol.name) + " in " + to_string(symbol.range); }

// As an operand of //, % or *: in brackets unless it is one word.
std::string operand(const Dim& dim, bool key) {
  const Sum sum = sum_of(dim);
  std::string out = text_of(sum, key);
  bool word = sum.terms.empty() && sum.constant >= 0;
  if (sum.terms.size() == 1 && sum.constant == 0) {
    const auto& [product, coefficient] = *sum.terms.begin();
    word = coefficient == 1 && product.size() == 1 && product[0]->kind != DimAtom::floor_div &&
           product[0]->kind != DimAtom::mod;
  }
  return word ? out : "(" + out + ")";
}

// A term without its sign.
std::string term_text(const Product& product, std::int64_t coefficient, bool key) {
  std::string size = std::to_string(coefficient);
  if (coefficient < 0) size.erase(0, 1);
  std::string out = size == "1" ? "" : size;
  for (const DimAtom* atom : product) {
    const bool alone = product.size() == 1 && coefficient == 1;
    const bool word = atom->kind != DimAtom::floor_div && atom->kind != DimAtom::mod;
    if (!out.empty()) out += '*';
    out += alone || word ? text_of(*atom, key) : "(" + text_of(*atom, key) + ")";
  }
  return out;
}

class Parser {
 public:
  using Ranges = std::map<std::string, Bounds>;
  Parser(std::string_view text, std::string& why) : text_(text), why_(why) {}

  std::optional<Dim> ranged() {
    const std::size_t at = keyword(" for ");
    Ranges ranges;
    const bool short_form = at == std::string_view::npos && keyword(" in ") != std::string_view::npos;
    if (at != std::string_view::npos || short_form) {
      const std::string_view whole = text_;
      pos_ = short_form ? 0 : at + 5;
      std::string name;
      do {
        if (!range(ranges, name)) return std::nullopt;
      } while (!short_form && accept(","));
      if (!at_end()) return wrong("',' or the end after a range");
      if (short_form) return Dim(Symbol{name, ranges[name]});
      text_ = whole.substr(0, at);
      pos_ = 0;
    }
    ranges_ = &ranges;
    auto dim = expression(0);
    if (dim && !at_end()) return wrong("the end of the expression");
    return dim;
  }

 private:
  std::nullopt_t wrong(std::string_view wanted) {
    if (why_.empty()) why_ = fmt::format("expected {} at '{}'", wanted, text_.substr(std::min(pos_, text_.size()), 20));
    return std::nullopt;
  }
  bool fail(std::string_view wanted) {
    wrong(wanted);
    return false;
  }
  // Where `word` stands outside quotes.
  std::size_t keyword(std::string_view word) const {
    bool inside = false;
    for (std::size_t i = 0; i < text_.size(); ++i) {
      if (inside && text_[i] == '\\') {
        ++i;
        continue;
      }
      if (text_[i] == '"') inside = !inside;
      if (!inside && text_.substr(i).starts_with(word)) return i;
    }
    return std::string_view::npos;
  }
  void skip() {
    while (pos_ < text_.size() && text_[pos_] == ' ') ++pos_;
  }
  bool at_end() {
    skip();
    return pos_ >= text_.size();
  }
  bool accept(std::string_view symbol) {
    skip();
    if (!text_.substr(std::min(pos_, text_.size())).starts_with(symbol)) return false;
    pos_ += symbol.size();
    return true;
  }
  std::optional<std::int64_t> integer() {
    skip();
    std::int64_t n = 0;
    auto [end, bad] = std::from_chars(text_.data() + pos_, text_.data() + text_.size(), n);
    if (bad != std::errc{}) return std::nullopt;
    pos_ = static_cast<std::size_t>(end - text_.data());
    return n;
  }
  std::optional<std::string> name() {
    skip();
    if (pos_ >= text_.size()) return std::nullopt;
    if (text_[pos_] == '"') return quoted_name();
    const std::size_t begin = pos_;
    while (pos_ < text_.size() && (is_letter(text_[pos_]) || (pos_ > begin && is_digit(text_[pos_])))) ++pos_;
    if (pos_ == begin) return std::nullopt;
    return std::string(text_.substr(begin, pos_ - begin));
  }
  std::optional<std::string> quoted_name() {
    std::string out;
    for (++pos_; pos_ < text_.size() && text_[pos_] != '"'; ++pos_) {
      if (text_[pos_] != '\\') {
        out += text_[pos_];
        continue;
      }
      const char c = ++pos_ < text_.size() ? text_[pos_] : '\0';
      if (c == 'x') {
        unsigned code = 0;
        const auto digits = text_.substr(std::min(pos_ + 1, text_.size()), 2);
        const auto [end, bad] = std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
        if (bad != std::errc{} || end != digits.data() + 2) return std::nullopt;
        out += static_cast<char>(code);
        pos_ += 2;
      } else {
        const std::size_t which = std::string_view("nrt\"\\").find(c);
        if (which == std::string_view::npos) return std::nullopt;
        out += "\n\r\t\"\\"[which];
      }
    }
    if (pos_ >= text_.size()) return std::nullopt;
    ++pos_;
    return out;
  }
  bool range(Ranges& ranges, std::string& last) {
    const auto symbol = name();
    if (!symbol || !accept("in ")) return fail("a symbol and ' in LOWEST..HIGHEST'");
    Bounds b;
    b.lowest = integer();
    if (!accept("..")) return fail("'..' between the bounds");
    b.highest = integer();
    if (b.lowest && b.highest && *b.lowest > *b.highest)
      return fail("bounds with a number between them, not " + to_string(b));
    if (!ranges.emplace(*symbol, b).second) return fail("one range for each symbol");
    last = *symbol;
    return true;
  }

  std::optional<Dim> expression(int depth) {
    if (depth > max_depth) return wrong("fewer brackets inside brackets");
    auto left = product(depth);
    while (left) {
      const bool plus = accept("+");
      if (!plus && !accept("-")) break;
      const auto right = product(depth);
      if (!right) return std::nullopt;
      left = plus ? *left + *right : *left - *right;
    }
    return left;
  }
  std::optional<Dim> product(int depth) {
    auto left = factor(depth);
    while (left) {
      const char op = accept("*") ? '*' : accept("//") ? '/' : accept("%") ? '%' : '\0';
      if (op == '\0') break;
      const auto right = factor(depth);
      if (!right) return std::nullopt;
      left = op == '*' ? *left * *right : op == '/' ? floor_div(*left, *right) : mod(*left, *right);
    }
    return left;
  }
  std::optional<Dim> factor(int depth) {
    if (depth > max_depth) return wrong("fewer brackets inside brackets");
    if (const auto n = integer()) return Dim(*n);
    if (accept("-")) {
      const auto negated = factor(depth + 1);
      return negated ? std::optional(*negated * -1) : std::nullopt;
    }
    if (accept("(")) {
      auto inside = expression(depth + 1);
      if (inside && !accept(")")) return wrong("')'");
      return inside;
    }
    const bool quoted = pos_ < text_.size() && text_[pos_] == '"';
    const auto word = name();
    if (!word) return wrong("a number, a symbol or '('");
    if (!quoted && (*word == "max" || *word == "min") && accept("(")) return extreme(*word == "max", depth);
    const auto found = ranges_->find(*word);
    if (found == ranges_->end()) return wrong(fmt::format("'for' with a range of '{}'", *word));
    return Dim(Symbol{*word, found->second});
  }
  std::optional<Dim> extreme(bool largest, int depth) {
    auto r = expression(depth + 1);
    while (r && accept(",")) {
      const auto next = expression(depth + 1);
      if (!next) return std::nullopt;
      r = largest ? max(*r, *next) : min(*r, *next);
    }
    if (r && !accept(")")) return wrong("')'");
    return r;
  }

  std::string_view text_;
  std::string& why_;
  std::size_t pos_ = 0;
  const Ranges* ranges_ = nullptr;
};

}  // namespace

std::string text_of(const DimAtom& atom, bool key) {
  switch (atom.kind) {
    case DimAtom::symbol: return name_text(atom.name.name) + (key ? "[" + to_string(atom.name.range) + "]" : "");
    case DimAtom::floor_div: return operand(atom.args[0], key) + "//" + operand(atom.args[1], key);
    case DimAtom::mod: return operand(atom.args[0], key) + " % " + operand(atom.args[1], key);
    default: break;
  }
  std::string args;
  for (const Dim& d : atom.args) args += (args.empty() ? "" : ", ") + text_of(sum_of(d), key);
  return (atom.kind == DimAtom::max ? "max(" : "min(") + args + ")";
}

// Positive terms first, and the constant last unless it is all there is to take from: "2*s0 - s1 + 1", "5 - s0".
std::string text_of(const Sum& sum, bool key) {
  std::string out;
  const auto add = [&](bool minus, const std::string& term) {
    if (out.empty())
      out = minus ? "-" + term : term;
    else
      out += (minus ? " - " : " + ") + term;
  };
  for (const auto& [product, coefficient] : sum.terms)
    if (coefficient > 0) add(false, term_text(product, coefficient, key));
  const bool constant_first = out.empty() && sum.constant > 0;
  if (constant_first) out = std::to_string(sum.constant);
  for (const auto& [product, coefficient] : sum.terms)
    if (coefficient < 0) add(true, term_text(product, coefficient, key));
  if (!constant_first && (sum.constant != 0 || out.empty())) {
    std::string size = std::to_string(sum.constant);
    if (sum.constant < 0) size.erase(0, 1);
    add(sum.constant < 0, size);
  }
  return out;
}

std::string to_string(const Bounds& bounds) {
  const auto text = [](std::optional<std::int64_t> n) { return n ? std::to_string(*n) : ""; };
  return text(bounds.lowest) + ".." + text(bounds.highest);
}

std::string to_string(const Dim& dim) { return dim.is_number() ? std::to_string(dim.value()) : dim.expression()->text; }

std::string ranged_text(const Dim& dim) {
  if (dim.is_number()) return std::to_string(dim.value());
  const auto symbols = dim.symbols();
  if (symbols.size() == 1 && dim == Dim(symbols[0])) return "(" + range_text(symbols[0]) + ")";
  std::string ranges;
  for (const Symbol& s : symbols) ranges += (ranges.empty() ? "" : ", ") + range_text(s);
  return "(" + to_string(dim) + " for " + ranges + ")";
}

std::optional<Dim> parse_ranged(std::string_view text, std::string& why) {
  try {
    return Parser(text, why).ranged();
  } catch (const std::runtime_error& e) { why = e.what(); } catch (const std::logic_error& e) {
    why = e.what();
  }
  return std::nullopt;
}

}  // namespace tosaic
