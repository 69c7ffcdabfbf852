// SPDX-License-Identifier: Apache-2.0
// Files that two processes write at once: the last one stays, and neither is refused.
#include "base/system/output.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <filesystem>
#include <fstream>

namespace tosaic::test {
namespace {

namespace fs = std::filesystem;

class Folder {
 public:
  Folder() {
    std::string pattern = fs::temp_directory_path() / "tosaic-outputs-XXXXXX";
    path_ = ::mkdtemp(pattern.data());
  }
  ~Folder() { fs::remove_all(path_); }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

void put(const std::string& path, const std::string& text) { std::ofstream(path) << text; }
std::string content(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}
Rope rope(const std::string& text) { return Bytes::copy(text.data(), text.size()); }

ino_t number_of(const std::string& path) {
  struct stat info {};
  ::stat(path.c_str(), &info);
  return info.st_ino;
}

// A file system gives the number of a file that has gone to the next one: two outputs seem to be one.
TEST(Outputs, AnotherProcessReplacesThem) {
  const Folder folder;
  const std::string a = folder / "a.pte", b = folder / "b.tosa";
  put(a, "old");
  put(b, "old");
  const ino_t first = number_of(a);
  Outputs outputs;
  ASSERT_TRUE(outputs.plan(a).ok());
  // The other process: its files wait next to their places, and take them. It does so often.
  for (int round = 0; round < 50; ++round)
    for (const std::string& path : {a, b}) {
      put(folder / "waiting", "theirs");
      fs::rename(folder / "waiting", path);
      EXPECT_NE(number_of(path), first);
    }
  for (const std::string& path : {b, a}) {
    const Status written = outputs.write(path, rope("ours"));
    EXPECT_TRUE(written.ok()) << written.error().message;
  }
  const Status done = outputs.commit();
  ASSERT_TRUE(done.ok()) << done.error().message;
  EXPECT_EQ(content(a), "ours");
  EXPECT_EQ(content(b), "ours");
}

TEST(Outputs, OneFileByTwoNamesIsStillTold) {
  const Folder folder;
  const std::string a = folder / "a.pte", b = folder / "b.pte";
  put(a, "old");
  fs::create_symlink(a, b);
  Outputs outputs;
  ASSERT_TRUE(outputs.plan(a).ok());
  EXPECT_EQ(outputs.plan(b).error().code, "output.twice");
  EXPECT_EQ(outputs.plan(folder / "./a.pte").error().code, "output.twice");
}

// A process of another container may have our number, and its files waiting where ours would.
TEST(Outputs, WaitingFilesOfOthersStay) {
  const Folder folder;
  std::vector<std::string> theirs;
  for (int number = 0; number < 40; ++number) {
    theirs.push_back(folder / (".tosaic-" + std::to_string(::getpid()) + "-" + std::to_string(number) + ".tmp"));
    put(theirs.back(), "theirs");
  }
  ASSERT_TRUE(write_file(folder / "a.pte", rope("ours")).ok());
  EXPECT_EQ(content(folder / "a.pte"), "ours");
  for (const std::string& path : theirs) EXPECT_EQ(content(path), "theirs") << path;
}

TEST(Outputs, NamesThatTheSystemWouldCut) {
  const std::string name("/tmp/tosaic-none\0.pte", 21);
  EXPECT_EQ(write_file(name, rope("x")).error().code, "file.unwritable");
  EXPECT_EQ(make_folder(name).error().code, "file.unwritable");
  EXPECT_EQ(map_file(name).error().code, "file.unreadable");
  EXPECT_FALSE(fs::exists("/tmp/tosaic-none"));
  const std::string long_name(6000, 'n');
  EXPECT_EQ(write_file(long_name, rope("x")).error().code, "file.unwritable");
  EXPECT_EQ(make_folder(long_name).error().code, "file.unwritable");
  EXPECT_EQ(map_file(long_name).error().code, "file.unreadable");
}

}  // namespace
}  // namespace tosaic::test
