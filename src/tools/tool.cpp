// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include "base/diagnostic.h"
#include "base/memory.h"
#include "base/printable.h"
#include "base/system/environment.h"
#include "base/system/mapped_files.h"
#include "base/system/pages.h"
#include "base/system/streams.h"
#include "base/system/temporaries.h"
#include "tools/tool.h"
#include "tools/usage.h"
#include "tools/values.h"

namespace tosaic::tools {

const char* const exit_codes_text =
    "exit codes: 0 done; 1 refused, because of a file, the model or the machine; 2 wrong usage;\n"
    "            3 a defect of tosaic, please report it. Errors go to stderr.";

bool Tool::coloured() const {
  if (colour != "auto") return colour == "always";
  return stderr_is_terminal() && environment_variable("NO_COLOR").empty();
}

bool Tool::shows_progress() const { return stderr_is_terminal() && !json && !quiet; }

Messages Tool::sink() const {
  return [this](const Diagnostic& m) {
    if (quiet && m.severity == Severity::note) return;
    say(json ? render_json(m) + "\n" : render(m, coloured()));
  };
}

void Tool::fail(const Diagnostic& message) {
  // What a file that changed underneath seems to say is no reason for anything.
  const std::string changed = changed_file();
  const Diagnostic why = changed.empty() ? message : file_changed(changed);
  sink()(why);
  exit = why.internal                                                        ? Exit::defect
         : why.code.starts_with("usage.") || why.code.starts_with("option.") ? Exit::usage
                                                                             : Exit::refused;
}

void Tool::print_text(const std::string& text) { output += printable(text, true); }

void Tool::print_json(const std::string& command, const std::string& members) {
  output += fmt::format("{{\"tosaic\": {}, \"command\": {}, {}}}\n", json_text(version()), json_text(command), members);
}

std::string conversions_text(const Summary& summary, const std::string& prefix) {
  std::size_t codes = 0, integers = 0, halves = 0;  // to and from quantised values; int64; half-precision floats
  for (const NodePlacement& n : summary.nodes)
    if (n.conversion && n.delegate < 0)
      ++(n.op.starts_with("quantized_decomposed.")                      ? codes
         : one_line(*n.reason).starts_with("conversion between floats") ? halves
                                                                        : integers);
  auto line = [&](std::size_t count, const char* between) {
    return count ? fmt::format("{}{} conversion{} between {}\n", prefix, count, count == 1 ? "" : "s", between) : "";
  };
  return line(codes, "float and integer tensors (none with --io quantized)") +
         line(integers, "int64 and int32 tensors") + line(halves, "floats of 16 and 32 bits");
}

std::string human_bytes(std::size_t bytes) {
  if (bytes < 10'000) return fmt::format("{} B", bytes);
  if (bytes < 1'000'000) return fmt::format("{:.1f} kB", static_cast<double>(bytes) / 1e3);
  return fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6);
}

std::string json_text(const std::string& text) { return json_quote(text); }

void add_shared_options(CLI::App& command, Tool& tool) {
  const auto limit = [](const std::string& size) {
    set_memory_limit(bytes_of(size));
    limit_heap(bytes_of(size));  // what no check foresees then fails as memory that is not there
  };
  command.add_flag("--json", tool.json, "print one JSON object on stdout, messages as JSON lines on stderr")
      ->group("General");
  command.add_flag("-q,--quiet", tool.quiet, "no summary and no notes: warnings and errors only")->group("General");
  command.add_flag("-v,--verbose", tool.verbose, "all reasons and source lines, not one line for each kind")
      ->group("General");
  command
      .add_option("--color,--colour", tool.colour, "colours in messages; auto: on a terminal, unless NO_COLOR is set")
      ->check(one_of({"auto", "always", "never"}))
      ->default_str("auto")
      ->group("General");
  command
      .add_option_function<std::string>("--memory-limit", limit,
                                        "the most memory to use, e.g. 8G; what a file claims is held to the machine's")
      ->type_name("SIZE")
      ->check(memory_size())
      ->group("General");
}

void describe_command(CLI::App& command, Tool& tool, const std::string& description) {
  command.description(description);
  add_shared_options(command, tool);
}

void describe_help(CLI::App* command, Tool& tool) {
  CLI::App& app = *command->get_parent();
  command->description("show what a command does and takes");
  auto name = std::make_shared<std::string>();
  command->add_option("command", *name, "one of the commands; without it: the list of them");
  command->footer("example:\n  tosaic help compile");
  command->callback([=, &app, &tool] {
    tool.action = [=, &app, &tool] {
      const auto names = command_names(app);
      if (name->empty()) {
        app.clear();  // CLI11 shows the help of the command that was given
        tool.output += app.help();
      } else if (std::count(names.begin(), names.end(), *name)) {
        tool.output += app.get_subcommand(*name)->help("tosaic");
      } else {
        tool.fail(unknown_command(app, *name));
      }
    };
  });
}

namespace {

// Each stage frees weights and the next one allocates some. Taken again from the heap they cost nothing; returned to
// the system, which clears every page anew, they would cost a tenth of a compilation. In pages of 2 MB the first ones
// cost little as well: a fifth of it less. What is not touched is only addresses, but a limit counts those.
void keep_memory() {
  keep_freed_memory();
  constexpr std::uint64_t enough = 256 << 20;
  heap_in_large_pages(static_cast<std::size_t>(std::min(enough, memory_limit() / 4)));
}

bool messages_as_json = false;

// Whichever thread needs the memory, there is nothing to go back to: one sentence, and the end.
void no_memory() {
  std::set_new_handler(nullptr);
  say(messages_as_json
          ? R"({"severity":"error","code":"memory.exhausted","message":"there is not enough memory","file":"","line":0,)"
            R"("text":"","context":"","notes":[],"help":"use a smaller model or fewer samples, or raise --memory-limit"})"
            "\n"
          : "error[memory.exhausted]: there is not enough memory\n"
            "  help: use a smaller model or fewer samples, or raise --memory-limit\n");
  leave_nothing_behind();
  std::_Exit(static_cast<int>(Exit::refused));
}

struct Command {
  std::string_view name;
  void (*describe)(CLI::App* command, Tool& tool);
};
constexpr Command commands[] = {{"compile", describe_compile},
                                {"run", describe_run},
                                {"explain", describe_explain},
                                {"compare", describe_compare},
                                {"evaluate", describe_evaluate},
                                {"sweep", describe_sweep},
                                {"tune", describe_tune},
                                {"report", describe_report},
                                {"inspect", describe_inspect},
                                {"extract", describe_extract},
                                {"device", describe_device},
                                {"convert", describe_convert},
                                {"ops", describe_ops},
                                {"explain-error", describe_explain_error},
                                {"completion", describe_completion},
                                {"help", describe_help}};

// With all commands, or the one that has the name `only`.
std::unique_ptr<CLI::App> app_of(Tool& tool, std::string_view only) {
  auto app = std::make_unique<CLI::App>("tosaic: PyTorch programs to TOSA and the devices that run it", "tosaic");
  app->formatter(std::make_shared<HelpFormatter>());
  app->require_subcommand(1);
  app->set_version_flag("-V,--version", "tosaic " + version());
  app->footer(std::string("`tosaic help COMMAND` shows its options and examples,\n"
                          "`tosaic explain-error CODE` what an error means, and what to do.\n") +
              exit_codes_text);
  add_shared_options(*app, tool);
  for (const Command& command : commands)
    if (only.empty() || command.name == only) command.describe(app->add_subcommand(std::string(command.name)), tool);
  return app;
}

// The options of all commands take a millisecond to describe. What is wrong, or asks for help, speaks of all.
std::unique_ptr<CLI::App> parsed_alone(Tool& tool, int count, char** words) {
  const std::string_view first = count > 1 ? words[1] : "";
  if (first.empty() || first == "help" || first == "completion") return nullptr;
  auto app = app_of(tool, first);
  try {
    app->parse(words_of(*app, count, words));
  } catch (const CLI::CallForVersion&) { throw; } catch (const CLI::ParseError&) {
    return nullptr;
  }
  return app;
}

void parse_and_act(Tool& tool, int count, char** words) {
  // A wrong command line is told as JSON too, wherever in it --json stands.
  for (int i = 1; i < count && std::strcmp(words[i], "--") != 0; ++i)
    if (std::strcmp(words[i], "--json") == 0) tool.json = messages_as_json = true;
  std::unique_ptr<CLI::App> app;
  try {
    app = parsed_alone(tool, count, words);
    if (!app) {
      app = app_of(tool, "");
      app->parse(words_of(*app, count, words));
    }
    if (auto swallowed = swallowed_option(*app)) return tool.fail(*swallowed);
    keep_memory();
    if (tool.action) tool.action();
  } catch (const CLI::CallForHelp&) { tool.output += app->help(); } catch (const CLI::CallForVersion& version) {
    tool.output += std::string(version.what()) + "\n";
  } catch (const CLI::ParseError& problem) {
    tool.fail(usage_error(*app, problem));
  } catch (const std::exception& problem) { tool.fail(internal_error(problem.what())); }
}

int end(Tool& tool) {
  if (const std::string changed = changed_file(); tool.exit == Exit::done && !changed.empty()) {
    tool.output.clear();
    tool.fail(file_changed(changed));
  }
  if (const int why = print_all(tool.output); why != 0) {
    tool.fail((error("output.stdout", why == ENOSPC ? std::string("cannot write to standard output: the disk is full")
                                                    : fmt::format("cannot write to standard output: {}",
                                                                  why == EBADF ? "it is closed" : std::strerror(why)))
                   .hint("redirect it to where there is room; -q prints no summary")));
  }
  return static_cast<int>(tool.exit);
}

}  // namespace

int run_tool(int argc, char** argv) {
  guard_streams();
  tidy_up_when_told_to_end();
  mind_shrinking_files();
  std::set_new_handler(no_memory);
  Tool tool;
  parse_and_act(tool, argc, argv);
  return end(tool);
}

}  // namespace tosaic::tools
