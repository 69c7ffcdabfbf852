// SPDX-License-Identifier: Apache-2.0
#include "ir/dim.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <mutex>
#include <tuple>
#include <unordered_map>

#include "ir/dim_form.h"

namespace tosaic {
namespace {

using MaybeInt = std::optional<std::int64_t>;

constexpr std::size_t most_terms = 200, longest_text = 4000;

std::int64_t plus(std::int64_t a, std::int64_t b) {
  std::int64_t r;
  if (__builtin_add_overflow(a, b, &r)) throw std::overflow_error("a size does not fit 64 bits");
  return r;
}
std::int64_t times(std::int64_t a, std::int64_t b) {
  std::int64_t r;
  if (__builtin_mul_overflow(a, b, &r)) throw std::overflow_error("a size does not fit 64 bits");
  return r;
}
std::int64_t floor_quotient(std::int64_t a, std::int64_t b) {
  if (b == 0) throw std::domain_error("a size is divided by zero");
  if (b == -1) return times(a, -1);
  return a / b - ((a % b != 0) && ((a < 0) != (b < 0)));
}
std::int64_t remainder(std::int64_t a, std::int64_t b) { return plus(a, -times(b, floor_quotient(a, b))); }

// ---- intervals

MaybeInt maybe_plus(MaybeInt a, MaybeInt b) {
  std::int64_t r;
  return a && b && !__builtin_add_overflow(*a, *b, &r) ? MaybeInt(r) : std::nullopt;
}
MaybeInt maybe_times(MaybeInt a, MaybeInt b) {
  std::int64_t r;
  return a && b && !__builtin_mul_overflow(*a, *b, &r) ? MaybeInt(r) : std::nullopt;
}

Bounds product_bounds(const Bounds& a, const Bounds& b) {
  // With non-negative factors, which sizes are, each bound stands for itself even when the other is missing.
  if (a.lowest && b.lowest && *a.lowest >= 0 && *b.lowest >= 0)
    return {maybe_times(a.lowest, b.lowest), maybe_times(a.highest, b.highest)};
  const MaybeInt corners[] = {maybe_times(a.lowest, b.lowest), maybe_times(a.lowest, b.highest),
                              maybe_times(a.highest, b.lowest), maybe_times(a.highest, b.highest)};
  Bounds r{corners[0], corners[0]};
  for (const MaybeInt& c : corners) {
    if (!c) return {};
    r.lowest = std::min(*r.lowest, *c);
    r.highest = std::max(*r.highest, *c);
  }
  return r;
}
Bounds scaled(const Bounds& a, std::int64_t by) {
  const Bounds r{maybe_times(a.lowest, by), maybe_times(a.highest, by)};
  return by < 0 ? Bounds{r.highest, r.lowest} : r;
}
Bounds quotient_bounds(const Bounds& a, const Bounds& b) {
  if (!b.lowest || *b.lowest < 1) return {};
  Bounds r;
  if (a.lowest && *a.lowest < 0) r.lowest = floor_quotient(*a.lowest, *b.lowest);
  if (a.lowest && *a.lowest >= 0) r.lowest = b.highest ? *a.lowest / *b.highest : 0;
  if (a.highest && *a.highest >= 0) r.highest = *a.highest / *b.lowest;
  if (a.highest && *a.highest < 0) r.highest = b.highest ? floor_quotient(*a.highest, *b.highest) : -1;
  return r;
}
Bounds remainder_bounds(const Bounds& a, const Bounds& b) {
  if (!b.lowest || *b.lowest < 1) return {};
  Bounds r{0, b.highest ? MaybeInt(*b.highest - 1) : std::nullopt};
  if (a.lowest && *a.lowest >= 0 && a.highest) r.highest = std::min(*a.highest, r.highest.value_or(*a.highest));
  return r;
}
// One bounded argument is enough for max's lower and min's upper bound.
Bounds extreme_bounds(bool largest, const std::vector<Dim>& args) {
  Bounds r = args[0].bounds();
  const auto pick = [&](MaybeInt x, MaybeInt y, bool either) -> MaybeInt {
    if (!x || !y) return !either ? std::nullopt : x ? x : y;
    return largest ? std::max(*x, *y) : std::min(*x, *y);
  };
  for (const Dim& d : args) {
    const Bounds b = d.bounds();
    r = {pick(r.lowest, b.lowest, largest), pick(r.highest, b.highest, !largest)};
  }
  return r;
}
Bounds sum_bounds(const Sum& sum) {
  Bounds r{sum.constant, sum.constant};
  for (const auto& [product, coefficient] : sum.terms) {
    Bounds term = product[0]->bounds;
    for (std::size_t i = 1; i < product.size(); ++i) term = product_bounds(term, product[i]->bounds);
    term = scaled(term, coefficient);
    r = {maybe_plus(r.lowest, term.lowest), maybe_plus(r.highest, term.highest)};
  }
  return r;
}
Bounds atom_bounds(const DimAtom& atom) {
  switch (atom.kind) {
    case DimAtom::symbol: return atom.name.range;
    case DimAtom::floor_div: return quotient_bounds(atom.args[0].bounds(), atom.args[1].bounds());
    case DimAtom::mod: return remainder_bounds(atom.args[0].bounds(), atom.args[1].bounds());
    case DimAtom::max: return extreme_bounds(true, atom.args);
    case DimAtom::min: return extreme_bounds(false, atom.args);
  }
  return {};
}
bool exceeds(MaybeInt lowest, std::int64_t n) { return lowest && *lowest > n; }
bool is_positive(const Dim& d) { return exceeds(d.bounds().lowest, 0); }

// ---- one of each

// What was met once is kept for as long as the process runs: a model has few sizes, and their names repeat.
template <class T>
class Interned {
 public:
  template <class Make>
  const T* get(const std::string& key, Make&& make) {
    const std::lock_guard lock(mutex_);
    auto& found = kept_[key];
    if (!found) found = std::make_unique<const T>(make());
    return found.get();
  }

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, std::unique_ptr<const T>> kept_;
};
template <class T>
Interned<T>& interned() {
  static auto* table = new Interned<T>;  // never destroyed: Dims in other static objects may outlive it
  return *table;
}

Dim dim_of_atom(DimAtom atom) {
  atom.key = text_of(atom, true);
  if (atom.key.size() > longest_text) throw std::overflow_error("a size's expression is too long");
  atom.bounds = atom_bounds(atom);
  if (atom.bounds.lowest && atom.bounds.lowest == atom.bounds.highest) return *atom.bounds.lowest;
  const std::string key = atom.key;
  Sum sum;
  sum.terms[{interned<DimAtom>().get(key, [&] { return std::move(atom); })}] = 1;
  return dim_of(std::move(sum));
}

void add_term(Sum& to, const Product& product, std::int64_t coefficient) {
  if (product.empty()) {
    to.constant = plus(to.constant, coefficient);
    return;
  }
  std::int64_t& now = to.terms[product];
  now = plus(now, coefficient);
  if (now == 0) to.terms.erase(product);
  if (to.terms.size() > most_terms) throw std::overflow_error("a size's expression is too long");
}
Sum scaled_sum(const Dim& d, std::int64_t by) {
  Sum r;
  const Sum sum = sum_of(d);
  r.constant = times(sum.constant, by);
  if (by != 0)
    for (const auto& [product, coefficient] : sum.terms) r.terms[product] = times(coefficient, by);
  return r;
}
Dim sum_of_two(const Dim& a, Sum b) {
  const Sum left = sum_of(a);
  b.constant = plus(b.constant, left.constant);
  for (const auto& [product, coefficient] : left.terms) add_term(b, product, coefficient);
  return dim_of(std::move(b));
}

// ---- quotients

// `of` without the factors of `by`, each once; nothing where one is not there.
std::optional<Product> without(const Product& of, const Product& by) {
  if (!std::includes(of.begin(), of.end(), by.begin(), by.end(), AtomOrder())) return std::nullopt;
  Product rest;
  std::set_difference(of.begin(), of.end(), by.begin(), by.end(), std::back_inserter(rest), AtomOrder());
  return rest;
}
std::int64_t gcd(std::int64_t a, std::int64_t b) {
  while (b != 0) std::tie(a, b) = std::pair(b, a % b);
  return a < 0 ? times(a, -1) : a;
}

// a = quotient * b + rest, as far as terms show it: b is one term or a number.
struct Division {
  Sum quotient, rest;
};
Division divide(const Dim& a, const Dim& b) {
  const Sum over = sum_of(a), under = sum_of(b);
  Division d;
  const bool is_term = under.terms.size() + (under.constant != 0) == 1;
  if (!is_term) {
    // (s0 + 1)*(s0 + 2) is not taken apart again, but the divisor itself is.
    if (a == b) d.quotient.constant = 1;
    if (a != b) d.rest = over;
    return d;
  }
  const Product by = under.terms.empty() ? Product{} : under.terms.begin()->first;
  const std::int64_t n = under.terms.empty() ? under.constant : under.terms.begin()->second;
  const auto take = [&](const Product& product, std::int64_t coefficient) {
    const auto left = without(product, by);
    const std::int64_t whole = left ? floor_quotient(coefficient, n) : 0;
    if (whole != 0) add_term(d.quotient, *left, whole);
    const std::int64_t rest = plus(coefficient, -times(whole, n));
    if (rest != 0) add_term(d.rest, product, rest);
  };
  for (const auto& [product, coefficient] : over.terms) take(product, coefficient);
  if (over.constant != 0) take({}, over.constant);
  return d;
}

// 0 <= rest < b
bool is_rest_of(const Dim& rest, const Dim& b) {
  const Bounds left = rest.bounds(), over = (b - rest).bounds();
  return exceeds(over.lowest, 0) && left.lowest && *left.lowest >= 0;
}

// Divides both by what all their coefficients have in common, and says what that was.
std::int64_t reduce(Sum& a, Sum& b) {
  std::int64_t common = 0;
  for (const Sum* s : {&a, &b}) {
    common = gcd(common, s->constant);
    for (const auto& [product, coefficient] : s->terms) common = gcd(common, coefficient);
  }
  if (common <= 1) return 1;
  for (Sum* s : {&a, &b}) {
    s->constant /= common;
    for (auto& [product, coefficient] : s->terms) coefficient /= common;
  }
  return common;
}

// The one atom that a sum is, or null.
const DimAtom* only_atom(const Sum& sum) {
  if (sum.constant != 0 || sum.terms.size() != 1) return nullptr;
  const auto& [product, coefficient] = *sum.terms.begin();
  return coefficient == 1 && product.size() == 1 ? product[0] : nullptr;
}

// floor(a / b) where no term of a is a multiple of b.
Dim proper_quotient(Sum a, Sum b) {
  reduce(a, b);
  Dim over = dim_of(a), under = dim_of(b);
  if (under == Dim(1)) return over;
  if (over.is_number() && under.is_number()) return floor_quotient(over.value(), under.value());
  if (const DimAtom* inner = only_atom(a);
      inner && inner->kind == DimAtom::floor_div && is_positive(inner->args[1]) && is_positive(under))
    return floor_div(inner->args[0], inner->args[1] * under);
  return dim_of_atom({DimAtom::floor_div, {}, {over, under}, {}, {}});
}

// x % 4 is as good as x where only the remainder by 2 counts.
Dim without_inner_remainders(const Dim& a, const Dim& b) {
  Dim r = a;
  for (const auto& [product, coefficient] : sum_of(a).terms) {
    const DimAtom* atom = product.size() == 1 ? product[0] : nullptr;
    if (!atom || atom->kind != DimAtom::mod || !is_positive(atom->args[1])) continue;
    if (mod(atom->args[1], b) == Dim(0)) r = r + coefficient * (atom->args[0] - dim_of(Sum{{{product, 1}}, 0}));
  }
  return r;
}

Dim extreme(bool largest, std::vector<Dim> args) {
  const auto kind = largest ? DimAtom::max : DimAtom::min;
  std::vector<Dim> flat;
  for (const Dim& d : args) {
    const Sum sum = sum_of(d);
    const DimAtom* atom = only_atom(sum);
    if (atom && atom->kind == kind)
      flat.insert(flat.end(), atom->args.begin(), atom->args.end());
    else
      flat.push_back(d);
  }
  // What another one is never beaten by says nothing.
  std::vector<Dim> kept;
  for (std::size_t i = 0; i < flat.size(); ++i) {
    const auto beats = [&](std::size_t j) {
      if (i == j) return false;
      if (flat[i] == flat[j]) return j < i;
      const Bounds lead = (largest ? flat[j] - flat[i] : flat[i] - flat[j]).bounds();
      return lead.lowest && *lead.lowest >= 0;
    };
    bool needed = true;
    for (std::size_t j = 0; needed && j < flat.size(); ++j) needed = !beats(j);
    if (needed) kept.push_back(flat[i]);
  }
  if (kept.size() == 1) return kept[0];
  std::sort(kept.begin(), kept.end(),
            [](const Dim& a, const Dim& b) { return text_of(sum_of(a), true) < text_of(sum_of(b), true); });
  return dim_of_atom({kind, {}, std::move(kept), {}, {}});
}

}  // namespace

bool ProductOrder::operator()(const Product& a, const Product& b) const {
  if (a.size() != b.size()) return a.size() > b.size();
  return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(), AtomOrder());
}

