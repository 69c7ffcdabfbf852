// SPDX-License-Identifier: Apache-2.0
#include "ir/extent.h"

namespace tosaic {

Dim product_of(const std::vector<Dim>& dims) {
  Dim product = 1;
  for (const Dim& d : dims) product = product * d;
  return product;
}

Dim elements_of(const Shape& shape) { return product_of(shape.dims()); }

std::vector<Dim> row_major_strides(const Shape& shape) {
  std::vector<Dim> strides(static_cast<std::size_t>(shape.rank()), 1);
  for (std::size_t d = strides.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[static_cast<int>(d)];
  return strides;
}

std::int64_t most(const Dim& dim) {
  if (dim.is_number()) return dim.value();
  const auto highest = dim.bounds().highest;
  if (!highest) throw UnknownSize("the size " + ranged_text(dim) + " has no upper bound");
  return *highest;
}

std::int64_t least(const Dim& dim) {
  if (dim.is_number()) return dim.value();
  const auto lowest = dim.bounds().lowest;
  if (!lowest) throw UnknownSize("the size " + ranged_text(dim) + " has no lower bound");
  return *lowest;
}

bool is_multiple(const Dim& dim, std::int64_t of) { return mod(dim, of) == Dim(0); }

TensorType largest(const TensorType& type) {
  if (type.shape.is_static()) return type;
  std::vector<std::int64_t> sizes;
  for (const Dim& d : type.shape.dims()) sizes.push_back(most(d));
  TensorType made = type;
  made.shape = Shape(std::move(sizes));
  return made;
}

}  // namespace tosaic
