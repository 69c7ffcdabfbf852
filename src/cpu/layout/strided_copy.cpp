// SPDX-License-Identifier: Apache-2.0
#include "cpu/layout/strided_copy.h"

#include <algorithm>
#include <cstring>

#include "simd/transpose.h"

namespace tosaic::cpu {
namespace {

// to[i][j] = from[i][j] over rows x columns, with strides in elements. Blocks of 16 x 16, so that the lines of
// both sides stay at hand whichever of them is walked across.
template <class T>
void blocks(const T* from, std::int64_t fi, std::int64_t fj, T* to, std::int64_t ti, std::int64_t tj, std::int64_t rows,
            std::int64_t columns) {
  constexpr std::int64_t side = 16;
  for (std::int64_t i0 = 0; i0 < rows; i0 += side)
    for (std::int64_t j0 = 0; j0 < columns; j0 += side) {
      const std::int64_t i1 = std::min(rows, i0 + side), j1 = std::min(columns, j0 + side);
      if (tj == 1 && j1 - j0 == side) {
        for (std::int64_t i = i0; i < i1; ++i) {
          const T* f = from + i * fi + j0 * fj;
          T* t = to + i * ti + j0;
          for (std::int64_t j = 0; j < side; ++j) t[j] = f[j * fj];
        }
      } else {
        for (std::int64_t i = i0; i < i1; ++i)
          for (std::int64_t j = j0; j < j1; ++j) to[i * ti + j * tj] = from[i * fi + j * fj];
      }
    }
}

template <class T>
void blocks_of(const std::byte* from, std::int64_t fi, std::int64_t fj, std::byte* to, std::int64_t ti, std::int64_t tj,
               std::int64_t rows, std::int64_t columns) {
  blocks(reinterpret_cast<const T*>(from), fi, fj, reinterpret_cast<T*>(to), ti, tj, rows, columns);
}

}  // namespace

void StridedCopy::simplify() {
  std::vector<std::int64_t> d, f, t;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 1) continue;
    if (!d.empty() && f.back() == from_stride[i] * dims[i] && t.back() == to_stride[i] * dims[i]) {
      d.back() *= dims[i];
      f.back() = from_stride[i];
      t.back() = to_stride[i];
    } else {
      d.push_back(dims[i]);
      f.push_back(from_stride[i]);
      t.push_back(to_stride[i]);
    }
  }
  // The two innermost dims are the plane that `blocks` walks: the dim that is contiguous in `from` joins the one
  // that is contiguous in `to`.
  if (d.size() > 2) {
    const auto last = d.size() - 1;
    if (f[last] != 1)
      for (std::size_t i = 0; i + 1 < d.size(); ++i)
        if (f[i] == 1) {
          std::rotate(d.begin() + static_cast<std::ptrdiff_t>(i), d.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                      d.end() - 1);
          std::rotate(f.begin() + static_cast<std::ptrdiff_t>(i), f.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                      f.end() - 1);
          std::rotate(t.begin() + static_cast<std::ptrdiff_t>(i), t.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                      t.end() - 1);
          break;
        }
  }
  while (d.size() < 2) {
    d.insert(d.begin(), 1);
    f.insert(f.begin(), 0);
    t.insert(t.begin(), 0);
  }
  if (d.size() == 2 && d[0] == 1 && d[1] == 1) f[1] = t[1] = 1;
  dims = std::move(d);
  from_stride = std::move(f);
  to_stride = std::move(t);
}

// to[j * to_pitch + i] = from[i * from_pitch + j] in vectors. False: not of these sizes.
bool StridedCopy::transpose(const std::byte* from, std::int64_t from_pitch, std::byte* to, std::int64_t to_pitch,
                            std::int64_t rows, std::int64_t columns) const {
  if (element <= 4 && simd::is_few(rows) && to_pitch == rows)
    simd::interleave(from, from_pitch, to, rows, columns, element);
  else if (element <= 4 && simd::is_few(columns) && from_pitch == columns)
    simd::separate(from, to, to_pitch, columns, rows, element);
  else if (element == 4)
    simd::transpose_words(reinterpret_cast<const std::uint32_t*>(from), from_pitch,
                          reinterpret_cast<std::uint32_t*>(to), to_pitch, rows, columns);
  else
    return false;
  return true;
}

