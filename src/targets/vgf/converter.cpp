// SPDX-License-Identifier: Apache-2.0
#include "targets/vgf/converter.h"

#include <fmt/format.h>
#include <algorithm>
#include <charconv>
#include <chrono>

#include "base/system/clock.h"
#include "base/system/external_process.h"
#include "base/system/output.h"
#include "formats/tosa/tosa_file.h"
#include "formats/vgf/vgf_graph.h"

namespace tosaic {
namespace {

// DOMAIN:NUMBER
Status map_domain(const std::string& pair, spirv::WriteOptions& options) {
  const std::size_t colon = pair.rfind(':');
  std::uint32_t number = 0;
  const char* end = pair.data() + pair.size();
  if (colon == std::string::npos || colon == 0 || std::from_chars(pair.data() + colon + 1, end, number).ptr != end ||
      colon + 1 == pair.size())
    return error("vgf.flag", fmt::format("'{}' is no DOMAIN:NUMBER", pair));
  options.custom_domains[pair.substr(0, colon)] = number;
  return {};
}

// The flags of Arm's converter that mean something here.
Result<spirv::WriteOptions> own_options(const std::vector<std::string>& flags) {
  constexpr std::string_view mapping = "--custom-op-domain-to-opcode=";
  spirv::WriteOptions options;
  for (const std::string& flag : flags) {
    if (flag == "--disable-replicated-composites")
      options.replicated_composites = false;
    else if (flag == "--enable-bespoke")
      options.custom_domains[std::string(spirv::bespoke_domain)] = 0;
    else if (flag.starts_with(mapping)) {
      TOSAIC_CHECK(map_domain(flag.substr(mapping.size()), options));
    } else if (flag != "--require-static-shape" && flag != "--emit-debug-info")  // always so: shapes fixed, names kept
      return error("vgf.flag", fmt::format("tosaic's own VGF converter has no flag {}", flag))
          .hint(
              "it has --disable-replicated-composites, --enable-bespoke and "
              "--custom-op-domain-to-opcode=DOMAIN:NUMBER; "
              "others are the model converter's, with --vgf-converter sdk");
  }
  return options;
}

Result<std::string> find_converter(const std::string& given) {
  if (given != "sdk") {
    if (is_executable(given)) return given;
    return error("vgf.converter-missing", fmt::format("{} is not a program that can be run", given))
        .hint("--vgf-converter takes tosaic, sdk or the path of the model-converter executable");
  }
  std::string found = find_program("model-converter");
  if (!found.empty()) return found;
  return error("vgf.converter-missing", "there is no 'model-converter' on PATH")
      .hint("pip install ai_ml_sdk_model_converter==0.11.0, or use tosaic's own converter, which needs nothing");
}

Result<VgfResult> by_sdk(const Graph& graph, const VgfOptions& options) {
  TOSAIC_TRY(const std::string converter, find_converter(options.converter));
  TOSAIC_TRY(const Rope tosa, tosa_file::write(graph));
  TOSAIC_TRY(const Temporary temporary, Temporary::folder());
  const std::filesystem::path folder(temporary.path());
  const auto from = folder / "graph.tosa", to = folder / "graph.vgf", log = folder / "converter.log";
  TOSAIC_CHECK(write_file(from.string(), tosa));
  std::vector<std::string> command{converter, "--input", from.string(), "--output", to.string()};
  command.insert(command.end(), options.flags.begin(), options.flags.end());
  const auto begin = SteadyClock::now();
  TOSAIC_TRY(const Ended ended, run_process(command, log));
  VgfResult result;
  result.peer_seconds = std::chrono::duration<double>(SteadyClock::now() - begin).count();
  std::error_code missing;
  if (!ended.succeeded() || !std::filesystem::exists(to, missing)) {
    Diagnostic why =
        error("vgf.converter-failed",
              ended.signal != 0 ? fmt::format("Arm's model converter was killed by signal {}", ended.signal)
                                : fmt::format("Arm's model converter ended with exit code {}", ended.exit_code));
    const auto lines = lines_of(ended.said);
    for (std::size_t i = lines.size() - std::min<std::size_t>(lines.size(), 6); i < lines.size(); ++i)
      why.notes.push_back("model-converter: " + lines[i]);
    return why;
  }
  TOSAIC_TRY(const Bytes file, map_file(to.string()));
  result.file = file;
  return result;
}

}  // namespace

Result<VgfResult> make_vgf(const Graph& graph, const VgfOptions& options) {
  if (!options.converter.empty() && options.converter != "tosaic") return by_sdk(graph, options);
  TOSAIC_TRY(const spirv::WriteOptions how, own_options(options.flags));
  TOSAIC_TRY(const vgf::File file, vgf::from_graph(graph, how));
  TOSAIC_TRY(Rope written, vgf::write(file));
  return VgfResult{std::move(written)};
}

}  // namespace tosaic
