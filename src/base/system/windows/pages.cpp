// SPDX-License-Identifier: Apache-2.0
#include "base/system/pages.h"

#include <algorithm>

#include "base/system/windows/win32.h"

namespace tosaic {

std::uint64_t machine_memory() {
  MEMORYSTATUSEX machine{};
  machine.dwLength = sizeof(machine);
  std::uint64_t bytes = ::GlobalMemoryStatusEx(&machine) ? machine.ullTotalPhys : UINT64_MAX;
  // The job that the process is in, such as a container's, often has less than the machine.
  JOBOBJECT_EXTENDED_LIMIT_INFORMATION job{};
  if (::QueryInformationJobObject(nullptr, JobObjectExtendedLimitInformation, &job, sizeof(job), nullptr)) {
    const DWORD which = job.BasicLimitInformation.LimitFlags;
    if (which & JOB_OBJECT_LIMIT_JOB_MEMORY) bytes = std::min<std::uint64_t>(bytes, job.JobMemoryLimit);
    if (which & JOB_OBJECT_LIMIT_PROCESS_MEMORY) bytes = std::min<std::uint64_t>(bytes, job.ProcessMemoryLimit);
  }
  return bytes;
}

std::byte* take_pages(std::size_t bytes) {
  return static_cast<std::byte*>(::VirtualAlloc(nullptr, bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE));
}

void give_pages_back(std::byte* pages, std::size_t) { ::VirtualFree(pages, 0, MEM_RELEASE); }

// They could be given up and taken again, but in between another process may take the memory: then there would be none.
bool empty_pages(std::byte*, std::size_t) { return false; }

bool has_addresses(std::size_t bytes) {
  void* const at = ::VirtualAlloc(nullptr, bytes, MEM_RESERVE, PAGE_NOACCESS);
  return at && ::VirtualFree(at, 0, MEM_RELEASE);
}

// Of all that the process has, not the heap alone; its children have none of it.
void limit_heap(std::uint64_t bytes) {
  static HANDLE job = ::CreateJobObjectW(nullptr, nullptr);
  JOBOBJECT_EXTENDED_LIMIT_INFORMATION most{};
  most.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_PROCESS_MEMORY | JOB_OBJECT_LIMIT_SILENT_BREAKAWAY_OK;
  most.ProcessMemoryLimit = static_cast<SIZE_T>(std::min<std::uint64_t>(bytes, SIZE_MAX));
  if (job && ::SetInformationJobObject(job, JobObjectExtendedLimitInformation, &most, sizeof(most)))
    ::AssignProcessToJobObject(job, ::GetCurrentProcess());
}

void keep_freed_memory() {}  // the heap of Windows has no such setting
void in_large_pages(std::byte*, std::size_t) {}
void heap_in_large_pages(std::size_t) {}

}  // namespace tosaic
