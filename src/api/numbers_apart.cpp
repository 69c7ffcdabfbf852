// SPDX-License-Identifier: Apache-2.0
#include "api/numbers_apart.h"

#include <algorithm>

namespace tosaic {
namespace {

template <class T>
void take_out(std::vector<T>& list, const std::vector<std::size_t>& which) {
  for (auto i = which.rbegin(); i != which.rend(); ++i)
    if (*i < list.size()) list.erase(list.begin() + static_cast<std::ptrdiff_t>(*i));
}

Attr number_in(const Tensor& tensor) {
  const DType type = tensor.type.dtype;
  if (is_float(type)) return element_as_double(type, tensor.data.data(), 0);
  const std::int64_t integer = element_as_integer(type, tensor.data.data(), 0);
  return type == DType::boolean ? Attr(integer != 0) : Attr(integer);
}

// Numbers stand among tensors and fixed values where the program returns them; none is known before it runs.
FixedValues beside(const std::vector<std::size_t>& numbers, const FixedValues& fixed) {
  FixedValues all = fixed;
  for (std::size_t number : numbers) {
    std::size_t position = number;
    for (const FixedValue& f : fixed) position += f.position <= position;
    all.push_back({position, std::monostate()});
  }
  std::ranges::sort(all, {}, &FixedValue::position);
  return all;
}

}  // namespace

Runnable numbers_apart(Runnable inner, const std::vector<std::size_t>& numbers, const FixedValues& fixed) {
  auto others = std::make_shared<FixedValues>(beside(numbers, fixed));
  std::vector<FixedValue*> places;  // of the numbers, in their order
  for (FixedValue& other : *others)
    if (std::ranges::find(fixed, other.position, &FixedValue::position) == fixed.end()) places.push_back(&other);
  Runnable r = inner;
  take_out(r.outputs, numbers);
  take_out(r.output_names, numbers);
  r.run = [run = inner.run, numbers, others, places](const std::vector<Tensor>& inputs) -> Result<std::vector<Tensor>> {
    TOSAIC_TRY(std::vector<Tensor> results, run(inputs));
    for (std::size_t i = 0; i < numbers.size(); ++i) places[i]->value = number_in(results.at(numbers[i]));
    take_out(results, numbers);
    return results;
  };
  r.other_outputs = [others] { return *others; };
  if (inner.clone)
    r.clone = [clone = inner.clone, numbers, fixed]() -> Result<Runnable> {
      TOSAIC_TRY(Runnable made, clone());
      return numbers_apart(std::move(made), numbers, fixed);
    };
  return r;
}

}  // namespace tosaic
