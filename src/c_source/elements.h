// SPDX-License-Identifier: Apache-2.0
// Elementwise operators as expressions of C, and nests of loops around them. Private to src/c_source.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "c_source/step.h"
#include "c_source/writer.h"
#include "plan/expression.h"
#include "plan/groups.h"

namespace tosaic::c_source {

// The expression of an elementwise node, of its walked operands as C expressions. `channel`: the index along the last
// dim, as C. `lanes`: of neighbours along that dim, as many as the processor has lanes (device/mcu/tosaic_lanes.h).
// Nothing: there is none for these types.
std::optional<std::string> element(const tosa::View& view, const std::vector<std::string>& operands,
                                   const std::string& channel, bool lanes = false);
bool has_element(const tosa::View& view);
bool has_lanes(const tosa::View& view);
// Rows that are shorter are no work for lanes.
constexpr std::int64_t shortest_row = 4;
// A loop over a row of `size`, by lanes; `some` are those inside.
void open_lanes(Writer& out, const std::string& name, std::int64_t size);
// The elements of a tensor from an index on.
std::string load_lanes(DType type, const std::string& tensor, const std::string& index);
// Further operands that it reads from memory: tables, scales of channels.
std::vector<ValueId> lists_of(const tosa::View& view);
// What may be computed together with others.
plan::Fusing fusing(const Planning& planning);

// Elements of an expression, one after the other, in loops of their own or of who computes an operand on the way.
class Elements {
 public:
  // `known`: a value that is no tensor in memory, and the C expression of its element.
  Elements(const Planning& planning, std::vector<std::uint32_t> nodes, ValueId known = no_value,
           std::string known_as = {});
  const Shape& shape() const { return expression_.shape; }
  ValueId output() const { return expression_.output; }
  const std::vector<std::uint32_t>& nodes() const { return nodes_; }
  std::vector<ValueId> reads() const;
  // Can neighbours along the last dim be computed in lanes?
  bool has_lanes() const;
  // Prints the calls and gives the C expression of the result. `index`: one C expression for each dim.
  std::string print(Writer& out, const std::vector<std::string>& index, bool lanes = false);
  // The same in loops over all elements, stored.
  void print_loops(Writer& out);

 private:
  std::string load(const plan::Expression::Input& input, const std::vector<std::string>& index, bool lanes) const;
  std::string calls(Writer& out, const std::vector<std::string>& loads, const std::string& channel, bool lanes);

  const Planning& planning_;
  std::vector<std::uint32_t> nodes_;
  plan::Expression expression_;
  ValueId known_;
  std::string known_as_;
};

// a * b + c ..., without what is 0.
std::string index_sum(const std::vector<std::string>& index, const std::vector<std::int64_t>& strides,
                      std::int64_t offset = 0);
std::vector<std::int64_t> dense_strides(const Shape& shape);

// The nodes behind a value that are computed with its elements, as soon as these are made.
struct Epilogue {
  std::vector<std::uint32_t> nodes;  // of which the value's own is the first
  std::optional<Elements> elements;
  ValueId output = no_value;
};
// `sum`: the C variable in which an element is computed.
Epilogue epilogue_of(const Planning& planning, std::uint32_t n, const std::string& sum);
// Can neighbours along the last dim of what node `n` makes be computed and finished in lanes?
bool has_lanes(const Planning& planning, const Epilogue& epilogue, std::uint32_t n);
// Stores the element, finished, at `index` of the output.
void print_end(Writer& out, const Planning& planning, Epilogue& epilogue, const std::string& sum,
               const std::vector<std::string>& index, bool lanes = false);
// A step of the node, its operands, and its epilogue.
Step step_of(std::vector<ValueId> reads, Epilogue& epilogue, std::string body);

}  // namespace tosaic::c_source