Sum sum_of(const Dim& dim) {
  if (dim.expression()) return dim.expression()->sum;
  return {{}, dim.value()};
}

Dim dim_of(Sum sum) {
  if (sum.terms.empty()) return sum.constant;
  const std::string key = text_of(sum, true);
  if (key.size() > longest_text) throw std::overflow_error("a size's expression is too long");
  return Dim::of(interned<Dim::Expression>().get(key, [&] {
    Dim::Expression e;
    e.bounds = sum_bounds(sum);
    e.text = text_of(sum, false);
    e.sum = std::move(sum);
    return e;
  }));
}

Dim Dim::of(const Expression* expression) {
  Dim d;
  d.expression_ = expression;
  return d;
}

Dim::Dim(const Symbol& symbol) {
  if (symbol.range.lowest && symbol.range.lowest == symbol.range.highest)
    number_ = *symbol.range.lowest;
  else
    *this = dim_of_atom({DimAtom::symbol, symbol, {}, {}, {}});
}

void Dim::unknown() const {
  throw UnknownSize("the size " + ranged_text(*this) + " is known only when the program runs");
}

Bounds Dim::bounds() const { return expression_ ? expression_->bounds : Bounds{number_, number_}; }

std::vector<Symbol> Dim::symbols() const {
  std::vector<Symbol> found;
  if (!expression_) return found;
  const auto add = [&](const Symbol& s) {
    if (std::find(found.begin(), found.end(), s) == found.end()) found.push_back(s);
  };
  for (const auto& [product, coefficient] : expression_->sum.terms)
    for (const DimAtom* atom : product) {
      if (atom->kind == DimAtom::symbol) add(atom->name);
      for (const Dim& d : atom->args)
        for (const Symbol& s : d.symbols()) add(s);
    }
  std::sort(found.begin(), found.end(), [](const Symbol& a, const Symbol& b) { return a.name < b.name; });
  return found;
}

