// SPDX-License-Identifier: Apache-2.0
// What is mapped, for those who map files and answer for pages that are gone (mapped_files.h).
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <string>

namespace tosaic {

// A handler may look at nothing that a lock guards, so a mapping is a slot of atomic words. `begin` is written last and
// cleared first. Mappings beyond the last slot keep the system's way.
struct Mapping {
  std::atomic<std::uintptr_t> begin{0}, end{0};
  std::atomic<char*> path{nullptr};
  std::atomic<int> zeros{0};  // Windows: 1: they take the place of what was mapped; 2: they have
};
extern std::array<Mapping, 4096> mappings;

// What changed_file() says from now on, if it says nothing yet. For handlers.
void has_changed(const Mapping& mapping);

void remember_mapping(const void* begin, std::size_t size, const std::string& path);
void forget_mapping(const void* begin);

// As a system has them: how large pages are, and that some of a mapped file's leave the process's memory.
std::uintptr_t page_bytes();
void drop_pages(std::uintptr_t begin, std::size_t bytes);

}  // namespace tosaic
