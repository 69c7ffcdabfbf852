// SPDX-License-Identifier: Apache-2.0
#include "runtime/picking_kernel.h"

#include <fmt/format.h>
#include <algorithm>
#include <cstring>

namespace tosaic::runtime {
namespace {

// [before, positions, after]: the elements of a tensor around the dims of a mask.
struct Split {
  std::int64_t before = 1, positions = 1;
  std::size_t behind = 0;  // in bytes
};

// The operands of a call by name, as far as it has them.
struct Operands {
  std::int32_t x = -1, mask = -1, rows = -1, result = -1;
  int dim = 0;  // of x, where the mask's dims begin
};

class PickingKernel : public Kernel {
 public:
  PickingKernel(const pte::Plan& plan, const pte::KernelCall& call, Operands operands)
      : plan_(plan), call_(call), operands_(operands) {}

  Status run(Cells& cells) override {
    const TensorCell& mask = cells[at(operands_.mask)].tensor;
    const auto* chosen = static_cast<const std::uint8_t*>(dense(mask, mask_space_));
    positions_.clear();
    for (std::int64_t i = 0; i < mask.type.shape.elements(); ++i)
      if (chosen[i]) positions_.push_back(i);
    const TensorCell& x = cells[at(operands_.x)].tensor;
    const int rank = mask.type.rank();
    auto dims = x.type.shape.sizes();
    for (int d = 0; d < rank; ++d)
      if (operands_.dim + d >= x.type.rank() || x.type.shape[operands_.dim + d] != mask.type.shape[d])
        return error("kernel.arguments",
                     fmt::format("a mask of {} chooses from {}", to_string(mask.type), to_string(x.type)));
    Split split;
    for (int d = 0; d < operands_.dim; ++d) split.before *= dims[static_cast<std::size_t>(d)];
    split.positions = mask.type.shape.elements();
    const std::int64_t around = split.before * split.positions;
    split.behind = around == 0 ? 0 : x.type.storage_bytes() / static_cast<std::size_t>(around);
    if (operands_.rows >= 0) return put(cells, split, rank);
    dims.erase(dims.begin() + operands_.dim, dims.begin() + operands_.dim + rank);
    dims.insert(dims.begin() + operands_.dim, static_cast<std::int64_t>(positions_.size()));
    TOSAIC_CHECK(resize(plan_, call_, cells, operands_.result, Shape(dims)));
    return pick(cells, split);
  }

  Result<std::unique_ptr<Kernel>> clone() const override {
    return std::unique_ptr<Kernel>(std::make_unique<PickingKernel>(plan_, call_, operands_));
  }

 private:
  Status pick(Cells& cells, const Split& split) {
    const TensorCell &x = cells[at(operands_.x)].tensor, &result = cells[at(operands_.result)].tensor;
    const auto* from = static_cast<const std::byte*>(dense(x, space_));
    picked_.resize(result.type.storage_bytes());
    std::byte* to = picked_.data();
    for (std::int64_t b = 0; b < split.before; ++b)
      for (std::int64_t position : positions_) {
        std::memcpy(to, from + static_cast<std::size_t>(b * split.positions + position) * split.behind, split.behind);
        to += split.behind;
      }
    store_dense(result, picked_.data());
    return {};
  }

