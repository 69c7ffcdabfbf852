// SPDX-License-Identifier: Apache-2.0
#include "base/temporaries.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <set>

#include "base/environment.h"

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

Child::Child(const std::function<pid_t()>& start) {
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

void leave_nothing_behind() {
  known().mutex.lock();  // for good
  for (pid_t child : known().children) {
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);  // until then it may still write
  }
  for (const std::string& path : known().paths) remove(path);
}

}  // namespace tosaic
