// SPDX-License-Identifier: Apache-2.0
// A program that PyTorch exported, read once.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "tosaic/bytes.hpp"
#include "tosaic/result.hpp"
#include "tosaic/tensor.hpp"

namespace tosaic {

struct MethodInfo {
  std::string name;                       // "forward"
  std::vector<Argument> inputs, outputs;  // in the order of the pytree's leaves
  std::vector<TensorInfo> buffers;        // what outlives a run
  std::size_t nodes = 0;
  std::size_t sample_sets = 0;  // sets of example inputs that the file holds
};

// Copies share what was read; any number of threads may use one.
class TOSAIC_API Program {
 public:
  // A .pt2 of torch.export.save (PyTorch 2.9 to 2.13), or a graph in tosaic's text form; told apart by content. The
  // file stays mapped, its weights are not copied. Errors: file.*, pt2.*, text.*.
  static Result<Program> open(const std::string& path, const Messages& messages = {});
  // The same from memory; `name` stands for the file in messages.
  static Result<Program> read(Bytes file, const std::string& name = "program", const Messages& messages = {});

  const std::string& name() const;
  const std::string& torch_version() const;  // empty: graph text
  const std::vector<MethodInfo>& methods() const;
  // PyTorch's pytree descriptions of the call's (args, kwargs) and of the result, as it wrote them (JSON); empty: none.
  const std::string& input_tree() const;
  const std::string& output_tree() const;
  // The tensor inputs of one set of stored examples, in order. Errors: program.method, program.sample.
  Result<std::vector<OwnedTensor>> sample_inputs(std::size_t set = 0, const std::string& method = "forward") const;

  struct Impl;
  explicit Program(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  const Impl& impl() const { return *impl_; }

 private:
  std::shared_ptr<const Impl> impl_;
};

}  // namespace tosaic
