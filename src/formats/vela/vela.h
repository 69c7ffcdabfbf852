// SPDX-License-Identifier: Apache-2.0
// The payload of ExecuTorch's EthosUBackend: a sequence of named blocks around Vela's output. Reader and writer.
//
//   block:  name[16] zero padded | u32 payload bytes | u8 external | 11 reserved | payload, zero padded to 16
//   order:  vela_bin_stream | cmd_data | weight_data | scratch_size | inputs | outputs | vela_end_stream
//   inputs, outputs: i32 count, then per tensor i32 shape[6], element bytes, offset, region
//
// Nothing here executes; the command stream itself is src/ethosu's.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/bytes.h"

namespace tosaic::vela {

constexpr std::int32_t scratch_region = 1;  // where inputs and outputs lie unless Vela was told --separate-io-regions

struct Tensor {
  std::array<std::int32_t, 6> shape{1, 1, 1, 1, 1, 1};  // padded with ones in front
  std::int32_t element_bytes = 1;
  std::int32_t offset = 0;  // in its region
  std::int32_t region = scratch_region;
  std::int64_t bytes() const;
  bool operator==(const Tensor&) const = default;
};

// A block's bytes, or the key under which the program's named data holds them.
struct Blob {
  Bytes data;
  std::string external_key;  // 64 hexadecimal characters; empty: the data are here
  bool external() const { return !external_key.empty(); }
};

struct Payload {
  Blob commands, weights;
  std::uint32_t scratch_bytes = 0;
  std::vector<Tensor> inputs, outputs;
};

// Views into `payload`. Errors: vela.not-a-stream, vela.truncated, vela.block (a wrong order or size), vela.old-layout
// (blocks of streams before ExecuTorch 1.0: scratch_data, four-dimensional shapes), vela.tensor (outside the scratch;
// other regions have no stated size).
Result<Payload> read(const Bytes& payload);
// The blob's bytes, wherever they are. Error: vela.external (`data` has no such key). `what`: "commands".
Result<Bytes> resolve(const Blob& blob, const std::string& what, const std::map<std::string, Bytes>* data);
// The key that ExecuTorch gives to a blob in the .ptd file `tag`.ptd.
std::string external_key(const std::string& tag, const Bytes& blob);
// Errors: vela.block, when a blob is larger than a block can say or a key is not one.
Result<Bytes> write(const Payload& payload);

}  // namespace tosaic::vela
