// SPDX-License-Identifier: Apache-2.0
// Bytes: an immutable view that keeps what it looks at alive (a mapped file, a buffer). Copying a Bytes
// copies a pointer; weights stay in the mapped archive until something changes them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "tosaic/export.hpp"

namespace tosaic {

class TOSAIC_API Bytes {
 public:
  Bytes() = default;
  // `data` stays valid as long as `owner` lives; an owner of nullptr is memory that outlives every use.
  Bytes(std::shared_ptr<const void> owner, const void* data, std::size_t size)
      : owner_(std::move(owner)), data_(static_cast<const std::byte*>(data)), size_(size) {}

  // Takes over a vector of trivially copyable elements.
  template <class T>
  static Bytes of(std::vector<T> values) {
    auto owner = std::make_shared<const std::vector<T>>(std::move(values));
    const void* data = owner->empty() ? static_cast<const void*>(owner.get()) : owner->data();  // empty is not null
    std::size_t size = owner->size() * sizeof(T);
    return Bytes(std::move(owner), data, size);
  }
  static Bytes copy(const void* data, std::size_t size);
  // New memory with undefined content, aligned for any element. `memory` may be written until the Bytes is shared.
  template <class T>
  static Bytes fresh(std::size_t count, T*& memory) {
    std::shared_ptr<std::byte[]> owner(new std::byte[count ? count * sizeof(T) : 1]);  // empty is not null
    memory = reinterpret_cast<T*>(owner.get());
    return Bytes(owner, owner.get(), count * sizeof(T));
  }

  const std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  bool null() const { return data_ == nullptr; }
  // [offset, offset + size) must lie inside.
  Bytes slice(std::size_t offset, std::size_t size) const { return Bytes(owner_, data_ + offset, size); }
  std::string_view text() const { return {reinterpret_cast<const char*>(data_), size_}; }
  // The bytes as elements of T; the caller knows that they are aligned for it.
  template <class T>
  std::span<const T> as() const {
    return {reinterpret_cast<const T*>(data_), size_ / sizeof(T)};
  }
  bool operator==(const Bytes& other) const {
    return size_ == other.size_ && (size_ == 0 || data_ == other.data_ || std::memcmp(data_, other.data_, size_) == 0);
  }

 private:
  std::shared_ptr<const void> owner_;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace tosaic
