// SPDX-License-Identifier: Apache-2.0
// What a delegate of a program runs, as a report shows it.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "api/payload_forms.h"
#include "ir/graph.h"
#include "report/contents.h"

namespace tosaic {

struct ShownPayload {
  std::vector<reporting::ShownGraph> graphs;     // the first is the delegate's, others are bodies in it
  std::optional<reporting::ShownMemory> memory;  // of the first
};

// One for each form. Errors: those of reading the payload.
using ShowPayload = Result<ShownPayload>(const ProgramDelegate& of, const Bytes& payload, const std::string& name);
ShowPayload show_tosa, show_vgf, show_dispatches, show_chain, show_npu_operations;

// TOSA, and the memory of its activations.
ShownPayload shown_tosa(const Graph& graph, const std::string& name);

}  // namespace tosaic
