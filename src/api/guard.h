// SPDX-License-Identifier: Apache-2.0
// The boundary of the library: nothing is thrown across it, and every error that crosses it says what to do.
#pragma once
#include <exception>
#include <new>
#include <string>
#include <type_traits>
#include <utility>

#include "api/hints.h"
#include "base/result.h"
#include "ir/dim.h"

namespace tosaic {

// For functions that say "no exception": memory that is not there has to be told without more of it.
inline Diagnostic out_of_memory() noexcept {
  Diagnostic why;
  try {
    why.code = "memory.exhausted";
    why.message = "there is not enough memory";
    why.help = "use a smaller model or fewer samples";
  } catch (...) {  // short enough to need no memory of its own
    why.code = "memory.none";
    why.message = "out of memory";
  }
  return why;
}

// body(), a Result; `file` is what it is about.
template <class F>
std::invoke_result_t<F> guarded(const std::string& file, F&& body) noexcept {
  try {
    auto result = std::forward<F>(body)();
    if (result.ok()) return result;
    return with_hint(std::move(result.error()), file);
  } catch (const std::bad_alloc&) { return out_of_memory(); } catch (const UnknownSize& unknown) {
    try {
      Diagnostic why = error("model.dynamic-shape", std::string(unknown.what()) + ", and a fixed size is needed there")
                           .hint(
                               "choose the sizes: --sizes NAME=SIZE, in Python sizes=[...]; or export the model "
                               "without dynamic_shapes, at the size that you deploy");
      return with_hint(std::move(why), file);
    } catch (...) { return out_of_memory(); }
  } catch (const std::exception& problem) {
    try {
      return internal_error(problem.what());
    } catch (...) { return out_of_memory(); }
  } catch (...) { return out_of_memory(); }
}

}  // namespace tosaic
