// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace tosaic {

// What `tosaic inspect` found, for people and for programs.
struct Inspected {
  std::string text, json;
};

}  // namespace tosaic
