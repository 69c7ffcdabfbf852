// SPDX-License-Identifier: Apache-2.0
// Graphs as C, many at a time: printed, compiled with this machine's C compiler, and called.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ir/tensor.h"

namespace tosaic::test {

class Batch {
 public:
  // `check` is called with what the C computed, when all have been compiled.
  using Check = std::function<void(const std::vector<Tensor>& results)>;
  // False: there is no C for it, and `why` says so.
  bool add(const Graph& graph, std::vector<Tensor> inputs, Check check, std::string* why = nullptr);
  std::size_t size() const { return cases_.size(); }
  // `flags`: of the compiler.
  void run(const std::string& flags = "-O1");

 private:
  struct One {
    std::string code, name;
    std::vector<Tensor> inputs;
    std::vector<TensorType> outputs;
    Check check;
  };
  void run_part(std::size_t first, std::size_t last, const std::string& folder, const std::string& flags);
  std::vector<One> cases_;
};

}  // namespace tosaic::test
