// SPDX-License-Identifier: Apache-2.0
#include "runtime/method.h"

#include <fmt/format.h>
#include <algorithm>

#include "runtime/method_impl.h"

namespace tosaic::runtime {
namespace {

Diagnostic located(Diagnostic why, const Options& options) {
  if (why.place.file.empty()) why.place.file = options.file;
  return why;
}

// What a cell that is no tensor holds now.
Attr content(const Cells& cells, std::int32_t i) {
  const pte::Value& value = cells[at(i)].value;
  if (const auto* n = std::get_if<std::int64_t>(&value)) return *n;
  if (const auto* d = std::get_if<double>(&value)) return *d;
  if (const auto* b = std::get_if<bool>(&value)) return *b;
  if (const auto* s = std::get_if<std::string>(&value)) return *s;
  if (const auto* reals = std::get_if<std::vector<double>>(&value)) return *reals;
  if (const auto* flags = std::get_if<std::vector<bool>>(&value))
    return std::vector<std::int64_t>(flags->begin(), flags->end());
  if (const auto* ints = std::get_if<pte::IntList>(&value)) {
    std::vector<std::int64_t> items;
    for (std::int32_t item : ints->items) {
      const auto* n = std::get_if<std::int64_t>(&cells[at(item)].value);
      items.push_back(n ? *n : 0);
    }
    return items;
  }
  return std::monostate{};
}

}  // namespace

Method::Method(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Method::Method(Method&&) noexcept = default;
Method& Method::operator=(Method&&) noexcept = default;
Method::~Method() = default;
const std::vector<TensorType>& Method::input_types() const { return impl_->input_types; }
const std::vector<TensorType>& Method::output_types() const { return impl_->output_types; }
const std::vector<Method::State>& Method::states() const { return impl_->states; }

Result<Tensor> Method::state(std::size_t i) const {
  TOSAIC_CHECK(impl_->settle());
  const TensorCell& cell = impl_->cells[at(impl_->state_cells[i])].tensor;
  std::vector<std::byte> space;
  return Tensor{cell.type, Bytes::copy(dense(cell, space), cell.type.storage_bytes())};
}

Status Method::set_state(std::size_t i, const Tensor& content) {
  const auto& [name, type] = impl_->states[i];
  if (content.type != type)
    return error("run.state-type",
                 fmt::format("state '{}' is {}, its new content {}", name, to_string(type), to_string(content.type)));
  TOSAIC_CHECK(impl_->settle());
  store_dense(impl_->cells[at(impl_->state_cells[i])].tensor, content.data.data());
  impl_->let_go();
  return {};
}
FixedValues Method::other_outputs() const {
  FixedValues list;
  for (auto [position, cell] : impl_->others) list.push_back({position, content(impl_->cells, cell)});
  return list;
}

FixedValues Method::other_inputs() const {
  FixedValues list;
  const auto& inputs = impl_->plan().inputs;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (!impl_->cells[at(inputs[i])].is_tensor) list.push_back({i, content(impl_->cells, inputs[i])});
  return list;
}

const std::string& Method::input_tree() const { return impl_->plan().input_spec; }
const std::string& Method::output_tree() const { return impl_->plan().output_spec; }

Result<Method> Method::load(const pte::Program& program, const std::string& name, const Options& options) {
  std::string names;
  for (const pte::Plan& plan : program.plans) {
    if (plan.name == name) return of(plan, program.named_data, options);
    names += (names.empty() ? "'" : ", '") + plan.name + "'";
  }
  return located(
      error("method.missing", fmt::format("the program has no method '{}'", name)).hint("its methods are " + names),
      options);
}

Result<Method> Method::load_first(pte::Program program, const Options& options) {
  return of(std::move(program.plans.front()), program.named_data, options);
}

Result<Method> Method::of(pte::Plan plan, const std::vector<pte::NamedData>& named_data, const Options& options) {
  auto origin = std::make_shared<Origin>(Origin{std::move(plan), options, options.data});
  for (const pte::NamedData& named : named_data) origin->data.insert_or_assign(named.key, named.data.joined());
  auto impl = std::make_unique<Impl>(std::move(origin), options.shared);
  if (Status status = impl->load(); !status.ok()) return located(std::move(status.error()), options);
  return Method(std::move(impl));
}

Result<Method> Method::clone() const {
  std::shared_ptr<SharedMemory> shared = impl_->memory.shared();
  if (shared) { TOSAIC_TRY(shared, shared->fresh()); }
  auto impl = std::make_unique<Impl>(impl_->origin, std::move(shared));
  if (Status status = impl->copy(*impl_); !status.ok())
    return located(std::move(status.error()), impl_->origin->options);
  return Method(std::move(impl));
}

Status Method::reset() {
  impl_->let_go();
  impl_->memory.reset();
  impl_->cells = impl_->first_cells;
  for (const auto& delegate : impl_->delegates)
    if (delegate) TOSAIC_CHECK(delegate->reset());
  return {};
}

Status Method::measure(bool on) {
  impl_->timed = on;
  impl_->seconds.assign(on ? impl_->steps.size() : 0, 0);
  impl_->parts.assign(on ? impl_->steps.size() : 0, {});
  for (const auto& delegate : impl_->delegates)
    if (delegate) TOSAIC_CHECK(delegate->measure(on));
  return {};
}

std::vector<OperationTime> Method::profile() const {
  std::vector<OperationTime> list;
  const pte::Plan& plan = impl_->plan();
  for (std::size_t s = 0; s < impl_->seconds.size(); ++s) {
    if (const auto* call = std::get_if<pte::KernelCall>(&plan.instructions[s]))
      list.push_back({name_of(plan.operators[at(call->op)]), impl_->seconds[s], "", "", ""});
    if (const auto* call = std::get_if<pte::DelegateCall>(&plan.instructions[s]))
      list.push_back({plan.delegates[at(call->delegate)].id, impl_->seconds[s], "", "", ""});
    list.insert(list.end(), impl_->parts[s].begin(), impl_->parts[s].end());
  }
  return list;
}

std::vector<std::string> Method::devices() const {
  std::vector<std::string> list;
  for (const auto& delegate : impl_->delegates)
    if (delegate && std::find(list.begin(), list.end(), delegate->device()) == list.end())
      list.push_back(delegate->device());
  return list;
}

double Method::device_seconds() const {
  double seconds = 0;
  for (const auto& delegate : impl_->delegates)
    if (const auto profile = delegate ? delegate->profile() : tosaic_delegate_profile();
        profile.clock == TOSAIC_DELEGATE_CLOCK_DEVICE)
      seconds += profile.seconds;
  return seconds;
}

Status Method::compute(std::span<const TensorView> given) {
  Impl& m = *impl_;
  struct Loan {
    Impl& of;
    ~Loan() { of.give_back(); }
  } const loan{m};
  m.seconds.assign(m.seconds.size(), 0);
  m.parts.assign(m.parts.size(), {});
  if (given.size() != m.inputs.size())
    return error("run.input-count", fmt::format("method '{}' takes {} inputs, {} are given", m.plan().name,
                                                m.inputs.size(), given.size()));
  for (std::size_t i = 0; i < given.size(); ++i) TOSAIC_CHECK(m.take(i, given[i]));
  return m.run_steps();
}

const TensorType& Method::output_type(std::size_t i) const { return impl_->cells[at(impl_->outputs[i])].tensor.type; }

const void* Method::output(std::size_t i) const {
  return dense(impl_->cells[at(impl_->outputs[i])].tensor, impl_->output_space[i]);
}

Result<std::vector<Tensor>> Method::run(const std::vector<Tensor>& tensors) {
  std::vector<TensorView> views;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const auto& [type, data] = tensors[i];
    if (data.size() != type.storage_bytes())
      return error("run.input-type", fmt::format("input {} is {} and has {} bytes", i, to_string(type), data.size()));
    views.push_back({type, data.data()});
  }
  std::vector<Bytes> borrowed = impl_->borrow_outputs();
  TOSAIC_CHECK(compute(views));
  std::vector<Tensor> outputs;
  for (std::size_t i = 0; i < impl_->outputs.size(); ++i) {
    const TensorType& type = output_type(i);
    outputs.push_back(
        {type, borrowed[i].null() ? Bytes::copy(output(i), type.storage_bytes()) : std::move(borrowed[i])});
  }
  return outputs;
}

}  // namespace tosaic::runtime
