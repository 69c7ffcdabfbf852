// SPDX-License-Identifier: Apache-2.0
// How a matrix product is cut into tasks: blocks of rows, and of columns where the rows alone are too few.
// The cut decides who computes what, never how an element is computed.
#pragma once
#include <algorithm>
#include <cstdint>

namespace tosaic::cpu {

// Calls f(first, count) for groups of at most max_rows rows, as even as they can be.
template <class F>
void for_even_groups(std::int64_t rows, std::int64_t max_rows, const F& f) {
  const std::int64_t groups = (rows + max_rows - 1) / max_rows;
  std::int64_t first = 0;
  for (std::int64_t g = 0; g < groups; ++g) {
    const std::int64_t count = rows / groups + (g < rows % groups ? 1 : 0);
    f(first, count);
    first += count;
  }
}

// Into how many tasks a step is cut. Every task reads its part of B, and copies its patches: one for each thread is
// best where all cores are as fast, as on the servers that have tiles (with two threads, eight took 1.05 to 1.5 of the
// time). Elsewhere threads that are done sooner take what others have left.
std::int64_t wanted_tasks(int threads);

// Of kernels whose sums are in vectors. Those by tiles (AMX) take more, and as long for fewer.
inline constexpr int most_rows_in_vectors = 12;

// Of a block of rows of A, which stays in the second-level cache.
std::int64_t bytes_of_rows();

struct Sharing {
  std::int64_t rows = 0, rows_per_task = 1, row_tasks = 1;
  std::int64_t panels = 0, panels_per_task = 1, column_tasks = 1;
  int max_rows = 1;
  // row_bytes: of a row of A in scratch, so that a block of rows stays in the second-level cache.
  // whole_rows: something needs all columns of a row at once.
  static Sharing plan(std::int64_t rows, int max_rows, std::int64_t panels, std::int64_t row_bytes, int threads,
                      bool whole_rows) {
    Sharing s;
    s.rows = rows;
    s.panels = panels;
    s.max_rows = max_rows;
    const bool tiles = max_rows > most_rows_in_vectors;
    const std::int64_t in_cache =
        std::max<std::int64_t>(max_rows, bytes_of_rows() / std::max<std::int64_t>(1, row_bytes));
    const std::int64_t wanted = wanted_tasks(threads);
    const bool one_each = wanted == threads;
    const std::int64_t parts = one_each && !whole_rows ? parts_of_rows(rows, max_rows, panels, wanted) : wanted;
    std::int64_t block = std::min(in_cache, (rows + parts - 1) / parts);
    if (!tiles) block = std::min(block, std::int64_t{384});
    block = std::max<std::int64_t>(1, (block + max_rows - 1) / max_rows) * max_rows;
    if (rows < 8 * max_rows && !whole_rows)  // few rows: the columns are shared out instead
      block = one_each ? (rows + parts - 1) / parts : rows;
    s.rows_per_task = std::min(block, rows);
    s.row_tasks = (rows + s.rows_per_task - 1) / s.rows_per_task;
    // As many for each thread, and as large as each other: the kernel can do with somewhat fewer rows at once.
    if (s.row_tasks > 1 && (one_each || !tiles)) {
      const std::int64_t group = one_each ? parts : threads, even = (s.row_tasks + group - 1) / group * group;
      s.rows_per_task = std::max<std::int64_t>((max_rows + 1) / 2, (rows + even - 1) / even);
      s.row_tasks = (rows + s.rows_per_task - 1) / s.rows_per_task;
    }
    if (tiles) {  // two at a time: few rows that are left would have B to themselves
      const std::int64_t even = (rows + s.row_tasks - 1) / s.row_tasks, pair = 2 * max_rows;
      s.rows_per_task = std::min(rows, (even + pair - 1) / pair * pair);
      s.row_tasks = (rows + s.rows_per_task - 1) / s.rows_per_task;
    }
    s.panels_per_task = panels;
    if (!whole_rows && s.row_tasks < wanted) s.share_columns(wanted, s.row_tasks);
    return s;
  }
  // Into how many parts the rows are cut, where there is one task for each thread; the columns are cut as well, so that
  // no thread is idle, rather than that a few rows read all of B.
  static std::int64_t parts_of_rows(std::int64_t rows, int max_rows, std::int64_t panels, std::int64_t wanted) {
    const std::int64_t worth_b = 4 * max_rows;
    for (std::int64_t parts = wanted; parts > 1; --parts)
      if (wanted % parts == 0 && (rows >= parts * worth_b || wanted / parts >= panels)) return parts;
    return 1;
  }
  // So that with so many blocks of rows there are about as many tasks as are wanted.
  void share_columns(std::int64_t wanted, std::int64_t blocks) {
    column_tasks = std::min(panels, (wanted + blocks - 1) / blocks);
    panels_per_task = (panels + column_tasks - 1) / column_tasks;
    column_tasks = (panels + panels_per_task - 1) / panels_per_task;
  }
  std::int64_t tasks() const { return row_tasks * column_tasks; }

  struct Part {
    std::int64_t first_row, rows, first_panel, last_panel;
  };
  Part part(std::int64_t task) const {
    const std::int64_t r = task / column_tasks, c = task % column_tasks;
    return {r * rows_per_task, std::min(rows_per_task, rows - r * rows_per_task), c * panels_per_task,
            std::min(panels, (c + 1) * panels_per_task)};
  }
  template <class F>
  void for_groups(std::int64_t block_rows, const F& f) const {
    for_even_groups(block_rows, max_rows, f);
  }
};

}  // namespace tosaic::cpu
