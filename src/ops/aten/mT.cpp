// SPDX-License-Identifier: Apache-2.0
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self");
  if (x.rank() < 2) b.refuse("aten.mT.rank", "a tensor of shape " + to_string(x.shape()) + " is no matrix");
  std::vector<int> permutation;
  for (int i = 0; i < x.rank() - 2; ++i) permutation.push_back(i);
  permutation.push_back(x.rank() - 1);
  permutation.push_back(x.rank() - 2);
  return b.transpose(x, permutation);
}
}  // namespace

AtenOp aten_mT() {
  return {.schemas = {"mT(Tensor(a) self) -> Tensor(a)", "mH(Tensor(a) self) -> Tensor(a)",
                      "adjoint(Tensor(a) self) -> Tensor(a)", "matrix_H(Tensor(a) self) -> Tensor(a)"},
          .summary = "exchanges the last two dims",
          .rule = Rule::transparent,
          .lower = {lower},
          .domain = {"x(2,3,4)", "mH.default: x(2,3)", "adjoint.default: x(2,3,4)", "matrix_H.default: x(2,3)"}};
}
}  // namespace tosaic
