// SPDX-License-Identifier: Apache-2.0
// What a process leaves behind unless it tidies up: files that are not complete yet, folders of peers, the peers
// themselves. All of them are known here, so that a process that is told to end can take them with it.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "base/result.h"

namespace tosaic {

// A file or folder that is removed with this object, and with everything in it.
class Temporary {
 public:
  // The file may be made afterwards.
  static Temporary file(std::string path);
  // An empty folder of this process's own, in $TMPDIR or /tmp. Error: peer.temporary.
  static Result<Temporary> folder();
  Temporary(Temporary&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  Temporary& operator=(Temporary&&) = delete;
  ~Temporary();
  const std::string& path() const { return path_; }
  void release();  // it stays

 private:
  explicit Temporary(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

// A child process that ends when this one is told to.
class Child {
 public:
  // `start` starts it and gives its number, or 0. Nobody can end in between and leave it behind.
  explicit Child(const std::function<int()>& start);
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  bool started() const { return id_ > 0; }
  int wait();  // the status of waitpid
  // The same, as long as `going_on`, which is asked every few milliseconds, says so: then the child is killed.
  std::optional<int> wait_while(const std::function<bool()>& going_on);

 private:
  int id_;
};

// Ends the children and removes all that is temporary. The process must end next: nothing temporary can be made any
// more. Not for signal handlers: a thread that waits for signals calls it.
void leave_nothing_behind();

}  // namespace tosaic
