// SPDX-License-Identifier: Apache-2.0
// Which overloads of the PyTorch operators which targets take: every call of every operator's `domain`, asked as a
// program of its own (supports.h). A call differs from its neighbours in ranks, dtypes and arguments, so an overload
// may be taken in part.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "pipeline/supports.h"

namespace tosaic {

struct SupportColumn {
  std::string name;  // "ethos-u55 int8"
  SupportQuestion question;
};

struct OverloadSupport {
  std::string file;       // of the operator: "add"
  std::string op;         // "aten.add.Tensor"
  std::size_t calls = 0;  // in the operator's domain
  std::vector<std::map<std::string, std::size_t>>
      refused;  // per column: reason's code -> how many calls; empty: all taken
  std::size_t taken(std::size_t column) const;
};

// In the order of the operators' names. Errors: a call that cannot be read or asked about.
Result<std::vector<OverloadSupport>> support_matrix(const std::vector<SupportColumn>& columns);

// One line per overload and answer, for reviewers: columns that answer alike stand together.
std::string print(const std::vector<OverloadSupport>& matrix, const std::vector<SupportColumn>& columns);

}  // namespace tosaic
