// SPDX-License-Identifier: Apache-2.0
// Kernels for what lies between a program's floats and the integers of an NPU: a firmware has them instead of the
// compiler's (kernels/lowered_kernel.h).
#pragma once
#include "runtime/kernel.h"

namespace tosaic::runtime {

// quantized_decomposed.quantize_per_tensor and dequantize_per_tensor, whose sizes are fixed. Errors: kernel.unknown,
// kernel.arguments.
KernelFactory conversion_kernels();

}  // namespace tosaic::runtime
