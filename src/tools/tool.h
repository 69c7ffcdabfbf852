// SPDX-License-Identifier: Apache-2.0
// What the subcommands share: one file per subcommand registers itself with CLI11 and returns an exit code
// (0 good, 1 the input is at fault, 2 tosaic is).
#pragma once
#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "tosaic/tosaic.hpp"

namespace tosaic::tools {

struct Tool {
  bool json = false;
  int exit_code = 0;
  bool colour() const;                // stderr is a terminal
  MessageSink sink() const;           // notes and warnings go to stderr
  void fail(const Message& message);  // prints it and sets the exit code
};

void add_compile(CLI::App& app, Tool& tool);
void add_run(CLI::App& app, Tool& tool);
void add_explain(CLI::App& app, Tool& tool);
void add_inspect(CLI::App& app, Tool& tool);
void add_extract(CLI::App& app, Tool& tool);
void add_convert(CLI::App& app, Tool& tool);
void add_ops(CLI::App& app, Tool& tool);

// The line about quantise and dequantise kernels at the border; empty where there are none.
std::string conversions_text(const CompileOutcome& outcome, const std::string& prefix);
// --vgf-converter and --vgf-flags.
void add_vgf_options(CLI::App& command, std::string& converter, std::vector<std::string>& flags);
std::string human_bytes(std::size_t bytes);  // "13.9 MB"
std::string json_text(const std::string& text);
void add_json(CLI::App& command, Tool& tool);

}  // namespace tosaic::tools
