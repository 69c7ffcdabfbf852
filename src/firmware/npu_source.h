// SPDX-License-Identifier: Apache-2.0
// The work of an Ethos-U as C: a delegate's commands and weights, and the calls of the driver that runs them.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "formats/vela/vela.h"
#include "ir/graph.h"

namespace tosaic::firmware {

// A delegate, and the function that runs it.
struct NpuCall {
  std::string name;         // "net_npu0"
  std::string declaration;  // "void net_npu0(const int8_t *in0, int8_t *out0)"
  vela::Payload payload;    // its blobs are here
  std::uint64_t flash_bytes = 0, ram_bytes = 0;
};

// `node`: the tosa.custom of whole_program.h. Errors: those of vela::read, firmware.external (its weights are in a file
// of their own).
Result<NpuCall> npu_call(const Graph& graph, const Node& node, std::span<const Bytes> payloads);
// The text behind the first line of NAME_npu.c.
std::string npu_source(std::span<const NpuCall> calls, const std::string& name);

}  // namespace tosaic::firmware
