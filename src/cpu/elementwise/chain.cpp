// SPDX-License-Identifier: Apache-2.0
#include "cpu/elementwise/chain.h"

#include <algorithm>
#include <cstring>

namespace tosaic::cpu {
namespace {

template <class T>
void fill(std::byte* to, const std::byte* value, std::int64_t count) {
  T x;
  std::memcpy(&x, value, sizeof(T));
  std::fill_n(reinterpret_cast<T*>(to), count, x);
}
void fill(std::size_t size, std::byte* to, const std::byte* value, std::int64_t count) {
  switch (size) {
    case 1: return fill<std::uint8_t>(to, value, count);
    case 2: return fill<std::uint16_t>(to, value, count);
    case 4: return fill<std::uint32_t>(to, value, count);
    default: return fill<std::uint64_t>(to, value, count);
  }
}

}  // namespace

// Elements [first, first + count) of the operand as broadcast to the output.
void Chain::expand(const Input& input, const std::byte* from, std::int64_t first, std::int64_t count, std::byte* to) {
  const std::size_t size = input.size;
  auto bytes = [size](std::int64_t n) { return static_cast<std::size_t>(n) * size; };
  if (input.access != Access::strided) {
    if (input.period == 1) return fill(size, to, from, count);
    // One period, then what is there is doubled.
    std::int64_t done = 0, at = first % input.period;
    while (done < count && done < input.period) {
      const std::int64_t run = std::min({input.period - at, count - done, input.period - done});
      std::memcpy(to + bytes(done), from + bytes(at), bytes(run));
      done += run;
      at = 0;
    }
    while (done < count) {
      const std::int64_t run = std::min(done / input.period * input.period, count - done);
      std::memcpy(to + bytes(done), to, bytes(run));
      done += run;
    }
    return;
  }
  const int rank = static_cast<int>(input.dims.size());
  std::int64_t index[32], offset = 0, rest = first;
  for (int d = rank - 1; d >= 0; --d) {
    const auto s = static_cast<std::size_t>(d);
    index[d] = rest % input.dims[s];
    rest /= input.dims[s];
    offset += index[d] * input.strides[s];
  }
  const std::int64_t inner = input.dims.back(), inner_stride = input.strides.back();
  for (std::int64_t done = 0; done < count;) {
    const std::int64_t run = std::min(inner - index[rank - 1], count - done);
    if (inner_stride == 0)
      fill(size, to + bytes(done), from + bytes(offset), run);
    else
      std::memcpy(to + bytes(done), from + bytes(offset), bytes(run));
    done += run;
    offset -= index[rank - 1] * inner_stride;
    index[rank - 1] = 0;
    for (int d = rank - 2; d >= 0; --d) {
      const auto s = static_cast<std::size_t>(d);
      offset += input.strides[s];
      if (++index[d] < input.dims[s]) break;
      offset -= input.strides[s] * input.dims[s];
      index[d] = 0;
    }
  }
}

void Chain::run(const Frame& frame, std::int64_t begin, std::int64_t end, const void* streamed,
                std::byte* scratch) const {
  const std::size_t inputs = inputs_.size(), results = instructions_.size();
  const void* pointer[256];  // by register
  for (const Input& in : inputs_)
    if (in.access == Access::pattern && in.constant_pattern.empty())
      expand(in, static_cast<const std::byte*>(frame.read(in.value)), 0, in.period + block_elements,
             scratch + in.memory);
  auto* output = static_cast<std::byte*>(frame.write(output_));
  for (std::int64_t first = begin; first < end; first += block_elements) {
    const std::int64_t count = std::min(block_elements, end - first);
    for (std::size_t i = 0; i < inputs; ++i) {
      const Input& in = inputs_[i];
      const auto* memory =
          static_cast<const std::byte*>(in.access == Access::streamed ? streamed : frame.read(in.value));
      switch (in.access) {
        case Access::streamed: pointer[i] = memory + static_cast<std::size_t>(first - begin) * in.size; break;
        case Access::full: pointer[i] = memory + static_cast<std::size_t>(first) * in.size; break;
        case Access::pattern: {
          const std::byte* pattern = in.constant_pattern.empty() ? scratch + in.memory : in.constant_pattern.data();
          pointer[i] = pattern + static_cast<std::size_t>(first % in.period) * in.size;
          break;
        }
        case Access::repeated:
        case Access::strided:
          expand(in, memory, first, count, scratch + in.memory);
          pointer[i] = scratch + in.memory;
          break;
      }
    }
    for (std::size_t i = 0; i < results; ++i) {
      const Instruction& instruction = instructions_[i];
      void* out =
          i + 1 == results ? output + static_cast<std::size_t>(first) * output_size_ : scratch + register_memory_[i];
      pointer[inputs + i] = out;
      Block block{count, first, {}, out, instruction.constants.get()};
      for (std::size_t k = 0; k < 3; ++k) block.in[k] = instruction.in[k] < 0 ? nullptr : pointer[instruction.in[k]];
      instruction.kernel(block);
    }
  }
}

std::vector<ValueId> Chain::read_beyond_rows(std::int64_t row) const {
  const auto one_of_each_row = [&](const Input& in) {
    return in.access == Access::strided && in.dims == std::vector{elements_ / row, row} &&
           in.strides == std::vector<std::int64_t>{1, 0};
  };
  std::vector<ValueId> found;
  for (const Input& in : inputs_)
    if (in.access != Access::full && !one_of_each_row(in)) found.push_back(in.value);
  return found;
}

bool take_chain(Planning& planning, std::uint32_t n) {
  if (!chainable(planning.graph, n)) return false;
  std::vector<std::uint32_t> nodes = plan::elementwise_group(planning, chaining(planning), n);
  std::shared_ptr<const Chain> chain = Chain::make(planning.graph, nodes);
  if (!chain) chain = Chain::make(planning.graph, nodes = {n});
  Step step{.kernel = "chain", .nodes = nodes, .reads = chain->reads(), .writes = {chain->output()}};
  const std::size_t scratch = align_up(chain->scratch_bytes());
  step.scratch_per_thread = scratch;
  // About 16000 simple operations per task; at least one block.
  const std::int64_t blocks = (chain->elements() + Chain::block_elements - 1) / Chain::block_elements;
  const auto work = static_cast<std::int64_t>(chain->instructions());
  const std::int64_t blocks_per_task = std::max<std::int64_t>(1, 16 / work);
  const std::int64_t tasks = (blocks + blocks_per_task - 1) / blocks_per_task;
  step.run = [chain, scratch, tasks, span = blocks_per_task * Chain::block_elements](const Frame& frame) -> Status {
    frame.pool.run(tasks, [&](std::int64_t task, int thread) {
      const std::int64_t begin = task * span, end = std::min(begin + span, chain->elements());
      chain->run(frame, begin, end, nullptr, frame.scratch + static_cast<std::size_t>(thread) * scratch);
    });
    return {};
  };
  const Shape& shape = planning.type(chain->output()).shape;
  if (const std::int64_t row = shape.rank() > 0 ? shape.size(shape.rank() - 1) : 0; row > 0)
    step.rows = {chain->elements() / row, chain->read_beyond_rows(row),
                 [chain, row](const Frame& frame, std::int64_t first, std::int64_t last, std::byte* memory) {
                   chain->run(frame, first * row, last * row, nullptr, memory);
                 }};
  planning.add(std::move(step));
  return true;
}

}  // namespace tosaic::cpu
