// SPDX-License-Identifier: Apache-2.0
// include/tosaic/tosaic.hpp: what there is.
#include "tosaic/tosaic.hpp"

#include "normalise/complex_pairs.h"
#include "ops/rules/quantisation_rule.h"

namespace tosaic {

std::vector<OperatorInfo> operators() {
  std::vector<OperatorInfo> list;
  for (const NamedAtenOp& named : all_aten())
    list.push_back({std::string(named.file),
                    {named.op.schemas.begin(), named.op.schemas.end()},
                    std::string(named.op.summary),
                    std::string(named.op.rule->name)});
  return list;
}

bool knows_operator(const std::string& overload) {
  const Operator op(overload);
  return find_aten(op).op != nullptr || has_form_on_pairs(op);
}

std::string version() { return TOSAIC_VERSION; }

}  // namespace tosaic
