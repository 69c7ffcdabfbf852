// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <csignal>

#include "base/system/hosted/child_process.h"

extern char** environ;

namespace tosaic {
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

}  // namespace

int start_process(const std::vector<std::string>& command, const std::string& log, int input, int& problem) {
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

}  // namespace tosaic
