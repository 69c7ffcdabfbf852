// SPDX-License-Identifier: Apache-2.0
#include "ir/dim_parts.h"

#include "ir/dim_form.h"

namespace tosaic {
namespace {

void collect(const Dim& dim, std::vector<std::pair<Dim, Dim>>& pairs) {
  if (dim.is_number()) return;
  for (const auto& term : sum_of(dim).terms)
    for (const DimAtom* atom : term.first) {
      for (const Dim& inner : atom->args) collect(inner, pairs);
      if (atom->kind != DimAtom::max && atom->kind != DimAtom::min) continue;
      for (std::size_t a = 0; a < atom->args.size(); ++a)
        for (std::size_t b = a + 1; b < atom->args.size(); ++b) pairs.emplace_back(atom->args[a], atom->args[b]);
    }
}

}  // namespace

std::vector<std::pair<Dim, Dim>> chosen_between(const Dim& dim) {
  std::vector<std::pair<Dim, Dim>> pairs;
  collect(dim, pairs);
  return pairs;
}

}  // namespace tosaic
