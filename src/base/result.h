// SPDX-License-Identifier: Apache-2.0
// Result<T>: a value, or the Diagnostic that says why there is none. The only way errors travel in tosaic.
#pragma once
#include <optional>
#include <utility>
#include <variant>

#include "base/diagnostic.h"

namespace tosaic {

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Diagnostic why) : state_(std::in_place_index<1>, std::move(why)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  T& operator*() & { return std::get<0>(state_); }
  const T& operator*() const& { return std::get<0>(state_); }
  T&& operator*() && { return std::get<0>(std::move(state_)); }
  T* operator->() { return &std::get<0>(state_); }
  const T* operator->() const { return &std::get<0>(state_); }
  Diagnostic& error() { return std::get<1>(state_); }
  const Diagnostic& error() const { return std::get<1>(state_); }

 private:
  std::variant<T, Diagnostic> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Diagnostic why) : why_(std::move(why)) {}
  bool ok() const { return !why_; }
  explicit operator bool() const { return ok(); }
  Diagnostic& error() { return *why_; }
  const Diagnostic& error() const { return *why_; }

 private:
  std::optional<Diagnostic> why_;
};

using Status = Result<void>;

}  // namespace tosaic

#define TOSAIC_CONCAT_(a, b) a##b
#define TOSAIC_CONCAT(a, b) TOSAIC_CONCAT_(a, b)
// TOSAIC_TRY(auto graph, read(path)): binds the value, or returns the error from the enclosing function.
#define TOSAIC_TRY(declaration, expression)                                                               \
  auto TOSAIC_CONCAT(result_, __LINE__) = (expression);                                                   \
  if (!TOSAIC_CONCAT(result_, __LINE__).ok()) return std::move(TOSAIC_CONCAT(result_, __LINE__)).error(); \
  declaration = *std::move(TOSAIC_CONCAT(result_, __LINE__))
// TOSAIC_CHECK(verify(graph)): the same for a Status.
#define TOSAIC_CHECK(expression)                                                                    \
  if (auto TOSAIC_CONCAT(status_, __LINE__) = (expression); !TOSAIC_CONCAT(status_, __LINE__).ok()) \
  return std::move(TOSAIC_CONCAT(status_, __LINE__)).error()
