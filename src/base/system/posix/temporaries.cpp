// SPDX-License-Identifier: Apache-2.0
#include "base/system/temporaries.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <set>
#include <thread>

#include "base/system/environment.h"

namespace tosaic {
namespace {

struct Known {
  std::mutex mutex;
  std::set<std::string> paths;
  std::set<pid_t> children;
};

Known& known() {
  static auto* all = new Known;  // outlives every static object that may still hold something temporary
  return *all;
}

void remove(const std::string& path) {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

}  // namespace

Temporary Temporary::file(std::string path) {
  const std::lock_guard lock(known().mutex);
  known().paths.insert(path);
  return Temporary(std::move(path));
}

Result<Temporary> Temporary::folder() {
  const std::lock_guard lock(known().mutex);
  const std::string asked = environment_variable("TMPDIR");
  std::string pattern = (asked.empty() ? "/tmp" : asked) + "/tosaic-XXXXXX";
  if (!::mkdtemp(pattern.data()))
    return error("peer.temporary",
                 fmt::format("cannot make a temporary folder like {}: {}", pattern, std::strerror(errno)))
        .hint("set TMPDIR to a folder that can be written");
  known().paths.insert(pattern);
  return Temporary(std::move(pattern));
}

Temporary::~Temporary() {
  if (path_.empty()) return;
  remove(path_);
  release();
}

void Temporary::release() {
  const std::lock_guard lock(known().mutex);
  known().paths.erase(path_);
  path_.clear();
}

Child::Child(const std::function<int()>& start) {
  const std::lock_guard lock(known().mutex);
  id_ = start();
  if (started()) known().children.insert(id_);
}

int Child::wait() {
  // The number stays the child's own until it is reaped, and until then it may be sent a signal.
  siginfo_t ended{};
  while (::waitid(P_PID, static_cast<id_t>(id_), &ended, WEXITED | WNOWAIT) < 0 && errno == EINTR) {}
  const std::lock_guard lock(known().mutex);
  known().children.erase(id_);
  int status = 0;
  while (::waitpid(id_, &status, 0) < 0 && errno == EINTR) {}
  return status;
}

std::optional<int> Child::wait_while(const std::function<bool()>& going_on) {
  std::chrono::milliseconds pause(1);
  for (;;) {
    siginfo_t ended{};
    if (::waitid(P_PID, static_cast<id_t>(id_), &ended, WEXITED | WNOWAIT | WNOHANG) == 0 && ended.si_pid == id_)
      return wait();
    if (!going_on()) break;
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, std::chrono::milliseconds(20));
  }
  ::kill(id_, SIGKILL);
  wait();
  return std::nullopt;
}

void leave_nothing_behind() {
  known().mutex.lock();  // for good
  for (pid_t child : known().children) {
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);  // until then it may still write
  }
  for (const std::string& path : known().paths) remove(path);
}

}  // namespace tosaic
