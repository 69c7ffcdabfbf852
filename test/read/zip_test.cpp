// SPDX-License-Identifier: Apache-2.0
#include "formats/zip/zip.h"

#include "read/fixture.h"

namespace tosaic::test {
namespace {

// The bytes of a small archive, with one field changed. `at` counts from the end when negative.
Bytes with_field(std::ptrdiff_t at, std::uint64_t value, int bytes, bool deflated = false) {
  auto archive = make_zip({{"a", "first"}, {"b", std::string(100, 'x')}}, deflated);
  std::string text(archive.text());
  const auto start = static_cast<std::size_t>(at < 0 ? static_cast<std::ptrdiff_t>(text.size()) + at : at);
  for (int i = 0; i < bytes; ++i) text[start + static_cast<std::size_t>(i)] = static_cast<char>(value >> (8 * i));
  return Bytes::copy(text.data(), text.size());
}
// Offsets from the end: two directory records of 47 bytes, then 22 bytes of end record.
constexpr std::ptrdiff_t end_record = -22, record_b = -22 - 47, record_a = -22 - 94;

std::string why(const Bytes& file, const char* entry = "b") {
  auto archive = zip::Archive::open(file, "t.zip");
  if (!archive.ok()) return archive.error().code + ": " + archive.error().message;
  const zip::Entry* found = archive->find(entry);
  if (!found) return "no entry";
  auto content = archive->read(*found);
  return content.ok() ? "" : content.error().code + ": " + content.error().message;
}
#define EXPECT_WHY(file, code, words)                     \
  do {                                                    \
    const std::string got = why(file);                    \
    EXPECT_EQ(got.substr(0, got.find(':')), code) << got; \
    EXPECT_NE(got.find(words), std::string::npos) << got; \
  } while (false)

TEST(Zip, stored_entries_are_views_and_deflated_ones_inflate) {
  for (bool deflated : {false, true}) {
    auto file = make_zip({{"a", "first"}, {"b", std::string(100, 'x')}, {"empty", ""}}, deflated);
    auto archive = zip::Archive::open(file, "t.zip");
    ASSERT_TRUE(archive.ok());
    ASSERT_EQ(archive->entries().size(), 3u);
    auto b = archive->read(*archive->find("b"));
    ASSERT_TRUE(b.ok());
    EXPECT_EQ(b->text(), std::string(100, 'x'));
    EXPECT_EQ(b->data() > file.data() && b->data() < file.data() + file.size(), !deflated);
    EXPECT_EQ(archive->read(*archive->find("empty"))->size(), 0u);
    EXPECT_EQ(archive->find("c"), nullptr);
  }
}

TEST(Zip, pytorchs_archives_have_zip64_end_records) {
  auto archive = zip::Archive::open(fixture("conv.pt2"), "conv.pt2");
  ASSERT_TRUE(archive.ok());
  EXPECT_EQ(archive->entries().size(), 18u);
  for (const auto& entry : archive->entries()) {
    auto content = archive->read(entry);
    ASSERT_TRUE(content.ok()) << entry.name;
    EXPECT_EQ(content->size(), entry.size);
  }
}

TEST(Zip, lies_are_refused) {
  EXPECT_EQ(why(with_field(end_record + 20, 0, 2)), "") << "the file without a lie";
  EXPECT_WHY(with_field(end_record + 10, 3, 2), "zip.bad-entry", "3 entries");
  EXPECT_WHY(with_field(end_record + 10, 0xfff0, 2), "zip.bad-entry", "claims 65520 entries");
  EXPECT_WHY(with_field(end_record + 12, 0x7fffffff, 4), "zip.truncated", "2147483647");
  EXPECT_WHY(with_field(end_record + 16, 0x7fffffff, 4), "zip.truncated", "2147483647");
  EXPECT_WHY(with_field(end_record + 16, 3, 4), "zip.bad-entry", "no directory record at offset 3");
  EXPECT_WHY(with_field(end_record + 4, 7, 2), "zip.bad-entry", "several files");
  EXPECT_WHY(with_field(record_b + 8, 1, 2), "zip.bad-entry", "encrypted");
  EXPECT_WHY(with_field(record_b + 10, 12, 2), "zip.bad-entry", "method 12");
  EXPECT_WHY(with_field(record_b + 20, 0xfffffff0, 4), "zip.bad-entry", "4294967280");
  EXPECT_WHY(with_field(record_b + 20, 101, 4), "zip.bad-entry", "101");
  EXPECT_WHY(with_field(record_b + 24, 99, 4), "zip.bad-entry", "100 and 99");
  EXPECT_WHY(with_field(record_b + 28, 9999, 2), "zip.bad-entry", "of which 47 are left");
  EXPECT_WHY(with_field(record_b + 42, 0x7fffffff, 4), "zip.bad-entry", "2147483647");
  EXPECT_WHY(with_field(record_b + 42, 1, 4), "zip.bad-entry", "no local header at offset 1");
  EXPECT_WHY(with_field(record_b + 20, 0xffffffff, 4), "zip.bad-entry", "zip64");
  EXPECT_WHY(with_field(record_a + 46, 'b', 1), "zip.bad-entry", "occurs twice");
}

TEST(Zip, deflate_streams_that_lie_are_refused) {
  EXPECT_EQ(why(with_field(end_record + 20, 0, 2, true)), "");
  EXPECT_WHY(with_field(record_b + 24, 99, 4, true), "zip.bad-entry", "instead of 99");
  EXPECT_WHY(with_field(record_b + 24, 101, 4, true), "zip.bad-entry", "instead of 101");
  // An allocation of 2 GB for a few bytes of data is refused before it is made.
  EXPECT_WHY(with_field(record_b + 24, 0x7fffffff, 4, true), "zip.bad-entry", "cannot hold 2147483647");
}

}  // namespace
}  // namespace tosaic::test
