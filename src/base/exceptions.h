// SPDX-License-Identifier: Apache-2.0
// Exceptions, where the compiler has them. Nothing of tosaic's own relies on them but for what asks for the size of
// what has none; the standard library's, of memory that is not there, become errors at interfaces. A firmware is built
// without: there memory that is not there ends it (base/system/bare).
#pragma once
#include <cstdlib>
#include <exception>
#include <new>

namespace tosaic {

template <class Thrown>
[[noreturn]] void raise([[maybe_unused]] const Thrown& what) {
#ifdef __cpp_exceptions
  throw what;
#else
  std::abort();
#endif
}

// f(), or what these two make of an exception: no_memory(), and other(text).
template <class F, class NoMemory, class Other>
auto guarded_call(const F& f, [[maybe_unused]] const NoMemory& no_memory, [[maybe_unused]] const Other& other) {
#ifdef __cpp_exceptions
  try {
    return f();
  } catch (const std::bad_alloc&) { return no_memory(); } catch (const std::exception& e) {
    return other(e.what());
  } catch (...) { return other("an exception of unknown type"); }
#else
  return f();
#endif
}

}  // namespace tosaic
