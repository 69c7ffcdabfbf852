// SPDX-License-Identifier: Apache-2.0
// The canonical form of symbolic Dims. Private to ir/dims_symbolic*.cpp.
#pragma once
#include <map>

#include "ir/dim.h"

namespace tosaic {

// What cannot be taken apart: a symbol, or a function of Dims. Kept once per process, like expressions.
struct DimAtom {
  enum Kind : std::uint8_t { symbol, floor_div, mod, max, min } kind = symbol;
  Symbol name;            // of a symbol
  std::vector<Dim> args;  // of a function; those of max and min are sorted
  std::string key;        // its text with all ranges: what it is distinguished by, and sorted by
  Bounds bounds;
};

struct AtomOrder {
  bool operator()(const DimAtom* a, const DimAtom* b) const { return a->key < b->key; }
};
using Product = std::vector<const DimAtom*>;  // sorted; a power is a repetition
struct ProductOrder {
  bool operator()(const Product& a, const Product& b) const;  // longer ones first
};

// The sum of its terms and a constant; no coefficient is 0.
struct Sum {
  std::map<Product, std::int64_t, ProductOrder> terms;
  std::int64_t constant = 0;
};

struct Dim::Expression {
  Sum sum;
  Bounds bounds;
  std::string text;  // as people read it
};

Sum sum_of(const Dim& dim);
Dim dim_of(Sum sum);
// The sum as text; `key`: symbols with their ranges, so that different sums have different texts.
std::string text_of(const Sum& sum, bool key);
std::string text_of(const DimAtom& atom, bool key);

}  // namespace tosaic
