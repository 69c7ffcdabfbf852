// SPDX-License-Identifier: Apache-2.0
#include "base/system/streams.h"

#include <fcntl.h>
#include <unistd.h>
#include <cerrno>
#include <csignal>
#include <system_error>
#include <thread>

#include "base/system/temporaries.h"

namespace tosaic {
namespace {

bool stdout_closed = false;

int write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t done = ::write(file, text.data(), text.size());
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return errno;
    text.remove_prefix(static_cast<std::size_t>(done));
  }
  return 0;
}

}  // namespace

void guard_streams() {
  for (int file : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(file, F_GETFD) >= 0 || errno != EBADF) continue;
    if (file == STDOUT_FILENO) stdout_closed = true;
    ::open("/dev/null", O_RDWR);  // takes the lowest free number, which is this one
  }
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
}

bool stderr_is_terminal() { return ::isatty(STDERR_FILENO) != 0; }

void say(std::string_view text) { (void)write_all(STDERR_FILENO, text); }

int print_all(std::string_view text) {
  if (text.empty()) return 0;
  const int why = stdout_closed ? EBADF : write_all(STDOUT_FILENO, text);
  if (why == EPIPE) {
    std::signal(SIGPIPE, SIG_DFL);
    std::raise(SIGPIPE);
  }
  return why == EDQUOT || why == EFBIG ? ENOSPC : why;
}

void tidy_up_when_told_to_end() {
  sigset_t ends;
  sigemptyset(&ends);
  for (int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction now {};
    if (::sigaction(number, nullptr, &now) == 0 && now.sa_handler != SIG_IGN) sigaddset(&ends, number);  // nohup
  }
  ::pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  try {
    std::thread([ends] {
      int number = 0;
      if (::sigwait(&ends, &number) != 0) return;
      leave_nothing_behind();
      std::signal(number, SIG_DFL);
      sigset_t one;
      sigemptyset(&one);
      sigaddset(&one, number);
      ::pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
      ::raise(number);
    }).detach();
  } catch (const std::system_error&) {
    ::pthread_sigmask(SIG_UNBLOCK, &ends, nullptr);  // no thread to wait in: they end the process as they always did
  }
}

}  // namespace tosaic
