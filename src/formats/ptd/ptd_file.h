// SPDX-License-Identifier: Apache-2.0
// ExecuTorch's data file (.ptd): named pieces of data that a program refers to, weights mostly. Reader and writer.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/rope.h"
#include "ir/type.h"

namespace tosaic::ptd {

struct Entry {
  std::string key;
  Bytes data;
  std::optional<TensorType> tensor = std::nullopt;  // what the data are, where the file says so
};

// The data are not copied: the result's pieces are these.
Rope write(const std::vector<Entry>& entries);
// Every index, offset and size is checked; the data are views into `file`. `name` is for messages.
// Errors: ptd.not-ptd, ptd.version, ptd.corrupt.
Result<std::vector<Entry>> read(const Bytes& file, const std::string& name);

}  // namespace tosaic::ptd
