// SPDX-License-Identifier: Apache-2.0
// What the library asks of Python while it works without the interpreter's lock: samples, and whether somebody pressed
// Ctrl-C. The first exception ends what asks; `rethrow` raises it when that has ended.
#pragma once
#include <exception>

#include "bind.h"

namespace tosaic::python {

class Asked {
 public:
  // With the lock. False: an exception came out of this body, or of one before, after which none is run.
  template <class F>
  bool in_python(F&& body) {
    const nb::gil_scoped_acquire held;
    if (raised_) return false;
    try {
      body();
    } catch (...) { raised_ = std::current_exception(); }
    return raised_ == nullptr;
  }

  // Ctrl-C is a signal that Python keeps until somebody asks.
  bool cancelled() {
    return !in_python([] {
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
    });
  }

  // An iterator of (owners, described tensors); the objects stay until the next is asked for.
  SampleSource samples(nb::object iterator) {
    return [this, from = keep(iterator), at = iterator.ptr()](std::vector<InputTensor>& sample) -> Result<bool> {
      return next_of(at, "compile.cancelled", [&](nb::object next) {
        sample = all_lent(next[1]);
        current_ = std::move(next);
      });
    };
  }

  // An iterator of (owners, described tensors, labels, name). The tensors are dense, and copied: the next ones may be
  // put in the same place.
  LabelledData labelled(nb::object iterator, std::size_t expected) {
    return {[this, from = keep(iterator), at = iterator.ptr()](LabelledSample& sample) -> Result<bool> {
              return next_of(at, "run.cancelled", [&](const nb::object& next) {
                sample.inputs.clear();
                for (const InputTensor& x : all_lent(next[1])) sample.inputs.push_back(copied(x));
                sample.labels = nb::cast<std::vector<std::int64_t>>(next[2]);
                sample.name = nb::cast<std::string>(next[3]);
              });
            },
            expected,
            {}};
  }

  void rethrow() const {
    if (raised_ != nullptr) std::rethrow_exception(raised_);
  }
  // The result, unless Python raised something.
  template <class T>
  T end(Result<T> result) const {
    rethrow();
    return value_of(std::move(result));
  }

 private:
  // False: there are no more.
  template <class F>
  Result<bool> next_of(PyObject* iterator, const char* code, F&& take) {
    bool more = false;
    const bool went_on = in_python([&] {
      nb::object next = nb::steal(PyIter_Next(iterator));
      if (next.is_valid()) {
        more = true;
        take(std::move(next));
      } else if (PyErr_Occurred()) {
        throw nb::python_error();
      }
    });
    if (!went_on) return Diagnostic{.code = code, .message = "the samples ended with an exception"};
    return more;
  }

  static OwnedTensor copied(const InputTensor& x) {
    std::size_t bytes = storage_size(x.dtype);
    for (const std::int64_t size : x.sizes) bytes *= static_cast<std::size_t>(size);
    return {x.dtype, x.sizes, Bytes::copy(x.data, bytes)};
  }

  nb::object current_;
  std::exception_ptr raised_;
};

}  // namespace tosaic::python
