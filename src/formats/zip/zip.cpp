// SPDX-License-Identifier: Apache-2.0
// PKWARE's APPNOTE 6.3.10, sections 4.3.7 (local header), 4.3.12 (central directory), 4.3.14 to 4.3.16 (end records).
#include "formats/zip/zip.h"

#include <fmt/format.h>
#include <zlib.h>
#include <algorithm>
#include <numeric>
#include <optional>

#include "base/memory.h"
#include "simd/checksum.h"

namespace tosaic::zip {
namespace {

constexpr std::uint32_t local_signature = 0x04034b50, central_signature = 0x02014b50, end_signature = 0x06054b50,
                        end64_signature = 0x06064b50, locator_signature = 0x07064b50;
constexpr std::uint64_t local_size = 30, central_size = 46, end_size = 22, end64_size = 56, locator_size = 20;
constexpr std::uint16_t zip64_extra_field = 0x0001;
constexpr std::uint32_t no_checksum =
    0;  // nothing was computed; of the bytes that have it one in 4 billion is not checked
// Deflate cannot expand by more than 1032 to 1: a larger claim is a lie, and must not become an allocation.
constexpr std::uint64_t max_deflate_ratio = 1032;
// PyTorch stores weights as they are, and samples shrink to a few hundredths at best. What is said to grow more, and to
// something large, was made to fill memories; --memory-limit says that it was not.
constexpr std::uint64_t usual_ratio = 100, always_allowed = std::uint64_t{1} << 30;

// Little-endian numbers of the file. Callers check the range first.
class Numbers {
 public:
  explicit Numbers(const Bytes& file)
      : data_(reinterpret_cast<const unsigned char*>(file.data())), size_(file.size()) {}
  std::uint16_t u16(std::uint64_t at) const { return static_cast<std::uint16_t>(data_[at] | data_[at + 1] << 8); }
  std::uint32_t u32(std::uint64_t at) const { return u16(at) | static_cast<std::uint32_t>(u16(at + 2)) << 16; }
  std::uint64_t u64(std::uint64_t at) const { return u32(at) | static_cast<std::uint64_t>(u32(at + 4)) << 32; }
  bool holds(std::uint64_t at, std::uint64_t length) const { return at <= size_ && length <= size_ - at; }
  bool signed_as(std::uint64_t at, std::uint32_t signature) const { return holds(at, 4) && u32(at) == signature; }

