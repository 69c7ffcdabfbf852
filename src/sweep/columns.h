// SPDX-License-Identifier: Apache-2.0
// The columns of a sweep, once for all its forms.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "tosaic/sweep.hpp"

namespace tosaic::sweeps {

struct Column {
  std::string key, title;                             // "sram_bytes", "SRAM kB"
  bool number = false;                                //
  std::function<std::string(const SweepRow&)> exact;  // for programs; empty: not known
  std::function<std::string(const SweepRow&)> shown;  // for people
};
const std::vector<Column>& columns();
// Those in which some row says something.
std::vector<const Column*> columns_of(const std::vector<SweepRow>& rows);

}  // namespace tosaic::sweeps
