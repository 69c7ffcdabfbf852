// SPDX-License-Identifier: Apache-2.0
#include "targets/ethos_u/vela.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>

#include "base/system/clock.h"
#include "base/system/external_process.h"
#include "base/system/output.h"
#include "base/system/ready_tool.h"
#include "ir/provenance.h"
#include "targets/ethos_u/vela_config.h"

namespace tosaic {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view network_name = "network";
const char* const packaged_config = "Arm/vela.ini";
constexpr std::array<std::string_view, 2> tested{"5.1.0", "5.2.0"};  // docs/versions.md
const char* const install_tested = "pip install ethos-u-vela==5.1.0";

Result<std::string> find_vela(const std::string& given) {
  if (!given.empty()) {
    if (is_executable(given)) return given;
    return error("vela.missing", fmt::format("{} is not a program that can be run", given))
        .hint("--vela takes the path of the vela executable, e.g. .venv/bin/vela");
  }
  if (std::string found = find_program("vela"); !found.empty()) return found;
  return error("vela.missing", "Ethos-U targets are compiled by Arm's Vela, and there is no 'vela' on PATH")
      .hint(fmt::format("{}, or give its path with --vela", install_tested));
}

// The node that writes the tensor of this name.
const Node* writer_of(const Graph& graph, std::string_view name) {
  for (const Node& node : graph.nodes)
    for (ValueId v : node.outputs)
      if (v != no_value && graph[v].name == name) return &node;
  return nullptr;
}

// Vela's own words, the last and most telling lines of them, with the user's line where a tensor is named.
Diagnostic failed(const Ended& ended, const std::string& version, const Graph& graph) {
  Diagnostic why;
  const bool no_memory =
      std::ranges::any_of(std::array{"MemoryError", "bad_alloc", "Cannot allocate memory"},
                          [&](const char* words) { return ended.said.find(words) != std::string::npos; });
  if (no_memory)
    why = error("vela.memory", "Vela ran out of memory");
  else if (ended.signal != 0)
    why = error(ended.crashed ? "vela.crashed" : "vela.killed",
                fmt::format("Vela was {} by signal {} ({})", ended.crashed ? "ended" : "killed", ended.signal,
                            ended.signal_name));
  else
    why = error("vela.failed", fmt::format("Vela ended with exit code {}", ended.exit_code));
  const auto lines = lines_of(ended.said);
  std::size_t first = lines.size() - std::min<std::size_t>(lines.size(), 6);
  for (std::size_t i = 0; i < lines.size(); ++i) {  // a traceback ends with "RuntimeError: " and what matters
    const auto colon = lines[i].find("Error: ");
    if ((colon != std::string::npos && lines[i].find(' ') > colon) || lines[i].starts_with("vela: error: ")) first = i;
  }
  for (std::size_t i = first; i < lines.size(); ++i) why.notes.push_back("vela: " + lines[i]);
  if (is_untested_vela(version)) why.notes.push_back(untested_vela(version).message);
  for (const std::string& line : lines)
    for (const Node& node : graph.nodes)
      for (ValueId v : node.outputs)
        if (v != no_value && (line.find("'" + graph[v].name + "'") != std::string::npos ||
                              line.find("\"" + graph[v].name + "\"") != std::string::npos)) {
          why.notes.push_back(fmt::format("it names {} (%{})", node.op, graph[v].name));
          return located(std::move(why), node.loc);
        }
  why.help = no_memory ? "compile where there is more memory, or raise its limit (ulimit -v, a container's)"
                       : "--emit vela=DIR keeps the files that Vela was given";
  return why;
}

// Comma-separated values with a header line; fields may be quoted.
std::vector<std::map<std::string, std::string>> read_csv(std::string_view text) {
  const auto fields = [](const std::string& line) {
    std::vector<std::string> result(1);
    bool quoted = false;
    for (char c : line) {
      if (c == '"')
        quoted = !quoted;
      else if (c == ',' && !quoted)
        result.emplace_back();
      else
        result.back() += c;
    }
    return result;
  };
  std::vector<std::map<std::string, std::string>> rows;
  const auto lines = lines_of(text);
  if (lines.empty()) return rows;
  const auto head = fields(lines[0]);
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const auto values = fields(lines[i]);
    for (std::size_t f = 0; f < head.size() && f < values.size(); ++f) {
      if (f == 0) rows.emplace_back();
      rows.back()[head[f]] = values[f];
    }
  }
  return rows;
}

double number(const std::map<std::string, std::string>& row, const std::string& column) {
  const auto found = row.find(column);
  return found == row.end() ? 0 : std::strtod(found->second.c_str(), nullptr);
}

std::string text(const std::map<std::string, std::string>& row, const std::string& column) {
  const auto found = row.find(column);
  return found == row.end() ? "" : found->second;
}

