// SPDX-License-Identifier: Apache-2.0
#include "runtime/sized_kernel.h"

#include <fmt/format.h>
#include <algorithm>
#include <bit>
#include <list>
#include <new>

#include "runtime/picking_kernel.h"
#include "runtime/row_kernel.h"

namespace tosaic::runtime {
namespace {

// The values that a call names, those in its lists as well.
std::vector<std::int32_t> named(const pte::Plan& plan, const pte::KernelCall& call) {
  std::vector<std::int32_t> all;
  for (std::int32_t i : call.args) {
    if (i < 0) continue;
    all.push_back(i);
    if (const auto* tensors = std::get_if<pte::TensorList>(&plan.values[at(i)]))
      std::ranges::copy_if(tensors->items, std::back_inserter(all), [](std::int32_t item) { return item >= 0; });
    if (const auto* numbers = std::get_if<pte::IntList>(&plan.values[at(i)]))
      all.insert(all.end(), numbers->items.begin(), numbers->items.end());
  }
  return all;
}

bool has_many_sizes(const pte::Plan& plan, std::int32_t i) {
  const auto* tensor = std::get_if<pte::TensorValue>(&plan.values[at(i)]);
  return tensor && tensor->shape_dynamism != 0;
}

bool several_vary(const pte::Plan& plan, std::vector<std::int32_t> operands) {
  std::ranges::sort(operands);
  operands.erase(std::unique(operands.begin(), operands.end()), operands.end());
  return std::ranges::count_if(operands, [&](std::int32_t i) { return has_many_sizes(plan, i); }) > 1;
}

Diagnostic unknown_sizes(const Making& making, const pte::KernelCall& call) {
  return error("kernel.unknown", fmt::format("the sizes of what {} gives vary, which this runtime does not know",
                                             name_of(operator_of(making, call))))
      .hint("delegate all operators, or run the program where kernels are linked in");
}

Result<ResultShapes> result_shapes(const Making& making, const pte::KernelCall& call, const Cells& cells) {
  if (const auto& name = operator_of(making, call); copies(name)) {
    TOSAIC_TRY(const Shape shape, copied_shape(name, call, cells));
    return ResultShapes{{copied_to(name, call), shape}};
  }
  if (making.factory.shapes) return making.factory.shapes(making.context(true), call, cells);
  return unknown_sizes(making, call);
}

// The cells of those.
Result<std::vector<std::int32_t>> results(const Making& making, const pte::KernelCall& call, const Cells& cells) {
  if (const auto& name = operator_of(making, call); copies(name)) return std::vector{copied_to(name, call)};
  if (making.factory.results) return making.factory.results(making.context(true), call, cells);
  return unknown_sizes(making, call);
}

// What kernels compute with that run one at a time: one memory, as large as the largest of them wants.
class Scratch {
 public:
  std::shared_ptr<std::byte> of(std::size_t bytes) {
    if (bytes > bytes_) {
      memory_.reset(static_cast<std::byte*>(::operator new (bytes, std::align_val_t{64}, std::nothrow)),
                    [](std::byte* p) { ::operator delete (p, std::align_val_t{64}); });
      bytes_ = memory_ ? bytes : 0;
    }
    return memory_;
  }

 private:
  std::shared_ptr<std::byte> memory_;
  std::size_t bytes_ = 0;
};
MemorySource source(const std::shared_ptr<Scratch>& scratch) {
  return [scratch](std::size_t bytes) { return scratch->of(bytes); };
}

// A kernel for each combination of sizes and numbers that is met; the last ones are kept. Errors while it runs:
// kernel.size, where a result is larger than the program's memory for it, and what the factory says.
class SizedKernel : public Kernel {
 public:
  SizedKernel(std::shared_ptr<const Making> making, pte::KernelCall call, std::vector<std::int32_t> operands,
              std::shared_ptr<Scratch> scratch)
      : making_(std::move(making)),
        call_(std::move(call)),
        operands_(std::move(operands)),
        scratch_(std::move(scratch)) {}

  Status run(Cells& cells) override {
    std::vector<std::int64_t> key = key_of(cells);
    auto kept = std::ranges::find(kept_, key, &Kept::key);
    if (kept == kept_.end()) {
      auto shapes = result_shapes(*making_, call_, cells);
      if (!shapes.ok()) return refused(std::move(shapes).error());
      for (const auto& [cell, shape] : *shapes) TOSAIC_CHECK(resize(*making_->plan, call_, cells, cell, shape));
      auto kernel = fixed_kernel(*making_, call_, cells, true, source(scratch_));
      if (!kernel.ok()) return refused(std::move(kernel).error());
      kept_.push_front({std::move(key), *std::move(shapes), *std::move(kernel)});
      if (kept_.size() > most_kept) kept_.pop_back();
    } else {
      kept_.splice(kept_.begin(), kept_, kept);
      for (const auto& [cell, shape] : kept_.front().shapes) cells[at(cell)].tensor.type.shape = shape;
    }
    return kept_.front().kernel->run(cells);
  }

