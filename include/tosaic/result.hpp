// SPDX-License-Identifier: Apache-2.0
// Result<T>: a value, or the Diagnostic that says why there is none. The only way errors travel in tosaic.
#pragma once
#include <optional>
#include <utility>
#include <variant>

#include "tosaic/diagnostic.hpp"

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
