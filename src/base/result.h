// SPDX-License-Identifier: Apache-2.0
// How functions pass a Result's error on. The type itself is public: tosaic/result.hpp.
#pragma once
#include "base/diagnostic.h"
#include "tosaic/result.hpp"

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
