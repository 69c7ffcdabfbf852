// SPDX-License-Identifier: Apache-2.0
// NumPy's .npy arrays and .npz archives (stored or deflated entries), C or Fortran order in, C order out.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "ir/tensor.h"

namespace tosaic::npy {

// `name` is for messages. A NumPy byte string ("S") is a one-dimensional uint8 tensor. bfloat16 and fp8 arrays, as
// ml_dtypes writes them, are recognised; both fp8 types are written as raw bytes ("V1", read as e4m3), which numpy.load
// takes: .view(ml_dtypes.float8_e5m2) gives them their type.
Result<Tensor> read(const Bytes& file, const std::string& name);
Result<std::vector<std::pair<std::string, Tensor>>> read_npz(const Bytes& file, const std::string& name);
Bytes write(const Tensor& tensor);  // i4 as int8, i48 as int64

}  // namespace tosaic::npy
