// SPDX-License-Identifier: Apache-2.0
// What became of a program, as one page that a browser opens without a network, and as its data.
//
//   auto report = tosaic::report(*artifact);
//   std::ofstream("net.html") << *report->page();
#pragma once
#include <string>
#include <vector>

#include "tosaic/compile.hpp"
#include "tosaic/files.hpp"
#include "tosaic/result.hpp"

namespace tosaic {

// What other commands found out about the program, as the JSON that they print; empty: nothing.
struct ReportExtras {
  std::string profile;     // `run --profile --json`: where the time went
  std::string comparison;  // `compare --json`, comparison_json: what integers cost each layer
  std::string manifest;    // `compile --report`, Artifact::manifest: of a file, which does not have it
};

struct Report {
  std::string name;  // the program's
  std::string json;  // one object; docs/report.md lists its members
  // HTML. Error: memory.exhausted.
  TOSAIC_API Result<std::string> page() const;
  // As Arm's adviser MLIA writes its JSON (schema 1.2.0): where each node runs, and what Vela estimates. Error:
  // report.no-manifest, of a file without ReportExtras::manifest.
  TOSAIC_API Result<std::string> mlia_json() const;
  // One of report_formats. Errors: report.format, and those above.
  TOSAIC_API Result<std::string> in(const std::string& format) const;
};

// "html", "json", "mlia-json".
TOSAIC_API const std::vector<std::string>& report_formats();

// Errors: report.json (an extra is not what it should be), memory.exhausted.
TOSAIC_API Result<Report> report(const Artifact& artifact, const ReportExtras& extras = {});

struct ReportRequest {
  // A .pte, .bpte, .tosa or .vgf, or the JSON of a report. Empty: what `compile` names is compiled, and nothing of it
  // is written.
  std::string file;
  CompileRequest compile;
  std::vector<std::string> data;              // .ptd files with what the program keeps outside itself
  std::string profile, comparison, manifest;  // files with the extras; empty: none
};
// Also: file.missing, report.unknown-format, those of the formats and of compiling.
TOSAIC_API Result<Report> report(const ReportRequest& request, const Callbacks& callbacks = {});
// Is the file a program that has to be compiled (.pt2, graph text)? By its first bytes. Error: file.missing.
TOSAIC_API Result<bool> is_source_program(const std::string& path);

}  // namespace tosaic
