// SPDX-License-Identifier: Apache-2.0
// How a convolution that reads its input by lines is cut into tasks.
#pragma once
#include <cstdint>

namespace tosaic::cpu {

// A block of output lines, all of one image, and one of so many parts of the groups of channels or of the columns.
struct LineTasks {
  std::int64_t images = 1, lines = 1, lines_per_task = 1, parts = 1;
  std::int64_t of_image() const { return (lines + lines_per_task - 1) / lines_per_task; }
  std::int64_t tasks() const { return images * of_image() * parts; }

  struct Task {
    std::int64_t image, first_line, lines, part;
    std::int64_t first_of(std::int64_t all, std::int64_t parts) const { return all * part / parts; }
    std::int64_t end_of(std::int64_t all, std::int64_t parts) const { return all * (part + 1) / parts; }
  };
  Task task(std::int64_t t) const {
    const std::int64_t block = t / parts, first = block % of_image() * lines_per_task;
    return {block / of_image(), first, lines_per_task < lines - first ? lines_per_task : lines - first, t % parts};
  }
};

}  // namespace tosaic::cpu
