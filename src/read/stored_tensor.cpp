// SPDX-License-Identifier: Apache-2.0
#include "read/stored_tensor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>

#include "read/read_error.h"

namespace tosaic {
namespace {

constexpr std::size_t max_rank = 64;  // PyTorch's own limit
constexpr std::int64_t max_elements = std::int64_t{1} << 58;
// An expanded tensor (stride 0) is larger than its storage; made dense, it must stay within reason.
constexpr std::int64_t max_expanded_bytes = std::int64_t{1} << 28;

bool is_dense(const StoredTensor& t) {
  std::int64_t stride = 1;
  for (std::size_t i = t.sizes.size(); i-- > 0;) {
    if (t.sizes[i] != 1 && t.strides[i] != stride) return false;
    stride *= t.sizes[i];
  }
  return true;
}

template <class T>
void gather(const T* from, T* to, const StoredTensor& t, std::size_t dim) {
  // Recursion depth is the rank; `to` advances by itself, because the result is row-major.
  struct Walk {
    const StoredTensor& t;
    T* to;
    void run(const T* from, std::size_t dim) {
      const std::int64_t n = t.sizes[dim], stride = t.strides[dim];
      if (dim + 1 == t.sizes.size())
        for (std::int64_t i = 0; i < n; ++i) *to++ = from[i * stride];
      else
        for (std::int64_t i = 0; i < n; ++i) run(from + i * stride, dim + 1);
    }
  };
  Walk{t, to}.run(from, dim);
}

}  // namespace

void check_sizes(const std::vector<std::int64_t>& sizes, const std::string& what) {
  if (sizes.size() > max_rank)
    fail("pt2.bad-shape", fmt::format("{} has {} dims, more than PyTorch's {}", what, sizes.size(), max_rank));
  std::int64_t elements = 1;
  for (std::int64_t size : sizes) {
    if (size < 0) fail("pt2.bad-shape", fmt::format("{} has the negative size {}", what, size));
    if (__builtin_mul_overflow(elements, std::max<std::int64_t>(size, 1), &elements) || elements > max_elements)
      fail("pt2.bad-shape", fmt::format("{} has the shape [{}], which no memory holds", what, fmt::join(sizes, ", ")));
  }
}

Bytes dense(const StoredTensor& t, const std::string& what) {
  check_sizes(t.sizes, what);
  if (t.strides.size() != t.sizes.size())
    fail("pt2.bad-shape", fmt::format("{} has {} sizes, but {} strides", what, t.sizes.size(), t.strides.size()));
  const auto element = static_cast<std::int64_t>(storage_size(t.dtype));
  const std::int64_t elements = Shape(t.sizes).elements();
  static const std::max_align_t nothing{};
  if (elements == 0) return Bytes(nullptr, &nothing, 0);

  const auto available = static_cast<std::int64_t>(t.storage.size()) / element;
  std::int64_t last = t.offset;  // the index of the element furthest into the storage
  bool fits = t.offset >= 0;
  for (std::size_t i = 0; i < t.sizes.size() && fits; ++i) {
    std::int64_t reach = 0;
    fits = t.strides[i] >= 0 && !__builtin_mul_overflow(t.sizes[i] - 1, t.strides[i], &reach) &&
           !__builtin_add_overflow(last, reach, &last);
  }
  if (!fits || last >= available)
    fail(error("pt2.tensor-beyond-record", fmt::format("{} needs more data than its record holds", what))
             .note(fmt::format("sizes [{}], strides [{}] and offset {} reach element {}", fmt::join(t.sizes, ", "),
                               fmt::join(t.strides, ", "), t.offset, fits ? std::to_string(last) : "out of all range"))
             .note(fmt::format("the record has {} bytes, {} elements of {}", t.storage.size(), available,
                               name_of(t.dtype)))
             .hint("the file is damaged: save the program again"));

  const auto bytes = static_cast<std::size_t>(elements * element);
  if (is_dense(t)) {
    Bytes view = t.storage.slice(static_cast<std::size_t>(t.offset * element), bytes);
    // Archives made by other tools may not align their records; a misaligned view must not be read as numbers.
    return reinterpret_cast<std::uintptr_t>(view.data()) % static_cast<std::size_t>(element) == 0
               ? view
               : Bytes::copy(view.data(), view.size());
  }
  if (elements > available && elements * element > max_expanded_bytes)
    fail("pt2.tensor-too-large", fmt::format("{} expands {} stored elements to {}", what, available, elements));
  std::vector<std::byte> out(bytes);
  const std::byte* from = t.storage.data() + t.offset * element;
  auto copy = [&]<class T>() { gather(reinterpret_cast<const T*>(from), reinterpret_cast<T*>(out.data()), t, 0); };
  // Element types only matter by their width; unaligned storages are copied once more, to be safe to read.
  Bytes aligned;
  if (reinterpret_cast<std::uintptr_t>(from) % static_cast<std::size_t>(element) != 0) {
    aligned = Bytes::copy(from, t.storage.size() - static_cast<std::size_t>(t.offset * element));
    from = aligned.data();
  }
  switch (element) {
    case 1: copy.template operator()<std::uint8_t>(); break;
    case 2: copy.template operator()<std::uint16_t>(); break;
    case 4: copy.template operator()<std::uint32_t>(); break;
    default: copy.template operator()<std::uint64_t>(); break;
  }
  return Bytes::of(std::move(out));
}

}  // namespace tosaic
