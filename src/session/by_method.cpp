// SPDX-License-Identifier: Apache-2.0
#include "session/by_method.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>

namespace tosaic {
namespace {

const pte::TensorValue* tensor(const pte::Plan& plan, std::int32_t value) {
  return std::get_if<pte::TensorValue>(&plan.values[static_cast<std::size_t>(value)]);
}

// The same tensors but for sizes, and the same other arguments.
bool alike(const pte::Plan& a, const pte::Plan& b, const std::vector<std::int32_t>& of_a,
           const std::vector<std::int32_t>& of_b) {
  return std::ranges::equal(of_a, of_b, [&](std::int32_t i, std::int32_t k) {
    const pte::TensorValue *x = tensor(a, i), *y = tensor(b, k);
    if (!x || !y) return !x && !y;
    return x->dtype == y->dtype && x->sizes.size() == y->sizes.size();
  });
}

std::vector<std::string> states_of(const pte::Plan& plan) {
  std::vector<std::string> names;
  for (const pte::Value& value : plan.values)
    if (const auto* t = std::get_if<pte::TensorValue>(&value); t && !t->state_name.empty())
      names.push_back(t->state_name);
  return names;
}

// What all have; where they differ, a symbol that lies between the least and the largest.
TensorType spanning(const std::vector<RunnablePtr>& methods, const std::vector<TensorType> Interface::*tensors,
                    std::size_t i, const char* what) {
  const auto of = [&](const RunnablePtr& method) -> const TensorType& { return (method->interface().*tensors)[i]; };
  TensorType type = of(methods[0]);
  std::vector<Dim> dims = type.shape.dims();
  for (std::size_t d = 0; d < dims.size(); ++d) {
    std::vector<std::int64_t> sizes;
    for (const RunnablePtr& m : methods) sizes.push_back(of(m).shape.size(static_cast<int>(d)));
    const auto [least, most] = std::ranges::minmax(sizes);
    if (least != most) dims[d] = Dim(Symbol{fmt::format("{} {}.{}", what, i, d), {least, most}});
  }
  type.shape = Shape(std::move(dims));
  return type;
}

class ByMethod : public Runnable {
 public:
  ByMethod(Interface interface, std::vector<std::string> names, std::vector<RunnablePtr> methods)
      : Runnable(std::move(interface)), names_(std::move(names)), methods_(std::move(methods)) {}

  Result<std::vector<Tensor>> run(const std::vector<Tensor>& inputs) override {
    TOSAIC_TRY(last_, chosen_by(inputs));
    return last_->run(inputs);
  }
  FixedValues other_outputs() const override { return last_->other_outputs(); }
  Result<Tensor> state(std::size_t i) const override { return methods_[0]->state(i); }
  Status set_state(std::size_t i, const Tensor& content) override { return methods_[0]->set_state(i, content); }
  Status reset() override {
    for (const RunnablePtr& method : methods_) TOSAIC_CHECK(method->reset());
    return {};
  }
  Result<RunnablePtr> clone() const override {
    if (!interface().states.empty()) return RunnablePtr();  // clones of the methods would have memory of their own each
    std::vector<RunnablePtr> made;
    for (const RunnablePtr& method : methods_) {
      TOSAIC_TRY(RunnablePtr one, method->clone());
      made.push_back(std::move(one));
    }
    return RunnablePtr(std::make_unique<ByMethod>(interface(), names_, std::move(made)));
  }
  double device_seconds() const override { return last_->device_seconds(); }
  Status measure(bool on) override {
    for (const RunnablePtr& method : methods_) TOSAIC_CHECK(method->measure(on));
    return {};
  }
  std::vector<OperationTime> profile() const override { return last_->profile(); }

 private:
  Result<Runnable*> chosen_by(const std::vector<Tensor>& inputs) const {
    for (const RunnablePtr& method : methods_)
      if (std::ranges::equal(
              inputs, method->interface().inputs, {}, [](const Tensor& t) { return t.type.shape; },
              [](const TensorType& t) { return t.shape; }))
        return method.get();
    std::vector<std::string> given, known;
    for (const Tensor& t : inputs) given.push_back(to_string(t.type.shape));
    for (std::size_t i = 0; i < methods_.size(); ++i) known.push_back(fmt::format("{} {}", names_[i], taken(i)));
    return error("run.sizes", fmt::format("no method takes inputs of the sizes {}; there are {}",
                                          fmt::join(given, ", "), fmt::join(known, "; ")))
        .hint("compile the model with these --sizes, too");
  }
  std::string taken(std::size_t i) const {
    std::vector<std::string> shapes;
    for (const TensorType& t : methods_[i]->interface().inputs) shapes.push_back(to_string(t.shape));
    return fmt::format("({})", fmt::join(shapes, ", "));
  }

  std::vector<std::string> names_;
  std::vector<RunnablePtr> methods_;
  Runnable* last_ = methods_[0].get();
};

}  // namespace

std::vector<std::string> sizes_of_one_method(const pte::Program& program, const std::string& method,
                                             bool share_states) {
  const auto first = std::ranges::find(program.plans, method, &pte::Plan::name);
  if (first == program.plans.end()) return {};
  std::vector<std::string> names;
  for (auto plan = first; plan != program.plans.end(); ++plan) {
    if (plan != first && !plan->name.starts_with(method + "_")) continue;
    if (!alike(*first, *plan, first->inputs, plan->inputs) || !alike(*first, *plan, first->outputs, plan->outputs) ||
        first->input_spec != plan->input_spec || first->output_spec != plan->output_spec ||
        states_of(*first) != states_of(*plan) || (!share_states && !states_of(*plan).empty()))
      return {};
    names.push_back(plan->name);
  }
  return names.size() > 1 ? names : std::vector<std::string>();
}

RunnablePtr by_method(std::vector<std::string> names, std::vector<RunnablePtr> methods) {
  Interface all = methods[0]->interface();
  for (std::size_t i = 0; i < all.inputs.size(); ++i) all.inputs[i] = spanning(methods, &Interface::inputs, i, "input");
  for (std::size_t i = 0; i < all.outputs.size(); ++i)
    all.outputs[i] = spanning(methods, &Interface::outputs, i, "output");
  return std::make_unique<ByMethod>(std::move(all), std::move(names), std::move(methods));
}

}  // namespace tosaic
