// SPDX-License-Identifier: Apache-2.0
// A program that PyTorch exported, read once.
#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tosaic/bytes.hpp"
#include "tosaic/result.hpp"
#include "tosaic/tensor.hpp"

namespace tosaic {

struct MethodInfo {
  std::string name;                       // "forward"
  std::vector<Argument> inputs, outputs;  // in the order of the pytree's leaves
  std::vector<TensorInfo> buffers;        // what outlives a run
  // The program writes to these of its tensor inputs (0 is the first tensor): the first outputs are their new contents.
  std::vector<std::size_t> written_inputs;
  std::size_t nodes = 0;
  std::size_t sample_sets = 0;  // sets of example inputs that the file holds
};

// A tensor where the process that exported the program has it: sizes, strides and an offset, all in elements, choose
// its elements from a storage.
struct HeldTensor {
  DType dtype = DType::f32;
  std::vector<std::int64_t> sizes, strides;
  std::int64_t offset = 0;
  Bytes storage;  // whose owner keeps the memory alive; it must not change while a Program or an Artifact of it is used
};
// A program in the memory of the process that exported it: what torch.export.save would write, without a file and
// without a copy of the weights.
struct HeldProgram {
  std::string json;                                         // torch._export.serde.schema.ExportedProgram, as JSON
  std::vector<std::pair<std::string, HeldTensor>> tensors;  // parameters, buffers, constants by qualified name
  std::vector<std::vector<OwnedTensor>> samples;            // sets of example inputs: one per tensor input, in order
};

// Copies share what was read; any number of threads may use one. One that was moved from is as it was.
class TOSAIC_API Program {
 public:
  Program(const Program&) = default;
  Program& operator=(const Program&) = default;
  // A .pt2 of torch.export.save (PyTorch 2.9 to 2.15), or a graph in tosaic's text form; distinguished by content. The
  // file stays mapped, its weights are not copied. Errors: file.*, pt2.*, text.*.
  static Result<Program> open(const std::string& path, const Messages& messages = {});
  // The same from memory; `name` stands for the file in messages.
  static Result<Program> read(Bytes file, const std::string& name = "program", const Messages& messages = {});
  static Result<Program> read(HeldProgram held, const std::string& name = "program", const Messages& messages = {});

  // Programs as the methods of one, by names that are identifiers: compiled together, they become methods of one file
  // that share weights and the buffers of equal names. Error: model.methods.
  static Result<Program> together(const std::vector<std::pair<std::string, Program>>& methods,
                                  const std::string& name = "program");

  // The program with images as batch, height, width, channels ("nhwc"): all inputs of four dimensions, or "INPUT=nhwc",
  // one; later choices win. Its sample inputs are in that order, too. What the option "input-layout" of a compilation
  // asks for; one that has it already stays as it is, one that has another is refused. Error: option.layout.
  Result<Program> with_input_layout(const std::vector<std::string>& choices) const;

  const std::string& name() const;
  const std::string& torch_version() const;  // empty: graph text
  const std::vector<MethodInfo>& methods() const;
  // PyTorch's pytree descriptions of the call's (args, kwargs) and of the result, as it wrote them (JSON); empty: none.
  // Of several methods the first one's.
  const std::string& input_tree() const;
  const std::string& output_tree() const;
  // The tensor inputs of one set of stored examples, in order. Errors: program.method, program.sample.
  Result<std::vector<OwnedTensor>> sample_inputs(std::size_t set = 0, const std::string& method = "forward") const;

  struct Impl;
  explicit Program(std::shared_ptr<const Impl> impl);  // null: a program without methods
  const Impl& impl() const { return *impl_; }

 private:
  std::shared_ptr<const Impl> impl_;
};

}  // namespace tosaic