  // Which kernels there are the other one may be changing: this one makes its own.
  Result<std::unique_ptr<Kernel>> clone() const override {
    return std::unique_ptr<Kernel>(
        std::make_unique<SizedKernel>(making_, call_, operands_, std::make_shared<Scratch>()));
  }

 private:
  struct Kept {
    std::vector<std::int64_t> key;
    ResultShapes shapes;
    std::unique_ptr<Kernel> kernel;
  };
  static constexpr std::size_t most_kept = 16;

  // What an operator says of its operands' sizes, of which the file says no relation, is said of the inputs'.
  Diagnostic refused(Diagnostic why) const {
    const pte::Plan& plan = *making_->plan;
    if (!why.code.starts_with("aten.") ||
        std::ranges::none_of(plan.inputs, [&](std::int32_t i) { return has_many_sizes(plan, i); }))
      return why;
    why.notes.insert(why.notes.begin(),
                     fmt::format("{}: {}", name_of(operator_of(*making_, call_)), std::move(why.message)));
    why.code = "run.sizes";
    why.message = "the sizes of the inputs do not fit together, or not the program";
    why.help = "give sizes that the model was exported for: the file keeps their bounds, and no relation between them";
    return why;
  }

  std::vector<std::int64_t> key_of(const Cells& cells) const {
    std::vector<std::int64_t> key;
    for (std::int32_t i : operands_) {
      const Cell& cell = cells[at(i)];
      if (cell.is_tensor)
        for (const Dim& dim : cell.tensor.type.shape.dims()) key.push_back(dim.value());
      else if (const auto* n = std::get_if<std::int64_t>(&cell.value))
        key.push_back(*n);
      else if (const auto* boolean = std::get_if<bool>(&cell.value))
        key.push_back(*boolean);
      else if (const auto* real = std::get_if<double>(&cell.value))
        key.push_back(std::bit_cast<std::int64_t>(*real));
    }
    return key;
  }

  std::shared_ptr<const Making> making_;
  pte::KernelCall call_;
  std::vector<std::int32_t> operands_;  // what is not the result of this call
  std::shared_ptr<Scratch> scratch_;    // of all that are kept
  std::list<Kept> kept_;                // the last used one first
};

}  // namespace

Result<std::unique_ptr<Kernel>> make_kernel(const std::shared_ptr<const Making>& making, const pte::KernelCall& call,
                                            const Cells& cells) {
  const pte::Plan& plan = *making->plan;
  std::vector<std::int32_t> operands = named(plan, call);
  const bool sizes = std::ranges::any_of(operands, [&](std::int32_t i) { return has_many_sizes(plan, i); });
  const bool numbers = std::ranges::any_of(operands, [&](std::int32_t i) {
    return making->changing[at(i)] && !std::holds_alternative<pte::TensorValue>(plan.values[at(i)]);
  });
  TOSAIC_TRY(auto picking, make_picking_kernel(plan, call, cells));
  if (picking) return picking;
  TOSAIC_TRY(auto row, make_row_kernel(plan, call, cells));
  if (row) return row;
  // What gives a number looks at what there is when it runs.
  const pte::OperatorName& name = operator_of(*making, call);
  const bool looks = written_number(name, call) >= 0;
  if (looks || (!sizes && !numbers)) return fixed_kernel(*making, call, cells, false);
  if (!sizes) {
    TOSAIC_TRY(auto prim, make_prim_kernel(name, call, cells));
    if (prim) return prim;
  }
  TOSAIC_TRY(const auto made, results(*making, call, cells));
  std::erase_if(operands, [&](std::int32_t i) { return std::ranges::find(made, i) != made.end(); });
  // What cannot be made for the largest sizes is told now, and its memory is enough for all others. Several operands
  // need not be largest together: the file does not say how their sizes go with one another.
  const auto scratch = std::make_shared<Scratch>();
  if (!numbers) {
    auto largest = fixed_kernel(*making, call, cells, false, source(scratch));
    if (!largest.ok() && !several_vary(plan, operands)) return std::move(largest.error());
  }
  return std::unique_ptr<Kernel>(std::make_unique<SizedKernel>(making, call, std::move(operands), scratch));
}

}  // namespace tosaic::runtime
