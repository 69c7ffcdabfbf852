// SPDX-License-Identifier: Apache-2.0
#include "base/system/mapped_files.h"

#include <fmt/format.h>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "base/system/hosted/mappings.h"

namespace tosaic {
namespace {

std::mutex changing;
std::atomic<const char*> changed{nullptr};

}  // namespace

std::array<Mapping, 4096> mappings;

void has_changed(const Mapping& mapping) {
  const char* none = nullptr;
  changed.compare_exchange_strong(none, mapping.path);
}

std::string changed_file() {
  const char* path = changed;
  return path ? path : "";
}

Diagnostic file_changed(const std::string& path) {
  return error("file.changed", fmt::format("{} became shorter while it was read, or its disk fails", path))
      .at({path, 0, ""})
      .hint("do it again when the file is complete and nobody writes to it");
}

void release_pages(const void* data, std::size_t size) {
  const std::uintptr_t page = page_bytes();
  const auto begin = reinterpret_cast<std::uintptr_t>(data), end = begin + size;
  const std::uintptr_t first = (begin + page - 1) / page * page, last = end / page * page;
  if (first >= last) return;
  const std::lock_guard lock(changing);  // no other file takes the place of this one meanwhile
  for (const Mapping& mapping : mappings) {
    const std::uintptr_t from = mapping.begin;
    if (from == 0 || begin < from || end > mapping.end) continue;
    return drop_pages(first, last - first);
  }
}

void remember_mapping(const void* begin, std::size_t size, const std::string& path) {
  const std::lock_guard lock(changing);
  for (Mapping& mapping : mappings) {
    if (mapping.begin) continue;
    char* const name = static_cast<char*>(std::malloc(path.size() + 1));
    if (name) std::memcpy(name, path.c_str(), path.size() + 1);
    mapping.path = name;
    mapping.end = reinterpret_cast<std::uintptr_t>(begin) + size;
    mapping.begin = reinterpret_cast<std::uintptr_t>(begin);
    return;
  }
}

void forget_mapping(const void* begin) {
  const std::lock_guard lock(changing);
  for (Mapping& mapping : mappings) {
    if (mapping.begin != reinterpret_cast<std::uintptr_t>(begin)) continue;
    mapping.begin = 0;
    mapping.zeros = 0;
    char* path = mapping.path.exchange(nullptr);
    if (path != changed) std::free(path);  // a name that was reported is kept
    return;
  }
}

}  // namespace tosaic
