// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <malloc.h>
#include <unistd.h>
#include <cstdio>

#include "base/diagnostic.h"
#include "tools/tool.h"

namespace tosaic::tools {

bool Tool::colour() const { return ::isatty(STDERR_FILENO) != 0; }

MessageSink Tool::sink() const {
  return [this](const Message& m) {
    if (json)
      fmt::print(stderr, "{}\n", m.json);
    else
      fmt::print(stderr, "{}", colour() ? m.coloured : m.text);
  };
}

void Tool::fail(const Message& message) {
  sink()(message);
  exit_code = message.internal ? 2 : 1;
}

std::string conversions_text(const CompileOutcome& outcome, const std::string& prefix) {
  std::size_t codes = 0, integers = 0;  // to and from codes; to and from int64
  for (const NodePlacement& n : outcome.nodes)
    if (n.conversion && n.delegate < 0) ++(n.op.starts_with("quantized_decomposed.") ? codes : integers);
  auto line = [&](std::size_t count, const char* between) {
    return count ? fmt::format("{}{} conversion{} between {}\n", prefix, count, count == 1 ? "" : "s", between) : "";
  };
  return line(codes, "float and integer tensors (none with --io quantized)") +
         line(integers, "int64 and int32 tensors");
}

std::string human_bytes(std::size_t bytes) {
  if (bytes < 10'000) return fmt::format("{} B", bytes);
  if (bytes < 1'000'000) return fmt::format("{:.1f} kB", static_cast<double>(bytes) / 1e3);
  return fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6);
}

std::string json_text(const std::string& text) { return json_quote(text); }

void add_json(CLI::App& command, Tool& tool) {
  command.add_flag("--json", tool.json, "print JSON on stdout, messages as JSON lines on stderr");
}

namespace {

// Each stage frees weights and the next one allocates some. Taken again from the heap they cost nothing; returned to
// the system, which clears every page anew, they would cost a tenth of a compilation.
void keep_memory() {
#ifdef __GLIBC__
  ::mallopt(M_MMAP_THRESHOLD, 32 << 20);
  ::mallopt(M_TRIM_THRESHOLD, 1 << 30);
  ::mallopt(M_TOP_PAD, 16 << 20);
#endif
}

}  // namespace
}  // namespace tosaic::tools

int main(int argc, char** argv) {
  using namespace tosaic::tools;
  keep_memory();
  CLI::App app{"tosaic: PyTorch programs to TOSA and the devices that run it", "tosaic"};
  app.require_subcommand(1);
  app.set_version_flag("--version", "tosaic " + tosaic::version());
  app.footer("\"tosaic SUBCOMMAND --help\" shows options and examples.");
  Tool tool;
  add_compile(app, tool);
  add_run(app, tool);
  add_explain(app, tool);
  add_inspect(app, tool);
  add_extract(app, tool);
  add_convert(app, tool);
  add_ops(app, tool);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    int code = app.exit(e);
    return code == 0 ? 0 : 1;
  } catch (const std::exception& e) {
    fmt::print(stderr, "error[internal]: {}\n", e.what());
    return 2;
  }
  return tool.exit_code;
}
