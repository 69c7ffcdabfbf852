// SPDX-License-Identifier: Apache-2.0
// What run_process and the tools that are kept ready share: starting a process, watching it, and how it ended.
#pragma once
#include <sys/types.h>
#include <optional>
#include <string>
#include <vector>

#include "base/system/clock.h"
#include "base/system/external_process.h"

namespace tosaic {

// Its number, or 0 and errno in `problem`. Its words go to `log`. It reads `input` (-1: nothing), and ends with the
// thread that starts it where there is none: of an input it sees the end.
pid_t start_process(const std::vector<std::string>& command, const std::string& log, int input, int& problem);

// Whether a process may go on; asked again and again.
class Watch {
 public:
  explicit Watch(const Patience& patience) : patience_(patience) {}
  bool going_on(pid_t id);
  Diagnostic why_not(const std::string& program, const std::string& said) const;  // when it may not

 private:
  using Clock = SteadyClock;
  const Patience patience_;
  Clock::duration lasted_{}, idle_{};
  Clock::time_point last_ = Clock::now(), looked_ = last_;
  std::optional<std::uint64_t> used_;
  bool hangs_ = false;
};

// `status` is that of waitpid.
Ended ended_with(int status, const std::filesystem::path& log);

}  // namespace tosaic
