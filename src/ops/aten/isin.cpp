// SPDX-License-Identifier: Apache-2.0
#include "ir/tosa_operators.h"
#include "ops/lowering/functions.h"
#include "ops/lowering/promotion.h"
#include "ops/op.h"

namespace tosaic {
namespace {
Vals lower(Builder& b, const Call& call) {
  const char* element = call.overload() == "Scalar_Tensor" ? "element" : "elements";
  const char* test = call.overload() == "Tensor_Scalar" ? "test_element" : "test_elements";
  auto p = promotion::promote(b, call, {element, test});
  const Shape shape = p.values[0].shape();
  Val all = b.reshape(p.values[1], {1, p.values[1].shape().elements()});
  Val hits = b.binary(tosa::op::equal, b.reshape(p.values[0], {shape.elements(), 1}), all);
  Val found = b.reshape(b.reduce(tosa::op::reduce_any, hits, {1}, false), shape);
  return call.flag("invert") ? functions::negation(found) : found;
}
}  // namespace

AtenOp aten_isin() {
  return {.schemas = {"isin.Tensor_Tensor(Tensor elements, Tensor test_elements, *, bool assume_unique=False, bool "
                      "invert=False) -> Tensor",
                      "isin.Tensor_Scalar(Tensor elements, Scalar test_element, *, bool assume_unique=False, bool "
                      "invert=False) -> Tensor",
                      "isin.Scalar_Tensor(Scalar element, Tensor test_elements, *, bool assume_unique=False, bool "
                      "invert=False) -> Tensor"},
          .summary = "true where an element is one of a list",
          .rule = Rule::sum,
          .lower = {lower},
          .domain = {"i(0,9,2,3,4), i(0,9,3)", "l(0,9,2,5), l(0,9,2,2), invert=True", "f(28), f(5)",
                     "Tensor_Scalar: i(0,4,2,6), 3", "Tensor_Scalar: f(28), 0.5, invert=True",
                     "Scalar_Tensor: 3, i(0,4,6)", "i(0,5,6), x(3)", "n(8), n(3)"}};
}
}  // namespace tosaic
