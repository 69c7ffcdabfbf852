// SPDX-License-Identifier: Apache-2.0
// Reports: of an artifact in memory, and of files.
#include "tosaic/report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <filesystem>

#include "api/guard.h"
#include "api/report_contents.h"
#include "base/system/calendar.h"
#include "formats/bpte/bpte_file.h"
#include "formats/vela/sha256.h"
#include "report/contents_json.h"
#include "report/extra_json.h"
#include "report/mlia_json.h"
#include "report/page.h"
#include "session/named_data.h"
#include "tosaic/tosaic.hpp"

namespace tosaic {
namespace {

// Where the extras come from, for messages.
struct ExtraFiles {
  std::string profile = "profile", comparison = "comparison", manifest = "manifest";
};

Result<Report> report_of(reporting::Contents contents, const ReportExtras& extras, const ExtraFiles& files) {
  if (!extras.profile.empty()) {
    TOSAIC_TRY(contents.profile,
               reporting::checked_json(extras.profile, {"run"}, "operations", files.profile, "run --profile --json"));
  }
  if (!extras.comparison.empty()) {
    TOSAIC_TRY(contents.comparison,
               reporting::checked_json(extras.comparison, {"compare"}, "layers", files.comparison, "compare --json"));
  }
  const bool given = !extras.manifest.empty();  // and else what the artifact says of itself
  if (given || !contents.manifest.empty()) {
    TOSAIC_TRY(contents.manifest,
               reporting::checked_json(given ? extras.manifest : contents.manifest, {"compile", "explain"}, "estimates",
                                       files.manifest, "compile --json"));
  }
  return Report{contents.name, reporting::contents_json(contents, version())};
}

// What a .pte, .tosa, ... holds, or the report that the JSON is.
Result<Report> report_of_file(const ReportRequest& request, const ReportExtras& extras, const ExtraFiles& files) {
  TOSAIC_TRY(const Bytes file, map_file(request.file));
  if (file.text().starts_with("{")) {
    TOSAIC_TRY(std::string json,
               reporting::checked_json(file.text(), {"report"}, "graphs", request.file, "report --json"));
    return Report{std::filesystem::path(request.file).filename().string(), std::move(json)};
  }
  TOSAIC_TRY(const auto data, read_named_data(request.data));
  TOSAIC_TRY(reporting::Contents contents, report_contents(file, request.file, data));
  if (!extras.manifest.empty() && contents.format.ends_with("pte")) {
    TOSAIC_TRY(const Bytes program, bpte::program_in(file, request.file));
    TOSAIC_CHECK(reporting::check_manifest_of(extras.manifest, files.manifest, program, request.file));
  }
  TOSAIC_TRY(Inspection inspection, inspect(request.file, {.data = request.data}));
  contents.inspection = std::move(inspection.json);
  return report_of(std::move(contents), extras, files);
}

// A UUID of version 8 (RFC 9562: the digits are our own), another one for each report and time.
std::string run_id(const std::string& json, const std::string& time) {
  std::string hex = sha256(time + json);
  hex[12] = '8';  // the version
  hex[16] = 'a';  // the variant
  return fmt::format("{}-{}-{}-{}-{}", hex.substr(0, 8), hex.substr(8, 4), hex.substr(12, 4), hex.substr(16, 4),
                     hex.substr(20, 12));
}

Result<std::string> text_of(const std::string& path) {
  if (path.empty()) return std::string();
  TOSAIC_TRY(const Bytes file, map_file(path));
  return std::string(file.text());
}

}  // namespace

Result<std::string> Report::page() const {
  return guarded(name, [&] { return reporting::page_of(json, name); });
}

Result<std::string> Report::mlia_json() const {
  return guarded(name, [&] {
    const std::string time = time_of_day();
    return reporting::mlia_json(json, {run_id(json, time), time});
  });
}

Result<std::string> Report::in(const std::string& format) const {
  if (format == "html") return page();
  if (format == "mlia-json") return mlia_json();
  if (format == "json") return json;
  return error("report.format", fmt::format("there is no report as {}", format))
      .hint(fmt::format("one of {}", fmt::join(report_formats(), ", ")));
}

const std::vector<std::string>& report_formats() {
  static const std::vector<std::string> all{"html", "json", "mlia-json"};
  return all;
}

Result<Report> report(const Artifact& artifact, const ReportExtras& extras) {
  return guarded(artifact.impl().program.name(),
                 [&] { return report_of(report_contents(artifact.impl()), extras, {}); });
}

Result<Report> report(const ReportRequest& request, const Callbacks& callbacks) {
  const std::string& about = request.file.empty() ? request.compile.model : request.file;
  return guarded(about, [&]() -> Result<Report> {
    const ExtraFiles files{request.profile, request.comparison, request.manifest};
    ReportExtras extras;
    TOSAIC_TRY(extras.profile, text_of(request.profile));
    TOSAIC_TRY(extras.comparison, text_of(request.comparison));
    TOSAIC_TRY(extras.manifest, text_of(request.manifest));
    if (!request.file.empty()) return report_of_file(request, extras, files);
    TOSAIC_TRY(const Artifact artifact, compile(request.compile, callbacks));
    return report_of(report_contents(artifact.impl()), extras, files);
  });
}

Result<bool> is_source_program(const std::string& path) {
  return guarded(path, [&]() -> Result<bool> {
    TOSAIC_TRY(const Bytes file, map_file(path));
    return file.text().starts_with("PK") || file.text().starts_with("graph ");
  });
}

}  // namespace tosaic
