// SPDX-License-Identifier: Apache-2.0
// How the .pt2 reader gives up: deep inside, it throws a ReadError, which read_pt2 catches and returns as its
// Diagnostic. Private to read/: nothing is thrown across its interface.
#pragma once
#include <string>
#include <utility>

#include "base/result.h"
#include "ir/loc.h"

namespace tosaic {

struct ReadError {
  Diagnostic why;
};

[[noreturn]] inline void fail(Diagnostic why) { throw ReadError{std::move(why)}; }
[[noreturn]] inline void fail(std::string code, std::string message) {
  fail(error(std::move(code), std::move(message)));
}

[[noreturn]] inline void unsupported(const std::string& construct, const std::string& hint, const LocRef& loc = {}) {
  fail(located(error("pt2.unsupported-construct", construct + ", which is not supported yet").hint(hint), loc));
}

// The value of a Result, or its Diagnostic thrown.
template <class T>
T value_or_fail(Result<T> result) {
  if (!result.ok()) fail(std::move(result.error()));
  return *std::move(result);
}

}  // namespace tosaic
