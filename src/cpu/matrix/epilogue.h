// SPDX-License-Identifier: Apache-2.0
// What follows the sums of a convolution or matrix product, computed while they are still close: first what the
// kernel does in registers (bounds of a CLAMP; RESCALE to i8 or i16 and its CLAMP), then a chain over each block of
// rows.
#pragma once
#include "cpu/elementwise/chain.h"
#include "cpu/matrix/rescale.h"
#include "cpu/step.h"

namespace tosaic::cpu {

struct Epilogue {
  std::vector<std::uint32_t> nodes;    // next to the convolution itself, ascending
  ValueId direct = no_value;           // what the kernel's registers hold at the end
  std::int64_t element = 0;            // of `direct`, in bytes
  ValueId output = no_value;           // what the step writes
  std::shared_ptr<const Chain> chain;  // from direct to output; null: they are the same

  float lowest = 0, highest = 0;         // f32; infinities where there is no CLAMP
  bool rescaled = false;                 // the sums become i8, those of i48 i16
  std::vector<std::int32_t> multiplier;  // one, or one per column
  std::vector<std::int8_t> shift;
  std::int32_t output_zp = 0, lowest_quantised = 0, highest_quantised = 0;

  // Elements of `direct` from `first` on, as a kernel writes them: in the tile, where a chain reads them.
  std::byte* sums(const Frame& frame, std::int64_t first, std::byte* tile) const {
    return chain ? tile : static_cast<std::byte*>(frame.write(output)) + first * element;
  }
  // What follows elements [first, last), which are in the tile; `scratch` of chain_bytes().
  void finish(const Frame& frame, std::int64_t first, std::int64_t last, const std::byte* tile,
              std::byte* scratch) const {
    if (chain) chain->run(frame, first, last, tile, scratch);
  }

  // The step's memory in addition to the kernel's own: a tile of `direct` and the chain's scratch.
  std::size_t tile_bytes(std::int64_t elements) const {
    return chain ? align_up(static_cast<std::size_t>(elements * element)) : 0;
  }
  std::size_t chain_bytes() const { return chain ? align_up(chain->scratch_bytes()) : 0; }
  void describe(Step& step) const;  // adds nodes, reads and writes
};

// What can follow node `n`, whose output is f32, i32 or i48. `rescales`: the kernel can RESCALE it, to i8 or of i48 to
// i16; it has the sums in i32 then. Without `tail` no chain.
Epilogue find_epilogue(const Planning& planning, std::uint32_t n, bool rescales, bool tail = true);
// A chain wants whole rows: few rows of large weights are better computed by all threads, and the chain after them.
bool shares_columns(const Planning& planning, std::int64_t rows, int max_rows, std::int64_t weights);

// The step of a kernel whose tasks run in scratch of their own: with `input`, `epilogue`, `sharing`, `scratch` and
// run_task(frame, task, memory); prepare(frame), where there is one, comes before the tasks.
template <class Kernel>
void add_shared_step(Planning& planning, Step step, std::shared_ptr<const Kernel> kernel) {
  kernel->epilogue.describe(step);
  step.scratch_per_thread = kernel->scratch;
  step.run = [kernel](const Frame& frame) -> Status {
    if constexpr (requires { kernel->prepare(frame); }) kernel->prepare(frame);
    frame.pool.run(kernel->sharing.tasks(), [&](std::int64_t task, int thread) {
      kernel->run_task(frame, task, frame.scratch + static_cast<std::size_t>(thread) * kernel->scratch);
    });
    return {};
  };
  planning.add(std::move(step));
}
template <class Kernel>
void add_shared_step(Planning& planning, std::string_view name, std::uint32_t n, std::shared_ptr<const Kernel> kernel) {
  Step step{.kernel = name, .nodes = {n}, .reads = {kernel->input}};
  add_shared_step(planning, std::move(step), std::move(kernel));
}

}  // namespace tosaic::cpu
