// SPDX-License-Identifier: Apache-2.0
#include "ir/dim_arithmetic.h"

#include <optional>

#include "ir/dim_form.h"

namespace tosaic {

static std::int32_t evaluate(const DimAtom& atom, const DimArithmetic& in) {
  if (atom.kind == DimAtom::symbol) return in.symbol(atom.name);
  const DimOperator op = atom.kind == DimAtom::floor_div ? DimOperator::floor_div
                         : atom.kind == DimAtom::mod     ? DimOperator::mod
                         : atom.kind == DimAtom::max     ? DimOperator::max
                                                         : DimOperator::min;
  std::int32_t result = evaluate(atom.args.at(0), in);
  for (std::size_t i = 1; i < atom.args.size(); ++i) result = in.apply(op, result, evaluate(atom.args[i], in));
  return result;
}

std::int32_t evaluate(const Dim& dim, const DimArithmetic& in) {
  const Sum sum = sum_of(dim);
  std::optional<std::int32_t> result;
  const auto add = [&](std::int32_t term) { result = result ? in.apply(DimOperator::add, *result, term) : term; };
  for (const auto& [product, factor] : sum.terms) {
    std::optional<std::int32_t> term;
    if (factor != 1) term = in.number(factor);
    for (const DimAtom* atom : product) {
      const std::int32_t made = evaluate(*atom, in);
      term = term ? in.apply(DimOperator::mul, *term, made) : made;
    }
    add(*term);
  }
  if (sum.constant != 0 || !result) add(in.number(sum.constant));
  return *result;
}

}  // namespace tosaic
