// SPDX-License-Identifier: Apache-2.0
// What the subcommands share: one file per subcommand describes it to CLI11 and says what it does.
#pragma once
#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "tosaic/tosaic.hpp"

namespace tosaic::tools {

// All of the command line: what `main` calls. The exit code.
TOSAIC_API int run_tool(int argc, char** argv);

// The exit codes; `tosaic --help` explains them from the same place.
enum class Exit : int { done = 0, refused = 1, usage = 2, defect = 3 };
extern const char* const exit_codes_text;

struct Tool {
  bool json = false, quiet = false, verbose = false;
  std::string colour = "auto";
  Exit exit = Exit::done;
  std::string output;            // of stdout: written when all is done
  std::function<void()> action;  // of the subcommand, once its arguments are known to be good

  bool coloured() const;
  bool shows_progress() const;           // a person looks at stderr, and wants more than warnings
  Messages sink() const;                 // notes and warnings go to stderr
  void fail(const Diagnostic& message);  // prints it and sets the exit code
  // Text for people: control characters in names are shown, not obeyed.
  template <class... T>
  void print(fmt::format_string<T...> format, T&&... values) {
    print_text(fmt::format(format, std::forward<T>(values)...));
  }
  void print_text(const std::string& text);
  // The one JSON object of a command: "tosaic" and "command", then these members, `"a": 1, "b": 2`.
  void print_json(const std::string& command, const std::string& members);
};

// What each subcommand does and takes: tool.cpp names them.
void describe_compile(CLI::App* command, Tool& tool);
void describe_run(CLI::App* command, Tool& tool);
void list_vulkan_devices(Tool& tool);  // for run --list-devices
void describe_explain(CLI::App* command, Tool& tool);
void describe_compare(CLI::App* command, Tool& tool);
void describe_evaluate(CLI::App* command, Tool& tool);
void describe_sweep(CLI::App* command, Tool& tool);
void describe_tune(CLI::App* command, Tool& tool);
void describe_report(CLI::App* command, Tool& tool);
void describe_inspect(CLI::App* command, Tool& tool);
void describe_extract(CLI::App* command, Tool& tool);
void describe_device(CLI::App* command, Tool& tool);
void describe_convert(CLI::App* command, Tool& tool);
void describe_ops(CLI::App* command, Tool& tool);
void describe_explain_error(CLI::App* command, Tool& tool);
void describe_completion(CLI::App* command, Tool& tool);
void describe_help(CLI::App* command, Tool& tool);

// What a subcommand does, and the options that all of them have; `action` runs after parsing.
void describe_command(CLI::App& command, Tool& tool, const std::string& description);
void add_shared_options(CLI::App& command, Tool& tool);

// The line about quantise and dequantise kernels at the boundary; empty where there are none.
std::string conversions_text(const Summary& summary, const std::string& prefix);
std::string human_bytes(std::size_t bytes);  // "13.9 MB"
std::string json_text(const std::string& text);

}  // namespace tosaic::tools
