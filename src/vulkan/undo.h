// SPDX-License-Identifier: Apache-2.0
// What was made, undone in reverse order when this goes: the objects of a model have no other owners.
#pragma once
#include <functional>
#include <utility>
#include <vector>

namespace tosaic::vulkan {

class Undo {
 public:
  Undo() = default;
  Undo(const Undo&) = delete;
  Undo& operator=(const Undo&) = delete;
  ~Undo() {
    for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) (*step)();
  }
  void later(std::function<void()> step) { steps_.push_back(std::move(step)); }

 private:
  std::vector<std::function<void()>> steps_;
};

}  // namespace tosaic::vulkan
