// SPDX-License-Identifier: Apache-2.0
// Vela, Arm's compiler for Ethos-U, as a child process: a TOSA flatbuffer in, a command stream and Vela's own estimate
// of it out. tosaic needs the PyPI package `ethos-u-vela` for this and nothing else.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "formats/vela/raw_output.h"
#include "ir/graph.h"

namespace tosaic {

struct VelaOptions {
  std::string executable;     // empty: `vela` on PATH, then in $VIRTUAL_ENV
  std::string system_config;  // section of the ini; empty: the product's default
  std::string memory_mode;    // the same
  std::string config;         // an .ini of the user's; empty: Vela's own Arm/vela.ini
  std::vector<std::string> flags;
  std::string keep;  // folder where Vela's files stay; empty: they are removed
};

// One NPU operator as Vela's estimator sees it.
struct VelaLayer {
  std::string name;        // of the TOSA tensor that it writes
  std::string operation;   // the NPU operation
  std::string place;       // "model.py:6", where the user wrote it
  std::string aten;        // the PyTorch operator, "aten.conv2d.default"
  std::string module;      // "features.3.conv"
  std::string target;      // "NPU" or "CPU"
  double cycles = 0, npu_cycles = 0, macs = 0, utilisation_percent = 0;
  double staging_bytes = 0;
};

// Vela's figures. It calls them estimates; they are not measurements.
struct VelaEstimate {
  std::string accelerator, system_config, memory_mode;
  double cycles = 0, inferences_per_second = 0, macs = 0;
  double sram_bytes = 0, dram_bytes = 0, flash_bytes = 0;         // memory used
  double sram_traffic_bytes = 0, dram_traffic_bytes = 0, flash_traffic_bytes = 0;  // read and written per inference
  std::size_t npu_operators = 0, cpu_operators = 0;
  std::vector<VelaLayer> layers;
};

struct VelaResult {
  vela::RawOutput program;
  VelaEstimate estimate;
  double seconds = 0;  // of the child process
};

// `accelerator` as Vela names it: "ethos-u55-128". `tosa` is the file's content, `graph` the same for names and places.
// Errors: vela.missing (says how to install it), vela.failed (with Vela's own words and, where it names a tensor, the
// user's line), vela.killed, vela.config.
Result<VelaResult> run_vela(const Bytes& tosa, const Graph& graph, const std::string& accelerator,
                            const VelaOptions& options);

}  // namespace tosaic
