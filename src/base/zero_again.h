// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <memory>

namespace tosaic {

// Of memory that zeroed_memory (memory.h) gave, or of any other: zeros again. Pages that nobody touched still cost
// nothing.
void zero_again(const std::shared_ptr<std::byte>& memory, std::size_t bytes);

}  // namespace tosaic
