// SPDX-License-Identifier: Apache-2.0
#include "shaders/attention_factor.h"

namespace tosaic::shaders {

AttentionFactor::AttentionFactor(Kernel& s, const StridedMatrices& strided, Value batch, const Dim& apart,
                                 std::int64_t wide, Fetched::As as, const Lines& lines)
    : s_(s), lines_(lines), fetched_(s, s.type(strided.value).dtype, std::nullopt, wide, as) {
  fetched_.bind(strided.value);
  begin_ = s.param(fetched_.units(strided.offset)) +
           strided.batches.begin(s, batch, [&](const Dim& elements) { return fetched_.units(elements); });
  apart_ = s.param(fetched_.units(apart));
  width_ = s.param(wide / std::int64_t{fetched_.width()});
}

void AttentionFactor::fetch(std::uint32_t count, Value first, Value all) {
  const Value vectors = s_.integer(lines_.vectors);
  for (std::uint32_t i = 0; i < reads_of(count); ++i) {
    const Value place = place_of(i), line = first + place / vectors, vector = place % vectors;
    Value inside = (line < all) & (vector < width_);
    if (!is_even(count)) inside = inside & (place < std::int64_t{count * lines_.vectors});
    fetched_.fetch(i, begin_ + line * apart_ + vector, inside, s_.integer(fetched_.width()));
  }
}

void AttentionFactor::share(const Shared& memory, std::uint32_t count, std::uint32_t begin) {
  const Value vectors = s_.integer(lines_.vectors), all = s_.integer(count * lines_.vectors);
  for (std::uint32_t i = 0; i < reads_of(count); ++i) {
    const Value place = place_of(i);
    const auto store = [&](Value at) {
      s_.store(memory, at / vectors * lines_.pitch + at % vectors + begin, fetched_.vector(i));
    };
    if (is_even(count))
      store(place);
    else
      s_.when(place < all, [&] { store(place % all); });  // as it is, said so that it is seen
  }
}

}  // namespace tosaic::shaders
