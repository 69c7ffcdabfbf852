// SPDX-License-Identifier: Apache-2.0
// Runs one method of a .pte program: memory as planned in the file, delegates by id, kernels as the caller has them. It
// knows no operators.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "formats/pte/pte_file.h"
#include "ir/fixed_value.h"
#include "ir/tensor.h"
#include "runtime/delegate.h"
#include "runtime/kernel.h"
#include "runtime/shared_memory.h"

namespace tosaic::runtime {

struct Options {
  int threads = 0;                                // 0: all cores
  bool interpret = false;                         // the reference interpreter instead of the fast executor
  std::string file;                               // for messages
  std::function<void(const std::string&)> trace;  // given to the delegates
  std::function<void(const std::string&)> told;   // likewise: what they say when they are opened
  NamedData data;                                 // of .ptd files, in addition to the program's own
  Delegates delegates;                            // those that the program may use
  std::int64_t most_turns = 0;                    // of a loop; 0: as base/loop_limit.h says
  std::shared_ptr<SharedMemory> shared;           // with other methods of the program; null: it has all memory alone
  bool fixed_sizes = false;                       // programs whose sizes vary are refused: method.sizes-vary
  KernelFactory kernels;                          // what the program calls in addition to them; empty: it may only copy
};

struct OperationTime {
  std::string operation;  // "aten::add.out", "TOSABackend"; inside a delegate as it calls it: "conv2d_i8: tosa.conv2d"
  double seconds = 0;
  std::string within;        // the delegate whose time this is a part of: "TOSABackend"; empty: the method's own
  std::string value, place;  // inside a delegate: as tosaic_delegate_time has them
};

class Method {
 public:
  // Everything that can fail for reasons of the program fails here: method.missing, delegate.unknown, kernel.unknown,
  // kernel.unsupported, method.external-data, what the delegates say.
  static Result<Method> load(const pte::Program& program, const std::string& name, const Options& options = {});
  // The program's first method, and nothing else of it: no copy is made.
  static Result<Method> load_first(pte::Program program, const Options& options);
  Method(Method&&) noexcept;
  Method& operator=(Method&&) noexcept;
  ~Method();

  // The tensor inputs and outputs, row-major. Sizes that vary are symbols: "x_0" in the bounds that the delegate says.
  // Scalars that the model was traced with are not inputs.
  const std::vector<TensorType>& input_types() const;
  const std::vector<TensorType>& output_types() const;
  // The outputs that are no tensors, as the last run left them; positions count the tensors, too.
  FixedValues other_outputs() const;
  // The inputs that are no tensors: what the program was exported with.
  FixedValues other_inputs() const;
  // PyTorch's descriptions of the call and of the result, as the file has them; may be empty.
  const std::string& input_tree() const;
  const std::string& output_tree() const;
  // What the delegates run on, each device once.
  std::vector<std::string> devices() const;
  // The delegates' time in the last run, by their devices' own clocks.
  double device_seconds() const;
  // Gives the tensor outputs. Buffers keep their content from run to run. Errors: run.input-count, run.input-type.
  Result<std::vector<Tensor>> run(const std::vector<Tensor>& inputs);
  // The same without memory of its own: where sizes are fixed, nothing is allocated. The outputs are where `output`
  // says until the next run; the inputs have as many bytes as their types say.
  Status compute(std::span<const TensorView> inputs);
  const TensorType& output_type(std::size_t i) const;
  const void* output(std::size_t i) const;
  // The buffers that the program names, in its order; their content between runs, row-major. Errors: run.state-type;
  // those of a device that keeps them and is lost.
  struct State {
    std::string name;
    TensorType type;
  };
  const std::vector<State>& states() const;
  Result<Tensor> state(std::size_t i) const;
  Status set_state(std::size_t i, const Tensor& content);
  // Buffers, and what the delegates keep, are again what they were when the method was loaded.
  Status reset();
  // Another one of the same program, for another thread, in that state; weights are shared, memory is not. This one may
  // run meanwhile.
  Result<Method> clone() const;
  // Keep how long each instruction takes, from the next run on.
  Status measure(bool on);
  // Of the last run, when it was measured, in the order of the program; what a loop runs again is added up.
  std::vector<OperationTime> profile() const;

 private:
  struct Impl;
  static Result<Method> of(pte::Plan plan, const std::vector<pte::NamedData>& named_data, const Options& options);
  explicit Method(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tosaic::runtime
