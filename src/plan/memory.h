// SPDX-License-Identifier: Apache-2.0
// Where every value of a graph lies while it runs: in its constant, in the caller's input or output, inside another
// value, or in the arena for as long as some step needs it.
#pragma once
#include <optional>
#include <span>
#include <vector>

#include "ir/graph.h"

namespace tosaic::plan {

// Value `alias` lies inside value `of`, `offset` bytes from its start.
struct Alias {
  ValueId alias, of;
  std::size_t offset;
};

enum class Home : std::uint8_t { none, constant, input, output, arena };

// In the memory of `root`, at an offset in bytes.
struct Location {
  ValueId root = no_value;
  std::size_t offset = 0;
  Home home = Home::none;
  std::uint32_t slot = 0;          // input or output number
  std::uint64_t arena_offset = 0;  // of the value itself, when its home is the arena
};

// What one step of an executor needs, in the order in which steps run.
struct StepMemory {
  std::span<const ValueId> reads, writes;
  std::uint64_t scratch_bytes = 0;
  // Steps of one number may run at the same time. They do not descend; without them each step has its own.
  std::optional<std::uint32_t> level = std::nullopt;
};

struct Memory {
  std::vector<Location> location;             // by value
  std::vector<std::uint64_t> scratch_offset;  // by step, in the arena
  std::vector<ValueId> at_input, at_output;   // values whose address changes from run to run
  struct Copy {
    ValueId from;
    std::uint32_t output;
  };
  std::vector<Copy> copies;  // outputs that share memory with something else
  std::uint64_t arena_bytes = 0;
  std::vector<ValueId> at_peak;  // roots in the arena where most is alive, the largest first
};

// Constants and inputs stay where they are, what becomes an output is computed there, the rest goes to the arena.
Memory place_values(const Graph& graph, std::span<const Alias> aliases, std::span<const StepMemory> steps,
                    std::uint64_t alignment);

}  // namespace tosaic::plan