Dim Dim::with(const std::function<Dim(const Symbol&)>& instead) const {
  if (!expression_) return *this;
  const auto replaced = [&](const DimAtom& atom) {
    if (atom.kind == DimAtom::symbol) return instead(atom.name);
    Dim r = atom.args[0].with(instead);
    for (std::size_t i = 1; i < atom.args.size(); ++i) {
      const Dim next = atom.args[i].with(instead);
      switch (atom.kind) {
        case DimAtom::floor_div: r = floor_div(r, next); break;
        case DimAtom::mod: r = mod(r, next); break;
        case DimAtom::max: r = max(r, next); break;
        default: r = min(r, next); break;
      }
    }
    return r;
  };
  Dim sum = expression_->sum.constant;
  for (const auto& [product, coefficient] : expression_->sum.terms) {
    Dim term = coefficient;
    for (const DimAtom* atom : product) term = term * replaced(*atom);
    sum = sum + term;
  }
  return sum;
}

Dim operator+(const Dim& a, const Dim& b) {
  if (a.is_number() && b.is_number()) return plus(a.value(), b.value());
  return sum_of_two(a, sum_of(b));
}
Dim operator-(const Dim& a, const Dim& b) { return sum_of_two(a, scaled_sum(b, -1)); }
Dim operator*(const Dim& a, const Dim& b) {
  if (a.is_number() && b.is_number()) return times(a.value(), b.value());
  if (b.is_number()) return dim_of(scaled_sum(a, b.value()));
  Sum sum = scaled_sum(b, sum_of(a).constant);
  const Sum right = sum_of(b);
  for (const auto& [p, n] : sum_of(a).terms) {
    add_term(sum, p, times(n, right.constant));
    for (const auto& [q, m] : right.terms) {
      Product both;
      std::merge(p.begin(), p.end(), q.begin(), q.end(), std::back_inserter(both), AtomOrder());
      add_term(sum, both, times(n, m));
    }
  }
  return dim_of(std::move(sum));
}

