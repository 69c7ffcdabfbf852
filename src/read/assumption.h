// SPDX-License-Identifier: Apache-2.0
// What an exported program asserts of numbers that it computes: torch._check(n.item() < 10).
#pragma once
#include <string_view>

namespace tosaic {

// "Eq(u0, 1)" of "Runtime assertion failed for expression Eq(u0, 1) on node 'eq'": a symbol u0 or zuf0 is a number that
// the program computes. Empty: sizes of inputs, which are looked at when there are inputs.
std::string_view computed_assumption(std::string_view assertion);

}  // namespace tosaic
