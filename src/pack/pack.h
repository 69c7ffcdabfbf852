// SPDX-License-Identifier: Apache-2.0
// The last stage, pack: delegated regions and the nodes between them become one ExecuTorch program.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "formats/pte/pte_file.h"
#include "ir/fixed_value.h"
#include "ir/graph.h"

namespace tosaic {

// What the program's user sees of it in addition to its tensors.
struct Signature {
  std::string input_spec, output_spec;  // PyTorch's tree specs
  FixedValues inputs, outputs;          // those that are no tensors; ExecuTorch has no text inputs: they become None
  std::vector<std::size_t> scalars;     // which of the graph's outputs it gets as scalars
};

// What a delegate is opened with.
struct DelegatePayload {
  Rope data;
  std::vector<pte::CompileSpec> specs = {};
};

struct PackOptions {
  bool states_apart = false;  // buffers that outlive a run have a memory of their own, the second (shared_states.h)
  // The delegates may be given one memory for an input and an output of its type: what they make of a buffer, and
  // nobody else reads, is written where the buffer lies.
  bool in_place = false;
};

// `outer` holds "delegate" nodes (attr region=k runs payloads[k]) and ATen or quantized_decomposed nodes, which become
// calls of out-variant kernels. Memory is planned here: inputs, outputs and everything between share one arena.
// `sink` receives pack.tosaic-only: a kernel that ExecuTorch does not have. Errors: pack.unknown-operator,
// pack.no-kernel, pack.argument, each at the user's line.
Result<pte::Program> pack_program(const Graph& outer, const std::vector<DelegatePayload>& payloads,
                                  const std::string& delegate_id, const Signature& signature,
                                  const std::function<void(Diagnostic)>& sink = {}, const PackOptions& options = {});
// The same as a .pte file.
Result<Rope> pack(const Graph& outer, const std::vector<DelegatePayload>& payloads, const std::string& delegate_id,
                  const Signature& signature, const std::function<void(Diagnostic)>& sink = {});

}  // namespace tosaic
