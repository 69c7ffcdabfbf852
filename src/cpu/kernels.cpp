// SPDX-License-Identifier: Apache-2.0
// The table of kernels: which row may take which node is decided in this order.
#include "cpu/chain.h"
#include "cpu/conv.h"
#include "cpu/fallback.h"
#include "cpu/step.h"

namespace tosaic::cpu {

std::span<const KernelRow> kernel_rows() {
  static constexpr KernelRow rows[] = {
      {.name = "view", .take = take_view},
      {.name = "conv_i8", .take = take_conv_i8},
      {.name = "conv_f32", .take = take_conv_f32},
      {.name = "chain", .backward = true, .take = take_chain},
      {.name = "reference", .take = take_reference},
  };
  return rows;
}

}  // namespace tosaic::cpu
