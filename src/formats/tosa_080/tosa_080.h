// SPDX-License-Identifier: Apache-2.0
// TOSA 0.80's flatbuffer, which tools from before TOSA 1.0 take. Graphs are TOSA 1.0's on this side: a node is written
// if 0.80 has the same operator, with the fields that 0.80 has in place of constant operands.
#pragma once
#include <optional>
#include <string>

#include "base/rope.h"
#include "ir/graph.h"
#include "ops/definitions/tosa_op.h"

namespace tosaic::tosa_080 {

// Why a node of TOSA 1.0 cannot be said in 0.80; nullopt: it can.
tosa::Check beyond(const tosa::View& view);

// Refused: what `beyond` refuses, control flow, variables, and graphs that do not fit a flatbuffer.
Result<Rope> write(const Graph& graph);

// Is it a flatbuffer of TOSA that says it is 0.80?
bool is_080(const Bytes& file);
// As tosa_file::read: everything is checked.
Result<Graph> read(const Bytes& file, const std::string& name);

}  // namespace tosaic::tosa_080