NpuEstimate read_estimate(const fs::path& folder, const Graph& graph) {
  NpuEstimate estimate;
  std::error_code failure;
  for (const auto& entry : fs::directory_iterator(folder, failure)) {
    const std::string name = entry.path().filename().string();
    if (!name.ends_with(".csv")) continue;
    auto file = map_file(entry.path().string());
    if (!file.ok()) continue;
    const auto rows = read_csv(file->text());
    if (name.find("_summary_") != std::string::npos && !rows.empty()) {
      const auto& row = rows.back();
      estimate.accelerator = text(row, "accelerator_configuration");
      estimate.system_config = text(row, "system_config");
      estimate.memory_mode = text(row, "memory_mode");
      estimate.cycles = number(row, "cycles_total");
      estimate.inferences_per_second = number(row, "inferences_per_second");
      estimate.macs = number(row, "nn_macs");
      estimate.sram_bytes = number(row, "sram_memory_used") * 1024;  // Vela writes KiB
      estimate.dram_bytes = number(row, "dram_memory_used") * 1024;
      estimate.flash_bytes =
          (number(row, "on_chip_flash_memory_used") + number(row, "off_chip_flash_memory_used")) * 1024;
      estimate.sram_traffic_bytes = number(row, "sram_total_bytes");
      estimate.dram_traffic_bytes = number(row, "dram_total_bytes");
      estimate.flash_traffic_bytes =
          number(row, "on_chip_flash_total_bytes") + number(row, "off_chip_flash_total_bytes");
    } else if (name.ends_with("_per-layer.csv")) {
      for (const auto& row : rows) {
        NpuLayer layer;
        layer.name = text(row, "Name");
        layer.operation = text(row, "NNG Operator");
        layer.processor = text(row, "Target");
        layer.cycles = number(row, "Op Cycles");
        layer.npu_cycles = number(row, "NPU");
        layer.macs = number(row, "MAC Count");
        layer.utilisation_percent = number(row, "Util% (MAC)");
        layer.staging_bytes = number(row, "Staging Usage");
        const Node* node = writer_of(graph, layer.name);
        if (node) layer.tosa = node->op.text(), layer.place = place_text(node->loc);
        if (node && node->loc) {
          layer.aten = node->loc->op;
          layer.node = fmt::format("{}", fmt::join(exported_names(*node->loc), " "));
          layer.module = node->loc->module_path;
        }
        if (layer.processor == "CPU")
          ++estimate.cpu_operators;
        else if (layer.cycles > 0)  // what is fused into another operation has a row, but no command
          ++estimate.npu_operators;
        estimate.layers.push_back(std::move(layer));
      }
    }
  }
  return estimate;
}

// Mapped, so that they outlive the folder and cost nothing until they are read.
std::vector<std::pair<std::string, Bytes>> files_in(const fs::path& folder) {
  std::vector<std::pair<std::string, Bytes>> files;
  std::error_code failure;
  for (const auto& entry : fs::recursive_directory_iterator(folder, failure))
    if (entry.is_regular_file())
      if (auto file = map_file(entry.path().string()); file.ok())
        files.emplace_back(entry.path().filename().string(), *std::move(file));
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return files;
}

// network.tosa, network_vela.npz, vela.log: with a number network_1.tosa, network_1_vela.npz, vela_1.log.
Status keep(const fs::path& from, const std::string& to, const std::string& number) {
  TOSAIC_CHECK(make_folder(to));
  for (const auto& [name, file] : files_in(from)) {
    std::string numbered = name;
    numbered.insert(name.starts_with(network_name) ? network_name.size() : fs::path(name).stem().string().size(),
                    number);
    TOSAIC_CHECK(write_file((fs::path(to) / numbered).string(), file.data(), file.size()));
  }
  return {};
}

}  // namespace

bool is_untested_vela(const std::string& version) {
  return !version.empty() && std::ranges::find(tested, version) == tested.end();
}

Diagnostic untested_vela(const std::string& version) {
  return warning("vela.untested",
                 fmt::format("Vela {} was not tested with tosaic: {} were", version, fmt::join(tested, " and ")))
      .hint(fmt::format("{} installs one that was; without --no-self-check what this one makes is checked before it is "
                        "written",
                        install_tested));
}

bool is_vela_file(std::string_view name) { return name.starts_with(network_name) || name.ends_with(".log"); }

