// SPDX-License-Identifier: Apache-2.0
// Memory as the NPU sees it: regions that the caller lends, and feature maps in them (tiles, bricks, signed
// strides). A feature map's whole extent is checked once, against its region, before anything is read or written.
#pragma once
#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace tosaic::ethosu {

struct Region {
  std::byte* base = nullptr;
  std::uint64_t bytes = 0;
  bool writable = false;
};
constexpr int max_regions = 8;
using Regions = std::array<Region, max_regions>;

struct ElementType {
  std::uint8_t bytes = 1;  // 1, 2, 4 or 8
  bool is_signed = true;
  bool operator==(const ElementType&) const = default;
  // 48-bit sums are stored in 64 bits.
  int value_bits() const { return bytes == 8 ? 48 : 8 * bytes; }
  std::int64_t lowest() const { return is_signed ? -(std::int64_t{1} << (value_bits() - 1)) : 0; }
  std::int64_t highest() const { return (std::int64_t{1} << (value_bits() - (is_signed ? 1 : 0))) - 1; }
};

struct Shape3 {
  std::int64_t h = 0, w = 0, c = 0;
  std::int64_t elements() const { return h * w * c; }
  bool operator==(const Shape3&) const = default;
};

// How a feature map lies in memory. Tiles: 2x2 splits at (h0 | h1, w0); 3x1 splits a column at h0 and h1.
struct Layout {
  int region = 0;
  ElementType type;
  bool bricks = false;  // NHCWB16
  bool tiles_3x1 = false;
  std::int64_t w0 = 0, h0 = 0, h1 = 0;
  std::array<std::int64_t, 4> base{};
  std::int64_t stride_x = 0, stride_y = 0, stride_c = 0;
  bool operator==(const Layout&) const = default;
};

// A feature map whose every element is known to lie in memory.
class FeatureMap {
 public:
  FeatureMap() = default;
  // `region`: where offset 0 of the region would be; [low, high) is known to lie in it.
  FeatureMap(const Layout& layout, const Shape3& shape, std::byte* region, std::int64_t low, std::int64_t high)
      : layout_(layout), shape_(shape), region_(region), low_(low), high_(high) {}

  const Layout& layout() const { return layout_; }
  const Shape3& shape() const { return shape_; }
  const std::byte* first_byte() const { return region_ + low_; }
  const std::byte* end_byte() const { return region_ + high_; }

  std::byte* pixel(std::int64_t y, std::int64_t x) const;
  std::int64_t channel_offset(std::int64_t c) const {
    return layout_.bricks ? (c >> 4) * layout_.stride_c + (c & 15) * layout_.type.bytes : c * layout_.type.bytes;
  }
  // Consecutive pixels of one row are consecutive in memory, channels innermost, from x on up to the tile's edge.
  bool dense_rows() const { return !layout_.bricks && layout_.stride_x == shape_.c * layout_.type.bytes; }
  // Columns [x, run_end) lie in the same tile.
  std::int64_t run_end(std::int64_t x) const {
    return layout_.tiles_3x1 || x >= layout_.w0 ? shape_.w : std::min(layout_.w0, shape_.w);
  }

  // Channels [c0, c1) of columns [x0, x1) of row y, channels innermost.
  void read_row(std::int64_t y, std::int64_t x0, std::int64_t x1, std::int64_t c0, std::int64_t c1,
                std::int64_t* to) const;
  // minus `zero_point`, which the caller knows to fit.
  void read_row(std::int64_t y, std::int64_t x0, std::int64_t x1, std::int64_t c0, std::int64_t c1,
                std::int32_t zero_point, std::int16_t* to, std::int64_t pixel_stride) const;
  template <class In>  // std::int32_t or std::int64_t
  void write_row(std::int64_t y, std::int64_t x0, std::int64_t x1, std::int64_t c0, std::int64_t c1,
                 const In* from) const;

  bool overlaps(const FeatureMap& other) const {
    return first_byte() < other.end_byte() && other.first_byte() < end_byte();
  }
  // The same elements at the same addresses.
  bool same_place(const FeatureMap& other) const {
    return region_ == other.region_ && layout_ == other.layout_ && shape_ == other.shape_;
  }
  // A copy of everything that this map spans: what overlaps the result is read from there.
  FeatureMap snapshot(std::vector<std::byte>& storage) const;

 private:
  template <class T, class Out>
  void read_as(std::int64_t y, std::int64_t x0, std::int64_t x1, std::int64_t c0, std::int64_t c1, Out zero_point,
               Out* to, std::int64_t pixel_stride) const;
  template <class T, class In>
  void write_as(std::int64_t y, std::int64_t x0, std::int64_t x1, std::int64_t c0, std::int64_t c1,
                const In* from) const;
  Layout layout_;
  Shape3 shape_;
  std::byte* region_ = nullptr;
  std::int64_t low_ = 0, high_ = 0;  // the extent, in bytes of the region
};

// Extent of a map: lowest byte and one past the highest. Fails only for shapes that no command can hold.
struct Extent {
  std::int64_t low = 0, high = 0;
};
Result<Extent> extent_of(const Layout& layout, const Shape3& shape, const char* what);
// Checks the extent against the region. `what`: "IFM", for the message.
Result<FeatureMap> place(const Regions& regions, const Layout& layout, const Shape3& shape, bool write,
                         const char* what);
// A plain range of bytes. Of an error in it, access_of says what reached for which region.
struct Access {
  std::string what;  // "IFM", "the weight stream"
  int region = 0;
  bool operator==(const Access&) const = default;
};
std::optional<Access> access_of(const Diagnostic& why);
Result<std::span<std::byte>> range(const Regions& regions, int region, std::int64_t offset, std::int64_t bytes,
                                   bool write, const char* what);

}  // namespace tosaic::ethosu
