// SPDX-License-Identifier: Apache-2.0
// Memory that a file asks for, as opposed to what it holds: a header of a few bytes can claim any size. Claims are held
// to a limit, and what is granted costs nothing until it is touched.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "base/bytes.h"

namespace tosaic {

// In bytes: what this machine, or the part of it that the process may use, has; until somebody sets it.
std::uint64_t memory_limit();
void set_memory_limit(std::uint64_t bytes);
bool memory_limit_is_set();
// Error: memory.limit. `what` wants the memory: "the program's arenas".
Status check_memory(std::uint64_t bytes, const std::string& what);
// Zeros, on 64 bytes at least. Null when the system has no such memory.
std::shared_ptr<std::byte> zeroed_memory(std::size_t bytes);
// Where the memory for tensors comes from, when a caller lends it: on 64 bytes, with undefined content; null when there
// is none.
using MemorySource = std::function<std::shared_ptr<std::byte>(std::size_t bytes)>;
// The same as Bytes, checked against the limit.
Result<Bytes> zeroed_bytes(std::size_t bytes, const std::string& what);

}  // namespace tosaic
