// SPDX-License-Identifier: Apache-2.0
// Memory for constants that vector code reads: it begins at a line of the cache, so that no vector of it lies in two.
// Where it began by chance decided a fifth of a depthwise convolution's time.
#pragma once
#include <cstddef>
#include <memory>
#include <new>
#include <vector>

namespace tosaic::cpu {

constexpr std::align_val_t line_bytes{64};

template <class T>
struct LineAllocator {
  using value_type = T;
  LineAllocator() = default;
  template <class U>
  LineAllocator(const LineAllocator<U>&) {}  // NOLINT(google-explicit-constructor): as of all allocators
  T* allocate(std::size_t count) { return static_cast<T*>(::operator new(count * sizeof(T), line_bytes)); }
  void deallocate(T* memory, std::size_t) { ::operator delete(memory, line_bytes); }
  bool operator==(const LineAllocator&) const { return true; }
};
template <class T>
using Lines = std::vector<T, LineAllocator<T>>;

// The same with undefined content, for what is large and written at once.
struct FreeLines {
  void operator()(void* memory) const { ::operator delete(memory, line_bytes); }
};
template <class T>
using FreshLines = std::unique_ptr<T[], FreeLines>;
template <class T>
FreshLines<T> fresh_lines(std::size_t count) {
  const std::size_t line = static_cast<std::size_t>(line_bytes);
  return FreshLines<T>(static_cast<T*>(::operator new((count * sizeof(T) + line - 1) / line * line, line_bytes)));
}

}  // namespace tosaic::cpu