Dim floor_div(const Dim& a, const Dim& b) {
  if (a.is_number() && b.is_number()) return floor_quotient(a.value(), b.value());
  if (b == Dim(0)) throw std::domain_error("a size is divided by zero");
  // q*b + r is divided as q + r/b only where b cannot be 0: there the whole quotient means nothing.
  if (!is_positive(b) && !b.is_number()) return proper_quotient(sum_of(a), sum_of(b));
  Division d = divide(a, b);
  if (is_rest_of(dim_of(d.rest), b)) return dim_of(std::move(d.quotient));
  return dim_of(std::move(d.quotient)) + proper_quotient(std::move(d.rest), sum_of(b));
}
Dim ceil_div(const Dim& a, const Dim& b) {
  if (is_positive(b)) return floor_div(a + b - 1, b);
  return floor_div(a * -1, b) * -1;
}
Dim mod(const Dim& a, const Dim& b) {
  if (a.is_number() && b.is_number()) return remainder(a.value(), b.value());
  if (b == Dim(0)) throw std::domain_error("a size is divided by zero");
  if (!is_positive(b)) return dim_of_atom({DimAtom::mod, {}, {a, b}, {}, {}});
  Sum rest = divide(without_inner_remainders(a, b), b).rest, by = sum_of(b);
  if (is_rest_of(dim_of(rest), b)) return dim_of(std::move(rest));
  const std::int64_t common = reduce(rest, by);
  const Dim small = dim_of(std::move(by));
  if (small == Dim(1)) return 0;
  return dim_of_atom({DimAtom::mod, {}, {dim_of(std::move(rest)), small}, {}, {}}) * common;
}
Dim max(const Dim& a, const Dim& b) { return extreme(true, {a, b}); }
Dim min(const Dim& a, const Dim& b) { return extreme(false, {a, b}); }

}  // namespace tosaic
