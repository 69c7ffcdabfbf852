// SPDX-License-Identifier: Apache-2.0
#include "base/system/output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/system/mapped_files.h"

namespace tosaic {
namespace {

namespace fs = std::filesystem;

Diagnostic unwritable(const std::string& path, const std::string& why) {
  return error("file.unwritable", fmt::format("cannot write {}: {}", path, why)).at({path, 0, ""});
}

// What the system said when it would not take `bytes` at `path`.
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

// Where a path leads when its last part is a symbolic link, whether or not something is there.
std::optional<std::string> behind_links(const std::string& path) {
  fs::path at(path);
  std::error_code failure;
  for (int i = 0; i < 40; ++i) {
    if (!fs::is_symlink(fs::symlink_status(at, failure))) return at.string();
    const fs::path target = fs::read_symlink(at, failure);
    if (failure) return std::nullopt;
    at = target.is_absolute() ? target : at.parent_path() / target;
  }
  return std::nullopt;
}

std::string folder_of(const std::string& path) {
  const std::string folder = fs::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

const char* kind_of(mode_t mode) {
  return S_ISDIR(mode) ? "a folder" : S_ISFIFO(mode) ? "a pipe" : S_ISSOCK(mode) ? "a socket" : "a device";
}

// The file that has this name now, kept from being another's number when another process replaces it.
std::shared_ptr<const void> held(const std::string& path) {
  const int file = ::open(path.c_str(), O_PATH | O_CLOEXEC);
  if (file < 0) return nullptr;
  return {reinterpret_cast<const void*>(static_cast<std::intptr_t>(file) + 1),
          [](const void* p) { ::close(static_cast<int>(reinterpret_cast<std::intptr_t>(p) - 1)); }};
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

// Where the file system can tell beforehand that there is no room.
int reserve(int file, std::size_t bytes) {
  if (bytes == 0 || ::fallocate(file, 0, 0, static_cast<off_t>(bytes)) == 0) return 0;
  return errno == ENOSPC || errno == EDQUOT || errno == EFBIG ? errno : 0;
}

// Over what stands there. Room is made sure of first, and taken back if there is none.
int overwrite(const std::string& path, const Rope& data) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return errno;
  struct stat before {};
  int why = ::fstat(file, &before) == 0 ? reserve(file, data.size()) : errno;
  if (why == 0)
    why = write_all(file, data);
  else if (static_cast<std::size_t>(before.st_size) < data.size() && ::ftruncate(file, before.st_size) != 0)
    why = errno;
  if (why == 0 && ::ftruncate(file, static_cast<off_t>(data.size())) != 0) why = errno;
  if (::close(file) != 0 && why == 0) why = errno;
  return why;
}

}  // namespace

Outputs::Identity Outputs::identity(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0) return {info.st_dev, info.st_ino, ""};
  if (::stat(folder_of(path).c_str(), &info) == 0)
    return {info.st_dev, info.st_ino, fs::path(path).filename().string()};
  return {0, 0, path};
}

void Outputs::reads(const std::string& path) {
  if (path.empty()) return;
  std::error_code failure;
  if (!fs::is_directory(path, failure)) {
    held_.push_back(held(path));
    inputs_.emplace(identity(path), path);
    return;
  }
  for (const auto& entry : fs::directory_iterator(path, failure))
    inputs_.emplace(identity(entry.path().string()), entry.path().string());
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

Status Outputs::plan(const std::string& path) {
  TOSAIC_CHECK(planned(path));
  return {};
}

Result<Outputs::PlannedFile*> Outputs::planned(const std::string& path) {
  TOSAIC_TRY(PlannedFile planned_file, look(path));
  const Identity id = identity(planned_file.path);
  if (const auto input = inputs_.find(id); input != inputs_.end())
    return error("output.is-input", input->second == path
                                        ? fmt::format("{} is read and would be overwritten", path)
                                        : fmt::format("{} is the same file as {}, which is read and would be "
                                                      "overwritten",
                                                      path, input->second))
        .at({path, 0, ""})
        .hint("give the output another name");
  const auto [other, fresh] = planned_files_.try_emplace(id, std::move(planned_file));
  if (fresh) return &other->second;
  return error("output.twice", other->second.asked == path
                                   ? fmt::format("{} would be written twice", path)
                                   : fmt::format("{} and {} are the same file, which would be written twice",
                                                 other->second.asked, path))
      .at({path, 0, ""})
      .hint("give every output a name of its own");
}

Status Outputs::plan_folder(const std::string& path, bool (*filled_with)(std::string_view name)) {
  std::error_code failure;
  if (fs::exists(path, failure) && !fs::is_directory(path, failure))
    return error("output.not-a-file", fmt::format("cannot write into {}: it is no folder", path))
        .at({path, 0, ""})
        .hint("name a folder; it is made if missing");
  const auto clashes = [&](const std::string& file) {
    return filled_with(fs::path(file).filename().string()) && fs::equivalent(folder_of(file), path, failure);
  };
  const auto refuse = [&](const std::string& file, const char* what) {
    return error(std::strcmp(what, "read") == 0 ? "output.is-input" : "output.twice",
                 fmt::format("{} is {} and would be overwritten by what goes into {}", file, what, path))
        .at({path, 0, ""})
        .hint("name another folder");
  };
  for (const auto& [id, file] : inputs_)
    if (clashes(file)) return refuse(file, "read");
  for (const auto& [id, planned_file] : planned_files_)
    if (clashes(planned_file.path)) return refuse(planned_file.asked, "written");
  return {};
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
  int why = reserve(file, data.size());
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

Status Outputs::write(const std::string& path, const Rope& data) {
  // By its name, not by what stands there: another process may have put its own file there meanwhile.
  const auto found = std::ranges::find_if(
      planned_files_, [&](const auto& known) { return known.second.asked == path && !known.second.written; });
  PlannedFile* planned_file = found == planned_files_.end() ? nullptr : &found->second;
  if (!planned_file) { TOSAIC_TRY(planned_file, planned(path)); }
  planned_file->written = true;
  return stage(*planned_file, data);
}

Status Outputs::commit() {
  if (const std::string file = changed_file(); !file.empty()) return file_changed(file);
  const auto over = [](const PlannedFile& planned_file) -> Status {
    if (const int why = overwrite(planned_file.path, planned_file.data); why != 0)
      return refused(planned_file.asked, planned_file.data.size(), why);
    return {};
  };
  for (const auto& [id, planned_file] : planned_files_)  // first what may still find no room
    if (planned_file.written && planned_file.in_place) TOSAIC_CHECK(over(planned_file));
  for (auto& [id, planned_file] : planned_files_) {
    if (!planned_file.waiting) continue;
    if (std::rename(planned_file.waiting->path().c_str(), planned_file.path.c_str()) == 0) {
      planned_file.waiting->release();
    } else {
      const int why = errno;
      if (!planned_file.mode) return refused(planned_file.asked, planned_file.data.size(), why);
      TOSAIC_CHECK(over(planned_file));  // one that cannot be replaced: it is mounted, say
    }
  }
  planned_files_.clear();
  return {};
}

Status make_folder(const std::string& path) {
  std::error_code failure;
  const bool whole = path.find('\0') == path.npos;
  if (whole) fs::create_directories(path, failure);
  std::error_code unknown;
  if (whole && fs::is_directory(path, unknown)) return {};
  return error("file.unwritable", fmt::format("cannot make the folder {}: {}", path,
                                              !whole    ? "there is a zero byte in its name"
                                              : failure ? failure.message()
                                                        : "a file has that name"))
      .at({path, 0, ""})
      .hint("name a folder that you may write to");
}

Status write_file(const std::string& path, const Rope& data) {
  Outputs outputs;
  TOSAIC_CHECK(outputs.write(path, data));
  return outputs.commit();
}

Status write_file(const std::string& path, const void* data, std::size_t size) {
  return write_file(path, Bytes(nullptr, data, size));
}

}  // namespace tosaic
