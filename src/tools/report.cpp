// SPDX-License-Identifier: Apache-2.0
// tosaic report: what became of a program, as a page for a browser.
#include <fmt/format.h>
#include <memory>

#include "base/diagnostic.h"
#include "base/system/output.h"
#include "tools/described.h"
#include "tools/models.h"
#include "tools/tool.h"
#include "tools/values.h"
#include "tosaic/report.hpp"

namespace tosaic::tools {
namespace {

struct ReportCommand {
  std::vector<std::string> programs;
  std::string output, format;  // format: empty for what the name says
  ReportRequest request;
  bool target_given = false;
};

// A program that is compiled here, or a file that was compiled before.
Status name_program(ReportCommand& asked) {
  TOSAIC_TRY(const Models named, name_models(asked.programs, "report"));
  asked.request.compile.methods = named.methods;
  if (named.only.empty()) return {};
  TOSAIC_TRY(const bool source, is_source_program(named.only));
  (source ? asked.request.compile.model : asked.request.file) = named.only;
  if (!source && asked.target_given)
    return error("usage.report",
                 fmt::format("{} is compiled already, and --target is for programs that are not", named.only))
        .hint("leave --target out, or give the .pt2");
  if (source && !asked.target_given)
    return error("usage.report", fmt::format("{} is not compiled yet: for which target?", named.only))
        .hint(fmt::format("tosaic report {} --target tosa-int -o FILE.html", named.only));
  return {};
}

Status plan(Outputs& outputs, const ReportCommand& asked) {
  const ReportRequest& request = asked.request;
  for (const std::string& path :
       {request.file, request.profile, request.comparison, request.manifest, request.compile.model,
        request.compile.calibrate, request.compile.options.text("plan")})
    if (!path.empty()) outputs.reads(path);
  for (const auto* list : {&request.compile.methods, &request.compile.calibrate_methods})
    for (const auto& [name, path] : *list) outputs.reads(path);
  for (const std::string& path : request.data) outputs.reads(path);
  return outputs.plan(asked.output);
}

Result<Report> written(ReportCommand& asked, const Messages& messages) {
  Outputs outputs;
  TOSAIC_CHECK(name_program(asked));
  if (!asked.output.empty()) TOSAIC_CHECK(plan(outputs, asked));  // before the work, not after it
  Callbacks callbacks;
  callbacks.message = messages;
  TOSAIC_TRY(Report made, report(asked.request, callbacks));
  if (asked.output.empty()) {
    TOSAIC_TRY(made.json, made.in(asked.format));  // which is printed
    return made;
  }
  TOSAIC_TRY(const std::string page, made.in(asked.format));
  TOSAIC_CHECK(outputs.write(asked.output, Bytes::copy(page.data(), page.size())));
  TOSAIC_CHECK(outputs.commit());
  return made;
}

void add_extras(CLI::App& command, ReportRequest& request) {
  command
      .add_option("--profile", request.profile,
                  "what `tosaic run --profile --json` printed: the time of each operation")
      ->type_name("FILE");
  command
      .add_option("--compare", request.comparison, "what `tosaic compare --json` printed: the accuracy of each layer")
      ->type_name("FILE");
  command
      .add_option("--manifest", request.manifest,
                  "of a compiled file: what `tosaic compile --report FILE` wrote, with placements and Vela's estimates")
      ->type_name("FILE");
  command.add_option("--data", request.data, "a .ptd file with what the .pte keeps outside itself")
      ->type_name("FILE")
      ->allow_extra_args(false);
}

}  // namespace

void describe_report(CLI::App* command, Tool& tool) {
  describe_command(*command, tool,
                   "show what became of a program in a page for the browser: graph, time, memory, placement");
  auto asked = std::make_shared<ReportCommand>();
  auto samples = std::make_shared<std::vector<std::string>>();
  command
      ->add_option(
          "program", asked->programs,
          ".pte, .bpte, .tosa, .vgf; or a .pt2, which is compiled for --target; several as NAME=FILE are methods "
          "of one program")
      ->type_name("FILE")
      ->required();
  command->add_option("--output,-o", asked->output, "the page to write; NAME.json: its data")->type_name("FILE");
  CLI::Option* format =
      command
          ->add_option("--format", asked->format,
                       "instead of what FILE's name says: html, json (the data of the page), mlia-json "
                       "(as Arm's adviser MLIA prints it)")
          ->type_name("FORMAT")
          ->check(one_of(report_formats()));
  CLI::Option* target = command
                            ->add_option("--target,-t", asked->request.compile.target,
                                         "what to compile a .pt2 for, e.g. tosa-int or ethos-u55-128")
                            ->type_name("TARGET")
                            ->check(known_target());
  command->add_option("--calibrate", *samples, "samples for quantisation, as `compile` takes them")
      ->type_name("FILE")
      ->allow_extra_args(false);
  add_extras(*command, asked->request);
  const auto options = add_described(*command, compile_options());
  add_described_targets(*command, options);
  command->footer(
      "examples:\n"
      "  tosaic report digits.pte -o digits.html\n"
      "  tosaic report digits.pt2 --target ethos-u55-128 --calibrate digits_samples.npz -o digits.html\n"
      "  tosaic run digits.pte --profile --json > times.json\n"
      "  tosaic report digits.pte --profile times.json -o digits.html\n"
      "  tosaic report digits.pt2 --target ethos-u55-128 --format mlia-json -o digits.json");
  command->callback([=, &tool] {
    tool.action = [=, &tool] {
      if (format->empty()) asked->format = asked->output.empty() || asked->output.ends_with(".json") ? "json" : "html";
      if (asked->output.empty() && !tool.json && format->empty())
        return tool.fail(error("usage.missing", "tosaic report has no output")
                             .hint("-o FILE.html writes the page, --json prints its data"));
      asked->target_given = target->count() > 0;
      asked->request.compile.options = *options;
      if (const Status known = name_samples(*samples, asked->request.compile); !known.ok())
        return tool.fail(known.error());
      const auto made = written(*asked, tool.sink());
      if (!made.ok()) return tool.fail(made.error());
      if (tool.json || asked->output.empty())
        tool.output += made->json + "\n";
      else if (!tool.quiet)
        tool.print("{} -> {}\n", made->name, asked->output);
    };
  });
}

}  // namespace tosaic::tools
