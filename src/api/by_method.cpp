// SPDX-License-Identifier: Apache-2.0
#include "api/by_method.h"

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
TensorType spanning(const std::vector<Runnable>& methods, const std::vector<TensorType> Runnable::*tensors,
                    std::size_t i, const char* what) {
  TensorType type = (methods[0].*tensors)[i];
  std::vector<Dim> dims = type.shape.dims();
  for (std::size_t d = 0; d < dims.size(); ++d) {
    std::vector<std::int64_t> sizes;
    for (const Runnable& m : methods) sizes.push_back((m.*tensors)[i].shape.size(static_cast<int>(d)));
    const auto [least, most] = std::ranges::minmax(sizes);
    if (least != most) dims[d] = Dim(Symbol{fmt::format("{} {}.{}", what, i, d), {least, most}});
  }
  type.shape = Shape(std::move(dims));
  return type;
}

class Methods {
 public:
  Methods(std::vector<std::string> names, std::vector<Runnable> methods)
      : names_(std::move(names)), methods_(std::move(methods)) {}

  Result<Runnable*> chosen_by(const std::vector<Tensor>& inputs) {
    for (Runnable& method : methods_)
      if (std::ranges::equal(
              inputs, method.inputs, {}, [](const Tensor& t) { return t.type.shape; },
              [](const TensorType& t) { return t.shape; }))
        return last_ = &method;
    std::vector<std::string> given, known;
    for (const Tensor& t : inputs) given.push_back(to_string(t.type.shape));
    for (std::size_t i = 0; i < methods_.size(); ++i) known.push_back(fmt::format("{} {}", names_[i], taken(i)));
    return error("run.sizes", fmt::format("no method takes inputs of the sizes {}; there are {}",
                                          fmt::join(given, ", "), fmt::join(known, "; ")))
        .hint("compile the model with these --sizes, too");
  }

  std::string taken(std::size_t i) const {
    std::vector<std::string> shapes;
    for (const TensorType& t : methods_[i].inputs) shapes.push_back(to_string(t.shape));
    return fmt::format("({})", fmt::join(shapes, ", "));
  }
  const std::vector<std::string>& names() const { return names_; }
  std::vector<Runnable>& all() { return methods_; }
  const Runnable& last() const { return *last_; }

 private:
  std::vector<std::string> names_;
  std::vector<Runnable> methods_;
  Runnable* last_ = &methods_[0];
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

Runnable by_method(std::vector<std::string> names, std::vector<Runnable> methods) {
  Runnable r;
  const Runnable& first = methods[0];
  for (std::size_t i = 0; i < first.inputs.size(); ++i)
    r.inputs.push_back(spanning(methods, &Runnable::inputs, i, "input"));
  for (std::size_t i = 0; i < first.outputs.size(); ++i)
    r.outputs.push_back(spanning(methods, &Runnable::outputs, i, "output"));
  r.other_inputs = first.other_inputs;
  r.input_tree = first.input_tree;
  r.output_tree = first.output_tree;
  r.device = first.device;
  r.states = first.states;
  const bool keeps_states = !r.states.empty();
  auto shared = std::make_shared<Methods>(std::move(names), std::move(methods));
  r.run = [shared](const std::vector<Tensor>& inputs) -> Result<std::vector<Tensor>> {
    TOSAIC_TRY(Runnable* const method, shared->chosen_by(inputs));
    return method->run(inputs);
  };
  r.other_outputs = [shared] { return shared->last().other_outputs(); };
  r.device_seconds = [shared] { return shared->last().device_seconds(); };
  r.profile = [shared] { return shared->last().profile(); };
  r.reset = [shared]() -> Status {
    for (Runnable& method : shared->all()) TOSAIC_CHECK(method.reset());
    return {};
  };
  r.state = [shared](std::size_t i) { return shared->all()[0].state(i); };
  r.set_state = [shared](std::size_t i, const Tensor& content) { return shared->all()[0].set_state(i, content); };
  r.measure = [shared](bool on) -> Status {
    for (Runnable& method : shared->all()) TOSAIC_CHECK(method.measure(on));
    return {};
  };
  if (keeps_states) return r;  // clones of the methods would have memory of their own each
  r.clone = [shared]() -> Result<Runnable> {
    std::vector<Runnable> made;
    for (Runnable& method : shared->all()) {
      TOSAIC_TRY(Runnable one, method.clone());
      made.push_back(std::move(one));
    }
    return by_method(shared->names(), std::move(made));
  };
  return r;
}

}  // namespace tosaic
