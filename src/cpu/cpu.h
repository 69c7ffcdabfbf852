// SPDX-License-Identifier: Apache-2.0
// The fast CPU executor of TOSA graphs: kernels chosen and weights packed once, memory planned once, then runs
// that allocate nothing. Integer results equal the interpreter's bit for bit; floats lie within TOSA's bound.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/memory.h"
#include "base/system/thread_pool.h"
#include "ir/graph.h"
#include "ir/tensor.h"
#include "ops/definitions/tosa_op.h"

namespace tosaic::cpu {

// Called during a run, right after `value` has been computed and while its memory is valid. The program's threads
// are free meanwhile: the pool is lent.
using Observer = std::function<void(ValueId value, const TensorView& content, ThreadPool& pool)>;

struct Options {
  int threads = 0;                       // 0: all cores
  std::vector<ValueId> observed;         // values that must exist as such (not fused away), reported to the observer
  tosa::Variables* variables = nullptr;  // the VARIABLEs of the program that this is a region of; outlives this one
  MemorySource memory = {};              // the arena's; empty: the heap
  // Constants of the graph stay where they are, and what they are, as long as any program reads them: programs of other
  // graphs with the same memory as constants share what is made of it.
  bool lasting_weights = false;
  bool timed = false;            // begin with measure(true)
  bool computes_weights = true;  // false: what only constants decide is left to each run
};

struct StepTime {
  std::string name;   // "conv2d_i8: tosa.conv2d"
  std::string value;  // the graph's name of what it computes
  std::string place;  // "features.3.conv, model.py:6", where the graph says it (layer_text)
  double seconds = 0;
};

class Program {
 public:
  // The graph holds only tosa.* nodes and has passed tosa::verify_graph.
  static Result<Program> compile(const Graph& graph, const Options& options = {});
  Program(Program&&) noexcept;
  Program& operator=(Program&&) noexcept;
  ~Program();

  // Another one of the same graph, for another thread, its VARIABLEs in their first state: the packed weights and all
  // that was decided are shared, only the arena is its own. This one may run meanwhile.
  Result<Program> clone(const MemorySource& memory = {}) const;

  // Pointers to dense tensors of the graph's input and output types, in its order. Not thread safe: one
  // Program per thread of use.
  Status run(std::span<const void* const> inputs, std::span<void* const> outputs, const Observer* observer = nullptr);
  // The same with owned tensors, checked: run.input-count, run.input-type.
  Result<std::vector<Tensor>> run(const std::vector<Tensor>& inputs, const Observer* observer = nullptr);

  // VARIABLEs keep their content from run to run; this gives them their initial values again.
  void reset();

  const std::vector<TensorType>& input_types() const;
  const std::vector<TensorType>& output_types() const;
  std::size_t arena_bytes() const;
  // The kernel chosen for each step, in the order of running: for tests and for people who measure.
  std::vector<std::string_view> kernels() const;
  // Keep how long each step takes, from the next run on.
  void measure(bool on);
  // Of the last run, when it was measured.
  std::vector<StepTime> step_times() const;

 private:
  struct Impl;
  explicit Program(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tosaic::cpu
