// SPDX-License-Identifier: Apache-2.0
// Long lines of elements that a work group folds into one number each: its invocations go along a line together.
#pragma once
#include <functional>

#include "shaders/kernels.h"

namespace tosaic::shaders {

// Element (outer, i, inner) of a tensor lies at (outer * size + i) * inner + its own place among the inner ones.
struct Lines {
  Dim outer, size, inner;
  Dim count() const { return outer * inner; }
};

class GroupFold {
 public:
  // Is a line long enough to be shared?
  static bool takes(const Lines& lines, DType type);
  static Groups groups_of(const Lines& lines);

  using Load = std::function<Value(Value element)>;
  using Fold = std::function<Value(Value a, Value b)>;
  GroupFold(Kernel& s, const Lines& lines, const Load& load, const Fold& fold);
  // Calls body(line, folded) where one invocation stands for a line; no barrier may follow.
  void for_lines(const std::function<void(Value line, Value folded)>& body);

 private:
  Kernel& s_;
  Value line_, part_, exists_, folded_;
};

}  // namespace tosaic::shaders
