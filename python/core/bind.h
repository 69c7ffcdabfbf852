// SPDX-License-Identifier: Apache-2.0
// What the parts of the Python module share: errors become exceptions, tensors cross without a copy.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <utility>
#include <vector>

#include "text.h"
#include "tosaic/printable.hpp"
#include "tosaic/tosaic.hpp"

namespace tosaic::python {

namespace nb = nanobind;

void bind_descriptions(nb::module_& m);
void bind_program(nb::module_& m);
void bind_compile(nb::module_& m);
void bind_session(nb::module_& m);
void bind_evaluate(nb::module_& m);
void bind_sweep(nb::module_& m);
void bind_bundle(nb::module_& m);
void bind_tosa(nb::module_& m);

// Raises tosaic.Error, which carries the diagnostic.
[[noreturn]] void raise(const Diagnostic& why);

// The value, or the exception.
template <class T>
T value_of(Result<T> result) {
  if (!result.ok()) raise(result.error());
  return *std::move(result);
}
inline void check(const Status& status) {
  if (!status.ok()) raise(status.error());
}

// body() without the interpreter's lock.
template <class F>
auto unlocked(F&& body) {
  const nb::gil_scoped_release released;
  return body();
}

// body(messages) without the lock: what it gives, and what was said on the way.
template <class F>
auto heard(F&& body) {
  std::vector<Diagnostic> said;
  auto made = unlocked([&] { return body(Messages([&](const Diagnostic& d) { said.push_back(d); })); });
  auto value = value_of(std::move(made));
  return std::make_pair(std::move(value), std::move(said));
}

// A tensor as Python describes it: (address, dtype, sizes, strides in elements or None). tosaic._tensors makes these of
// PyTorch's tensors, NumPy's arrays and everything that speaks DLPack; the caller keeps the memory.
InputTensor lent(nb::handle described);
std::vector<InputTensor> all_lent(nb::handle list);

// A Python object as the owner of bytes; may be let go of by any thread.
std::shared_ptr<const void> keep(nb::handle object);

// A result as an object that speaks DLPack and looks at the memory, or a Python number, text, list or None.
nb::object given(const Output& output);
nb::object given(const OwnedTensor& tensor);
nb::object given(const Literal& literal);
nb::bytes bytes_of(const Bytes& bytes);

// {"executor": "cpu", "data": {"name.ptd": b"..."}, ...}
SessionOptions session_options(const nb::dict& given);

// {"name": ["value", ...]}
Options options_of(const nb::dict& given);

}  // namespace tosaic::python
