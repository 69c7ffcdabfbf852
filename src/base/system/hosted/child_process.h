// SPDX-License-Identifier: Apache-2.0
// Child processes as a system has them, and what run_process and the tools that are kept ready share: watching one, and
// how it ended.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/system/clock.h"
#include "base/system/external_process.h"

namespace tosaic {

// Its number, or 0 and the system's error number in `problem`. Its words go to `log`. It reads `input` (-1: nothing),
// and ends with the thread that starts it where there is none: of an input it sees the end.
int start_process(const std::vector<std::string>& command, const std::string& log, int input, int& problem);
// Ends it at once, whatever it does.
void end_process(int id);
// Has it ended? Its number stays its own.
bool has_ended(int id);
void await_end(int id);
// Waits for its end and gives its number back to the system. How it ended: for ended_with.
int reap(int id);
// What a process has used of the processor, in a unit of the system's; nothing where that is not known, and while it is
// stopped.
std::optional<std::uint64_t> processor_time(int id);
std::string error_text(int number);  // of a problem
std::string program_ending();        // of the files of programs: ".exe"

// Whether a process may go on; asked again and again.
class Watch {
 public:
  explicit Watch(const Patience& patience) : patience_(patience) {}
  bool going_on(int id);
  Diagnostic why_not(const std::string& program, const std::string& said) const;  // when it may not

 private:
  using Clock = SteadyClock;
  const Patience patience_;
  Clock::duration lasted_{}, idle_{};
  Clock::time_point last_ = Clock::now(), looked_ = last_;
  std::optional<std::uint64_t> used_;
  bool hangs_ = false;
};

// `status` is what reap gave.
Ended ended_with(int status, const std::filesystem::path& log);

}  // namespace tosaic