 private:
  const unsigned char* data_;
  std::uint64_t size_;
};

struct Directory {
  std::uint64_t offset = 0, size = 0, count = 0;
  std::uint64_t end = 0;  // where the first end record stands: the directory lies before it
};

// The end record is the last thing in the file but for a comment of at most 65535 bytes.
std::optional<std::uint64_t> find_end_record(const Numbers& file, std::uint64_t file_size) {
  if (file_size < end_size) return std::nullopt;
  const std::uint64_t last = file_size - end_size, first = last > 0xffff ? last - 0xffff : 0;
  for (std::uint64_t at = last + 1; at-- > first;)
    if (file.u32(at) == end_signature && file.u16(at + 20) == file_size - at - end_size) return at;
  return std::nullopt;
}

Result<Directory> find_directory(const Bytes& bytes, const std::string& name) {
  const Numbers file(bytes);
  auto refuse = [&](const char* code, std::string why) { return error(code, std::move(why)).at({name, 0, ""}); };
  const auto end = find_end_record(file, bytes.size());
  if (!end) {
    if (file.signed_as(0, local_signature))
      return refuse("zip.truncated",
                    fmt::format("{} starts as a zip archive, but its directory at the end is missing", name))
          .note(fmt::format("the file has {} bytes", bytes.size()))
          .hint("the file was cut short: copy or save it again");
    return refuse("zip.not-a-zip", fmt::format("{} is not a zip archive", name))
        .hint("a .pt2 file is what torch.export.save(program, path) writes");
  }
  Directory d{file.u32(*end + 16), file.u32(*end + 12), file.u16(*end + 10), *end};
  if (file.u16(*end + 4) != 0 && file.u16(*end + 4) != 0xffff)
    return refuse("zip.bad-entry", fmt::format("{} is one part of a zip archive that spans several files", name));
  if (*end >= locator_size && file.u32(*end - locator_size) == locator_signature) {
    const std::uint64_t end64 = file.u64(*end - locator_size + 8), limit = *end - locator_size;
    if (end64 > limit || limit - end64 < end64_size || !file.signed_as(end64, end64_signature))
      return refuse("zip.truncated",
                    fmt::format("{} has no zip64 end record at offset {}, where its locator points", name, end64));
    d = {file.u64(end64 + 48), file.u64(end64 + 40), file.u64(end64 + 32), end64};
  }
  if (d.offset > d.end || d.size > d.end - d.offset)
    return refuse("zip.truncated",
                  fmt::format("{} has its directory at offset {} with {} bytes, beyond the end record at {}", name,
                              d.offset, d.size, d.end));
  if (d.count > d.size / central_size)
    return refuse("zip.bad-entry",
                  fmt::format("{} claims {} entries, but its directory has only {} bytes", name, d.count, d.size));
  return d;
}

// Replaces the fields that are all ones by those of the zip64 extra field, in APPNOTE's order (4.5.3).
bool widen(const Numbers& file, std::uint64_t extra, std::uint64_t extra_size, Entry& entry) {
  const bool size = entry.size == 0xffffffff, compressed = entry.compressed_size == 0xffffffff,
             offset = entry.header_offset == 0xffffffff;
  if (!size && !compressed && !offset) return true;
  for (std::uint64_t at = extra, end = extra + extra_size; end - at >= 4;) {
    const std::uint64_t length = file.u16(at + 2);
    if (length > end - at - 4) return false;
    if (file.u16(at) == zip64_extra_field) {
      std::uint64_t next = at + 4;
      const std::uint64_t wanted = 8 * (std::uint64_t{size} + compressed + offset);
      if (length < wanted) return false;
      for (auto [wide, field] :
           {std::pair{size, &entry.size}, {compressed, &entry.compressed_size}, {offset, &entry.header_offset}})
        if (wide) *field = file.u64(next), next += 8;
      return true;
    }
    at += 4 + length;
  }
  return false;
}

Diagnostic bad_entry(const std::string& archive, const std::string& entry, std::string why) {
  return error("zip.bad-entry", fmt::format("entry '{}' of {}: {}", entry, archive, why)).at({archive, 0, ""});
}

// Before anything is inflated: what all of it would take.
Status check_inflated(const std::vector<Entry>& entries, std::uint64_t file_size, const std::string& name) {
  std::uint64_t all = 0;
  for (const Entry& e : entries) {
    if (e.method == 0) continue;
    // The largest lie is told by one entry; its own check names it.
    if (e.size / max_deflate_ratio > e.compressed_size + 1)
      return bad_entry(name, e.name, fmt::format("{} compressed bytes cannot hold {}", e.compressed_size, e.size));
    all += e.size;
  }
  if (auto fits = check_memory(all, "what the archive inflates to"); !fits.ok())
    return std::move(fits.error()).at({name, 0, ""});
  if (memory_limit_is_set() || all <= always_allowed || all / usual_ratio <= file_size) return {};
  return error("memory.limit",
               fmt::format("the archive of {} bytes inflates to {}, {} times as many", file_size, all, all / file_size))
      .at({name, 0, ""})
      .hint("it may have been made to fill memories; if you trust it, give a limit that it fits: --memory-limit 64G");
}

}  // namespace

Result<Archive> Archive::open(Bytes bytes, const std::string& name) {
  TOSAIC_TRY(Directory directory, find_directory(bytes, name));
  const Numbers file(bytes);
  Archive archive;
  archive.entries_.reserve(directory.count);
  std::uint64_t at = directory.offset;
  const std::uint64_t end = directory.offset + directory.size;
  for (std::uint64_t i = 0; i < directory.count; ++i) {
    if (end - at < central_size || file.u32(at) != central_signature)
      return bad_entry(
          name, fmt::format("#{}", i),
          fmt::format("no directory record at offset {}, though {} entries are claimed", at, directory.count));
    const std::uint64_t name_size = file.u16(at + 28), extra_size = file.u16(at + 30), comment_size = file.u16(at + 32);
    const std::uint64_t record_size = central_size + name_size + extra_size + comment_size;
    if (record_size > end - at)
      return bad_entry(name, fmt::format("#{}", i),
                       fmt::format("its directory record has {} bytes, of which {} are left", record_size, end - at));
    Entry entry;
    entry.name = bytes.text().substr(at + central_size, name_size);
    entry.method = file.u16(at + 10);
    entry.crc32 = file.u32(at + 16);
    entry.compressed_size = file.u32(at + 20);
    entry.size = file.u32(at + 24);
    entry.header_offset = file.u32(at + 42);
    if (!widen(file, at + central_size + name_size, extra_size, entry))
      return bad_entry(name, entry.name, "its sizes are in a zip64 field, which is missing or too short");
    if (file.u16(at + 8) & 1u) return bad_entry(name, entry.name, "it is encrypted");
    if (entry.header_offset > directory.offset || directory.offset - entry.header_offset < local_size)
      return bad_entry(name, entry.name,
                       fmt::format("its header is at offset {}, beyond the data, which ends at {}", entry.header_offset,
                                   directory.offset));
    if (entry.compressed_size > directory.offset - entry.header_offset - local_size)
      return bad_entry(name, entry.name,
                       fmt::format("it claims {} bytes, but only {} follow its header", entry.compressed_size,
                                   directory.offset - entry.header_offset - local_size));
    archive.entries_.push_back(std::move(entry));
    at += record_size;
  }
  TOSAIC_CHECK(check_inflated(archive.entries_, bytes.size(), name));
  archive.by_name_.resize(archive.entries_.size());
  std::iota(archive.by_name_.begin(), archive.by_name_.end(), 0u);
  auto name_at = [&](std::uint32_t i) -> const std::string& { return archive.entries_[i].name; };
  std::sort(archive.by_name_.begin(), archive.by_name_.end(), [&](auto a, auto b) { return name_at(a) < name_at(b); });
  auto twice = std::adjacent_find(archive.by_name_.begin(), archive.by_name_.end(),
                                  [&](auto a, auto b) { return name_at(a) == name_at(b); });
  if (twice != archive.by_name_.end()) return bad_entry(name, name_at(*twice), "the name occurs twice");
  archive.file_ = std::move(bytes);
  archive.name_ = name;
  return archive;
}

const Entry* Archive::find(std::string_view name) const {
  auto found = std::lower_bound(by_name_.begin(), by_name_.end(), name,
                                [&](std::uint32_t i, std::string_view wanted) { return entries_[i].name < wanted; });
  return found != by_name_.end() && entries_[*found].name == name ? &entries_[*found] : nullptr;
}

Result<Bytes> Archive::content(const Entry& entry) const {
  const Numbers file(file_);
  const std::uint64_t header = entry.header_offset;
  if (!file.holds(header, local_size) || file.u32(header) != local_signature)
    return bad_entry(name_, entry.name, fmt::format("no local header at offset {}", header));
  // The local extra field is longer than the directory's: PyTorch pads it to align the data at 64 bytes.
  const std::uint64_t data = header + local_size + file.u16(header + 26) + file.u16(header + 28);
  if (!file.holds(data, entry.compressed_size))
    return bad_entry(name_, entry.name,
                     fmt::format("its {} bytes at offset {} do not fit into the file's {}", entry.compressed_size, data,
                                 file_.size()));
  const Bytes packed = file_.slice(data, entry.compressed_size);
  if (entry.method == 0) {
    if (entry.size != entry.compressed_size)
      return bad_entry(name_, entry.name,
                       fmt::format("it is stored, but has the sizes {} and {}", entry.compressed_size, entry.size));
    return packed;
  }
  if (entry.method != 8)
    return bad_entry(name_, entry.name, fmt::format("compression method {} is not known (0 and 8 are)", entry.method))
        .hint("store the archive uncompressed, as torch.export.save does");
  std::byte* memory = nullptr;  // touched as far as there is data for it
  Bytes content = Bytes::fresh(entry.size, memory);
  // zlib counts in 32 bits, so both sides are handed over in parts.
  constexpr std::uint64_t most_at_once = 1u << 30;
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) return internal_error("zlib does not start");
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(packed.data()));
  stream.next_out = reinterpret_cast<Bytef*>(memory);
  std::uint64_t in_left = packed.size(), out_left = content.size();
  int state = Z_OK;
  while (state == Z_OK) {
    if (stream.avail_in == 0)
      stream.avail_in = static_cast<uInt>(std::min(in_left, most_at_once)), in_left -= stream.avail_in;
    if (stream.avail_out == 0)
      stream.avail_out = static_cast<uInt>(std::min(out_left, most_at_once)), out_left -= stream.avail_out;
    state = inflate(&stream, Z_NO_FLUSH);
  }
  const std::uint64_t made = stream.total_out;
  inflateEnd(&stream);
  if (state != Z_STREAM_END || made != content.size())
    return bad_entry(name_, entry.name,
                     fmt::format("its data inflates to {} bytes{} instead of {}", made,
                                 state == Z_STREAM_END ? "" : " and then breaks off", content.size()));
  return content;
}

Result<Bytes> Archive::read(const Entry& entry) const {
  TOSAIC_TRY(Bytes bytes, content(entry));
  if (entry.checked || entry.crc32 == no_checksum) return bytes;
  const std::uint32_t sum = simd::crc32(bytes.data(), bytes.size());
  if (sum != entry.crc32)
    return error("zip.checksum", fmt::format("entry '{}' of {} is damaged: its {} bytes have the checksum {:08x}, the "
                                             "archive says {:08x}",
                                             entry.name, name_, bytes.size(), sum, entry.crc32))
        .at({name_, 0, ""})
        .hint("copy or save the file again");
  entry.checked = true;
  return bytes;
}

}  // namespace tosaic::zip
