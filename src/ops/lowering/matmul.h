// SPDX-License-Identifier: Apache-2.0
// torch.matmul's rules over TOSA's [N,H,C] x [N,C,W].
#pragma once
#include <algorithm>
#include <string>
#include <vector>

#include "ops/op.h"

namespace tosaic {

inline Val matrix_product(Builder& b, const std::string& op, Val x, Val y) {
  if (x.rank() < 1 || y.rank() < 1)
    b.refuse("aten." + op + ".rank", "a product of shapes " + to_string(x.shape()) + " and " + to_string(y.shape()));
  const bool row = x.rank() == 1, column = y.rank() == 1;
  if (row) x = b.unsqueeze(x, 0);
  if (column) y = b.unsqueeze(y, 1);
  const std::int64_t h = x.dim(-2), c = x.dim(-1), w = y.dim(-1);
  if (y.dim(-2) != c)
    b.refuse("aten." + op + ".shape", "a product of shapes " + to_string(x.shape()) + " and " + to_string(y.shape()));
  // The leading dims, broadcast against each other.
  const int rank = std::max(x.rank(), y.rank());
  auto leading = [&](Val v, int i) { return i - (rank - v.rank()) < 0 ? 1 : v.dim(i - (rank - v.rank())); };
  std::vector<std::int64_t> batch;
  std::int64_t n = 1, ny = 1;
  for (int i = 0; i < rank - 2; ++i) {
    const std::int64_t a = leading(x, i), d = leading(y, i);
    if (a != d && a != 1 && d != 1)
      b.refuse("aten." + op + ".broadcast",
               "shapes " + to_string(x.shape()) + " and " + to_string(y.shape()) + " do not broadcast");
    batch.push_back(std::max(a, d));
    n *= batch.back();
    ny *= d;
  }
  auto expanded = [&](Val v) {
    auto dims = batch;
    dims.push_back(v.dim(-2));
    dims.push_back(v.dim(-1));
    return b.reshape(b.broadcast_to(v, Shape(dims)), {n, v.dim(-2), v.dim(-1)});
  };
  Val product;
  const auto& scales = y.type().scales;
  if (ny == 1 && y.is_constant() && scales && !scales->per_tensor()) {
    // A constant matrix whose columns have scales of their own is a layer's weight, which is what NPUs take.
    const Val weight = b.reshape(b.transpose(b.reshape(y, {c, w}), {1, 0}), {w, 1, 1, c});
    product = b.conv2d(b.reshape(x, {1, 1, n * h, c}), weight, std::nullopt, {0, 0, 0, 0}, {1, 1}, {1, 1});
  } else if (ny == 1 && x.shape().elements() == n * h * c)
    product = b.matmul(b.reshape(x, {1, n * h, c}), b.reshape(y, {1, c, w}));  // one matrix for all rows
  else
    product = b.matmul(expanded(x), expanded(y));
  auto dims = batch;
  if (!row) dims.push_back(h);
  if (!column) dims.push_back(w);
  return b.reshape(product, Shape(dims));
}

}  // namespace tosaic
