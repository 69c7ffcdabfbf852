// SPDX-License-Identifier: Apache-2.0
// ExecuTorch's bundled program (.bpte): a .pte with inputs to try its methods with, and what they should give.
#pragma once
#include <string>
#include <variant>
#include <vector>

#include "ir/tensor.h"

namespace tosaic::bpte {

using Value = std::variant<Tensor, std::int64_t, bool, double>;
struct Case {
  std::string method;
  std::vector<Value> inputs, outputs;  // no outputs: nothing to compare with
};
struct File {
  Bytes program;            // a .pte
  std::vector<Case> cases;  // those of a method next to each other
};

bool is_bpte(const Bytes& file);  // of any version
// The program is a view into `file`, and tensors are where they lie there row-major; others are made that. `name` is
// for messages. Errors: bpte.version, bpte.corrupt.
Result<File> read(const Bytes& file, const std::string& name);
// The .pte in the file, which is one or a bundled program. Errors: those of read.
Result<Bytes> program_in(const Bytes& file, const std::string& name);
// Of dtypes that ExecuTorch has, up to 2 GB in all. Errors: bpte.dtype, bpte.size.
Result<Bytes> write(const File& file);

}  // namespace tosaic::bpte
