// SPDX-License-Identifier: Apache-2.0
// What a .ptd holds around its flatbuffer. All integers are little-endian.
//   0  u32     offset of the flatbuffer's root table, counted from the file's start
//   4  "FT01"
//   8  "FH01"  header; u32 its length: 40
//  16  u64     bytes that the header takes of the file (it stands inside the flatbuffer, behind the identifier)
//  24  u64     bytes of the flatbuffer without the header
//  32  u64     where the segments start
//  40  u64     bytes from there to the end of the last segment
#include "formats/ptd/ptd_file.h"

#include <fmt/format.h>
#include <algorithm>
#include <cstring>
#include <set>
#include <unordered_map>

#include "flat_tensor_generated.h"
#include "formats/pte/layout.h"

namespace tosaic::ptd {
namespace {

namespace s = ptd_schema;

constexpr std::string_view header_magic = "FH01";
const char* const newer_help = "look for a newer tosaic, or write it again with a current ExecuTorch or with tosaic";
constexpr std::size_t header_at = 8, header_length = 40, header_bytes = 48, segment_alignment = 128;

std::size_t aligned(std::size_t size) { return (size + segment_alignment - 1) / segment_alignment * segment_alignment; }
template <class T>
T little_endian(const Bytes& file, std::size_t at) {
  T value;
  std::memcpy(&value, file.data() + at, sizeof value);
  return flatbuffers::EndianScalar(value);
}
template <class T>
std::uint32_t size_of(const T* list) {
  return list ? list->size() : 0;
}
Diagnostic corrupt(std::string message) { return error("ptd.corrupt", std::move(message)); }

Result<std::optional<TensorType>> type_of(const s::TensorLayout* layout, const std::string& key) {
  if (!layout) return std::optional<TensorType>();
  const auto dtype = pte::dtype_of(static_cast<pte_schema::ScalarType>(layout->scalar_type()));
  if (!dtype) return std::optional<TensorType>();  // of a type that no program of ours can ask for
  std::vector<std::int64_t> dims;
  for (std::uint32_t i = 0; i < size_of(layout->sizes()); ++i) dims.push_back(layout->sizes()->Get(i));
  for (std::int64_t d : dims)
    if (d < 0) return corrupt(fmt::format("'{}' has a dimension of {}", key, d));
  if (dims.size() > static_cast<std::size_t>(pte::max_rank))
    return corrupt(fmt::format("'{}' has {} dimensions", key, dims.size()));
  return std::optional(TensorType{*dtype, Shape(dims), {}});
}

Result<std::vector<Entry>> checked(Bytes file) {
  if (file.size() < header_at + header_length || file.text().substr(4, 2) != "FT")
    return error("ptd.not-ptd", "this is not an ExecuTorch data file (bytes 4 to 7 must be 'FT01')");
  if (file.text().substr(4, 4) != s::FlatTensorIdentifier() ||
      file.text().substr(header_at, header_magic.size()) != header_magic)
    return error("ptd.version", "the data file has a format that this does not read; FT01 with header FH01 is read")
        .hint(newer_help);
  if (reinterpret_cast<std::uintptr_t>(file.data()) % 16 != 0) file = Bytes::copy(file.data(), file.size());
  const auto length = little_endian<std::uint32_t>(file, 12);
  const auto taken = little_endian<std::uint64_t>(file, 16), flat = little_endian<std::uint64_t>(file, 24);
  const auto base = little_endian<std::uint64_t>(file, 32), bytes = little_endian<std::uint64_t>(file, 40);
  if (length < header_length || taken > file.size() || flat > file.size() - taken || base > file.size() ||
      bytes > file.size() - base)
    return corrupt(fmt::format("the header does not fit the file's {} bytes", file.size()));
  const std::size_t buffer = std::min<std::size_t>(taken + flat, FLATBUFFERS_MAX_BUFFER_SIZE - 1);
  const auto* data = reinterpret_cast<const std::uint8_t*>(file.data());
  flatbuffers::Verifier verifier(data, buffer, 64, static_cast<flatbuffers::uoffset_t>(buffer / 4 + 16));
  if (!s::VerifyFlatTensorBuffer(verifier)) return corrupt("an offset or a length points outside the flatbuffer");
  const s::FlatTensor* root = s::GetFlatTensor(data);
  if (root->version() != 0)
    return error("ptd.version", fmt::format("the data file has version {}, this reads version 0", root->version()))
        .hint(newer_help);
  const Bytes segments = file.slice(base, bytes);
  std::vector<Entry> entries;
  std::set<std::string> keys;
  for (std::uint32_t i = 0; i < size_of(root->named_data()); ++i) {
    const s::NamedData* from = root->named_data()->Get(i);
    Entry entry{from->key() ? from->key()->str() : std::string(), {}};
    if (!keys.insert(entry.key).second) return corrupt(fmt::format("two data entries have the key '{}'", entry.key));
    if (from->segment_index() >= size_of(root->segments()))
      return corrupt(
          fmt::format("'{}' is in segment {} of {}", entry.key, from->segment_index(), size_of(root->segments())));
    const s::DataSegment* segment = root->segments()->Get(from->segment_index());
    if (segment->offset() > segments.size() || segment->size() > segments.size() - segment->offset())
      return corrupt(fmt::format("'{}' ({} bytes at {}) lies outside the segments' {} bytes", entry.key,
                                 segment->size(), segment->offset(), segments.size()));
    entry.data = segments.slice(segment->offset(), segment->size());
    TOSAIC_TRY(entry.tensor, type_of(from->tensor_layout(), entry.key));
    entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace

Result<std::vector<Entry>> read(const Bytes& file, const std::string& name) {
  auto entries = checked(file);
  if (!entries.ok() && entries.error().place.file.empty()) entries.error().place.file = name;
  return entries;
}

Rope write(const std::vector<Entry>& entries) {
  flatbuffers::FlatBufferBuilder builder;
  std::vector<flatbuffers::Offset<s::DataSegment>> segments;
  std::vector<flatbuffers::Offset<s::NamedData>> named;
  std::size_t end = 0;
  std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> by_glance;
  std::vector<Bytes> contents;  // of the segments: equal data are one
  for (const Entry& entry : entries) {
    flatbuffers::Offset<s::TensorLayout> layout;
    if (const auto type = entry.tensor ? pte::scalar_type(entry.tensor->dtype) : std::nullopt) {
      const auto dims = entry.tensor->shape.sizes();
      const std::vector<std::int32_t> sizes(dims.begin(), dims.end());
      std::vector<std::uint8_t> order;
      for (std::size_t d = 0; d < sizes.size(); ++d) order.push_back(static_cast<std::uint8_t>(d));
      layout = s::CreateTensorLayoutDirect(builder, static_cast<std::int8_t>(*type), &sizes, &order);
    }
    std::vector<std::uint32_t>& alike = by_glance[glance_at(entry.data)];
    auto same = std::ranges::find_if(alike, [&](std::uint32_t i) { return contents[i] == entry.data; });
    if (same == alike.end()) {
      same = alike.insert(alike.end(), static_cast<std::uint32_t>(contents.size()));
      contents.push_back(entry.data);
      segments.push_back(s::CreateDataSegment(builder, aligned(end), entry.data.size()));
      end = aligned(end) + entry.data.size();
    }
    named.push_back(s::CreateNamedDataDirect(builder, entry.key.c_str(), *same, layout));
  }
  builder.Finish(s::CreateFlatTensorDirect(builder, 0, &segments, &named), s::FlatTensorIdentifier());
  const std::size_t base = aligned(header_bytes + builder.GetSize());
  std::vector<std::byte> head(base);
  const auto put = [&](std::size_t at, auto value) { std::memcpy(head.data() + at, &value, sizeof value); };
  std::memcpy(head.data(), builder.GetBufferPointer(), header_at);
  std::memcpy(head.data() + header_at + header_bytes, builder.GetBufferPointer() + header_at,
              builder.GetSize() - header_at);
  put(0, flatbuffers::ReadScalar<std::uint32_t>(builder.GetBufferPointer()) + static_cast<std::uint32_t>(header_bytes));
  std::memcpy(head.data() + header_at, header_magic.data(), header_magic.size());
  put(12, static_cast<std::uint32_t>(header_length));
  put(16, std::uint64_t{header_bytes});
  put(24, std::uint64_t{builder.GetSize()});
  put(32, std::uint64_t{base});
  put(40, std::uint64_t{end});
  Rope file(Bytes::of(std::move(head)));
  for (const Bytes& content : contents) {
    file.zeros(base + aligned(file.size() - base) - file.size());
    file.append(content);
  }
  return file;
}

}  // namespace tosaic::ptd