  // x with `rows` at the positions: as many as there are, or one for all of them.
  Status put(Cells& cells, const Split& split, int mask_rank) {
    const TensorCell &x = cells[at(operands_.x)].tensor, &rows = cells[at(operands_.rows)].tensor;
    const auto count = static_cast<std::int64_t>(positions_.size());
    auto dims = x.type.shape.sizes();
    dims.erase(dims.begin() + operands_.dim, dims.begin() + operands_.dim + mask_rank);
    dims.insert(dims.begin() + operands_.dim, count);
    if (rows.type.dtype != x.type.dtype || rows.type.shape != Shape(dims))
      return error("kernel.arguments", fmt::format("{} cannot be written at {} indices of {}", to_string(rows.type),
                                                   count, to_string(x.type)));
    const auto* old = static_cast<const std::byte*>(dense(x, space_));
    picked_.assign(old, old + x.type.storage_bytes());
    const auto* from = static_cast<const std::byte*>(dense(rows, rows_space_));
    for (std::int64_t b = 0; b < split.before; ++b)
      for (std::int64_t position : positions_) {
        std::memcpy(picked_.data() + static_cast<std::size_t>(b * split.positions + position) * split.behind, from,
                    split.behind);
        from += split.behind;
      }
    if (operands_.result != operands_.x)
      TOSAIC_CHECK(resize(plan_, call_, cells, operands_.result, cells[at(operands_.x)].tensor.type.shape));
    store_dense(cells[at(operands_.result)].tensor, picked_.data());
    return {};
  }

  const pte::Plan& plan_;
  const pte::KernelCall& call_;
  Operands operands_;
  std::vector<std::int64_t> positions_;
  std::vector<std::byte> mask_space_, space_, rows_space_, picked_;
};

// Where the elements that are not zero are: i64 [count, rank].
class NonzeroKernel : public Kernel {
 public:
  NonzeroKernel(const pte::Plan& plan, const pte::KernelCall& call) : plan_(plan), call_(call) {}
  Status run(Cells& cells) override {
    const TensorCell& x = cells[at(call_.args[0])].tensor;
    const DType type = x.type.dtype;
    const void* elements = dense(x, space_);
    positions_.clear();
    for (std::int64_t i = 0; i < x.type.shape.elements(); ++i) {
      const auto k = static_cast<std::size_t>(i);
      const bool some =
          is_float(type) ? element_as_double(type, elements, k) != 0 : element_as_integer(type, elements, k) != 0;
      for (int d = 0; some && d < x.type.rank(); ++d) {
        std::int64_t inner = 1;
        for (int e = d + 1; e < x.type.rank(); ++e) inner *= x.type.shape.size(e);
        positions_.push_back(i / inner % x.type.shape.size(d));
      }
      if (some && x.type.rank() == 0) positions_.push_back(0);
    }
    const std::int64_t rank = x.type.rank(),
                       count = static_cast<std::int64_t>(positions_.size()) / std::max<std::int64_t>(rank, 1);
    const std::int32_t result = call_.args[1];
    TOSAIC_CHECK(resize(plan_, call_, cells, result, Shape{count, rank}));
    store_dense(cells[at(result)].tensor, positions_.data());
    return {};
  }
  Result<std::unique_ptr<Kernel>> clone() const override {
    return std::unique_ptr<Kernel>(std::make_unique<NonzeroKernel>(plan_, call_));
  }

