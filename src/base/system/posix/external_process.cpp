// SPDX-License-Identifier: Apache-2.0
#include "base/system/external_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <optional>

#include "base/system/environment.h"
#include "base/system/posix/child_process.h"

extern char** environ;

namespace tosaic {

namespace fs = std::filesystem;

bool is_executable(const fs::path& file) {
  std::error_code failure;
  return fs::is_regular_file(file, failure) && ::access(file.c_str(), X_OK) == 0;
}

std::string find_program(const std::string& name) {
  for (const std::string& folder : program_folders())
    if (const fs::path candidate = fs::path(folder) / name; is_executable(candidate)) return candidate.string();
  return "";
}

namespace {

// The child's side of vfork: what is called here may not touch memory that the parent has locked. The kernel kills it
// when the thread that waits for it is gone, even where that is killed itself.
[[noreturn]] void become(const char* program, char* const* arguments, const char* log, int input, pid_t parent,
                         volatile int* problem) {
  const int nothing = input >= 0 ? input : ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  const int words = ::open(log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  bool ready = nothing >= 0 && words >= 0 && ::dup2(nothing, STDIN_FILENO) >= 0 && ::dup2(words, STDOUT_FILENO) >= 0 &&
               ::dup2(words, STDERR_FILENO) >= 0;
  ready = ready && (input >= 0 || ::prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
  if (ready && ::getppid() == parent) {
    // Signals as a program expects to find them, whatever this one blocks or ignores. No handler of the parent's may
    // run in its memory: all are blocked until then.
    struct sigaction usual {};
    usual.sa_handler = SIG_DFL;
    for (int number = 1; number < NSIG; ++number)
      if (struct sigaction now{}; ::sigaction(number, nullptr, &now) == 0)
        if (now.sa_handler != SIG_IGN || number == SIGPIPE || number == SIGXFSZ) ::sigaction(number, &usual, nullptr);
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::execve(program, arguments, environ);
  }
  *problem = errno;
  ::_exit(127);
}

// Ticks of the processor that a process has used; it counts as busy where that is not known, and while it is stopped.
std::optional<std::uint64_t> busy(pid_t id) {
  std::ifstream file(fmt::format("/proc/{}/stat", id));
  std::string text;
  if (!std::getline(file, text)) return std::nullopt;
  const auto name = text.rfind(')');
  char state = 0;
  unsigned long user = 0, system = 0;
  if (name == std::string::npos ||
      std::sscanf(text.c_str() + name + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &state, &user,
                  &system) != 3)
    return std::nullopt;
  return state == 'T' || state == 't' ? std::nullopt : std::optional<std::uint64_t>(user + system);
}

}  // namespace

pid_t start_process(const std::vector<std::string>& command, const std::string& log, int input, int& problem) {
  std::vector<char*> arguments;
  for (const std::string& a : command) arguments.push_back(const_cast<char*>(a.c_str()));
  arguments.push_back(nullptr);
  const char* program = command[0].c_str();
  const pid_t parent = ::getpid();
  volatile int failed = 0;
  sigset_t all, before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t id = ::vfork();  // no copy of this process's page tables, which may be large
  if (id == 0) become(program, arguments.data(), log.c_str(), input, parent, &failed);
  if (id < 0) failed = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  problem = failed;
  if (id > 0 && problem != 0) ::waitpid(id, nullptr, 0);
  return problem == 0 ? id : 0;
}

bool Watch::going_on(pid_t id) {
  // Time in which this process did not run either does not count.
  constexpr std::chrono::milliseconds most_between(500);
  const auto now = Clock::now();
  const auto passed = std::min<Clock::duration>(now - last_, most_between);
  last_ = now;
  lasted_ += passed;
  idle_ += passed;
  if (now - looked_ > most_between) {
    looked_ = now;
    if (const auto ticks = busy(id); !ticks || ticks != used_) idle_ = {}, used_ = ticks;
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

Result<Ended> run_process(const std::vector<std::string>& command, const fs::path& log, const Patience& patience) {
  int problem = 0;
  pid_t id = 0;
  Child child([&] { return id = start_process(command, log.string(), -1, problem); });
  if (!child.started())
    return error("peer.start", fmt::format("{} cannot be started: {}", command[0], std::strerror(problem)));
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
