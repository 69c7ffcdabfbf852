// SPDX-License-Identifier: Apache-2.0
// The windows of signal processing, which programs make inside forward (torch.stft(x, n, window=torch.hann_window(n))).
#pragma once
#include <vector>

#include "ops/lowering/creation.h"
#include "ops/op.h"

namespace tosaic {

// value(i, last): the window's element i of 0..last. A periodic window is one element longer, and lacks the last.
template <class F>
Vals lower_window(const Call& call, const F& value) {
  const std::int64_t length = call.integer("window_length");
  if (length < 1) call.builder().refuse("aten.window.length", "a window of length " + std::to_string(length));
  creation::check_count(call, static_cast<double>(length));
  const bool periodic = !call.schema().argument("periodic") || call.flag("periodic");
  const auto last = static_cast<double>(periodic ? length : length - 1);
  std::vector<double> values;
  for (std::int64_t i = 0; i < length; ++i) values.push_back(length == 1 ? 1.0 : value(static_cast<double>(i), last));
  return creation::vector(call, values, creation::dtype_of(call, DType::f32));
}

inline double number_or(const Call& call, std::string_view name, double otherwise) {
  return call.schema().argument(name) ? call.number(name) : otherwise;
}

}  // namespace tosaic
