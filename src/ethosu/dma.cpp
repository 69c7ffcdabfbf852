// SPDX-License-Identifier: Apache-2.0
// DMA_START: copies between regions and into the internal memory, in one, two or three dimensions, and on U85 with an
// index list (gather, scatter).
#include <fmt/format.h>
#include <cstring>

#include "ethosu/operations.h"

namespace tosaic::ethosu {
namespace {

struct End {
  int region = 0;
  bool internal = false;
  std::int64_t address = 0, stride0 = 0, stride1 = 0;
};

// Where a box of runs lies: `runs0` runs of `bytes`, `runs1` times.
Result<std::byte*> locate(Context& context, const End& end, std::int64_t bytes, std::int64_t runs0, std::int64_t runs1,
                          bool write, const char* what) {
  std::int64_t low = 0, high = 0;
  for (const std::int64_t step : {(runs0 - 1) * end.stride0, (runs1 - 1) * end.stride1})
    (step < 0 ? low : high) += step;
  if (end.internal) {
    const auto size = static_cast<std::int64_t>(context.internal.size());
    if (end.address + low < 0 || end.address + high > size - bytes)
      return error("ethosu.out-of-region", fmt::format("{} spans bytes {} to {} of the internal memory of {} bytes",
                                                       what, end.address + low, end.address + high + bytes, size));
    return context.internal.data() + end.address;
  }
  TOSAIC_TRY(const auto found, range(context.regions, end.region, end.address + low, high - low + bytes, write, what));
  return found.data() - low;
}

// Gather and scatter (U85): run i moves to or from the place that the i-th 32-bit index names. In three dimensions the
// list goes on from one box of runs to the next.
Status run_indexed(Context& context, End from, End to, std::int64_t bytes) {
  const Registers& r = context.registers;
  const bool gathers = r.get<"DMA0_SRC_REGION", "idx_mode">() == 1;
  if (gathers && r.get<"DMA0_DST_REGION", "idx_mode">() == 1)
    return error("ethosu.reserved", "index lists for both ends of a DMA");
  if (from.internal || to.internal) return error("ethosu.undecidable", "a DMA with an index list and internal memory");
  const std::uint64_t dimensions = r.get<"DMA0_SRC_REGION", "stride_mode">();
  const auto runs = dimensions == 0 ? 1 : static_cast<std::int64_t>(r.get<"DMA0_SIZE0", "size">());
  const auto boxes = dimensions < 2 ? 1 : static_cast<std::int64_t>(r.get<"DMA0_SIZE1", "size">());
  const auto most = static_cast<std::int64_t>(r.get<"DMA0_IDX_MAX", "idx_max">());
  // In one dimension only the indexed end has a stride.
  from.stride0 = gathers || dimensions ? r.signed40<"DMA0_SRC_STRIDE0">() : 0;
  to.stride0 = !gathers || dimensions ? r.signed40<"DMA0_DST_STRIDE0">() : 0;
  if (dimensions == 2) {
    from.stride1 = r.signed40<"DMA0_SRC_STRIDE1">();
    to.stride1 = r.signed40<"DMA0_DST_STRIDE1">();
    if (r.signed40<"DMA0_IDX_SKIP1">() != 0)
      return error("ethosu.undecidable", "a DMA whose index list has gaps: not seen and checked");
  }
  const int list_region = static_cast<int>(r.get<"DMA0_IDX_REGION", "region">());
  const std::int64_t list = r.signed40<"DMA0_IDX">();
  if (r.missing()) return {};
  if (bytes <= 0 || runs <= 0 || boxes <= 0)
    return error("ethosu.dma", fmt::format("a DMA of {} x {} runs of {} bytes", boxes, runs, bytes));
  TOSAIC_CHECK(
      context.spend((static_cast<double>(bytes) / 8 + 1) * static_cast<double>(runs) * static_cast<double>(boxes)));
  for (std::int64_t n = 0; n < runs * boxes; ++n) {
    const std::int64_t i = n % runs, j = n / runs;
    const std::int64_t listed = mutated("dma.index_list") ? i : n;
    TOSAIC_TRY(const auto entry, range(context.regions, list_region, list + 4 * listed, 4, false, "the index list"));
    std::int32_t index;
    std::memcpy(&index, entry.data(), 4);
    if (index < 0 || index > most)
      return error("ethosu.undefined",
                   fmt::format("index {} of the DMA's list is {}, the largest is {}", listed, index, most));
    if (mutated("dma.index")) index = static_cast<std::int32_t>(i);
    TOSAIC_TRY(const auto source,
               range(context.regions, from.region,
                     from.address + j * from.stride1 + bounded(Wide{gathers ? index : i} * from.stride0), bytes, false,
                     "the DMA source"));
    TOSAIC_TRY(const auto target, range(context.regions, to.region,
                                        to.address + j * to.stride1 + bounded(Wide{gathers ? i : index} * to.stride0),
                                        bytes, true, "the DMA destination"));
    std::memmove(target.data(), source.data(), static_cast<std::size_t>(bytes));
  }
  return {};
}

}  // namespace

Status run_dma(Context& context) {
  const Registers& r = context.registers;
  End from, to;
  from.region = static_cast<int>(r.get<"DMA0_SRC_REGION", "region">());
  from.internal = r.get<"DMA0_SRC_REGION", "region_mode">() == 1;
  from.address = r.signed40<"DMA0_SRC">();
  to.region = static_cast<int>(r.get<"DMA0_DST_REGION", "region">());
  to.internal = r.get<"DMA0_DST_REGION", "region_mode">() == 1;
  to.address = r.signed40<"DMA0_DST">();
  const std::int64_t bytes = r.signed40<"DMA0_LEN">();
  const std::uint64_t dimensions = r.get<"DMA0_SRC_REGION", "stride_mode">();
  if (dimensions > 2) return error("ethosu.reserved", "DMA stride mode 3");
  if (!r.u85() && r.get<"DMA0_DST_REGION", "stride_mode">() != dimensions)
    return error("ethosu.undecidable", "a DMA whose source and destination have different dimensions");
  if (r.get<"DMA0_SRC_REGION", "idx_mode">() || r.get<"DMA0_DST_REGION", "idx_mode">())
    return run_indexed(context, from, to, bytes);
  std::int64_t runs0 = 1, runs1 = 1;
  if (dimensions >= 1) {
    runs0 = static_cast<std::int64_t>(r.get<"DMA0_SIZE0", "size">());
    if (!r.u85()) {
      // A skip is what lies between one run's end and the next one's start.
      from.stride0 = to.stride0 = bytes;
      return error("ethosu.undecidable",
                   "a DMA in two or three dimensions: which side its skips belong to has not been seen and checked");
    }
    from.stride0 = r.signed40<"DMA0_SRC_STRIDE0">();
    to.stride0 = r.signed40<"DMA0_DST_STRIDE0">();
  }
  if (dimensions == 2) {
    runs1 = static_cast<std::int64_t>(r.get<"DMA0_SIZE1", "size">());
    from.stride1 = r.signed40<"DMA0_SRC_STRIDE1">();
    to.stride1 = r.signed40<"DMA0_DST_STRIDE1">();
  }
  if (r.missing()) return {};
  if (bytes <= 0 || runs0 <= 0 || runs1 <= 0)
    return error("ethosu.dma", fmt::format("a DMA of {} x {} runs of {} bytes", runs1, runs0, bytes));
  TOSAIC_CHECK(context.spend(static_cast<double>(bytes) * static_cast<double>(runs0) * static_cast<double>(runs1) / 8 +
                             static_cast<double>(runs0) * static_cast<double>(runs1)));
  TOSAIC_TRY(std::byte * source, locate(context, from, bytes, runs0, runs1, false, "the DMA source"));
  TOSAIC_TRY(std::byte * target, locate(context, to, bytes, runs0, runs1, true, "the DMA destination"));
  for (std::int64_t j = 0; j < runs1; ++j)
    for (std::int64_t i = 0; i < runs0; ++i)
      std::memmove(target + j * to.stride1 + i * to.stride0, source + j * from.stride1 + i * from.stride0,
                   static_cast<std::size_t>(bytes));
  return {};
}

}  // namespace tosaic::ethosu
