// SPDX-License-Identifier: Apache-2.0
#include "base/system/external_process.h"

#include <fmt/format.h>
#include <algorithm>
#include <optional>

#include "base/system/environment.h"
#include "base/system/hosted/child_process.h"

namespace tosaic {

namespace fs = std::filesystem;

std::string find_program(const std::string& name) {
  for (const std::string& folder : program_folders())
    if (const fs::path candidate = fs::path(folder) / (name + program_ending()); is_executable(candidate))
      return candidate.string();
  return "";
}

bool Watch::going_on(int id) {
  // Time in which this process did not run either does not count.
  constexpr std::chrono::milliseconds most_between(500);
  const auto now = Clock::now();
  const auto passed = std::min<Clock::duration>(now - last_, most_between);
  last_ = now;
  lasted_ += passed;
  idle_ += passed;
  if (now - looked_ > most_between) {
    looked_ = now;
    if (const auto ticks = processor_time(id); !ticks || ticks != used_) idle_ = {}, used_ = ticks;
  }
  hangs_ = idle_ > patience_.idle;
  return !hangs_ && (patience_.longest.count() == 0 || lasted_ <= patience_.longest);
}

Diagnostic Watch::why_not(const std::string& program, const std::string& said) const {
  Diagnostic why =
      hangs_ ? error("peer.hangs",
                     fmt::format("{} did nothing for {} seconds and was ended", program, patience_.idle.count()))
             : error("peer.deadline",
                     fmt::format("{} took longer than {} seconds and was ended", program, patience_.longest.count()));
  const auto lines = lines_of(said);
  for (std::size_t i = lines.size() - std::min<std::size_t>(lines.size(), 4); i < lines.size(); ++i)
    why.notes.push_back(lines[i]);
  return why;
}

Result<Ended> run_process(const std::vector<std::string>& command, const fs::path& log, const Patience& patience) {
  int problem = 0;
  int id = 0;
  Child child([&] { return id = start_process(command, log.string(), -1, problem); });
  if (!child.started())
    return error("peer.start", fmt::format("{} cannot be started: {}", command[0], error_text(problem)));
  Watch watch(patience);
  const std::optional<int> status = child.wait_while([&] { return watch.going_on(id); });
  if (!status) return watch.why_not(command[0], ended_with(0, log).said);
  return ended_with(*status, log);
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty()) lines.emplace_back(line);
    at = end + 1;
  }
  return lines;
}

}  // namespace tosaic
