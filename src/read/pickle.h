// SPDX-License-Identifier: Apache-2.0
// Reads a Python pickle as data only. Nothing is imported or called: a call in the pickle becomes a value that says
// what would have been called with what, and the reader of that value knows the few calls it understands.
// Private to read/.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"

namespace tosaic {

using PickleRef = std::uint32_t;  // index into Pickle::values; shared objects have one index

struct PickleValue {
  enum Kind : std::uint8_t {
    none,
    boolean,
    integer,
    real,
    text,
    tuple,
    list,
    dict,        // items: key, value, key, value, ...
    global,      // text: "torch._utils._rebuild_tensor_v2"
    call,        // callable and arguments; items: what was appended or set on the result
    persistent,  // arguments: what stands for an object outside the pickle (a tensor's storage)
    opaque,      // anything else
  };
  Kind kind = none;
  std::int64_t number = 0;  // boolean, integer
  double real_number = 0;
  std::string text_value;  // text, global
  std::vector<PickleRef> items;
  PickleRef callable = 0, arguments = 0;
};

struct Pickle {
  std::vector<PickleValue> values;
  PickleRef root = 0;
  const PickleValue& operator[](PickleRef ref) const { return values[ref]; }
};

// Errors: pickle.truncated, pickle.unknown-opcode, pickle.bad (a stack or memo that does not hold what is asked for).
Result<Pickle> read_pickle(const Bytes& bytes);

}  // namespace tosaic
