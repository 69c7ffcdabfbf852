// SPDX-License-Identifier: Apache-2.0
// No program can make a file shorter that is mapped here, but the disk, or the computer that has it, may go away: then
// the system raises an in-page error.
#include "base/system/mapped_files.h"

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/system/hosted/child_process.h"
#include "base/system/hosted/mappings.h"
#include "base/system/windows/win32.h"

namespace tosaic {
namespace {

// Zeros in place of the whole view; whoever reads it meanwhile tries again.
LONG CALLBACK on_missing_page(EXCEPTION_POINTERS* told) {
  const EXCEPTION_RECORD& what = *told->ExceptionRecord;
  const bool missing = what.ExceptionCode == EXCEPTION_IN_PAGE_ERROR;
  if ((!missing && what.ExceptionCode != EXCEPTION_ACCESS_VIOLATION) || what.NumberParameters < 2)
    return EXCEPTION_CONTINUE_SEARCH;
  const std::uintptr_t at = what.ExceptionInformation[1];
  for (Mapping& mapping : mappings) {
    const std::uintptr_t begin = mapping.begin, end = mapping.end;
    if (at < begin || at >= end) continue;
    const bool writes = what.ExceptionInformation[0] == 1;
    int before = 0;
    if (!missing) return mapping.zeros != 0 && !writes ? EXCEPTION_CONTINUE_EXECUTION : EXCEPTION_CONTINUE_SEARCH;
    if (!mapping.zeros.compare_exchange_strong(before, 1)) return EXCEPTION_CONTINUE_EXECUTION;
    void* const view = reinterpret_cast<void*>(begin);
    const bool done =
        ::UnmapViewOfFile(view) && ::VirtualAlloc(view, end - begin, MEM_RESERVE | MEM_COMMIT, PAGE_READONLY) == view;
    mapping.zeros = done ? 2 : 0;
    if (!done) return EXCEPTION_CONTINUE_SEARCH;
    has_changed(mapping);
    return EXCEPTION_CONTINUE_EXECUTION;
  }
  return EXCEPTION_CONTINUE_SEARCH;
}

}  // namespace

void mind_shrinking_files() { ::AddVectoredExceptionHandler(1, on_missing_page); }

std::uintptr_t page_bytes() { return 4096; }

// Pages that nobody has locked leave the working set; that they were not locked is its answer.
void drop_pages(std::uintptr_t begin, std::size_t bytes) { ::VirtualUnlock(reinterpret_cast<void*>(begin), bytes); }

Result<Bytes> map_file(const std::string& path) {
  const auto unreadable = [&](const std::string& why) {
    return error("file.unreadable", fmt::format("cannot read {}: {}", path, why)).at({path, 0, ""});
  };
  if (path.find('\0') != path.npos) return unreadable("there is a zero byte in its name");
  const Handle file = open_file(path, GENERIC_READ, OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS);
  if (!file) {
    const int why = last_error();
    if (why == ERROR_FILE_NOT_FOUND || why == ERROR_PATH_NOT_FOUND)
      return error("file.missing", fmt::format("cannot open {}: {}", path, error_text(why))).at({path, 0, ""});
    return unreadable(error_text(why));
  }
  if (const DWORD type = ::GetFileType(file.get()); type != FILE_TYPE_DISK)
    return unreadable(type == FILE_TYPE_PIPE ? "it is a pipe, not a file" : "it is a device, not a file")
        .hint("save what comes from there as a file first");
  BY_HANDLE_FILE_INFORMATION facts{};
  if (!::GetFileInformationByHandle(file.get(), &facts)) return unreadable(error_text(last_error()));
  if (facts.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY) return unreadable("it is a folder").hint("name a file in it");
  const std::size_t size = static_cast<std::size_t>(facts.nFileSizeHigh) << 32 | facts.nFileSizeLow;
  if (size == 0) {
    static const std::byte nothing{};
    return Bytes(nullptr, &nothing, 0);
  }
  const Handle section(::CreateFileMappingW(file.get(), nullptr, PAGE_READONLY, 0, 0, nullptr));
  const void* data = section ? ::MapViewOfFile(section.get(), FILE_MAP_READ, 0, 0, size) : nullptr;
  if (!data) return unreadable(error_text(last_error()));
  remember_mapping(data, size, path);
  std::shared_ptr<const void> owner(data, [](const void* p) {
    forget_mapping(p);
    if (!::UnmapViewOfFile(p)) ::VirtualFree(const_cast<void*>(p), 0, MEM_RELEASE);  // zeros stand there
  });
  return Bytes(std::move(owner), data, size);
}

}  // namespace tosaic
