// SPDX-License-Identifier: Apache-2.0
// A program from what a file holds: a .pt2, or a graph as text.
#pragma once
#include "read/pt2.h"

namespace tosaic {

// `name` stands for the file in messages. Errors and warnings: those of read_pt2, of parse.
Result<ExportedProgram> read_program_file(const Bytes& file, const std::string& name, const Sink& sink);

}  // namespace tosaic
