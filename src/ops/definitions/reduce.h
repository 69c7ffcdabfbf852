// SPDX-License-Identifier: Apache-2.0
// Reductions along one axis: the loop and the shape rule. Private to src/ops.
#pragma once
#include "ops/definitions/elementwise.h"

namespace tosaic::tosa {

// A tensor seen from one of its axes: element (l, i, r) lies at (l * size + i) * inner + r.
struct AxisView {
  std::int64_t outer = 1, size = 1, inner = 1;
};
AxisView along(const Shape& shape, std::int64_t axis);

// out = f(... f(f(start, x0), x1) ...); without a start, x0 begins. Partial results must fit an integer dtype.
template <auto f, Domain domain = Domain::both>
Status fold(const Run& run, std::optional<int> start) {
  const AxisView view = along(run.in[0].type.shape, run.view.integer("axis"));
  bool bad = false;
  with_element<domain>(run.out[0].type.dtype, [&]<class T>() {
    const T* in = static_cast<const T*>(run.in[0].data);
    T* out = static_cast<T*>(run.out[0].data);
    for (std::int64_t l = 0; l < view.outer; ++l)
      for (std::int64_t r = 0; r < view.inner; ++r) {
        const T* x = in + l * view.size * view.inner + r;
        Wide<T> acc = start ? static_cast<Wide<T>>(*start) : static_cast<Wide<T>>(*x);
        for (std::int64_t i = start ? 0 : 1; i < view.size; ++i) {
          acc = f(acc, static_cast<Wide<T>>(x[i * view.inner]));
          bad = bad || !fits<T>(acc);
        }
        *out++ = T(acc);
      }
  });
  if (!bad) return {};
  return unpredictable(run, fmt::format("a partial result does not fit {}", name_of(run.out[0].type.dtype)));
}

std::vector<TensorType> infer_reduction(const View& view);
Op reduction_row(std::string_view name, std::uint16_t schema_number, std::string_view summary,
                 std::vector<TypeRow> types, Status (*eval)(const Run&));

}  // namespace tosaic::tosa
