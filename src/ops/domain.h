// SPDX-License-Identifier: Apache-2.0
// The small language of an operator's `domain` (test/ops/README.md): parsed once here, for the tests, for the matrix of
// what targets take, and, as JSON, for make_values.py.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ir/tensor.h"
#include "ops/op.h"

namespace tosaic::domain {

// A tensor to be made: generator, its bounds, and the shape.
struct Generator {
  std::string kind;                // "x", "u", "s", "e", "f", "n", "i", "l", "i8", "u8", "b"
  double lowest = 0, highest = 0;  // of u, s, i, l, i8, u8
  std::vector<std::int64_t> shape;
  bool constant = false;
};

struct Argument {
  std::string name;  // the schema's
  Attr literal;      // when there are no tensors
  bool is_tensor = false, is_list = false;
  std::vector<std::optional<Generator>> tensors;  // one, or a list's; nullopt: None
};

struct Case {
  std::string text;
  const Schema* schema = nullptr;
  std::vector<Argument> arguments;
  double rtol = 1e-5, atol = 1e-6;
  bool half = true;
  std::size_t results = SIZE_MAX;  // only so many of PyTorch's results are expressed
  std::string refused;             // the code of the refusal that is expected
  std::string no_int8, no_int16;   // the code with which an integer target refuses the quantised call
  double steps = 2;                // what an integer result may be off in its own arithmetic
  double share = 0;                // if not 0: with int16x8, the part of the signal that the whole may be off
  bool zeros = false;              // PyTorch's result is not compared: zeros are expected
};

// `op` is an entry of all_aten().
Result<Case> parse(const NamedAtenOp& op, std::string_view text);
// A tensor as the generator describes it: of its type and within its bounds, always the same. PyTorch's results are
// stored for others (make_values.py).
Tensor example(const Generator& generator);
// The case as one line of JSON for make_values.py.
std::string json(const NamedAtenOp& op, std::size_t index, const Case& parsed);

}  // namespace tosaic::domain
