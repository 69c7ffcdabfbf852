// SPDX-License-Identifier: Apache-2.0
#include "base/system/temporaries.h"

#include <fmt/format.h>
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <mutex>
#include <set>
#include <thread>

#include "base/system/environment.h"
#include "base/system/hosted/child_process.h"
#include "base/system/hosted/files.h"

namespace tosaic {
namespace {

struct Known {
  std::mutex mutex;
  std::set<std::string> paths;
  std::set<int> children;
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
  std::string problem;
  const std::string path = new_folder(asked, problem);
  if (path.empty())
    return error("peer.temporary", fmt::format("cannot make a temporary folder like {}", problem))
        .hint("set TMPDIR to a folder that can be written");
  known().paths.insert(path);
  return Temporary(path);
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
  await_end(id_);  // the number stays the child's own until it is reaped, and until then it may be ended
  const std::lock_guard lock(known().mutex);
  known().children.erase(id_);
  return reap(id_);
}

std::optional<int> Child::wait_while(const std::function<bool()>& going_on) {
  std::chrono::milliseconds pause(1);
  for (;;) {
    if (has_ended(id_)) return wait();
    if (!going_on()) break;
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, std::chrono::milliseconds(20));
  }
  end_process(id_);
  wait();
  return std::nullopt;
}

void leave_nothing_behind() {
  known().mutex.lock();  // for good
  for (int child : known().children) {
    end_process(child);
    reap(child);  // until then it may still write
  }
  for (const std::string& path : known().paths) remove(path);
}

}  // namespace tosaic
