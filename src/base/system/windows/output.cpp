// SPDX-License-Identifier: Apache-2.0
#include "base/system/output.h"

#include <fmt/format.h>
#include <algorithm>
#include <atomic>
#include <cwctype>
#include <filesystem>

#include "base/system/environment.h"
#include "base/system/hosted/child_process.h"
#include "base/system/hosted/files.h"
#include "base/system/windows/win32.h"

namespace tosaic {

namespace fs = std::filesystem;

namespace {

// Of a file or a folder, for its properties alone. Null: there is none.
Handle open_any(const std::string& path) { return open_file(path, 0, OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS); }

bool facts_of(const Handle& file, BY_HANDLE_FILE_INFORMATION& facts) {
  return file && ::GetFileInformationByHandle(file.get(), &facts);
}

std::uint64_t number_of(const BY_HANDLE_FILE_INFORMATION& facts) {
  return static_cast<std::uint64_t>(facts.nFileIndexHigh) << 32 | facts.nFileIndexLow;
}

// Names that differ in case alone are one.
std::string one_case(const fs::path& name) {
  std::wstring text = name.wstring();
  std::ranges::transform(text, text.begin(), [](wchar_t c) { return static_cast<wchar_t>(std::towlower(c)); });
  return fs::path(text).string();
}

int write_all(HANDLE file, const Rope& data) {
  std::uint64_t at = 0;
  for (const Bytes& chunk : data.chunks()) {
    if (const int why = write_at(file, at, chunk.data(), chunk.size()); why != 0) return why;
    at += chunk.size();
  }
  return 0;
}

int end_at(HANDLE file, std::uint64_t size) {
  FILE_END_OF_FILE_INFO end{};
  end.EndOfFile.QuadPart = static_cast<LONGLONG>(size);
  return ::SetFileInformationByHandle(file, FileEndOfFileInfo, &end, sizeof(end)) ? 0 : last_error();
}

}  // namespace

Diagnostic refused(const std::string& path, std::size_t bytes, int why) {
  if (why == ERROR_DISK_QUOTA_EXCEEDED || why == ERROR_FILE_TOO_LARGE)
    return error("file.disk-full",
                 fmt::format("cannot write {}: its {} bytes are more than you may write there", path, bytes))
        .at({path, 0, ""})
        .hint(why == ERROR_FILE_TOO_LARGE ? "name a folder on a disk that takes larger files"
                                          : "free some of your disk quota");
  if (why != ERROR_DISK_FULL && why != ERROR_HANDLE_DISK_FULL)
    return unwritable(path, error_text(why)).hint("check that the folder exists and may be written");
  std::error_code failure;
  const fs::space_info disk = fs::space(folder_of(path), failure);
  return error("file.disk-full", fmt::format("cannot write {}: the disk is full", path))
      .at({path, 0, ""})
      .note(fmt::format("the file has {} bytes{}", bytes,
                        failure ? std::string() : fmt::format(", {} are free", disk.available)))
      .hint("free some space, or name another folder");
}

std::shared_ptr<const void> held(const std::string& path) {
  Handle file = open_any(path);
  if (!file) return nullptr;
  return {file.release(), [](const void* handle) { ::CloseHandle(const_cast<void*>(handle)); }};
}

int overwrite(const std::string& path, const Rope& data) {
  const Handle file = open_file(path, GENERIC_WRITE, OPEN_EXISTING);
  if (!file) return last_error();
  LARGE_INTEGER before{};
  if (!::GetFileSizeEx(file.get(), &before)) return last_error();
  int why = reserve_room(file.get(), data.size());
  if (why == 0) why = write_all(file.get(), data);
  if (why == 0) return end_at(file.get(), data.size());
  end_at(file.get(), static_cast<std::uint64_t>(before.QuadPart));
  return why;
}

int take_place(const std::string& from, const std::string& to) {
  const fs::path source(from), target(to);
  // What stands there leaves its owner, rights and attributes to what replaces it.
  if (::ReplaceFileW(target.c_str(), source.c_str(), nullptr, REPLACEFILE_IGNORE_MERGE_ERRORS, nullptr, nullptr))
    return 0;
  if (last_error() != ERROR_FILE_NOT_FOUND) return last_error();
  return ::MoveFileExW(source.c_str(), target.c_str(), MOVEFILE_REPLACE_EXISTING) ? 0 : last_error();
}

Outputs::Identity Outputs::identity(const std::string& path) {
  BY_HANDLE_FILE_INFORMATION facts{};
  if (facts_of(open_any(path), facts)) return {facts.dwVolumeSerialNumber, number_of(facts), ""};
  if (facts_of(open_any(folder_of(path)), facts))
    return {facts.dwVolumeSerialNumber, number_of(facts), one_case(fs::path(path).filename())};
  return {0, 0, one_case(path)};
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
  const auto not_a_file = [&](const char* kind) {
    return error("output.not-a-file", fmt::format("cannot write {}: it is {}", path, kind))
        .at({path, 0, ""})
        .hint("name a file; tosaic writes neither to devices nor into pipes");
  };
  BY_HANDLE_FILE_INFORMATION facts{};
  if (const Handle file = open_any(planned_file.path)) {
    if (const DWORD type = ::GetFileType(file.get()); type != FILE_TYPE_DISK)
      return not_a_file(type == FILE_TYPE_PIPE ? "a pipe" : "a device");
    if (!facts_of(file, facts)) return unwritable(path, error_text(last_error())).hint("name another file");
    if (facts.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY) return not_a_file("a folder");
    if (!open_file(planned_file.path, GENERIC_WRITE, OPEN_EXISTING))
      return unwritable(path, error_text(last_error())).hint("the file is write-protected: name another one");
    planned_file.mode = facts.dwFileAttributes;
    planned_file.in_place = facts.nNumberOfLinks > 1;
    return planned_file;
  }
  const std::string folder = folder_of(planned_file.path);
  if (fs::path(planned_file.path).filename().empty() || path == "-")
    return error("output.not-a-file", path == "-" ? "cannot write to standard output: '-' is no file"
                                                  : fmt::format("cannot write {}: it is a folder", path))
        .hint("name a file; one that is called - is ./-");
  if (!facts_of(open_any(folder), facts) || !(facts.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY))
    return unwritable(path, fmt::format("the folder {} does not exist", folder)).hint("create it first");
  if (!open_file(folder, FILE_ADD_FILE, OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS))
    return unwritable(path, error_text(last_error()))
        .hint(fmt::format("name another folder, or make {} one that you may write to", folder));
  return planned_file;
}

Status Outputs::stage(PlannedFile& planned_file, const Rope& data) {
  static std::atomic<int> number{0};
  planned_file.data = data;
  if (planned_file.in_place) return {};
  std::optional<Temporary> waiting;
  Handle file;
  int why = 0;
  for (bool taken = true; taken;) {  // by one that was killed and had our number
    const std::string name =
        (fs::path(planned_file.path).parent_path() / fmt::format(".tosaic-{}-{}.tmp", process_number(), ++number))
            .string();
    waiting.emplace(Temporary::file(name));
    file = open_file(name, GENERIC_WRITE, CREATE_NEW);
    why = file ? 0 : last_error();
    taken = why == ERROR_FILE_EXISTS;
    if (taken) waiting->release();  // theirs
  }
  if (!file) {
    if (!planned_file.mode || why == ERROR_DISK_FULL) return refused(planned_file.asked, data.size(), why);
    planned_file.in_place = true;  // a folder that takes no new files may hold one that takes new content
    return {};
  }
  why = reserve_room(file.get(), data.size());
  if (why == 0) why = write_all(file.get(), data);
  file.reset();
  if (why != 0) return refused(planned_file.asked, data.size(), why);
  planned_file.waiting.emplace(std::move(*waiting));
  return {};
}

}  // namespace tosaic
