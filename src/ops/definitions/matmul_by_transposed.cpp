// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/matmul_by_transposed.h"

#include "ops/definitions/window.h"

namespace tosaic::tosa {

Check check_transposed(const View& view, std::size_t operand) {
  const Shape &a = view.in(0).shape, &b = view.in(operand).shape;
  const std::string_view op = view.node().op.base();
  if (b[0] != a[0] && b[0] != Dim(1))
    return broken(fmt::format("{}.batch", op), "A has {} matrices, B has {}, neither as many nor one", to_string(a[0]),
                  to_string(b[0]));
  if (a[2] != b[2])
    return broken(fmt::format("{}.inner-size", op), "A has {} columns, B has {}", to_string(a[2]), to_string(b[2]));
  return std::nullopt;
}

bool store_products(const MutableTensorView& out, std::span<const double> a, std::span<const double> b) {
  const Shape& shape = out.type.shape;
  const std::int64_t matrices = shape.size(0), height = shape.size(1), width = shape.size(2);
  const std::int64_t inner = std::ssize(a) / (matrices * height);
  const bool shared = std::ssize(b) == width * inner;
  std::vector<double> sums(static_cast<std::size_t>(width));
  bool fits = true;
  for (std::int64_t n = 0; n < matrices; ++n)
    for (std::int64_t h = 0; h < height; ++h) {
      const double* row = a.data() + (n * height + h) * inner;
      for (std::int64_t w = 0; w < width; ++w) {
        const double* column = b.data() + ((shared ? 0 : n) * width + w) * inner;
        double sum = 0;  // of integers exact below 2^53, which no 2^22 products exceed
        for (std::int64_t c = 0; c < inner; ++c) sum += row[c] * column[c];
        sums[static_cast<std::size_t>(w)] = sum;
      }
      fits = store_doubles(out, (n * height + h) * width, sums) && fits;
    }
  return fits;
}

ValueId matmul_by_transposed(extension::Definition& d, std::array<ValueId, 4> operands, const TensorType& result) {
  TensorType turned = d.type(operands[1]);
  const std::int64_t matrices = turned.shape.size(0), width = turned.shape.size(1), inner = turned.shape.size(2);
  turned.shape = {matrices, inner, width};
  operands[1] = d.call(op::transpose, {operands[1]}, turned, {{"perms", std::vector<std::int64_t>{0, 2, 1}}});
  const std::int64_t wanted = result.shape.size(0);
  if (matrices != wanted) {
    const ValueId multiples = d.constant(DType::shape, {3}, {static_cast<double>(wanted), 1, 1});
    operands[1] = d.call(op::tile, {operands[1], multiples}, turned.with({wanted, inner, width}));
  }
  return d.call(op::matmul, {operands.begin(), operands.end()}, result);
}

}  // namespace tosaic::tosa