void StridedCopy::plane(const std::byte* from, std::byte* to) const {
  const std::size_t last = dims.size() - 1;
  const std::int64_t rows = dims[last - 1], columns = dims[last];
  const std::int64_t fi = from_stride[last - 1], fj = from_stride[last], ti = to_stride[last - 1], tj = to_stride[last];
  if (fj == 1 && tj == 1) {
    const auto e = static_cast<std::int64_t>(element);
    for (std::int64_t i = 0; i < rows; ++i)
      std::memcpy(to + i * ti * e, from + i * fi * e, static_cast<std::size_t>(columns * e));
    return;
  }
  if (fi == 1 && tj == 1 && transpose(from, fj, to, ti, columns, rows)) return;
  if (fj == 1 && ti == 1 && transpose(from, fi, to, tj, rows, columns)) return;
  switch (element) {
    case 1: return blocks_of<std::uint8_t>(from, fi, fj, to, ti, tj, rows, columns);
    case 2: return blocks_of<std::uint16_t>(from, fi, fj, to, ti, tj, rows, columns);
    case 4: return blocks_of<std::uint32_t>(from, fi, fj, to, ti, tj, rows, columns);
    default: return blocks_of<std::uint64_t>(from, fi, fj, to, ti, tj, rows, columns);
  }
}

// Planes [first, last) of the outer dims.
void StridedCopy::run_outer(std::int64_t first, std::int64_t last, const std::byte* from, std::byte* to) const {
  const int outer = static_cast<int>(dims.size()) - 2;
  std::int64_t index[32], f = from_offset, t = to_offset, rest = first;
  for (int d = outer - 1; d >= 0; --d) {
    const auto s = static_cast<std::size_t>(d);
    index[d] = rest % dims[s];
    rest /= dims[s];
    f += index[d] * from_stride[s];
    t += index[d] * to_stride[s];
  }
  const auto e = static_cast<std::int64_t>(element);
  for (std::int64_t p = first; p < last; ++p) {
    plane(from + f * e, to + t * e);
    for (int d = outer - 1; d >= 0; --d) {
      const auto s = static_cast<std::size_t>(d);
      f += from_stride[s];
      t += to_stride[s];
      if (++index[d] < dims[s]) break;
      f -= from_stride[s] * dims[s];
      t -= to_stride[s] * dims[s];
      index[d] = 0;
    }
  }
}

void StridedCopy::run(const std::byte* from, std::byte* to, ThreadPool& pool) const {
  std::int64_t planes = 1;
  for (std::size_t i = 0; i + 2 < dims.size(); ++i) planes *= dims[i];
  const std::int64_t rows = dims[dims.size() - 2], columns = dims.back();
  const std::int64_t bytes = planes * rows * columns * static_cast<std::int64_t>(element);
  if (bytes <= 65536 || pool.threads() == 1) return run_outer(0, planes, from, to);
  if (planes >= 8) {
    const std::int64_t per_task = std::max<std::int64_t>(1, planes / 16);
    pool.run((planes + per_task - 1) / per_task, [&](std::int64_t task, int) {
      run_outer(task * per_task, std::min(planes, (task + 1) * per_task), from, to);
    });
    return;
  }
  // Few planes: their rows are shared out.
  const std::int64_t per_task = std::max<std::int64_t>(16, (rows + 15) / 16);
  const std::size_t row_dim = dims.size() - 2;
  pool.run((rows + per_task - 1) / per_task, [&](std::int64_t task, int) {
    StridedCopy part = *this;
    part.dims[row_dim] = std::min(per_task, rows - task * per_task);
    part.from_offset += task * per_task * from_stride[row_dim];
    part.to_offset += task * per_task * to_stride[row_dim];
    part.run_outer(0, planes, from, to);
  });
}

}  // namespace tosaic::cpu
