// SPDX-License-Identifier: Apache-2.0
// Finds the Dim that numbers are which were met at several sizes: a sum of a constant and of up to two products of
// symbols, with integer factors. Private to lower/.
#pragma once
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "lower/over_sizes.h"

namespace tosaic {

using Numbers = std::vector<std::int64_t>;  // one for each of the sizes looked at

class Fitting {
 public:
  Fitting(std::span<const Symbol> symbols, const std::vector<AtSizes>& given);

  std::optional<Dim> operator()(const Numbers& numbers);

  // Numbers of which an operator's own rule says what they are. Such Dims, (s0 - 1)//2 + 1 where a window moves by
  // twos, are factors like symbols: what is flattened after it has products of them.
  void learn(const Numbers& numbers, const Dim& dim);

  // Numbers that the program itself says. Of shapes the operators' rules have other forms for the same.
  void know(const Numbers& numbers, const Dim& dim) { said_.try_emplace(numbers, dim); }
  std::optional<Dim> any(const Numbers& numbers);
  // The size, at least 1, that these are, all times the same number.
  std::optional<Dim> multiplied(const std::vector<double>& numbers) const;

 private:
  struct Term {
    Dim dim;
    Numbers numbers;
  };
  void multiply();
  std::optional<Dim> found(const Numbers& numbers) const;
  static std::optional<Dim> line(const Numbers& y, const Term& t);
  static std::optional<Dim> plane(const Numbers& y, const Term& a, const Term& b);

  std::vector<Term> factors_, terms_;
  std::map<Numbers, std::optional<Dim>> known_;
  std::map<Numbers, Dim> said_;
};

}  // namespace tosaic
