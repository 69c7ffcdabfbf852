// SPDX-License-Identifier: Apache-2.0
#include "formats/flat_rope.h"

#include <algorithm>

namespace tosaic::formats {

flatbuffers::Offset<flatbuffers::Vector<std::uint8_t>> FlatRope::bytes(const Rope& data, std::size_t alignment) {
  constexpr std::size_t worth_a_view = 4096, cache_line = 64;
  const auto size = static_cast<std::size_t>(data.size());
  const bool large = size >= worth_a_view;
  builder_.PreAlign(size, large ? std::max(alignment, cache_line) : alignment);
  if (!large) {
    const Bytes joined = data.joined();
    return builder_.CreateVector(reinterpret_cast<const std::uint8_t*>(joined.data()), size);
  }
  std::uint8_t* room = nullptr;
  const auto from_end = builder_.CreateUninitializedVector<std::uint8_t>(size, &room).o;
  views_.push_back({from_end, data});
  return {from_end};
}

Rope FlatRope::finished() {
  auto owner = std::make_shared<flatbuffers::DetachedBuffer>(builder_.Release());
  const void* data = owner->data();
  const std::size_t size = owner->size();
  const Bytes flat(std::move(owner), data, size);
  if (views_.empty()) return flat;
  Rope file;
  std::size_t done = 0;
  for (std::size_t i = views_.size(); i-- > 0;) {  // a builder writes from the end
    const std::size_t at = size - views_[i].from_end + sizeof(flatbuffers::uoffset_t);
    file.append(flat.slice(done, at - done));
    file.append(views_[i].data);
    done = at + static_cast<std::size_t>(views_[i].data.size());
  }
  file.append(flat.slice(done, size - done));
  return file;
}

}  // namespace tosaic::formats
