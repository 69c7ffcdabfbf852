// SPDX-License-Identifier: Apache-2.0
#include "ethosu/context.h"

#include <fmt/format.h>

namespace tosaic::ethosu {

Status Context::spend(double work) {
  if (work > work_left)
    return error("ethosu.too-much-work",
                 fmt::format("this operation needs {:.3g} steps, {:.3g} are left for the run", work, work_left));
  work_left -= work;
  return {};
}

Result<FeatureMap> place_operand(Context& context, const Operand& operand, const Shape3& shape, bool write,
                                 const char* what) {
  if (!operand.chained()) return place(context.regions, operand.layout, shape, write, what);
  const int number = operand.layout.region;
  Layout layout;
  layout.type = operand.layout.type;
  layout.h0 = layout.h1 = shape.h;
  layout.w0 = shape.w;
  layout.stride_x = shape.c * layout.type.bytes;
  layout.stride_y = shape.w * layout.stride_x;
  if (shape.elements() > most_elements)
    return error("ethosu.too-large",
                 fmt::format("{} in chaining buffer {} has {} elements", what, number, shape.elements()));
  if (write) {
    ChainBuffer& buffer = context.chains[number];
    buffer.layout = layout;
    buffer.shape = shape;
    buffer.bytes.assign(static_cast<std::size_t>(shape.h * layout.stride_y), std::byte{0});
  }
  const auto found = context.chains.find(number);
  if (found == context.chains.end() || found->second.bytes.empty())
    return error("ethosu.chain", fmt::format("{} reads chaining buffer {}, which nothing has filled", what, number));
  ChainBuffer& buffer = found->second;
  if (!(buffer.shape == shape) || !(buffer.layout.type == layout.type))
    return error(
        "ethosu.chain",
        fmt::format("{} reads {}x{}x{} elements of {} bytes from chaining buffer {}, which holds {}x{}x{} of {}", what,
                    shape.h, shape.w, shape.c, layout.type.bytes, number, buffer.shape.h, buffer.shape.w,
                    buffer.shape.c, buffer.layout.type.bytes));
  return FeatureMap(layout, shape, buffer.bytes.data(), 0, static_cast<std::int64_t>(buffer.bytes.size()));
}

}  // namespace tosaic::ethosu
