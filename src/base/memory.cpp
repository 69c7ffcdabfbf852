// SPDX-License-Identifier: Apache-2.0
#include "base/memory.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <fstream>
#include <new>

namespace tosaic {
namespace {

std::atomic<std::uint64_t> chosen_limit{0};  // zero: nobody has chosen

std::uint64_t machine_memory() {
  std::uint64_t bytes =
      static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  // Control groups, versions 2 and 1: a container often has less than the machine.
  for (const char* file : {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"})
    if (std::uint64_t most = 0; std::ifstream(file) >> most && most > 0) bytes = std::min(bytes, most);
  return bytes;
}

std::string gigabytes(std::uint64_t bytes) {
  return bytes < 1'000'000'000 ? fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6)
                               : fmt::format("{:.1f} GB", static_cast<double>(bytes) / 1e9);
}

}  // namespace

std::uint64_t memory_limit() {
  static const std::uint64_t machine = machine_memory();
  return chosen_limit != 0 ? chosen_limit.load() : machine;
}

void set_memory_limit(std::uint64_t bytes) { chosen_limit = bytes; }

bool memory_limit_is_set() { return chosen_limit != 0; }

Status check_memory(std::uint64_t bytes, const std::string& what) {
  if (bytes <= memory_limit()) return {};
  return error("memory.limit", fmt::format("{} would take {} of memory, more than the limit of {}", what,
                                           gigabytes(bytes), gigabytes(memory_limit())))
      .hint("the file may be damaged; if it is meant so, raise the limit: --memory-limit, e.g. --memory-limit 64G");
}

std::shared_ptr<std::byte> zeroed_memory(std::size_t bytes) {
  constexpr std::size_t large = 1 << 16;
  if (bytes < large) {
    auto* small = static_cast<std::byte*>(::operator new (bytes + 1, std::align_val_t{64}, std::nothrow));
    if (!small) return nullptr;
    std::fill_n(small, bytes + 1, std::byte{0});
    return {small, [](std::byte* p) { ::operator delete (p, std::align_val_t{64}); }};
  }
  // The system gives zeros page by page, when they are touched.
  void* pages = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED) return nullptr;
  return {static_cast<std::byte*>(pages), [bytes](std::byte* p) { ::munmap(p, bytes); }};
}

Result<Bytes> zeroed_bytes(std::size_t bytes, const std::string& what) {
  TOSAIC_CHECK(check_memory(bytes, what));
  auto memory = zeroed_memory(bytes);
  if (!memory) return error("memory.limit", fmt::format("{}: there are no {} of memory", what, gigabytes(bytes)));
  const std::byte* data = memory.get();
  return Bytes(std::move(memory), data, bytes);
}

}  // namespace tosaic
