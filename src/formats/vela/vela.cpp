// SPDX-License-Identifier: Apache-2.0
#include "formats/vela/vela.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cstring>

namespace tosaic::vela {
namespace {

constexpr std::size_t alignment = 16, header_bytes = 32, name_bytes = 16, key_characters = 64;
constexpr std::size_t tensor_words = 9, old_tensor_words = 7;  // old: shape[4]

std::size_t padded(std::size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }

std::uint32_t u32(const Bytes& bytes, std::size_t at) {
  std::uint32_t value;
  std::memcpy(&value, bytes.data() + at, 4);
  return value;
}

struct Block {
  std::string name;
  bool external = false;
  Bytes payload;
  std::size_t at = 0, next = 0;  // of its header, of what follows
};

Result<Block> read_block(const Bytes& stream, std::size_t at) {
  if (stream.size() < header_bytes || at > stream.size() - header_bytes)
    return error("vela.truncated",
                 fmt::format("the block stream ends at byte {}, inside a block header", stream.size()));
  Block block;
  block.at = at;
  const char* name = reinterpret_cast<const char*>(stream.data() + at);
  block.name.assign(name, static_cast<std::size_t>(std::find(name, name + name_bytes, '\0') - name));
  const std::size_t size = u32(stream, at + name_bytes);
  const auto external = std::to_integer<unsigned>(stream.data()[at + name_bytes + 4]);
  if (external > 1)
    return error("vela.block", fmt::format("byte {}: block '{}' has the external flag {}", at, block.name, external));
  block.external = external == 1;
  const std::size_t left = stream.size() - at - header_bytes;
  if (size > left)
    return error("vela.truncated",
                 fmt::format("byte {}: block '{}' says {} bytes, {} are left", at, block.name, size, left));
  block.payload = stream.slice(at + header_bytes, size);
  block.next = at + header_bytes + std::min(padded(size), left);
  return block;
}

Result<Block> expect(const Bytes& stream, std::size_t at, std::string_view name) {
  TOSAIC_TRY(Block block, read_block(stream, at));
  if (block.name == name) return block;
  if (block.name == "scratch_data")
    return error("vela.old-layout", fmt::format("byte {}: block 'scratch_data'", at))
        .note("streams had it before ExecuTorch 1.0, with shapes of four dimensions")
        .hint("compile the model again");
  return error("vela.block", fmt::format("byte {}: block '{}' where '{}' is expected", at, block.name, name));
}

Result<Blob> blob_of(const Block& block) {
  if (!block.external) return Blob{block.payload, {}};
  const std::string key(block.payload.text());
  const bool hexadecimal = std::all_of(key.begin(), key.end(), [](unsigned char c) { return std::isxdigit(c) != 0; });
  if (key.size() != key_characters || !hexadecimal)
    return error("vela.block",
                 fmt::format("byte {}: block '{}' is external, but holds no key of {} hexadecimal characters", block.at,
                             block.name, key_characters));
  return Blob{{}, key};
}

Result<std::vector<Tensor>> tensors_of(const Block& block, std::uint32_t scratch_bytes) {
  if (block.external || block.payload.size() < 4)
    return error("vela.block", fmt::format("byte {}: block '{}' holds no tensors", block.at, block.name));
  const std::size_t count = u32(block.payload, 0), bytes = block.payload.size();
  if ((bytes - 4) % 4 || (bytes - 4) / 4 != count * tensor_words) {
    if (count > 0 && bytes - 4 == count * old_tensor_words * 4)
      return error("vela.old-layout",
                   fmt::format("byte {}: block '{}' has shapes of four dimensions", block.at, block.name))
          .note("streams had them before ExecuTorch 1.0")
          .hint("compile the model again");
    return error("vela.block",
                 fmt::format("byte {}: block '{}' has {} bytes for {} tensors", block.at, block.name, bytes, count));
  }
  std::vector<Tensor> tensors(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t at = 4 + i * tensor_words * 4;
    Tensor& t = tensors[i];
    const auto word = [&](std::size_t n) { return static_cast<std::int32_t>(u32(block.payload, at + 4 * n)); };
    for (std::size_t d = 0; d < 6; ++d) t.shape[d] = word(d);
    t.element_bytes = word(6), t.offset = word(7), t.region = word(8);
    const auto bad = [&](std::string why) {
      return error("vela.tensor", fmt::format("byte {}: tensor {} of block '{}' {}", block.at, i, block.name, why));
    };
    std::int64_t elements = 1;
    for (const std::int32_t d : t.shape) {
      if (d <= 0 || elements > INT32_MAX / d) return bad(fmt::format("has a dimension of {}", d));
      elements *= d;
    }
    if (t.element_bytes != 1 && t.element_bytes != 2 && t.element_bytes != 4 && t.element_bytes != 8)
      return bad(fmt::format("has elements of {} bytes", t.element_bytes));
    if (t.region < 0 || t.region > 7) return bad(fmt::format("lies in region {}", t.region));
    if (t.offset < 0) return bad(fmt::format("has the offset {}", t.offset));
    if (t.region == scratch_region && t.offset + t.bytes() > static_cast<std::int64_t>(scratch_bytes))
      return bad(fmt::format("ends at byte {} of {} bytes of scratch memory", t.offset + t.bytes(), scratch_bytes));
  }
  return tensors;
}

void append(std::vector<std::byte>& out, std::string_view name, const void* data, std::size_t size, bool external) {
  std::array<std::byte, header_bytes> header{};
  std::memcpy(header.data(), name.data(), name.size());
  const auto size32 = static_cast<std::uint32_t>(size);
  std::memcpy(header.data() + name_bytes, &size32, 4);
  header[name_bytes + 4] = std::byte{external};
  out.insert(out.end(), header.begin(), header.end());
  const auto* bytes = static_cast<const std::byte*>(data);
  if (size) out.insert(out.end(), bytes, bytes + size);
  out.resize(out.size() + padded(size) - size);
}

Status append_blob(std::vector<std::byte>& out, std::string_view name, const Blob& blob) {
  if (blob.external()) {
    if (blob.external_key.size() != key_characters)
      return error("vela.block", fmt::format("'{}' is no key of {} characters", blob.external_key, key_characters));
    append(out, name, blob.external_key.data(), key_characters, true);
    return {};
  }
  if (blob.data.size() > UINT32_MAX)
    return error("vela.block", fmt::format("block '{}' of {} bytes", name, blob.data.size()));
  append(out, name, blob.data.data(), blob.data.size(), false);
  return {};
}

void append_tensors(std::vector<std::byte>& out, std::string_view name, const std::vector<Tensor>& tensors) {
  std::vector<std::int32_t> words{static_cast<std::int32_t>(tensors.size())};
  for (const Tensor& t : tensors) {
    words.insert(words.end(), t.shape.begin(), t.shape.end());
    words.insert(words.end(), {t.element_bytes, t.offset, t.region});
  }
  append(out, name, words.data(), words.size() * 4, false);
}

}  // namespace

std::int64_t Tensor::bytes() const {
  std::int64_t bytes = element_bytes;
  for (const std::int32_t d : shape) bytes *= d;
  return bytes;
}

Result<Payload> read(const Bytes& stream) {
  auto first = read_block(stream, 0);
  if (!first.ok() || first->name != "vela_bin_stream")
    return error("vela.not-a-stream", "it does not begin with a block 'vela_bin_stream'");
  Payload payload;
  TOSAIC_TRY(const Block commands, expect(stream, first->next, "cmd_data"));
  TOSAIC_TRY(payload.commands, blob_of(commands));
  TOSAIC_TRY(const Block weights, expect(stream, commands.next, "weight_data"));
  TOSAIC_TRY(payload.weights, blob_of(weights));
  TOSAIC_TRY(const Block scratch, expect(stream, weights.next, "scratch_size"));
  if (scratch.external || scratch.payload.size() != 4)
    return error("vela.block",
                 fmt::format("byte {}: block 'scratch_size' has {} bytes", scratch.at, scratch.payload.size()));
  payload.scratch_bytes = u32(scratch.payload, 0);
  TOSAIC_TRY(const Block inputs, expect(stream, scratch.next, "inputs"));
  TOSAIC_TRY(payload.inputs, tensors_of(inputs, payload.scratch_bytes));
  TOSAIC_TRY(const Block outputs, expect(stream, inputs.next, "outputs"));
  TOSAIC_TRY(payload.outputs, tensors_of(outputs, payload.scratch_bytes));
  TOSAIC_TRY(const Block end, expect(stream, outputs.next, "vela_end_stream"));
  (void)end;
  return payload;
}

Result<Bytes> resolve(const Blob& blob, const std::string& what, const std::map<std::string, Bytes>* data) {
  if (!blob.external()) return blob.data;
  if (data)
    if (const auto found = data->find(blob.external_key); found != data->end()) return found->second;
  return error("vela.external",
               fmt::format("the NPU's {} lie outside the program, under the key {}", what, blob.external_key))
      .hint("give the data file that was written next to the program: --data FILE.ptd");
}

Result<Bytes> write(const Payload& payload) {
  std::vector<std::byte> out;
  out.reserve(payload.commands.data.size() + payload.weights.data.size() + (1 << 14));  // grown, it would be copied
  append(out, "vela_bin_stream", nullptr, 0, false);
  TOSAIC_CHECK(append_blob(out, "cmd_data", payload.commands));
  TOSAIC_CHECK(append_blob(out, "weight_data", payload.weights));
  append(out, "scratch_size", &payload.scratch_bytes, 4, false);
  append_tensors(out, "inputs", payload.inputs);
  append_tensors(out, "outputs", payload.outputs);
  append(out, "vela_end_stream", nullptr, 0, false);
  return Bytes::of(std::move(out));
}

}  // namespace tosaic::vela
