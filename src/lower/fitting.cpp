// SPDX-License-Identifier: Apache-2.0
#include "lower/fitting.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

namespace tosaic {
namespace {

constexpr std::size_t most_products = 3;  // factors of a product that is tried
constexpr std::size_t most_terms = 100;   // of which there are enough

}  // namespace

Fitting::Fitting(std::span<const Symbol> symbols, const std::vector<AtSizes>& given) {
  for (const Symbol& s : symbols) {
    Term& factor = factors_.emplace_back(Term{Dim(s), {}});
    for (const AtSizes& at : given) factor.numbers.push_back(at.sizes.at(s.name));
  }
  multiply();
}

void Fitting::learn(const Numbers& numbers, const Dim& dim) {
  if (dim.is_number() || (*this)(numbers) == dim) return;
  known_[numbers] = dim;
  if (std::ranges::find(factors_, dim, &Term::dim) != factors_.end()) return;
  factors_.push_back({dim, numbers});
  std::erase_if(known_, [](const auto& entry) { return !entry.second; });
  multiply();
}

std::optional<Dim> Fitting::any(const Numbers& numbers) {
  if (const auto dim = (*this)(numbers)) return dim;
  const auto said = said_.find(numbers);
  return said == said_.end() ? std::nullopt : std::optional(said->second);
}

std::optional<Dim> Fitting::multiplied(const std::vector<double>& numbers) const {
  constexpr double rounding = 0x1p-22;  // of numbers that were floats
  const auto offset = [&](const Numbers& terms) -> std::optional<std::int64_t> {
    const auto [low, high] = std::ranges::minmax_element(terms);
    if (*low == *high) return std::nullopt;
    const double first = numbers[static_cast<std::size_t>(low - terms.begin())];
    const double factor =
        (numbers[static_cast<std::size_t>(high - terms.begin())] - first) / static_cast<double>(*high - *low);
    const double constant = std::round(first / factor - static_cast<double>(*low));
    if (!(factor > 0) || !(std::fabs(constant) < 1e9) || static_cast<double>(*low) + constant < 1) return std::nullopt;
    for (std::size_t k = 0; k < terms.size(); ++k)
      if (std::fabs(factor * (static_cast<double>(terms[k]) + constant) / numbers[k] - 1) > rounding)
        return std::nullopt;
    return static_cast<std::int64_t>(constant);
  };
  for (const Term& t : terms_)
    if (const auto constant = offset(t.numbers)) return max(t.dim + Dim(*constant), Dim(1));
  for (const auto& [terms, dim] : said_)
    if (const auto constant = offset(terms)) return max(dim + Dim(*constant), Dim(1));
  return std::nullopt;
}

std::optional<Dim> Fitting::operator()(const Numbers& numbers) {
  if (std::ranges::all_of(numbers, [&](std::int64_t n) { return n == numbers[0]; })) return Dim(numbers[0]);
  const auto [known, added] = known_.try_emplace(numbers);
  if (added) known->second = found(numbers);
  return known->second;
}

void Fitting::multiply() {
  terms_.clear();
  std::vector<Term> last{{Dim(1), Numbers(factors_.empty() ? 0 : factors_[0].numbers.size(), 1)}};
  for (std::size_t n = 0; n < most_products && terms_.size() < most_terms; ++n) {
    std::vector<Term> next;
    std::set<std::string> made_of;
    for (const Term& t : last)
      for (const Term& factor : factors_) {
        Term made{t.dim * factor.dim, t.numbers};
        for (std::size_t i = 0; i < made.numbers.size(); ++i) made.numbers[i] *= factor.numbers[i];
        if (made_of.insert(to_string(made.dim)).second) next.push_back(std::move(made));
      }
    terms_.insert(terms_.end(), next.begin(), next.end());
    last = std::move(next);
  }
}

std::optional<Dim> Fitting::found(const Numbers& numbers) const {
  for (const Term& t : terms_)
    if (const auto dim = line(numbers, t)) return dim;
  for (std::size_t a = 0; a < terms_.size(); ++a)
    for (std::size_t b = a + 1; b < terms_.size(); ++b)
      if (const auto dim = plane(numbers, terms_[a], terms_[b])) return dim;
  return std::nullopt;
}

// factor * t + constant
std::optional<Dim> Fitting::line(const Numbers& y, const Term& t) {
  for (std::size_t i = 1; i < y.size(); ++i) {
    const std::int64_t run = t.numbers[i] - t.numbers[0], rise = y[i] - y[0];
    if (run == 0) continue;
    if (rise % run != 0) return std::nullopt;
    const std::int64_t factor = rise / run, constant = y[0] - factor * t.numbers[0];
    for (std::size_t k = 0; k < y.size(); ++k)
      if (factor * t.numbers[k] + constant != y[k]) return std::nullopt;
    return t.dim * Dim(factor) + Dim(constant);
  }
  return std::nullopt;
}

// f * a + g * b + constant, from differences to the first.
std::optional<Dim> Fitting::plane(const Numbers& y, const Term& a, const Term& b) {
  const auto da = [&](std::size_t i) { return a.numbers[i] - a.numbers[0]; };
  const auto db = [&](std::size_t i) { return b.numbers[i] - b.numbers[0]; };
  for (std::size_t i = 1; i < y.size(); ++i)
    for (std::size_t j = i + 1; j < y.size(); ++j) {
      const std::int64_t determinant = da(i) * db(j) - da(j) * db(i);
      if (determinant == 0) continue;
      const std::int64_t f = (y[i] - y[0]) * db(j) - (y[j] - y[0]) * db(i),
                         g = da(i) * (y[j] - y[0]) - da(j) * (y[i] - y[0]);
      if (f % determinant != 0 || g % determinant != 0) return std::nullopt;
      const std::int64_t of_a = f / determinant, of_b = g / determinant,
                         constant = y[0] - of_a * a.numbers[0] - of_b * b.numbers[0];
      for (std::size_t k = 0; k < y.size(); ++k)
        if (of_a * a.numbers[k] + of_b * b.numbers[k] + constant != y[k]) return std::nullopt;
      return a.dim * Dim(of_a) + b.dim * Dim(of_b) + Dim(constant);
    }
  return std::nullopt;
}

}  // namespace tosaic
