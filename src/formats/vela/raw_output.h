// SPDX-License-Identifier: Apache-2.0
// What Vela writes with --output-format=raw: NAME_vela.npz, a command stream for the NPU with its constants and the
// places of inputs and outputs.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"

namespace tosaic::vela {

// An input or output of a command stream.
struct TensorPlace {
  std::array<std::int32_t, 6> shape{};  // padded with ones in front
  std::int32_t element_bytes = 0;
  std::int32_t offset = 0;  // bytes, in its region
  std::int32_t region = 0;
  std::int64_t bytes() const {
    std::int64_t n = element_bytes;
    for (std::int32_t d : shape) n *= d;
    return n;
  }
};

struct RawOutput {
  Bytes commands;  // driver actions, then the register command stream
  Bytes weights;   // read-only region 0: weights, scales, tables
  std::int64_t scratch_bytes = 0;
  std::vector<TensorPlace> inputs, outputs;
};

// Errors: vela.raw-output (names the member that is missing or wrong), those of zip and npy.
Result<RawOutput> read_raw_output(const Bytes& npz, const std::string& name);

}  // namespace tosaic::vela
