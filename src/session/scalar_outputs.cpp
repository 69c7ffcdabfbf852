// SPDX-License-Identifier: Apache-2.0
#include "session/scalar_outputs.h"

#include <algorithm>

#include "session/forwarding.h"

namespace tosaic {
namespace {

template <class T>
void take_out(std::vector<T>& list, const std::vector<std::size_t>& which) {
  for (auto i = which.rbegin(); i != which.rend(); ++i)
    if (*i < list.size()) list.erase(list.begin() + static_cast<std::ptrdiff_t>(*i));
}

Attr scalar_in(const Tensor& tensor) {
  const DType type = tensor.type.dtype;
  if (is_float(type)) return element_as_double(type, tensor.data.data(), 0);
  const std::int64_t integer = element_as_integer(type, tensor.data.data(), 0);
  return type == DType::boolean ? Attr(integer != 0) : Attr(integer);
}

// Numbers stand among tensors and fixed values where the program returns them; none is known before it runs.
FixedValues list_other_outputs(const std::vector<std::size_t>& scalars, const FixedValues& fixed) {
  FixedValues all = fixed;
  for (std::size_t number : scalars) {
    std::size_t position = number;
    for (const FixedValue& f : fixed) position += f.position <= position;
    all.push_back({position, std::monostate()});
  }
  std::ranges::sort(all, {}, &FixedValue::position);
  return all;
}

class NumbersApart : public Forwarding {
 public:
  NumbersApart(Interface outside, RunnablePtr inner, std::vector<std::size_t> scalars, const FixedValues& fixed)
      : Forwarding(std::move(outside), std::move(inner)),
        numbers_(std::move(scalars)),
        fixed_(fixed),
        others_(list_other_outputs(numbers_, fixed)) {
    for (FixedValue& other : others_)
      if (std::ranges::find(fixed, other.position, &FixedValue::position) == fixed.end()) places_.push_back(&other);
  }

  Result<std::vector<Tensor>> run(const std::vector<Tensor>& inputs) override {
    TOSAIC_TRY(std::vector<Tensor> results, Forwarding::run(inputs));
    for (std::size_t i = 0; i < numbers_.size(); ++i) places_[i]->value = scalar_in(results.at(numbers_[i]));
    take_out(results, numbers_);
    return results;
  }
  FixedValues other_outputs() const override { return others_; }

 private:
  RunnablePtr around(RunnablePtr inner) const override {
    return std::make_unique<NumbersApart>(interface(), std::move(inner), numbers_, fixed_);
  }

  std::vector<std::size_t> numbers_;
  FixedValues fixed_, others_;
  std::vector<FixedValue*> places_;  // of the numbers among the others, in their order
};

}  // namespace

RunnablePtr split_scalar_outputs(RunnablePtr inner, const std::vector<std::size_t>& scalars, const FixedValues& fixed) {
  Interface outside = inner->interface();
  take_out(outside.outputs, scalars);
  take_out(outside.output_names, scalars);
  return std::make_unique<NumbersApart>(std::move(outside), std::move(inner), scalars, fixed);
}

}  // namespace tosaic
