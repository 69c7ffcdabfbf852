// SPDX-License-Identifier: Apache-2.0
// Memory as the system gives it, for base/memory.h.
#pragma once
#include <cstddef>
#include <cstdint>

namespace tosaic {

// What this machine, or the part of it that the process may use, has.
std::uint64_t machine_memory();
// From this size on, zeroed memory is taken as pages.
constexpr std::size_t least_pages = std::size_t{1} << 16;
// Zeros, which cost nothing until they are touched. Null: there are none.
std::byte* take_pages(std::size_t bytes);
void give_pages_back(std::byte* pages, std::size_t bytes);
// They read as zeros again, without being written. false: that cannot be done here.
bool empty_pages(std::byte* pages, std::size_t bytes);
// The system may give these by megabytes, where it does so: each costs as much as all its bytes when the first one is
// touched, and a processor that reads all of them looks up few addresses.
void in_large_pages(std::byte* pages, std::size_t bytes);
// Are there so many addresses that nobody uses?
bool has_addresses(std::size_t bytes);

// Of the process's heap: it may not become larger (where a tool does not need more itself), it keeps what is freed, and
// the system gives its next `bytes` by megabytes, where it does so.
void limit_heap(std::uint64_t bytes);
void keep_freed_memory();
void heap_in_large_pages(std::size_t bytes);

}  // namespace tosaic
