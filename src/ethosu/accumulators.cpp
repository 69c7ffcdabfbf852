// SPDX-License-Identifier: Apache-2.0
// U85: sums that go from operation to operation, inside the NPU or through IFM2.
#include <fmt/format.h>

#include "ethosu/operations.h"

namespace tosaic::ethosu {
namespace {

// The map that IFM2 names.
Result<std::vector<std::int64_t>> sums_in_ifm2(Context& context, const Shape3& shape) {
  TOSAIC_TRY(const Operand operand, ifm2_operand(context.registers, Broadcasts::no));
  if (operand.broadcast.scalar || operand.layout.type.bytes < 4)
    return error("ethosu.undecidable", "accumulators from an IFM2 that is not a map of 32-bit or 48-bit elements");
  TOSAIC_TRY(const FeatureMap map, place_operand(context, operand, shape, false, "IFM2"));
  if (shape.elements() > most_elements) return error("ethosu.too-large", "the accumulators in IFM2");
  std::vector<std::int64_t> sums(static_cast<std::size_t>(shape.elements()));
  for (std::int64_t y = 0; y < shape.h; ++y)
    map.read_row(y, 0, shape.w, 0, shape.c, sums.data() + y * shape.w * shape.c);
  for (const std::int64_t sum : sums)
    if (sum < -(std::int64_t{1} << 47) || sum >= std::int64_t{1} << 47)
      return error("ethosu.undefined", fmt::format("the accumulator {} in IFM2 has more than 48 bits", sum));
  return sums;
}

}  // namespace

Result<Accumulation> accumulation_of(const Registers& r) {
  if (!r.u85()) return Accumulation();
  const std::uint64_t from = r.get<"ACC_FORMAT", "acc_input">();
  if (from > 2) return error("ethosu.reserved", "accumulator input 3");
  return Accumulation{static_cast<Sums>(from), r.get<"ACC_FORMAT", "acc_output">() == 1};
}

Result<std::vector<std::int64_t>> initial_sums(Context& context, Sums from, const Shape3& shape) {
  if (from == Sums::reset) return std::vector<std::int64_t>();
  if (from == Sums::in_ifm2) return sums_in_ifm2(context, shape);
  if (!context.accumulators_kept || !(context.accumulator_shape == shape))
    return error("ethosu.accumulators", "it continues sums that no operation of the same shape left");
  context.accumulators_kept = false;
  return std::move(context.accumulators);
}

}  // namespace tosaic::ethosu
