// SPDX-License-Identifier: Apache-2.0
#include "runtime/row_kernel.h"

#include <fmt/format.h>
#include <cstring>

#include "runtime/picking_kernel.h"

namespace tosaic::runtime {
namespace {

// out = self[..., index, ...] along one dim, and the way back, out[index] = self. Tensors lie in row-major order.
struct Operands {
  std::int32_t rows, row, index;
  int dim;
  bool writes;
};

// A row's shape, of rows.
Shape without(const Shape& rows, int dim) {
  auto dims = rows.sizes();
  dims.erase(dims.begin() + dim);
  return Shape(dims);
}

class RowKernel : public Kernel {
 public:
  RowKernel(const pte::Plan& plan, const pte::KernelCall& call, Operands operands)
      : plan_(plan), call_(call), operands_(operands) {}

  Status run(Cells& cells) override {
    const TensorCell &rows = cells[at(operands_.rows)].tensor, &row = cells[at(operands_.row)].tensor;
    const int dim = operands_.dim;
    std::int64_t index = std::get<std::int64_t>(cells[at(operands_.index)].value);
    if (operands_.writes && rows.varies && index >= 0) {
      // A loop writes its rows one behind the other: those of the runs before are none of this one's.
      auto dims = row.type.shape.sizes();
      dims.insert(dims.begin(), index + 1);
      TOSAIC_CHECK(resize(plan_, call_, cells, operands_.rows, Shape(dims)));
    }
    const std::int64_t size = rows.type.shape.size(dim);
    if (index < 0) index += size;
    if (index < 0 || index >= size)
      return error("run.row", fmt::format("row {} is asked for of {}", index, to_string(rows.type)));
    const Shape wanted = without(rows.type.shape, dim);
    if (!operands_.writes) TOSAIC_CHECK(resize(plan_, call_, cells, operands_.row, wanted));
    if (row.type.shape != wanted)
      return error("kernel.arguments", fmt::format("a row {} goes into {}", to_string(row.type), to_string(rows.type)));
    std::int64_t outer = 1;
    for (int d = 0; d < dim; ++d) outer *= rows.type.shape.size(d);
    const std::size_t bytes = outer == 0 ? 0 : row.type.storage_bytes() / static_cast<std::size_t>(outer);
    for (std::int64_t o = 0; o < outer; ++o) {
      auto* in_rows = static_cast<std::byte*>(rows.data) + static_cast<std::size_t>(o * size + index) * bytes;
      auto* in_row = static_cast<std::byte*>(row.data) + static_cast<std::size_t>(o) * bytes;
      std::memmove(operands_.writes ? in_rows : in_row, operands_.writes ? in_row : in_rows, bytes);
    }
    return {};
  }

  Result<std::unique_ptr<Kernel>> clone() const override {
    return std::unique_ptr<Kernel>(std::make_unique<RowKernel>(plan_, call_, operands_));
  }

 private:
  const pte::Plan& plan_;
  const pte::KernelCall& call_;
  Operands operands_;
};

}  // namespace

Result<std::unique_ptr<Kernel>> make_row_kernel(const pte::Plan& plan, const pte::KernelCall& call,
                                                const Cells& cells) {
  const std::string name = name_of(plan.operators[at(call.op)]);
  const bool writes = name == "executorch_prim::et_copy_index.tensor";
  std::unique_ptr<Kernel> made;
  if (!writes && name != "aten::select_copy.int_out") return made;
  const auto& args = call.args;
  if (args.size() != (writes ? 3u : 5u)) return error("kernel.arguments", name + " is called with the wrong arguments");
  const std::int32_t rows = args[0], row = writes ? args[1] : args[3], index = args[2];
  const auto* dim = writes ? nullptr : std::get_if<std::int64_t>(&cells[at(args[1])].value);
  const auto varies = [&](std::int32_t i) {
    const auto* tensor = std::get_if<pte::TensorValue>(&plan.values[at(i)]);
    return tensor && tensor->shape_dynamism != 0;
  };
  const auto in_order = [&](std::int32_t i) { return cells[at(i)].is_tensor && cells[at(i)].tensor.dim_order.empty(); };
  if (!in_order(rows) || !in_order(row) || !std::holds_alternative<std::int64_t>(cells[at(index)].value)) return made;
  const TensorCell &from = cells[at(rows)].tensor, &one = cells[at(row)].tensor;
  const int rank = from.type.rank();
  std::int64_t along = dim ? *dim : 0;
  if (along < 0) along += rank;
  bool fits = (writes || dim) && along >= 0 && along < rank && one.type.rank() == rank - 1 &&
              one.type.dtype == from.type.dtype && !(writes ? from : one).constant;
  // The largest sizes are those of the dims apart, so they need not fit where any vary.
  if (fits && !varies(rows) && !varies(row)) fits = without(from.type.shape, static_cast<int>(along)) == one.type.shape;
  if (fits) made = std::make_unique<RowKernel>(plan, call, Operands{rows, row, index, static_cast<int>(along), writes});
  return made;
}

}  // namespace tosaic::runtime
