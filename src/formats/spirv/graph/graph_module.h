// SPDX-License-Identifier: Apache-2.0
// One TOSA graph as one SPIR-V module (SPV_ARM_graph, instruction set TOSA.001000.1), and back.
//
// The operator rows of ops/tosa say everything about an instruction: its number, its attributes in order, its
// operands. Descriptor set 0 holds the graph's inputs, then its outputs, at the bindings given or at 0, 1, ...
#pragma once
#include <map>
#include <span>
#include <string>
#include <vector>

#include "formats/spirv/spirv.h"
#include "ir/graph.h"

namespace tosaic::spirv {

struct GraphModule {
  std::vector<Word> words;
  std::vector<ValueId> constants;  // whose data the module does not hold; the index is the GraphConstantID
  std::vector<ValueId> outputs;    // what the graph sets, each value once (a graph's output list may repeat one)
};
struct WriteOptions {
  bool replicated_composites = true;  // else constants of one value are spelled out: for drivers without the extension
  std::map<std::string, Word> custom_domains = {};  // numbers of the CUSTOM operators' domains, in Arm's set for them
};
// Errors: spirv.no-instruction (control flow, variables, custom operators whose domain has no number), spirv.dynamic,
// spirv.type.
Result<GraphModule> write_graph(const Graph& graph, const std::string& entry_point, const WriteOptions& options = {},
                                const std::vector<Word>& bindings = {});

// A tensor whose data lie outside the module.
struct OutsideConstant {
  TensorType type;
  Bytes data;
};
// Checks every size, id and type; the result passes ir verify, not necessarily tosa::verify_graph. `constants` are
// found by GraphConstantID. `bindings` receives those of the inputs, then of the outputs. Errors: spirv.*, with the
// word at which the instruction stands.
Result<Graph> read_graph(std::span<const Word> words, const std::string& entry_point,
                         const std::vector<std::pair<Word, OutsideConstant>>& constants,
                         std::vector<Word>* bindings = nullptr);
inline constexpr Word no_binding = 0xffffffff;

}  // namespace tosaic::spirv
