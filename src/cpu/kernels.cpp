// SPDX-License-Identifier: Apache-2.0
// The table of kernels: which row may take which node is decided in this order.
#include "cpu/elementwise/chain.h"
#include "cpu/elementwise/reduce.h"
#include "cpu/fallback.h"
#include "cpu/layout/layout.h"
#include "cpu/matrix/attention.h"
#include "cpu/matrix/matmul.h"
#include "cpu/matrix/quantised_product.h"
#include "cpu/matrix/unpacked_product.h"
#include "cpu/rows/rows.h"
#include "cpu/step.h"
#include "cpu/window/conv.h"
#include "cpu/window/depthwise.h"
#include "cpu/window/resize.h"

namespace tosaic::cpu {

std::span<const KernelRow> kernel_rows() {
  static constexpr KernelRow rows[] = {
      {.name = "view", .take = take_view},
      {.name = "coded", .take = take_quantised_product},
      {.name = "coded_rows", .take = take_quantised_gather},
      {.name = "unpacked", .take = take_unpacked},
      {.name = "groups", .take = take_groups},
      {.name = "conv_lines_i8", .take = take_conv_lines_i8},
      {.name = "conv_i8", .take = take_conv_i8},
      {.name = "conv_i16", .take = take_conv_i16},
      {.name = "conv_lines", .take = take_conv_lines},
      {.name = "conv_f32", .take = take_conv_f32},
      {.name = "depthwise", .take = take_depthwise},
      {.name = "attention", .take = take_attention},
      {.name = "matmul", .take = take_matmul},
      {.name = "softmax", .take = take_softmax},
      {.name = "layer_norm", .take = take_layer_norm},
      {.name = "rms_norm", .take = take_rms_norm},
      {.name = "quantise_rows", .take = take_quantise_rows},
      {.name = "pool", .take = take_pool},
      {.name = "reduction", .take = take_reduction},
      {.name = "layout", .take = take_layout},
      {.name = "gather", .take = take_gather},
      {.name = "scatter", .take = take_scatter},
      {.name = "resize", .take = take_resize},
      {.name = "chain", .backward = true, .take = take_chain},
      {.name = "reference", .take = take_reference},
  };
  return rows;
}

}  // namespace tosaic::cpu
