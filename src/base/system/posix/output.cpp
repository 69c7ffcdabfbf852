// SPDX-License-Identifier: Apache-2.0
#include "base/system/output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "base/system/hosted/files.h"
#include "base/system/posix/beyond_posix.h"

namespace tosaic {

namespace fs = std::filesystem;

namespace {

const char* kind_of(mode_t mode) {
  return S_ISDIR(mode) ? "a folder" : S_ISFIFO(mode) ? "a pipe" : S_ISSOCK(mode) ? "a socket" : "a device";
}

// All of it, or the reason.
int write_all(int file, const Rope& data) {
  const std::span<const Bytes> chunks = data.chunks();
  std::size_t chunk = 0, within = 0;  // what is next
  for (std::uint64_t at = 0; at < data.size();) {
    std::array<iovec, 256> next;
    std::size_t count = 0;
    for (std::size_t i = chunk, from = within; i < chunks.size() && count < next.size(); ++i, from = 0)
      next[count++] = {const_cast<std::byte*>(chunks[i].data()) + from, chunks[i].size() - from};
    const ssize_t done = ::pwritev(file, next.data(), static_cast<int>(count), static_cast<off_t>(at));
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return done < 0 ? errno : ENOSPC;
    at += static_cast<std::uint64_t>(done);
    for (within += static_cast<std::size_t>(done); chunk < chunks.size() && within >= chunks[chunk].size(); ++chunk)
      within -= chunks[chunk].size();
  }
  return 0;
}

}  // namespace

Diagnostic refused(const std::string& path, std::size_t bytes, int why) {
  if (why == EFAULT)  // the system finds no bytes behind a view of a mapped file
    return error("file.changed", fmt::format("cannot write {}: a file that it is made of became shorter while it was "
                                             "read, or its disk fails",
                                             path))
        .at({path, 0, ""})
        .hint("do it again when the model's file is complete and nobody writes to it");
  if (why == EDQUOT || why == EFBIG)
    return error("file.disk-full",
                 fmt::format("cannot write {}: its {} bytes are more than you may write there", path, bytes))
        .at({path, 0, ""})
        .hint(why == EFBIG ? "raise the limit of a file's size (ulimit -f)" : "free some of your disk quota");
  if (why != ENOSPC)
    return unwritable(path, std::strerror(why)).hint("check that the folder exists and may be written");
  struct statvfs disk {};
  std::string left;
  const fs::path folder = fs::path(path).parent_path();
  if (::statvfs(folder.empty() ? "." : folder.c_str(), &disk) == 0)
    left = fmt::format(", {} are free", static_cast<std::uint64_t>(disk.f_bavail) * disk.f_frsize);
  return error("file.disk-full", fmt::format("cannot write {}: the disk is full", path))
      .at({path, 0, ""})
      .note(fmt::format("the file has {} bytes{}", bytes, left))
      .hint("free some space, or name another folder");
}

std::shared_ptr<const void> held(const std::string& path) {
  const int file = open_name(path.c_str());
  if (file < 0) return nullptr;
  return {reinterpret_cast<const void*>(static_cast<std::intptr_t>(file) + 1),
          [](const void* p) { ::close(static_cast<int>(reinterpret_cast<std::intptr_t>(p) - 1)); }};
}

int overwrite(const std::string& path, const Rope& data) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return errno;
  struct stat before {};
  int why = ::fstat(file, &before) == 0 ? reserve_room(file, data.size()) : errno;
  if (why == 0)
    why = write_all(file, data);
  else if (static_cast<std::size_t>(before.st_size) < data.size() && ::ftruncate(file, before.st_size) != 0)
    why = errno;
  if (why == 0 && ::ftruncate(file, static_cast<off_t>(data.size())) != 0) why = errno;
  if (::close(file) != 0 && why == 0) why = errno;
  return why;
}

int take_place(const std::string& from, const std::string& to) {
  return std::rename(from.c_str(), to.c_str()) == 0 ? 0 : errno;
}

