// SPDX-License-Identifier: Apache-2.0
#include "base/memory.h"

#include <fmt/format.h>
#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>

#include "base/system/pages.h"
#include "base/zero_again.h"

namespace tosaic {
namespace {

std::atomic<std::size_t> chosen_limit{0};  // zero: nobody has chosen

std::string gigabytes(std::uint64_t bytes) {
  return bytes < 1'000'000'000 ? fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6)
                               : fmt::format("{:.1f} GB", static_cast<double>(bytes) / 1e9);
}

// The owner of pages that are this process's alone: the system may take them back.
struct Unmap {
  std::size_t bytes;
  void operator()(std::byte* p) const { give_pages_back(p, bytes); }
};

}  // namespace

std::uint64_t memory_limit() {
  static const std::uint64_t machine = machine_memory();
  return chosen_limit != 0 ? chosen_limit.load() : machine;
}

void set_memory_limit(std::uint64_t bytes) {
  chosen_limit = static_cast<std::size_t>(std::min<std::uint64_t>(bytes, SIZE_MAX));
}

bool memory_limit_is_set() { return chosen_limit != 0; }

Status check_memory(std::uint64_t bytes, const std::string& what) {
  if (bytes <= memory_limit()) return {};
  return error("memory.limit", fmt::format("{} would take {} of memory, more than the limit of {}", what,
                                           gigabytes(bytes), gigabytes(memory_limit())))
      .hint("the file may be damaged; if it is meant so, raise the limit: --memory-limit, e.g. --memory-limit 64G");
}

std::shared_ptr<std::byte> zeroed_memory(std::size_t bytes) {
  if (bytes < least_pages) {
    auto* small = static_cast<std::byte*>(::operator new (bytes + 1, std::align_val_t{64}, std::nothrow));
    if (!small) return nullptr;
    std::fill_n(small, bytes + 1, std::byte{0});
    return {small, [](std::byte* p) { ::operator delete (p, std::align_val_t{64}); }};
  }
  std::byte* pages = take_pages(bytes);
  if (!pages) return nullptr;
  // A language model's keys and values, of which each token reads all: in small pages that took half as long again.
  constexpr std::size_t large = 8 << 20;
  if (bytes >= large) in_large_pages(pages, bytes);
  return {pages, Unmap{bytes}};
}

void zero_again(const std::shared_ptr<std::byte>& memory, std::size_t bytes) {
  // Pages that are given back read as zeros, and a file's claim of gigabytes is not paid for by writing them. What is
  // small costs less to write than to fault in once more.
  constexpr std::size_t large = 32 << 20;
  const Unmap* pages = std::get_deleter<Unmap>(memory);
  if (pages && pages->bytes == bytes && bytes >= large && empty_pages(memory.get(), bytes)) return;
  if (bytes > 0) std::memset(memory.get(), 0, bytes);
}

Result<Bytes> zeroed_bytes(std::size_t bytes, const std::string& what) {
  TOSAIC_CHECK(check_memory(bytes, what));
  auto memory = zeroed_memory(bytes);
  if (!memory) return error("memory.limit", fmt::format("{}: there are no {} of memory", what, gigabytes(bytes)));
  const std::byte* data = memory.get();
  return Bytes(std::move(memory), data, bytes);
}

}  // namespace tosaic
