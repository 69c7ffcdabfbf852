// SPDX-License-Identifier: Apache-2.0
// A compiled program as C sources for a microcontroller: no interpreter, no heap, no dependency. One folder, whose
// files begin with one name.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "c_source/print.h"
#include "firmware/board_memory.h"
#include "ir/graph.h"
#include "ir/tensor.h"

namespace tosaic::firmware {

struct MethodSource {
  std::string name;  // "forward"
  const Graph& outer;
  std::span<const Graph> lowered;       // by delegate, as its calls number them
  std::vector<Bytes> npu_payloads;      // of delegates that an Ethos-U runs; empty: all becomes C
  std::vector<Tensor> sample, results;  // for the self-test; empty: none
};

struct SourceFile {
  std::string name, text;
};

struct FirmwareOptions {
  std::string name = "net";  // begins every file and every function
  std::string target;        // "cortex-m55"
  std::string made_by;       // "tosaic 0.1 from net.pt2"
  BoardLimits limits;
  c_source::Kernels kernels = c_source::Kernels::tosaic;
};

// NAME.h, NAME.c, NAME_weights.c, NAME_npu.c where an NPU has work, NAME_test.c, c_source::mcu_files(), CMakeLists.txt,
// memory.json. Errors: firmware.name, c.unsupported, board.flash and board.sram, those of whole_program.h.
Result<std::vector<SourceFile>> firmware_files(std::span<const MethodSource> methods, const FirmwareOptions& options);
// Are files called so among them, whatever NAME is?
bool is_firmware_file(std::string_view name);

}  // namespace tosaic::firmware
