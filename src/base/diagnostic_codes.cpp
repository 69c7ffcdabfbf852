// SPDX-License-Identifier: Apache-2.0
// base/diagnostic.cpp of a build without texts.
#include "base/diagnostic.h"

namespace tosaic {

Diagnostic error_of(const char* code) {
  Diagnostic d;
  d.code = code;
  d.internal = d.code == "internal";
  return d;
}

}  // namespace tosaic
