// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/bounds.h"
#include "ops/definitions/elementwise.h"

namespace tosaic::tosa {
namespace {}  // namespace

Op tosa_intdiv() {
  Op op = bounded(binary_row("intdiv", 20, "a / b truncated towards zero, with broadcasting",
                             either("in_out", {DType::i32}) + int64s("in_out"),
                             map_binary<[](std::int64_t a, std::int64_t b) { return a / b; }, Domain::integers,
                                        [](auto, auto b, int) { return b != 0; }>),
                  bounds::quotient);
  op.in_core_aten = [](const View&, CoreAten& calls) {
    return calls.gives(aten::op::div_Tensor_mode, {calls.operand(0), calls.operand(1)},
                       {{"rounding_mode", std::string("trunc")}});
  };
  return op;
}
}  // namespace tosaic::tosa