 private:
  const pte::Plan& plan_;
  const pte::KernelCall& call_;
  std::vector<std::byte> space_;
  std::vector<std::int64_t> positions_;
};

// x[mask], x[:, mask]: a mask behind some None, alone.
bool one_mask(std::span<const std::optional<DType>> indices) {
  const auto some = [](const auto& dtype) { return dtype.has_value(); };
  return std::ranges::count_if(indices, some) == 1 && indices.back() == DType::boolean;
}

const pte::TensorList* list_at(const Cells& cells, const pte::KernelCall& call, std::size_t i) {
  return i < call.args.size() ? std::get_if<pte::TensorList>(&cells[at(call.args[i])].value) : nullptr;
}

}  // namespace

bool picks_by_value(const pte::OperatorName& name, std::span<const std::optional<DType>> operands) {
  const std::string full = name_of(name);
  if (full == "aten::nonzero.out") return true;
  if (full == "aten::masked_select.out") return operands.size() == 2;
  if (full == "aten::index.Tensor_out") return operands.size() > 1 && one_mask(operands.subspan(1));
  return false;
}

Status resize(const pte::Plan& plan, const pte::KernelCall& call, Cells& cells, std::int32_t result,
              const Shape& shape) {
  TensorCell& cell = cells[at(result)].tensor;
  if (cell.type.shape == shape) return {};
  const auto& planned = std::get<pte::TensorValue>(plan.values[at(result)]);
  const Shape most(std::vector<std::int64_t>(planned.sizes.begin(), planned.sizes.end()));
  if (!cell.varies || shape.rank() != most.rank() || shape.elements() > most.elements())
    return error("kernel.size", fmt::format("the result of {} is {} for these inputs, the program has {} for it",
                                            name_of(plan.operators[at(call.op)]), to_string(shape), to_string(most)))
        .hint("export the model with larger bounds");
  cell.type.shape = shape;
  return {};
}

Result<std::unique_ptr<Kernel>> make_picking_kernel(const pte::Plan& plan, const pte::KernelCall& call,
                                                    const Cells& cells) {
  const std::string full = name_of(plan.operators[at(call.op)]);
  const auto& args = call.args;
  const auto tensor = [&](std::size_t i) -> const TensorCell* {
    const bool is = i < args.size() && args[i] >= 0 && cells[at(args[i])].is_tensor;
    return is ? &cells[at(args[i])].tensor : nullptr;
  };
  std::unique_ptr<Kernel> none;
  if (full == "aten::nonzero.out") {
    if (args.size() != 3 || !tensor(0) || !tensor(1) || tensor(1)->constant || tensor(1)->type.dtype != DType::i64)
      return none;
    return std::unique_ptr<Kernel>(std::make_unique<NonzeroKernel>(plan, call));
  }
  Operands found;
  if (full == "aten::masked_select.out") {
    if (args.size() != 4 || !tensor(0) || !tensor(1) || tensor(1)->type.shape != tensor(0)->type.shape) return none;
    found = {args[0], args[1], -1, args[2], 0};
  } else if (full == "aten::index.Tensor_out" || full == "aten::index_put.out" || full == "aten::index_put_") {
    const auto* indices = list_at(cells, call, 1);
    if (!tensor(0) || !indices || indices->items.empty()) return none;
    std::vector<std::optional<DType>> dtypes;
    for (std::int32_t i : indices->items)
      dtypes.push_back(i >= 0 && cells[at(i)].is_tensor ? std::optional(cells[at(i)].tensor.type.dtype) : std::nullopt);
    if (!one_mask(dtypes)) return none;
    found = {args[0], indices->items.back(), -1, -1, static_cast<int>(dtypes.size()) - 1};
    if (full == "aten::index.Tensor_out") {
      if (args.size() != 4) return none;
      found.result = args[2];
    } else {
      // Rows whose number is known are broadcast, or added: that is a lowering's work.
      const bool in_place = full == "aten::index_put_";
      const auto* add = args.size() == (in_place ? 5u : 6u) ? std::get_if<bool>(&cells[at(args[3])].value) : nullptr;
      const auto* rows = tensor(2) ? std::get_if<pte::TensorValue>(&plan.values[at(args[2])]) : nullptr;
      if (!add || *add || !rows || rows->shape_dynamism == 0 ||
          tensor(2)->type.rank() != tensor(0)->type.rank() - cells[at(found.mask)].tensor.type.rank() + 1)
        return none;
      found.rows = args[2];
      found.result = args[in_place ? 0 : 4];
    }
  } else {
    return none;
  }
  if (!cells[at(found.result)].is_tensor || cells[at(found.result)].tensor.constant ||
      cells[at(found.result)].tensor.type.dtype != tensor(0)->type.dtype ||
      cells[at(found.mask)].tensor.type.dtype != DType::boolean)
    return none;
  return std::unique_ptr<Kernel>(std::make_unique<PickingKernel>(plan, call, found));
}

}  // namespace tosaic::runtime
