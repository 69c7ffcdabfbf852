// SPDX-License-Identifier: Apache-2.0
// Vela, Arm's compiler for Ethos-U, as a child process: a TOSA flatbuffer in, a command stream and Vela's own estimate
// of it out. The process is kept ready for the next call (base/system/ready_tool.h). tosaic needs the PyPI package
// `ethos-u-vela` for this and nothing else.
#pragma once
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "formats/vela/raw_output.h"
#include "ir/graph.h"
#include "tosaic/estimate.hpp"

namespace tosaic {

struct VelaOptions {
  std::string executable;     // empty: `vela` on PATH, then in $VIRTUAL_ENV
  std::string system_config;  // section of the ini; empty: the product's default
  std::string memory_mode;    // the same
  std::string config;         // an .ini of the user's; empty: Vela's own Arm/vela.ini
  std::vector<std::string> flags;
  std::chrono::seconds longest{0};  // that it may take; 0: as long as it likes
  std::string keep;                 // folder where Vela's files stay; empty: they are removed
  std::string number;               // "_0", "_1" behind their names where several delegates have theirs there
};

struct VelaResult {
  vela::Payload program;
  NpuEstimate estimate;
  std::vector<std::pair<std::string, Bytes>> files;  // what it was given and wrote, by name
  double seconds = 0;                                // of the child process
  std::string version;                               // Vela's; empty: unknown
};

// Can it be run, and has it the configurations that were chosen? Asked before anything is computed. Errors:
// vela.missing (says how to install it), vela.config. `asked`: the sections are not the usual ones, which Vela has.
Status vela_ready(const std::string& accelerator, const VelaOptions& options, bool asked);

// `accelerator` as Vela names it: "ethos-u55-128". `tosa` is the file's content, `graph` the same for names and places.
// What was compiled in this process not long ago is not compiled again. Errors: vela.missing, vela.failed (with Vela's
// own words and, where it names a tensor, the user's line), vela.crashed, vela.killed, vela.memory, vela.deadline,
// vela.hangs, vela.config.
Result<VelaResult> run_vela(const Bytes& tosa, const Graph& graph, const std::string& accelerator,
                            const VelaOptions& options);

// A version that nobody tried with tosaic: its results may be right, and nobody knows. The warning is vela.untested.
bool is_untested_vela(const std::string& version);
Diagnostic untested_vela(const std::string& version);

// The names of the files that `keep` gets.
bool is_vela_file(std::string_view name);

}  // namespace tosaic
