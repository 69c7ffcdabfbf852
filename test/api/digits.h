// SPDX-License-Identifier: Apache-2.0
// The handwritten digits of the examples, through the public headers alone.
#pragma once
#include <gtest/gtest.h>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tosaic/tosaic.hpp"

namespace tosaic::test {

inline std::string digits_path() { return TOSAIC_TEST_DATA "/../examples/digits/digits.pt2"; }

inline std::vector<char> content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

template <class T>
T good(Result<T> result) {
  if (!result.ok()) {
    ADD_FAILURE() << render(result.error(), false);
    std::abort();
  }
  return *std::move(result);
}

inline Program digits() { return good(Program::read(Bytes::of(content(digits_path())), "digits.pt2")); }

// All bytes of the tensor outputs.
inline std::string bytes_of(const std::vector<Output>& outputs) {
  std::string all;
  for (const Output& o : outputs)
    if (o.tensor) all += std::string(o.tensor->data.text());
  return all;
}

inline std::vector<InputTensor> lent(const std::vector<OwnedTensor>& tensors) {
  std::vector<InputTensor> list;
  for (const OwnedTensor& t : tensors) list.push_back(t.view());
  return list;
}

}  // namespace tosaic::test
