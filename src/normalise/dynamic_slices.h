// SPDX-License-Identifier: Apache-2.0
// Slices that begin where a tensor says: cache.narrow(2, pos.item(), 1), x[p], x[:, p:p+4]. The number is the tensor
// that item() was called on, and the slice a look at rows by index, which every target has and which can be written
// through.
#pragma once
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "ops/composer.h"
#include "ops/schema.h"

namespace tosaic {

// Rows `index_tensor` (i64, [rows] or, for one row whose dim goes, []) along `dim`.
struct DynamicRows {
  int dim = 0;
  ValueId index_tensor = no_value;
};

class DynamicSlices {
 public:
  explicit DynamicSlices(Graph& graph);

  // Learns which tensor the number is that this node gives: item() of integers, and Python's arithmetic on such.
  // Operands are pure values; nodes may be added.
  void learn(const Node& node);
  // The rows of the first operand that this call takes or writes, if a number that was learnt says so.
  std::optional<DynamicRows> rows(const Node& node, const Schema& schema);
  // x[:, ..., places], as the results of `slice` are.
  Node look(const DynamicRows& rows, const Node& slice) const;
  // `base` with `content` as those rows.
  ValueId put(const DynamicRows& rows, ValueId base, ValueId content, const LocRef& loc);
  Node put(const DynamicRows& rows, const Node& scatter) const;

 private:
  std::optional<Val> scalar(const Attr* argument);
  Val integers(const Shape& shape, const std::vector<std::int64_t>& elements);

  Graph& graph_;
  Composer c_;
  std::unordered_map<std::string, Val> tensors_;  // by the number's name; i64 []
};

}  // namespace tosaic
