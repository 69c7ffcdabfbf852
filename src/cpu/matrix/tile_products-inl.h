// SPDX-License-Identifier: Apache-2.0
// Eight tile registers and what is done with them, for inclusion in files compiled per instruction set. Intel's manual,
// volume 2: a tile has up to 16 rows of up to 64 bytes; sum[m][n] += sum over k < 4 * rows of B: A[m][k] * B[k /
// 4][n][k % 4].
#if defined(TOSAIC_CPU_TILE_PRODUCTS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TOSAIC_CPU_TILE_PRODUCTS_INL_H
#undef TOSAIC_CPU_TILE_PRODUCTS_INL_H
#else
#define TOSAIC_CPU_TILE_PRODUCTS_INL_H
#endif
#include <hwy/highway.h>

#include <cstdint>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace tosaic::cpu {
namespace HWY_NAMESPACE {
namespace {

// Sums lie in tiles 0 to 3, of 16 rows and columns; A in 4 and 5; B in 6 and 7. A row of A, as a column of B, has
// `groups` times four elements.
#if HWY_TARGET == HWY_AVX3_DL && HWY_ARCH_X86_64
// In assembler, which every compiler takes without options for the whole file; none of them uses these registers.
class TileInstructions {
 public:
  explicit TileInstructions(std::int64_t groups) {
    struct alignas(64) {
      std::uint8_t palette = 1, start_row = 0, zeros[14] = {};
      std::uint16_t row_bytes[16] = {};
      std::uint8_t rows[16] = {};
    } shapes;
    for (int t = 0; t < 8; ++t) {
      const bool a = t == 4 || t == 5, b = t > 5;
      shapes.row_bytes[t] = static_cast<std::uint16_t>(a ? groups * 4 : 64);
      shapes.rows[t] = static_cast<std::uint8_t>(b ? groups : 16);
    }
    asm volatile("ldtilecfg %0" ::"m"(shapes));
  }
  ~TileInstructions() { asm volatile("tilerelease" ::); }
  TileInstructions(const TileInstructions&) = delete;
  TileInstructions& operator=(const TileInstructions&) = delete;

  template <int tile>
  HWY_INLINE void clear() {
    asm volatile("tilezero %%tmm%c0" ::"i"(tile));
  }
  template <int tile>
  HWY_INLINE void load(const void* from, std::int64_t stride) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(stride), "i"(tile) : "memory");
  }
  // What is not needed again soon: B stays in the nearest cache instead.
  template <int tile>
  HWY_INLINE void load_once(const void* from, std::int64_t stride) {
    asm volatile("tileloaddt1 (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(stride), "i"(tile) : "memory");
  }
  template <int tile>
  HWY_INLINE void store(void* to, std::int64_t stride) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"(stride), "i"(tile) : "memory");
  }
  template <int sum, int a, int b>
  HWY_INLINE void add_products() {
    asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(sum), "i"(a), "i"(b));
  }
};
#endif

class TilesInPlainCode {
 public:
  explicit TilesInPlainCode(std::int64_t groups) : groups_(groups) {}
  template <int tile>
  void clear() {
    std::memset(tiles_[tile], 0, sizeof tiles_[tile]);
  }
  template <int tile>
  void load(const void* from, std::int64_t stride) {
    const std::int64_t rows = tile > 5 ? groups_ : 16;
    for (std::int64_t r = 0; r < rows; ++r)
      std::memcpy(tiles_[tile][r], static_cast<const char*>(from) + r * stride, row_bytes(tile));
  }
  template <int tile>
  void load_once(const void* from, std::int64_t stride) {
    load<tile>(from, stride);
  }
  template <int tile>
  void store(void* to, std::int64_t stride) {
    for (std::int64_t r = 0; r < 16; ++r) std::memcpy(static_cast<char*>(to) + r * stride, tiles_[tile][r], 64);
  }
  template <int sum, int a, int b>
  void add_products() {
    for (std::int64_t m = 0; m < 16; ++m)
      for (std::int64_t n = 0; n < 16; ++n) {
        std::uint32_t total;  // which may wrap
        std::memcpy(&total, &tiles_[sum][m][n * 4], 4);
        for (std::int64_t k = 0; k < 4 * groups_; ++k)
          total += static_cast<std::uint32_t>(tiles_[a][m][k] * tiles_[b][k / 4][n * 4 + k % 4]);
        std::memcpy(&tiles_[sum][m][n * 4], &total, 4);
      }
  }

 private:
  std::size_t row_bytes(int tile) const { return tile == 4 || tile == 5 ? static_cast<std::size_t>(groups_) * 4 : 64; }
  std::int64_t groups_;
  std::int8_t tiles_[8][16][64];
};

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tosaic::cpu
HWY_AFTER_NAMESPACE();
#endif
