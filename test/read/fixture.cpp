// SPDX-License-Identifier: Apache-2.0
#include "read/fixture.h"

#include <zlib.h>

namespace tosaic::test {
namespace {

void put(std::string& out, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i));
}

std::string deflate_raw(const std::string& content) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, content.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

}  // namespace

Bytes make_zip(const std::vector<std::pair<std::string, std::string>>& records, bool deflated) {
  std::string file, directory;
  for (const auto& [name, content] : records) {
    const std::string data = deflated ? deflate_raw(content) : content;
    const std::uint64_t offset = file.size();
    auto fields = [&](std::string& out) {
      put(out, 0, 2);  // flags
      put(out, deflated ? 8 : 0, 2);
      put(out, 0, 4);  // time and date
      put(out, 0, 4);  // crc32, which the reader does not compare
      put(out, data.size(), 4);
      put(out, content.size(), 4);
      put(out, name.size(), 2);
      put(out, 0, 2);  // extra
    };
    put(file, 0x04034b50, 4);
    put(file, 20, 2);
    fields(file);
    file += name + data;
    put(directory, 0x02014b50, 4);
    put(directory, 20, 2);
    put(directory, 20, 2);
    fields(directory);
    put(directory, 0, 2);  // comment length
    put(directory, 0, 8);  // disk and attributes
    put(directory, offset, 4);
    directory += name;
  }
  const std::uint64_t start = file.size();
  file += directory;
  put(file, 0x06054b50, 4);
  put(file, 0, 4);
  put(file, records.size(), 2);
  put(file, records.size(), 2);
  put(file, directory.size(), 4);
  put(file, start, 4);
  put(file, 0, 2);
  return Bytes::copy(file.data(), file.size());
}

Bytes with_changes(const Bytes& archive, const std::map<std::string, Change>& changes, bool deflated) {
  auto opened = zip::Archive::open(archive, "fixture");
  EXPECT_TRUE(opened.ok());
  std::vector<std::pair<std::string, std::string>> records;
  std::size_t applied = 0;
  for (const auto& entry : opened->entries()) {
    auto content = opened->read(entry);
    EXPECT_TRUE(content.ok());
    std::optional<std::string> text{content->text()};
    for (const auto& [ending, change] : changes)
      if (entry.name.ends_with(ending)) {
        text = change(*text);
        ++applied;
      }
    if (text) records.emplace_back(entry.name, *text);
  }
  EXPECT_EQ(applied, changes.size()) << "a record to change is not in the archive";
  return make_zip(records, deflated);
}

Bytes with_program_text(const std::string& fixture_name, const std::string& from, const std::string& to) {
  return with_changes(fixture(fixture_name), {{"models/model.json", [&](const std::string& json) {
                                                 std::string text = json;
                                                 const auto at = text.find(from);
                                                 EXPECT_NE(at, std::string::npos)
                                                     << from << " is not in " << fixture_name;
                                                 if (at != std::string::npos) text.replace(at, from.size(), to);
                                                 return std::optional(text);
                                               }}});
}

}  // namespace tosaic::test
