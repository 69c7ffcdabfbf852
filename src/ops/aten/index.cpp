// SPDX-License-Identifier: Apache-2.0
#include "ops/aten_index.h"
#include "ops/op.h"

namespace tosaic {
namespace {
// The indices broadcast to one shape and become one row-major position into the indexed dims; those are brought to
// the front, gathered as rows, and the result's dims are put where PyTorch puts them.
Vals lower(Builder& b, const Call& call) {
  Val x = call.tensor("self");
  const auto indices = call.tensors("indices");
  std::vector<int> indexed, kept;
  Shape common{};
  for (int i = 0; i < x.rank(); ++i) {
    const auto k = static_cast<std::size_t>(i);
    if (k >= indices.size() || !indices[k]) {
      kept.push_back(i);
      continue;
    }
    Val v = *indices[k];
    if (v.dtype() == DType::boolean)
      b.refuse("aten.index.mask", "indexing by a boolean mask gives a shape that is known only at run time: use torch.where");
    indexed.push_back(i);
    std::vector<std::int64_t> dims(static_cast<std::size_t>(std::max(common.rank(), v.rank())), 1);
    for (int d = 0; d < static_cast<int>(dims.size()); ++d) {
      auto& out = dims[dims.size() - 1 - static_cast<std::size_t>(d)];
      if (d < common.rank()) out = common[common.rank() - 1 - d];
      if (d < v.rank() && v.dim(v.rank() - 1 - d) != 1) out = v.dim(v.rank() - 1 - d);
    }
    common = Shape(dims);
  }
  if (indexed.empty()) return x;
  if (indices.size() > static_cast<std::size_t>(x.rank()))
    b.refuse("aten.index.rank", std::to_string(indices.size()) + " indices into shape " + to_string(x.shape()));

  std::optional<Val> position;
  for (int i : indexed) {
    Val v = wrapped(b.cast(*indices[static_cast<std::size_t>(i)], DType::i32), x.dim(i));
    position = position ? b.add(b.mul(*position, b.scalar(static_cast<double>(x.dim(i)), DType::i32)), v) : v;
  }
  std::vector<int> front = indexed;
  front.insert(front.end(), kept.begin(), kept.end());
  std::int64_t rows = 1, inner = 1;
  for (int i : indexed) rows *= x.dim(i);
  std::vector<std::int64_t> dims = common.dims();
  for (int i : kept) {
    inner *= x.dim(i);
    dims.push_back(x.dim(i));
  }
  Val table = b.reshape(b.transpose(x, front), {1, rows, inner});
  Val y = b.reshape(gathered(table, b.reshape(b.broadcast_to(*position, common), {1, common.elements()})), Shape(dims));
  // Indices side by side: their dims stand where they stood; otherwise in front.
  const bool together = indexed.back() - indexed.front() + 1 == static_cast<int>(indexed.size());
  const int before = together ? indexed.front() : 0;
  std::vector<int> placed;
  for (int i = 0; i < before; ++i) placed.push_back(common.rank() + i);
  for (int i = 0; i < common.rank(); ++i) placed.push_back(i);
  for (int i = common.rank() + before; i < y.rank(); ++i) placed.push_back(i);
  return b.transpose(y, placed);
}
}  // namespace

AtenOp aten_index() {
  return {.schemas = {"index.Tensor(Tensor self, Tensor?[] indices) -> Tensor",
              "index.Tensor_hacked_twin(Tensor self, Tensor[] indices) -> Tensor"},
          .summary = "x[i, j, ...] with index tensors",
          .rule = Rule::transparent,
          .lower = {lower},
          .domain = {"x(5,3), [l(0,5,4)]",
                     "x(5,3), [l(-5,5,2,2)]",
                     "x(4,5), [l(0,4,3), l(-5,5,3)]",
                     "x(2,4,5), [None, l(0,4,3)]",
                     "x(2,4,5), [l(0,2,3,1), None, l(0,5,2)]",
                     "x(2,3,4,5), [None, l(0,3,2), l(0,4,2)]",
                     "Tensor_hacked_twin: x(4,5), [l(0,4,3), l(0,5,3)]"}};
}
}  // namespace tosaic
