// SPDX-License-Identifier: Apache-2.0
#include "base/system/hosted/child_process.h"

#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <csignal>
#include <cstring>

namespace tosaic {

namespace fs = std::filesystem;

bool is_executable(const fs::path& file) {
  std::error_code failure;
  return fs::is_regular_file(file, failure) && ::access(file.c_str(), X_OK) == 0;
}

std::string program_ending() { return ""; }

std::string error_text(int number) { return std::strerror(number); }

void end_process(int id) { ::kill(id, SIGKILL); }

bool has_ended(int id) {
  siginfo_t ended{};
  return ::waitid(P_PID, static_cast<id_t>(id), &ended, WEXITED | WNOWAIT | WNOHANG) == 0 && ended.si_pid == id;
}

void await_end(int id) {
  siginfo_t ended{};
  while (::waitid(P_PID, static_cast<id_t>(id), &ended, WEXITED | WNOWAIT) < 0 && errno == EINTR) {}
}

int reap(int id) {
  int status = 0;
  while (::waitpid(id, &status, 0) < 0 && errno == EINTR) {}
  return status;
}

Ended ended_with(int status, const fs::path& log) {
  Ended ended;
  if (auto said = map_file(log.string()); said.ok()) ended.said = said->text();
  if (WIFSIGNALED(status)) {
    ended.signal = WTERMSIG(status);
    ended.signal_name = ::strsignal(ended.signal);
    ended.crashed = ended.signal == SIGSEGV || ended.signal == SIGABRT || ended.signal == SIGFPE ||
                    ended.signal == SIGBUS || ended.signal == SIGILL;
  } else {
    ended.exit_code = WEXITSTATUS(status);
  }
  return ended;
}

}  // namespace tosaic