Outputs::Identity Outputs::identity(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0) return {static_cast<std::uint64_t>(info.st_dev), info.st_ino, ""};
  if (::stat(folder_of(path).c_str(), &info) == 0)
    return {static_cast<std::uint64_t>(info.st_dev), info.st_ino, fs::path(path).filename().string()};
  return {0, 0, path};
}

Result<Outputs::PlannedFile> Outputs::look(const std::string& path) const {
  if (path.find('\0') != path.npos)
    return unwritable(path, "there is a zero byte in its name").hint("the system would take what stands before it");
  const auto behind = behind_links(path);
  if (!behind) return unwritable(path, "its symbolic links lead in a circle").hint("name the file itself");
  PlannedFile planned_file;
  planned_file.asked = path;
  planned_file.path = *behind;
  planned_file.held = held(planned_file.path);
  struct stat info {};
  if (::stat(planned_file.path.c_str(), &info) == 0) {
    if (!S_ISREG(info.st_mode))
      return error("output.not-a-file", fmt::format("cannot write {}: it is {}", path, kind_of(info.st_mode)))
          .at({path, 0, ""})
          .hint("name a file; tosaic writes neither to devices nor into pipes");
    if (::access(planned_file.path.c_str(), W_OK) != 0)
      return unwritable(path, std::strerror(errno)).hint("the file is write-protected: name another one");
    planned_file.mode = info.st_mode & 07777u;
    planned_file.owner = info.st_uid;
    planned_file.group = info.st_gid;
    planned_file.in_place = info.st_nlink > 1;
    return planned_file;
  }
  const std::string folder = folder_of(planned_file.path);
  if (fs::path(planned_file.path).filename().empty() || path == "-")
    return error("output.not-a-file", path == "-" ? "cannot write to standard output: '-' is no file"
                                                  : fmt::format("cannot write {}: it is a folder", path))
        .hint("name a file; one that is called - is ./-");
  if (::stat(folder.c_str(), &info) != 0 || !S_ISDIR(info.st_mode))
    return unwritable(path, fmt::format("the folder {} does not exist", folder)).hint("create it first");
  if (::access(folder.c_str(), W_OK | X_OK) != 0)
    return unwritable(path, std::strerror(errno))
        .hint(fmt::format("name another folder, or make {} one that you may write to", folder));
  return planned_file;
}

Status Outputs::stage(PlannedFile& planned_file, const Rope& data) {
  static std::atomic<int> number{0};
  planned_file.data = data;
  if (planned_file.in_place) return {};
  std::string name;
  std::optional<Temporary> waiting;
  int file = -1;
  for (bool taken = true; taken;) {  // by a process of another container with our number, or by one that was killed
    name =
        (fs::path(planned_file.path).parent_path() / fmt::format(".tosaic-{}-{}.tmp", ::getpid(), ++number)).string();
    waiting.emplace(Temporary::file(name));
    file = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    taken = file < 0 && errno == EEXIST;
    if (taken) waiting->release();  // theirs
  }
  if (file < 0) {
    const int why = errno;
    if (!planned_file.mode || why == ENOSPC) return refused(planned_file.asked, data.size(), why);
    planned_file.in_place = true;  // a folder that takes no new files may hold one that takes new content
    return {};
  }
  int why = reserve_room(file, data.size());
  if (why == 0) why = write_all(file, data);
  if (why == 0 && planned_file.mode) {
    planned_file.in_place =
        ::fchown(file, planned_file.owner, planned_file.group) != 0;  // somebody else's file stays theirs
    if (::fchmod(file, *planned_file.mode) != 0) why = errno;
  }
  if (::close(file) != 0 && why == 0) why = errno;
  if (why != 0) return refused(planned_file.asked, data.size(), why);
  if (!planned_file.in_place) planned_file.waiting.emplace(std::move(*waiting));
  return {};
}

}  // namespace tosaic
