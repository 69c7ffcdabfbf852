// SPDX-License-Identifier: Apache-2.0
// Labels that people wrote down: a line for each sample.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tosaic {

struct LabelLines {
  std::vector<std::int64_t> in_order;                        // lines "3"
  std::map<std::string, std::vector<std::int64_t>> by_name;  // lines "cats/12.npy,3", several labels for several rows
};
// Of the text of a file; the one line that may be a heading is left out. Error: evaluate.labels, which names the line.
Result<LabelLines> read_label_lines(std::string_view text, const std::string& file);

}  // namespace tosaic
