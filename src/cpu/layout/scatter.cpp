// SPDX-License-Identifier: Apache-2.0
// SCATTER: rows are put where the other values stand already, when the caller gives one memory for both.
#include <fmt/format.h>
#include <cstring>
#include <utility>
#include <vector>

#include "cpu/layout/layout.h"

#include "ir/tosa_operators.h"

namespace tosaic::cpu {
namespace {

constexpr std::int64_t few =
    64;  // rows of a batch that are compared with each other, instead of marked in a list of all

struct Scatter {
  ValueId values, indices, input, output;
  std::int64_t batches, rows, width;
  std::size_t row_bytes;

  static Diagnostic refused(const std::string& why) { return error("tosa.unpredictable", "scatter: " + why); }
  // Before anything is written: a run that fails here has changed nothing.
  Status check(const std::int32_t* index) const {
    std::vector<char> written;
    for (std::int64_t n = 0; n < batches; ++n, index += width) {
      if (width > few) written.assign(static_cast<std::size_t>(rows), 0);
      for (std::int64_t i = 0; i < width; ++i) {
        if (index[i] < 0 || index[i] >= rows)
          return refused(fmt::format("index {} is outside 0..{}", index[i], rows - 1));
        bool twice = false;
        if (width > few)
          twice = std::exchange(written[static_cast<std::size_t>(index[i])], 1);
        else
          for (std::int64_t k = 0; k < i; ++k) twice |= index[k] == index[i];
        if (twice) return refused(fmt::format("index {} is written twice", index[i]));
      }
    }
    return {};
  }

  Status run(const Frame& frame) const {
    const auto* index = static_cast<const std::int32_t*>(frame.read(indices));
    TOSAIC_CHECK(check(index));
    const void* before = frame.read(values);
    auto* to = static_cast<std::byte*>(frame.write(output));
    const std::size_t batch_bytes = static_cast<std::size_t>(rows) * row_bytes;
    if (to != before) std::memcpy(to, before, static_cast<std::size_t>(batches) * batch_bytes);
    const auto* from = static_cast<const std::byte*>(frame.read(input));
    for (std::int64_t n = 0; n < batches; ++n, to += batch_bytes)
      for (std::int64_t i = 0; i < width; ++i, ++index, from += row_bytes)
        std::memcpy(to + static_cast<std::size_t>(*index) * row_bytes, from, row_bytes);
    return {};
  }
};

}  // namespace

bool take_scatter(Planning& planning, std::uint32_t n) {
  const Node& node = planning.node(n);
  if (node.op != tosa::op::scatter) return false;
  const TensorType& values = planning.type(node.inputs[0]);
  if (planning.type(node.inputs[1]).dtype != DType::i32) return false;
  const Scatter scatter{node.inputs[0],
                        node.inputs[1],
                        node.inputs[2],
                        node.outputs[0],
                        values.shape.size(0),
                        values.shape.size(1),
                        planning.type(node.inputs[1]).shape.size(1),
                        static_cast<std::size_t>(values.shape.size(2)) * storage_size(values.dtype)};
  planning.add({.kernel = "scatter",
                .nodes = {n},
                .reads = node.inputs,
                .writes = node.outputs,
                .run = [scatter](const Frame& frame) { return scatter.run(frame); },
                .written_over = node.inputs[0]});
  return true;
}

}  // namespace tosaic::cpu
