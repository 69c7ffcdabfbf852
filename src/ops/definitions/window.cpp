// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/window.h"

#include <algorithm>
#include <limits>

namespace tosaic::tosa {

std::int64_t room(const Slide& s) {
  // Beyond 31 bits nothing fits in memory, and the products below could overflow.
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  if (s.size > most || s.kernel > most || s.dilation > most || s.before > most || s.after > most) return -1;
  return s.size + s.before + s.after - ((s.kernel - 1) * s.dilation + 1);
}

std::int64_t positions(const Slide& s) {
  const std::int64_t r = room(s);
  return r < 0 || s.stride < 1 ? 0 : r / s.stride + 1;
}

Dim positions(const Dim& size, Slide s) {
  if (s.stride < 1) return 0;
  if (!size.is_number())
    return floor_div(size + Dim(s.before + s.after - (s.kernel - 1) * s.dilation - 1), s.stride) + 1;
  s.size = size.value();
  return positions(s);
}

std::int64_t item(const View& view, std::string_view attribute, std::size_t i, std::int64_t otherwise) {
  const Attr* attr = view.node().attrs.find(attribute);
  const auto* list = attr ? std::get_if<std::vector<std::int64_t>>(attr) : nullptr;
  return list && i < list->size() ? (*list)[i] : otherwise;
}

Check check_length(const View& view, std::string_view attribute, std::size_t wanted) {
  const std::size_t found = view.ints(attribute).size();
  if (found == wanted) return std::nullopt;
  return broken(fmt::format("{}.attribute-length", view.node().op.base()), "{} holds {} numbers, {} are needed",
                attribute, found, wanted);
}

Check check_slides(const View& view, std::span<const Slide> slides) {
  const std::string_view op = view.node().op.base();
  for (const Slide& s : slides)
    if (s.before < 0 || s.after < 0)
      return broken(fmt::format("{}.pad", op), "padding {} must not be negative", std::min(s.before, s.after));
  for (const Slide& s : slides)
    if (s.stride < 1) return broken(fmt::format("{}.stride", op), "stride {} must be at least 1", s.stride);
  for (const Slide& s : slides)
    if (s.dilation < 1) return broken(fmt::format("{}.dilation", op), "dilation {} must be at least 1", s.dilation);
  for (const Slide& s : slides) {
    if (room(s) < 0)
      return broken(fmt::format("{}.output-size", op),
                    "a kernel of {} with dilation {} does not fit an input of {} with padding {} and {}", s.kernel,
                    s.dilation, s.size, s.before, s.after);
  }
  return std::nullopt;
}

Check level_slides(const View& view, const Level& level, std::span<const Slide> slides) {
  const std::string_view op = view.node().op.base();
  for (const Slide& s : slides) {
    // Not the dilated extent: the standard limits dilation * kernel.
    if (s.kernel > level.max_kernel || s.dilation > level.max_kernel / s.kernel)
      return broken(fmt::format("{}.level-kernel", op), "kernel {} times dilation {} exceeds the level's {}", s.kernel,
                    s.dilation, level.max_kernel);
    if (s.before > level.max_kernel || s.after > level.max_kernel)
      return broken(fmt::format("{}.level-pad", op), "padding {} exceeds the level's {}", std::max(s.before, s.after),
                    level.max_kernel);
    if (s.stride > level.max_stride)
      return broken(fmt::format("{}.level-stride", op), "stride {} exceeds the level's {}", s.stride, level.max_stride);
  }
  return std::nullopt;
}

Check check_zero_point(const View& view, std::size_t operand, std::string_view name, DType tensor) {
  const std::string_view op = view.node().op.base();
  const TensorType& type = view.in(operand);
  if (type.shape.elements() != 1)
    return broken(fmt::format("{}.{}-size", op, name), "{} has shape [{}], one element is needed", name,
                  to_string(type.shape));
  const Bytes& data = view.constant(operand);
  if (data.null() || tensor == DType::i8) return std::nullopt;
  if (const double value = element_as_double(type.dtype, data.data(), 0); value != 0)
    return broken(fmt::format("{}.{}", op, name), "{} is {}: it must be 0 for {}", name, value, name_of(tensor));
  return std::nullopt;
}

std::vector<double> as_doubles(const TensorView& tensor, double zero_point) {
  std::vector<double> result(static_cast<std::size_t>(tensor.type.shape.elements()));
  with_storage(tensor.type.dtype, [&]<class T>() {
    const T* from = static_cast<const T*>(tensor.data);
    for (std::size_t i = 0; i < result.size(); ++i) result[i] = static_cast<double>(from[i]) - zero_point;
  });
  return result;
}

bool store_doubles(const MutableTensorView& tensor, std::int64_t first, std::span<const double> values) {
  bool fits = true;
  with_storage(tensor.type.dtype, [&]<class T>() {
    T* to = static_cast<T*>(tensor.data) + first;
    if constexpr (std::is_integral_v<T>) {
      const auto lowest = static_cast<double>(range_of(tensor.type.dtype).lowest);
      const auto highest = static_cast<double>(range_of(tensor.type.dtype).highest);
      for (std::size_t i = 0; i < values.size(); ++i) {
        const bool good = values[i] >= lowest && values[i] <= highest;
        fits = fits && good;
        to[i] = good ? static_cast<T>(values[i]) : T{0};
      }
    } else {
      for (std::size_t i = 0; i < values.size(); ++i) to[i] = T(values[i]);
    }
  });
  return fits;
}

}  // namespace tosaic::tosa
