// SPDX-License-Identifier: Apache-2.0
#include "ethosu/memory.h"

#include <fmt/format.h>
#include <algorithm>
#include <cstring>

#include "ethosu/mutate.h"

namespace tosaic::ethosu {
namespace {

struct Range {
  std::int64_t begin, end;
};

// In the diagnostic's context, for access_of.
constexpr std::string_view in_region = " in region ";  // and one digit

Diagnostic no_access(const char* what, int region, Diagnostic why) {
  why.context = fmt::format("{}{}{}", what, in_region, region);
  return why;
}

Diagnostic outside(const char* what, int region, std::int64_t low, std::int64_t high, const Region& given) {
  return no_access(what, region,
                   error("ethosu.out-of-region", fmt::format("{} spans bytes {} to {} of region {}, which has {} bytes",
                                                             what, low, high, region, given.bytes)));
}

}  // namespace

std::byte* FeatureMap::pixel(std::int64_t y, std::int64_t x) const {
  int tile = 0;
  if (layout_.tiles_3x1) {
    if (y >= layout_.h1) {
      tile = 2, y -= layout_.h1;
    } else if (y >= layout_.h0) {
      tile = 1, y -= layout_.h0;
    }
  } else {
    std::int64_t split = layout_.h0;
    if (x >= layout_.w0) tile = 1, x -= layout_.w0, split = layout_.h1;
    if (y >= split) tile += 2, y -= split;
    if (mutated("tile.ignored") && tile) tile = 0;
  }
  return region_ + layout_.base[static_cast<std::size_t>(tile)] + y * layout_.stride_y + x * layout_.stride_x;
}

template <class T, class Out>
void FeatureMap::read_as(std::int64_t y, std::int64_t x0, std::int64_t x1, std::int64_t c0, std::int64_t c1,
                         Out zero_point, Out* to, std::int64_t pixel_stride) const {
  const auto convert = [&](const std::byte* from, std::int64_t count, Out* out) {
    for (std::int64_t i = 0; i < count; ++i) {
      T value;
      std::memcpy(&value, from + i * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
      out[i] = static_cast<Out>(static_cast<Out>(value) - zero_point);
    }
  };
  for (std::int64_t x = x0; x < x1;) {
    const std::int64_t end = std::min(run_end(x), x1);
    if (dense_rows() && c0 == 0 && c1 == shape_.c && pixel_stride == c1) {
      convert(pixel(y, x), (end - x) * c1, to);
      to += (end - x) * c1;
      x = end;
      continue;
    }
    const std::byte* from = pixel(y, x);
    for (; x < end; ++x, from += layout_.stride_x, to += pixel_stride) {
      if (!layout_.bricks) {
        convert(from + c0 * static_cast<std::int64_t>(sizeof(T)), c1 - c0, to);
        continue;
      }
      for (std::int64_t c = c0; c < c1;) {
        const std::int64_t stop = std::min(c1, (c | 15) + 1);
        convert(from + channel_offset(c), stop - c, to + (c - c0));
        c = stop;
      }
    }
  }
}

void FeatureMap::read_row(std::int64_t y, std::int64_t x0, std::int64_t x1, std::int64_t c0, std::int64_t c1,
                          std::int64_t* to) const {
  const std::int64_t stride = c1 - c0;
  const bool s = layout_.type.is_signed;
  switch (layout_.type.bytes) {
    case 1:
      return s ? read_as<std::int8_t>(y, x0, x1, c0, c1, std::int64_t{0}, to, stride)
               : read_as<std::uint8_t>(y, x0, x1, c0, c1, std::int64_t{0}, to, stride);
    case 2:
      return s ? read_as<std::int16_t>(y, x0, x1, c0, c1, std::int64_t{0}, to, stride)
               : read_as<std::uint16_t>(y, x0, x1, c0, c1, std::int64_t{0}, to, stride);
    case 4:
      return s ? read_as<std::int32_t>(y, x0, x1, c0, c1, std::int64_t{0}, to, stride)
               : read_as<std::uint32_t>(y, x0, x1, c0, c1, std::int64_t{0}, to, stride);
    default: return read_as<std::int64_t>(y, x0, x1, c0, c1, std::int64_t{0}, to, stride);
  }
}

void FeatureMap::read_row(std::int64_t y, std::int64_t x0, std::int64_t x1, std::int64_t c0, std::int64_t c1,
                          std::int32_t zero_point, std::int16_t* to, std::int64_t pixel_stride) const {
  const auto zero = static_cast<std::int16_t>(zero_point);
  if (layout_.type.bytes == 2) return read_as<std::int16_t>(y, x0, x1, c0, c1, zero, to, pixel_stride);
  if (layout_.type.is_signed) return read_as<std::int8_t>(y, x0, x1, c0, c1, zero, to, pixel_stride);
  read_as<std::uint8_t>(y, x0, x1, c0, c1, zero, to, pixel_stride);
}

template <class T, class In>
void FeatureMap::write_as(std::int64_t y, std::int64_t x0, std::int64_t x1, std::int64_t c0, std::int64_t c1,
                          const In* from) const {
  const auto convert = [](const In* in, std::int64_t count, std::byte* out) {
    for (std::int64_t i = 0; i < count; ++i) {
      const T value = static_cast<T>(in[i]);
      std::memcpy(out + i * static_cast<std::int64_t>(sizeof(T)), &value, sizeof(T));
    }
  };
  for (std::int64_t x = x0; x < x1;) {
    const std::int64_t end = std::min(run_end(x), x1);
    if (dense_rows() && c0 == 0 && c1 == shape_.c) {
      convert(from, (end - x) * c1, pixel(y, x));
      from += (end - x) * c1;
      x = end;
      continue;
    }
    std::byte* to = pixel(y, x);
    for (; x < end; ++x, to += layout_.stride_x, from += c1 - c0) {
      if (!layout_.bricks) {
        convert(from, c1 - c0, to + c0 * static_cast<std::int64_t>(sizeof(T)));
        continue;
      }
      for (std::int64_t c = c0; c < c1;) {
        const std::int64_t stop = std::min(c1, (c | 15) + 1);
        convert(from + (c - c0), stop - c, to + channel_offset(c));
        c = stop;
      }
    }
  }
}

template <class In>
void FeatureMap::write_row(std::int64_t y, std::int64_t x0, std::int64_t x1, std::int64_t c0, std::int64_t c1,
                           const In* from) const {
  switch (layout_.type.bytes) {
    case 1: return write_as<std::uint8_t>(y, x0, x1, c0, c1, from);
    case 2: return write_as<std::uint16_t>(y, x0, x1, c0, c1, from);
    case 4: return write_as<std::uint32_t>(y, x0, x1, c0, c1, from);
    default: return write_as<std::uint64_t>(y, x0, x1, c0, c1, from);
  }
}
template void FeatureMap::write_row(std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t,
                                    const std::int32_t*) const;
template void FeatureMap::write_row(std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t,
                                    const std::int64_t*) const;

FeatureMap FeatureMap::snapshot(std::vector<std::byte>& storage) const {
  storage.assign(region_ + low_, region_ + high_);
  FeatureMap copy = *this;
  for (std::int64_t& base : copy.layout_.base) base -= low_;
  copy.region_ = storage.data();
  copy.high_ -= low_;
  copy.low_ = 0;
  return copy;
}

Result<Extent> extent_of(const Layout& layout, const Shape3& shape, const char* what) {
  if (shape.h <= 0 || shape.w <= 0 || shape.c <= 0 || shape.h > 65536 * 4 || shape.w > 65536 * 4 || shape.c > 65536)
    return error("ethosu.shape", fmt::format("{} has shape {}x{}x{}", what, shape.h, shape.w, shape.c));
  const std::int64_t bytes = layout.type.bytes;
  const std::int64_t last_brick = layout.bricks ? (shape.c - 1) / 16 * layout.stride_c : 0;
  const std::int64_t innermost = (layout.bricks ? std::min<std::int64_t>(shape.c, 16) : shape.c) * bytes;
  Extent extent{INT64_MAX, INT64_MIN};
  const auto add = [&](int tile, std::int64_t rows, std::int64_t columns) {
    if (rows <= 0 || columns <= 0) return;
    std::int64_t low = layout.base[static_cast<std::size_t>(tile)], high = low;
    for (const std::int64_t step : {(rows - 1) * layout.stride_y, (columns - 1) * layout.stride_x, last_brick})
      (step < 0 ? low : high) += step;
    extent.low = std::min(extent.low, low);
    extent.high = std::max(extent.high, high + innermost);
  };
  const std::int64_t h0 = std::min(layout.h0, shape.h);
  if (layout.tiles_3x1) {
    const std::int64_t h1 = std::min(layout.h1, shape.h);
    if (h1 < h0)
      return error("ethosu.tiles", fmt::format("{} splits at row {} and then at row {}", what, layout.h0, layout.h1));
    add(0, h0, shape.w), add(1, h1 - h0, shape.w), add(2, shape.h - h1, shape.w);
  } else {
    const std::int64_t w0 = std::min(layout.w0, shape.w), h1 = std::min(layout.h1, shape.h);
    add(0, h0, w0), add(2, shape.h - h0, w0), add(1, h1, shape.w - w0), add(3, shape.h - h1, shape.w - w0);
  }
  return extent;
}

Result<FeatureMap> place(const Regions& regions, const Layout& layout, const Shape3& shape, bool write,
                         const char* what) {
  TOSAIC_TRY(const Extent extent, extent_of(layout, shape, what));
  TOSAIC_TRY(const auto bytes, range(regions, layout.region, extent.low, extent.high - extent.low, write, what));
  return FeatureMap(layout, shape, bytes.data() - extent.low, extent.low, extent.high);
}

std::optional<Access> access_of(const Diagnostic& why) {
  const std::string_view context = why.context;
  const std::size_t at = context.rfind(in_region);
  if (at == context.npos) return std::nullopt;
  return Access{std::string(context.substr(0, at)), context.back() - '0'};
}

Result<std::span<std::byte>> range(const Regions& regions, int region, std::int64_t offset, std::int64_t bytes,
                                   bool write, const char* what) {
  const Region& given = regions[static_cast<std::size_t>(region)];
  if (offset < 0 || bytes < 0 || static_cast<std::uint64_t>(offset) > given.bytes ||
      static_cast<std::uint64_t>(bytes) > given.bytes - static_cast<std::uint64_t>(offset))
    return outside(what, region, offset, offset + bytes, given);
  if (write && !given.writable)
    return no_access(
        what, region,
        error("ethosu.read-only", fmt::format("{} would be written to region {}, which is read-only", what, region)));
  return std::span<std::byte>(given.base + offset, static_cast<std::size_t>(bytes));
}

}  // namespace tosaic::ethosu
