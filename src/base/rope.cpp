// SPDX-License-Identifier: Apache-2.0
#include "base/rope.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/exceptions.h"
#include "base/system/mapped_files.h"

namespace tosaic {

Rope::Rope(Bytes whole) : size_(whole.size()) {
  if (!whole.null()) chunks_.push_back(std::move(whole));
}

void Rope::append(const Bytes& chunk) {
  if (chunk.empty()) return;
  chunks_.push_back(chunk);
  size_ += chunk.size();
}

void Rope::append(const Rope& rope) {
  for (const Bytes& chunk : rope.chunks_) append(chunk);
}

void Rope::zeros(std::uint64_t count) {
  static constexpr std::array<std::byte, 4096> nothing{};
  while (count > 0) {
    const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(count, nothing.size()));
    append(Bytes(nullptr, nothing.data(), part));
    count -= part;
  }
}

void RopeReader::next(std::size_t bytes, void* to) {
  auto* at = static_cast<std::byte*>(to);
  while (bytes > 0) {
    const std::size_t part = std::min(bytes, left_.front().size() - used_);
    std::memcpy(at, left_.front().data() + used_, part);
    at += part;
    bytes -= part;
    used_ += part;
    if (used_ < left_.front().size()) continue;
    left_ = left_.subspan(1);
    used_ = 0;
  }
}

Rope RopeReader::next(std::uint64_t bytes) {
  Rope views;
  while (bytes > 0) {
    const std::size_t part = static_cast<std::size_t>(std::min<std::uint64_t>(bytes, left_.front().size() - used_));
    views.append(left_.front().slice(used_, part));
    bytes -= part;
    used_ += part;
    if (used_ < left_.front().size()) continue;
    left_ = left_.subspan(1);
    used_ = 0;
  }
  return views;
}

Bytes Rope::joined() const {
  if (chunks_.empty()) return {};
  if (chunks_.size() == 1) return chunks_[0];
  std::byte* memory = nullptr;
  Bytes all = Bytes::fresh(static_cast<std::size_t>(size_), memory);
  for (const Bytes& chunk : chunks_) {
    if (!chunk.empty()) std::memcpy(memory, chunk.data(), chunk.size());
    memory += chunk.size();
  }
  return all;
}

bool Rope::operator==(const Rope& other) const {
  if (size_ != other.size_) return false;
  std::size_t i = 0, k = 0, in_i = 0, in_k = 0;
  for (std::uint64_t left = size_; left > 0;) {
    const Bytes &a = chunks_[i], &b = other.chunks_[k];
    const std::size_t count = std::min(a.size() - in_i, b.size() - in_k);
    if (a.slice(in_i, count) != b.slice(in_k, count)) return false;
    left -= count;
    if ((in_i += count) == a.size()) ++i, in_i = 0;
    if ((in_k += count) == b.size()) ++k, in_k = 0;
  }
  return true;
}

namespace {

using HashState = std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)>;
HashState hash_state() {
  HashState state(XXH3_createState(), XXH3_freeState);
  if (!state) raise(std::bad_alloc());
  return state;
}

}  // namespace

std::uint64_t hash_of(const Rope& rope) {
  if (rope.chunks().size() == 1) return hash_of(rope.chunks()[0]);
  const HashState state = hash_state();
  XXH3_64bits_reset_withSeed(state.get(), 0);
  for (const Bytes& chunk : rope.chunks()) XXH3_64bits_update(state.get(), chunk.data(), chunk.size());
  return XXH3_64bits_digest(state.get());
}

// What it has read of a mapped file leaves the memory again: a copy to a device may be all that is kept.
Digest digest_of(const Rope& rope, std::uint64_t seed) {
  constexpr std::uint64_t at_once = 1 << 20;
  const HashState state = hash_state();
  XXH3_128bits_reset_withSeed(state.get(), seed);
  RopeReader reader(rope);
  for (std::uint64_t left = rope.size(); left > 0;) {
    const Rope part = reader.next(std::min(left, at_once));
    for (const Bytes& chunk : part.chunks()) {
      XXH3_128bits_update(state.get(), chunk.data(), chunk.size());
      release_pages(chunk.data(), chunk.size());
    }
    left -= part.size();
  }
  const XXH128_hash_t digest = XXH3_128bits_digest(state.get());
  return {digest.low64, digest.high64};
}

std::uint64_t glance_at(const Rope& rope) {
  const auto chunks = rope.chunks();
  std::uint64_t hash = rope.size();
  if (rope.empty()) return hash;
  for (const Bytes& chunk : chunks) {
    const std::size_t end = std::min<std::size_t>(chunk.size(), 64);
    hash = hash_of(chunk.data(), end, hash);
    hash = hash_of(chunk.data() + chunk.size() - end, end, hash);
  }
  return hash;
}

}  // namespace tosaic
