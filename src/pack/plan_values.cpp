// SPDX-License-Identifier: Apache-2.0
#include "pack/plan_values.h"

#include <fmt/format.h>

#include "formats/pte/layout.h"

namespace tosaic::packing {

Index PlanValues::add(pte::Value value) {
  plan_.values.push_back(std::move(value));
  return static_cast<Index>(plan_.values.size() - 1);
}

Index PlanValues::constant(pte::Value value) {
  std::string key = fmt::format("{}:", value.index());
  if (const auto* i = std::get_if<std::int64_t>(&value))
    key += std::to_string(*i);
  else if (const auto* d = std::get_if<double>(&value))
    key += fmt::format("{:a}", *d);
  else if (const auto* b = std::get_if<bool>(&value))
    key += *b ? "1" : "0";
  else if (const auto* s = std::get_if<std::string>(&value))
    key += *s;
  auto [known, fresh] = constants_.try_emplace(std::move(key), 0);
  if (fresh) known->second = add(std::move(value));
  return known->second;
}

Result<Index> PlanValues::tensor(ValueId v) {
  if (tensors_[v] >= 0) return tensors_[v];
  const Value& value = g_[v];
  pte::TensorValue t;
  t.dtype = value.type.dtype;
  if (!pte::scalar_type(t.dtype))
    return error("pack.dtype", fmt::format("'{}' is {}, which ExecuTorch's tensors cannot hold outside a delegate",
                                           value.name, to_string(value.type)));
  const auto largest = value.type.shape.upper();
  if (!largest)
    return error("pack.unbounded-size", fmt::format("'{}' is {}: nothing says how much memory it needs at most",
                                                    value.name, to_string(value.type)))
        .hint("give an upper bound when exporting: torch._check(size <= N)");
  for (std::int64_t d : largest->sizes()) {
    if (d > INT32_MAX)
      return error("pack.size", fmt::format("'{}' is {}, too large for ExecuTorch", value.name, to_string(value.type)));
    t.sizes.push_back(static_cast<std::int32_t>(d));
  }
  if (!value.type.shape.is_static()) t.shape_dynamism = 1;
  t.constant = value.constant;
  t.is_planned = !value.is_constant();
  lifetimes_[v] = {value.type.with(*largest).storage_bytes(), now(), now()};
  return tensors_[v] = add(std::move(t));
}

Result<Index> PlanValues::use(ValueId v) {
  TOSAIC_TRY(Index i, tensor(v));
  lifetimes_[v].last = now();
  return i;
}

void PlanValues::call(const pte::OperatorName& name, std::vector<Index> args) {
  auto [known, fresh] = operators_.try_emplace({name.name, name.overload}, static_cast<Index>(plan_.operators.size()));
  if (fresh) plan_.operators.push_back(name);
  plan_.instructions.push_back(pte::KernelCall{known->second, std::move(args)});
}

Index PlanValues::number_in(Index tensor, DType type) {
  const Index number = add(is_float(type)           ? pte::Value(0.0)
                           : type == DType::boolean ? pte::Value(false)
                                                    : pte::Value(std::int64_t{0}));
  call({"aten::_local_scalar_dense", ""}, {tensor, number});
  return number;
}

void PlanValues::place(const std::set<ValueId>& in_place, bool states_apart) {
  std::vector<plan::Buffer> planned;
  std::vector<Index> which;
  for (ValueId v = 0; v < tensors_.size(); ++v) {
    if (in_place.contains(v)) continue;
    const auto* tensor = tensors_[v] < 0 ? nullptr : std::get_if<pte::TensorValue>(&plan_.values[at(tensors_[v])]);
    if (!tensor || !tensor->is_planned || (states_apart && !tensor->state_name.empty())) continue;
    planned.push_back(lifetimes_[v]);
    which.push_back(tensors_[v]);
  }
  plan_.arena_sizes = {static_cast<std::int64_t>(plan::place(planned, 16))};
  for (std::size_t k = 0; k < which.size(); ++k)
    std::get<pte::TensorValue>(plan_.values[at(which[k])]).planned = {1, planned[k].offset};
}

}  // namespace tosaic::packing
