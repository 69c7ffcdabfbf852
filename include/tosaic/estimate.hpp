// SPDX-License-Identifier: Apache-2.0
// What an NPU will cost, as its compiler estimates it.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

namespace tosaic {

// One NPU operator as Vela's estimator sees it.
struct NpuLayer {
  std::string name;                       // of the TOSA tensor that it writes
  std::string operation;                  // Vela's name of the operation: "Conv2D"
  std::string processor;                  // "NPU" or "CPU"
  std::string node;                       // in the exported graph: "conv2d_4"; several where they became one
  std::string tosa, aten, module, place;  // "tosa.conv2d", "aten.conv2d.default", "features.3.conv", "model.py:6"
  double cycles = 0, npu_cycles = 0, macs = 0, utilisation_percent = 0, staging_bytes = 0;
};

// Vela's figures. It calls them estimates; they are not measurements.
struct NpuEstimate {
  std::string accelerator, system_config, memory_mode;
  double cycles = 0, inferences_per_second = 0, macs = 0;
  double sram_bytes = 0, dram_bytes = 0, flash_bytes = 0;                          // memory used
  double sram_traffic_bytes = 0, dram_traffic_bytes = 0, flash_traffic_bytes = 0;  // read and written per inference
  std::size_t npu_operators = 0, cpu_operators = 0;
  std::vector<NpuLayer> layers;
};

}  // namespace tosaic
