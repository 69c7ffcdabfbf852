// SPDX-License-Identifier: Apache-2.0
// What a report shows of a program, in plain structs: made of a compilation or of a file, written as JSON
// (contents_json), drawn by the page.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tosaic/diagnostic.hpp"

namespace tosaic::reporting {

// How the integers of a value stand for real numbers.
struct ShownScales {
  std::size_t channels = 1;                  // that have scales of their own
  double scale = 0, largest_scale = 0;       // of several channels the smallest, and the largest
  std::int64_t zero_point = 0;               // of the first channel
  double lowest_real = 0, highest_real = 0;  // what the integers reach; over all channels
};

struct ShownValue {
  std::string name, type;   // "conv2d_4", "1x8x8x3xi8<0.02:3>"
  std::uint64_t bytes = 0;  // at its largest; 0: not known
  bool is_constant = false;
  std::optional<ShownScales> scales;
};

struct ShownNode {
  std::string name, op;             // "conv2d_4", "aten.conv2d.default"
  std::string text;                 // "stride=[2, 2], groups=1"; of instructions and NPU operations what they say
  std::string module, module_type;  // "features.3.conv", "Conv2d"
  std::string place, source;        // "model.py:6" and what stands there; empty: not known
  std::vector<std::string> exported;
  std::vector<std::uint32_t> inputs, outputs;  // of the graph's values
  std::optional<int> delegate;                 // that runs it; -1: none does. Nothing: it is in one, or a call of one
  std::optional<Diagnostic> reason;            // why none does
};

struct ShownGraph {
  enum class Kind : std::uint8_t {
    program,       // calls, of which delegates take some
    instructions,  // what the .pte says that is to be run
    delegate,      // what a delegate runs
  };
  std::string name;  // "forward", "delegate 0"
  Kind kind = Kind::program;
  std::string id;           // of a delegate: "EthosUBackend"
  int delegate = -1;        // its number
  std::uint64_t bytes = 0;  // of its payload
  bool sequence = false;    // what a node reads is not known: each comes after the one before
  std::vector<ShownValue> values;
  std::vector<ShownNode> nodes;
  std::vector<std::uint32_t> inputs, outputs;
};

// Memory that is needed while the nodes of a graph run, one after another.
struct ShownMemory {
  struct Buffer {
    std::uint32_t value = 0;  // of the graph
    std::uint64_t bytes = 0, offset = 0;
    std::uint32_t first = 0, last = 0;  // nodes, both included
  };
  std::size_t graph = 0;          // index in Contents
  std::string name;               // "arena of forward"
  std::string how;                // a sentence: what these figures are
  std::uint64_t arena_bytes = 0;  // with the gaps that offsets leave
  std::uint64_t peak_bytes = 0;   // of what is alive
  std::uint32_t peak = 0;         // the node at which that is
  std::vector<Buffer> buffers;
};

struct Contents {
  std::string name;    // of the file or the model
  std::string format;  // "pt2", "pte", "tosa", ...: what the report was made of
  std::string target, tosa_spec;
  std::uint64_t bytes = 0;  // of the program
  std::string sha256;       // of the file that it was made of; where the model came from memory, of the program
  std::vector<ShownGraph> graphs;
  std::vector<ShownMemory> memory;
  std::vector<Diagnostic> messages;
  // JSON that others made, as it stands; empty: there is none.
  std::string manifest, inspection, profile, comparison;
};

}  // namespace tosaic::reporting