namespace {

// What its own file has; asked for only where a name has to be checked.
std::vector<std::string> packaged_sections(const std::string& vela) {
  const auto temporary = Temporary::folder();
  if (!temporary.ok()) return {};
  const auto listed = run_ready({vela, "--list-configs", packaged_config}, fs::path(temporary->path()) / "configs.log");
  return vela_sections(listed.ok() ? listed->ended.said : "");
}

Diagnostic ended_early(Diagnostic why, const VelaOptions& options) {
  if (why.code == "peer.deadline") {
    why.code = "vela.deadline";
    why.message = fmt::format("Vela took longer than {} seconds and was ended", options.longest.count());
    why.help = "--vela-timeout SECONDS gives it more time, 0 all that it wants";
  } else if (why.code == "peer.hangs") {
    why.code = "vela.hangs";
    why.message = "Vela stood still, without using the processor, and was ended";
    why.help =
        "it does so where memory is tight: compile where there is more, or raise its limit (ulimit -v, a container's)";
  }
  return why;
}

// The graphs that this process had compiled last, as those of a program that is compiled again in part.
class Recent {
 public:
  struct Entry {
    std::string how;
    Bytes tosa;
    VelaResult result;
  };
  std::optional<VelaResult> find(const std::string& how, const Bytes& tosa) {
    const std::lock_guard lock(mutex_);
    for (const Entry& e : entries_)
      if (e.how == how && e.tosa.size() == tosa.size() && std::memcmp(e.tosa.data(), tosa.data(), tosa.size()) == 0)
        return e.result;
    return std::nullopt;
  }
  void add(Entry entry) {
    constexpr std::size_t most = 16, most_bytes = std::size_t{64} << 20;
    if (entry.tosa.size() > most_bytes) return;
    const std::lock_guard lock(mutex_);
    bytes_ += entry.tosa.size();
    entries_.push_back(std::move(entry));
    while (entries_.size() > most || bytes_ > most_bytes) {
      bytes_ -= entries_.front().tosa.size();
      entries_.pop_front();
    }
  }
  static Recent& of_this_process() {
    static auto* recent = new Recent;
    return *recent;
  }

 private:
  std::mutex mutex_;
  std::deque<Entry> entries_;
  std::size_t bytes_ = 0;
};

// All that Vela's answer follows from besides the graph.
std::string how_it_runs(const std::string& vela, const std::string& accelerator, const VelaOptions& options,
                        const Bytes& ini) {
  std::error_code failure;
  const auto changed = fs::last_write_time(vela, failure).time_since_epoch().count();
  return fmt::format("{}\n{}\n{}\n{}\n{}\n{}\n{}", vela, changed, accelerator, options.system_config,
                     options.memory_mode, ini.text(), fmt::join(options.flags, "\n"));
}

}  // namespace

Status vela_ready(const std::string& accelerator, const VelaOptions& options, bool asked) {
  TOSAIC_TRY(const std::string vela, find_vela(options.executable));
  make_ready(vela);  // while the program is read and calibrated
  if (!options.config.empty()) {
    TOSAIC_TRY(const Bytes ini, map_file(options.config));
    return check_vela_config(options.config, vela_sections(ini.text()), accelerator, options);
  }
  if (!asked) return {};
  const auto sections = packaged_sections(vela);
  if (!sections.empty()) return check_vela_config("", sections, accelerator, options);
  if (!fits_family(options.system_config, accelerator))
    return wrong_family(options.system_config, accelerator, sections);
  return {};  // what it has, it will say itself
}

Result<VelaResult> run_vela(const Bytes& tosa, const Graph& graph, const std::string& accelerator,
                            const VelaOptions& options) {
  TOSAIC_TRY(const std::string vela, find_vela(options.executable));
  Bytes ini;
  if (!options.config.empty()) { TOSAIC_TRY(ini, map_file(options.config)); }
  const std::string how = how_it_runs(vela, accelerator, options, ini);
  if (auto known = options.keep.empty() ? Recent::of_this_process().find(how, tosa) : std::nullopt) {
    known->seconds = 0;
    return *std::move(known);
  }
  TOSAIC_TRY(const Temporary temporary, Temporary::folder());
  const fs::path folder(temporary.path());
  const std::string config = options.config.empty() ? packaged_config : fs::absolute(options.config).string();
  const fs::path network = folder / fmt::format("{}.tosa", network_name), output = folder / "output",
                 log = folder / "vela.log";
  TOSAIC_CHECK(write_file(network.string(), tosa.data(), tosa.size()));
  std::vector<std::string> command{vela,
                                   network.string(),
                                   "--accelerator-config=" + accelerator,
                                   "--config=" + config,
                                   "--system-config=" + options.system_config,
                                   "--memory-mode=" + options.memory_mode,
                                   "--output-format=raw",
                                   "--output-dir=" + output.string(),
                                   "--verbose-performance"};
  command.insert(command.end(), options.flags.begin(), options.flags.end());
  const auto begin = SteadyClock::now();
  auto ran = run_ready(command, log, {.longest = options.longest});
  const std::chrono::duration<double> seconds = SteadyClock::now() - begin;
  if (!options.keep.empty()) TOSAIC_CHECK(keep(folder / ".", options.keep, options.number));
  if (!ran.ok()) return ended_early(std::move(ran.error()), options);
  const auto& [ended, version] = *ran;
  const fs::path npz = output / fmt::format("{}_vela.npz", network_name);
  std::error_code missing;
  if (!ended.succeeded() || !fs::exists(npz, missing)) return failed(ended, version, graph);

  VelaResult result;
  result.seconds = seconds.count();
  result.version = version;
  TOSAIC_TRY(const Bytes file, map_file(npz.string()));
  TOSAIC_TRY(result.program, vela::read_raw_output(file, npz.filename().string()));
  result.estimate = read_estimate(output, graph);
  result.files = files_in(folder);
  Recent::of_this_process().add({how, tosa, result});
  return result;
}

}  // namespace tosaic
