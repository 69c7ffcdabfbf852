// SPDX-License-Identifier: Apache-2.0
#include "tosaic/session.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include "api/artifact.h"
#include "api/guard.h"
#include "api/likely_inputs.h"
#include "api/program.h"
#include "api/strided.h"
#include "base/system/clock.h"
#include "base/system/interrupt.h"
#include "base/system/thread_pool.h"
#include "session/source.h"

namespace tosaic {

struct Session::Impl {
  Source source;
  SessionOptions options;
  RunnablePtr loaded;
  std::vector<TensorInfo> inputs, states;
  std::vector<Argument> arguments, outputs;
  std::vector<OwnedTensor> examples;
  bool measured = false, ran = false;
  double seconds = 0;  // of the last run, when measured

  Impl(Source from, const SessionOptions& how, RunnablePtr made);
  static Result<std::unique_ptr<Impl>> load(Source source, const SessionOptions& options, const Sink& sink);
  Result<std::vector<Tensor>> borrow(std::span<const InputTensor> given) const;
  Result<std::vector<Tensor>> run(const std::vector<Tensor>& tensors);
  Status warm(std::span<const InputTensor> given);
  Result<std::size_t> state(const std::string& name) const;
  // body(impl), guarded; of a session that was moved from, which has no impl, the reason why there is nothing to do.
  template <class F>
  static auto entered(const std::unique_ptr<Impl>& impl, F&& body) noexcept -> decltype(body(*impl)) {
    if (impl) return guarded(impl->source.name, [&] { return body(*impl); });
    return guarded({}, [&]() -> decltype(body(*impl)) {
      return error("session.empty", "the session was moved to another one").hint("use the one that it was moved to");
    });
  }
};

namespace {

std::string named(const std::vector<std::string>& names, std::size_t i) { return i < names.size() ? names[i] : ""; }

// Marks the session as running; distinguished from another run that is under way.
class Turn {
 public:
  explicit Turn(std::atomic<bool>& busy) : busy_(busy), ours_(!busy.exchange(true)) {}
  ~Turn() {
    if (ours_) busy_ = false;
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  Status taken() const {
    if (ours_) return {};
    return error("session.busy", "the session is running already").hint("use a clone of it in every thread");
  }

 private:
  std::atomic<bool>& busy_;
  bool ours_;
};

// Do all elements of a result have memory of their own?
bool apart(const OutputTensor& tensor) {
  std::vector<std::pair<std::int64_t, std::int64_t>> steps;  // stride, size
  for (std::size_t i = 0; i < tensor.strides.size(); ++i)
    if (tensor.sizes[i] > 1) steps.emplace_back(std::abs(tensor.strides[i]), tensor.sizes[i]);
  std::sort(steps.begin(), steps.end());
  std::int64_t reach = 0;
  for (auto [stride, size] : steps) {
    if (stride <= reach) return false;
    reach += stride * (size - 1);
  }
  return true;
}

// `inputs` have been looked at already.
Status check_outputs(std::span<const InputTensor> inputs, std::span<const OutputTensor> outputs,
                     const std::vector<TensorType>& types) {
  if (outputs.size() != types.size())
    return error("run.output-count",
                 fmt::format("the program gives {} tensors, memory for {} is given", types.size(), outputs.size()));
  std::vector<Extent> taken;
  for (const InputTensor& t : inputs)
    if (const auto extent = extent_of(t.data, t.dtype, t.sizes, t.strides)) taken.push_back(*extent);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const OutputTensor& t = outputs[i];
    if (t.dtype != types[i].dtype || t.sizes != types[i].shape.sizes())
      return error("run.output-type", fmt::format("memory for output {} is {}, the program gives {}", i,
                                                  to_string(TensorType{t.dtype, Shape(t.sizes), {}}),
                                                  to_string(types[i].with(std::optional<Scales>{}))));
    if (!t.strides.empty() && t.strides.size() != t.sizes.size())
      return error("run.output-type",
                   fmt::format("memory for output {} has {} strides for {} dims", i, t.strides.size(), t.sizes.size()));
    if (types[i].storage_bytes() == 0) continue;
    if (!t.data) return error("run.null", fmt::format("output {} has no memory: its pointer is null", i));
    const auto extent = extent_of(t.data, t.dtype, t.sizes, t.strides);
    if (!extent) return too_far("run.output-type", fmt::format("memory for output {}", i));
    const bool meets = std::any_of(taken.begin(), taken.end(), [&](const Extent& e) { return e.meets(*extent); });
    if (meets || !apart(t))
      return error("run.overlap", fmt::format("the memory of output {} overlaps {}", i,
                                              meets ? "an input or another output" : "itself"))
          .hint("give every output memory of its own");
    taken.push_back(*extent);
  }
  return {};
}

std::vector<TensorType> types_of(const std::vector<Tensor>& tensors) {
  std::vector<TensorType> types;
  for (const Tensor& t : tensors) types.push_back(t.type);
  return types;
}

void store(const Tensor& from, const OutputTensor& to) {
  const std::size_t size = storage_size(to.dtype);
  auto* target = static_cast<std::byte*>(to.data);
  if (from.data.empty()) return;
  if (to.strides.empty()) {
    std::memcpy(target, from.data.data(), from.data.size());
    return;
  }
  for_each_strided(to.sizes, to.strides, [&](std::size_t i, std::int64_t offset) {
    std::memcpy(target + offset * static_cast<std::int64_t>(size), from.data.data() + i * size, size);
  });
}

}  // namespace

Session::Impl::Impl(Source from, const SessionOptions& how, RunnablePtr made)
    : source(std::move(from)), options(how), loaded(std::move(made)) {
  const Interface& known = loaded->interface();
  for (std::size_t i = 0; i < known.inputs.size(); ++i)
    inputs.push_back(tensor_info(named(known.input_names, i), known.inputs[i]));
  for (const auto& [name, type] : known.states) states.push_back(tensor_info(name, type));
  arguments = arguments_of(inputs, known.other_inputs);
  std::vector<TensorInfo> tensors;
  for (std::size_t i = 0; i < known.outputs.size(); ++i)
    tensors.push_back(tensor_info(named(known.output_names, i), known.outputs[i]));
  outputs = arguments_of(std::move(tensors), loaded->other_outputs());
  for (const Tensor& t : known.examples) examples.push_back(owned(t));
}

Result<std::vector<Tensor>> Session::Impl::borrow(std::span<const InputTensor> given) const {
  const std::vector<TensorType>& wanted = loaded->interface().inputs;
  if (given.size() != wanted.size())
    return error("run.input-count",
                 fmt::format("{} inputs are given, the program takes {}", given.size(), wanted.size()));
  std::vector<Tensor> tensors;
  for (std::size_t i = 0; i < given.size(); ++i) {
    TOSAIC_TRY(Tensor tensor, borrowed(given[i], wanted[i], fmt::format("input {}", i)));
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

Result<std::vector<Tensor>> Session::Impl::run(const std::vector<Tensor>& tensors) {
  ran = true;
  const Interruptible asked(options.cancelled);
  const auto begin = SteadyClock::now();
  TOSAIC_TRY(std::vector<Tensor> results, loaded->run(tensors));
  seconds = std::chrono::duration<double>(SteadyClock::now() - begin).count();
  for (Tensor& result : results)  // an input that is an output: the caller's memory does not last
    for (const Tensor& tensor : tensors)
      if (result.data.data() == tensor.data.data()) result.data = Bytes::copy(result.data.data(), result.data.size());
  for (const FixedValue& other : loaded->other_outputs())  // numbers may have changed
    if (other.position < outputs.size()) outputs[other.position].literal = literal_of(other.value);
  return results;
}

// Delegates' own states begin anew; the program's are put back, since a method next to this one may have written them.
Status Session::Impl::warm(std::span<const InputTensor> given) {
  std::vector<OwnedTensor> kept;
  for (std::size_t i = 0; i < states.size(); ++i) {
    TOSAIC_TRY(const Tensor state, loaded->state(i));
    kept.push_back(owned(state));
  }
  TOSAIC_TRY(const std::vector<Tensor> lent, borrow(given));
  Status said = [&]() -> Status {
    TOSAIC_TRY(const std::vector<Tensor> results, run(lent));
    return {};
  }();
  TOSAIC_CHECK(loaded->reset());
  for (std::size_t i = 0; i < kept.size(); ++i)
    TOSAIC_CHECK(loaded->set_state(i, {{kept[i].dtype, Shape(kept[i].sizes), {}}, kept[i].data}));
  return said;
}

Result<std::size_t> Session::Impl::state(const std::string& name) const {
  const auto found = std::ranges::find(states, name, &TensorInfo::name);
  if (found != states.end()) return static_cast<std::size_t>(found - states.begin());
  std::string names;
  for (const TensorInfo& s : states) names += (names.empty() ? "'" : ", '") + s.name + "'";
  return error("run.state", fmt::format("the program keeps no state '{}'", name))
      .hint(names.empty() ? "it keeps none" : "its states are " + names);
}

Session::Session(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

Result<std::unique_ptr<Session::Impl>> Session::Impl::load(Source source, const SessionOptions& options,
                                                           const Sink& sink) {
  TOSAIC_TRY(RunnablePtr loaded, load_runnable(source, options, sink));
  return std::make_unique<Impl>(std::move(source), options, std::move(loaded));
}

Result<Session> Session::load(Bytes file, const std::string& name, const SessionOptions& options,
                              const Messages& messages) {
  return guarded(name, [&]() -> Result<Session> {
    TOSAIC_TRY(auto impl, Impl::load({name, std::move(file), {}, options.data}, options, messages));
    return Session(std::move(impl));
  });
}

Result<Session> Session::open(const std::string& path, const SessionOptions& options, const Messages& messages) {
  return guarded(path, [&]() -> Result<Session> {
    TOSAIC_TRY(Bytes file, map_file(path));
    return load(std::move(file), path, options, messages);
  });
}

Result<Session> Session::load(const Program& program, const SessionOptions& options, const Messages& messages) {
  return guarded(program.name(), [&]() -> Result<Session> {
    const auto held = std::make_shared<const Program>(program);
    std::shared_ptr<const ExportedProgram> exported(held, &held->impl().exported);
    TOSAIC_TRY(auto impl, Impl::load({program.name(), {}, std::move(exported), options.data}, options, messages));
    return Session(std::move(impl));
  });
}

Result<Session> Session::load(const Artifact& artifact, const SessionOptions& options, const Messages& messages) {
  const std::string& name = artifact.impl().program.name();
  return guarded(name, [&]() -> Result<Session> {
    TOSAIC_TRY(Bytes pte, artifact.piece("pte"));
    Source source{name, std::move(pte), {}, options.data};
    for (const std::string& part : external_names(artifact.impl().compiled)) {
      TOSAIC_TRY(Bytes file, artifact.piece(external_piece + part));
      source.data.emplace_back(part, std::move(file));
    }
    TOSAIC_TRY(auto impl, Impl::load(std::move(source), options, messages));
    return Session(std::move(impl));
  });
}

namespace {

// A member of what a session holds; of one that was moved from nothing.
template <class Impl, class F>
const auto& of(const std::unique_ptr<Impl>& impl, F member) {
  static const std::remove_cvref_t<decltype(member(*impl))> none;
  return impl ? member(*impl) : none;
}

}  // namespace

const std::vector<TensorInfo>& Session::inputs() const {
  return of(
      impl_, [](const Impl& s) -> const auto& { return s.inputs; });
}
const std::vector<Argument>& Session::arguments() const {
  return of(
      impl_, [](const Impl& s) -> const auto& { return s.arguments; });
}
const std::string& Session::input_tree() const {
  return of(
      impl_, [](const Impl& s) -> const auto& { return s.loaded->interface().input_tree; });
}
const std::string& Session::output_tree() const {
  return of(
      impl_, [](const Impl& s) -> const auto& { return s.loaded->interface().output_tree; });
}
const std::vector<Argument>& Session::outputs() const {
  return of(
      impl_, [](const Impl& s) -> const auto& { return s.outputs; });
}
const std::string& Session::device() const {
  return of(
      impl_, [](const Impl& s) -> const auto& { return s.loaded->interface().device; });
}
const std::vector<OwnedTensor>& Session::examples() const {
  return of(
      impl_, [](const Impl& s) -> const auto& { return s.examples; });
}
const std::vector<TensorInfo>& Session::states() const {
  return of(
      impl_, [](const Impl& s) -> const auto& { return s.states; });
}
const std::vector<std::string>& Session::methods() const {
  return of(
      impl_, [](const Impl& s) -> const auto& { return s.source.by_methods->methods; });
}
double Session::device_seconds() const { return impl_ ? impl_->loaded->device_seconds() : 0; }

Result<std::vector<Output>> Session::run(std::span<const InputTensor> inputs) {
  return Impl::entered(impl_, [&](auto& self) -> Result<std::vector<Output>> {
    const Turn turn(self.source.by_methods->busy);
    TOSAIC_CHECK(turn.taken());
    TOSAIC_TRY(const std::vector<Tensor> lent, self.borrow(inputs));
    TOSAIC_TRY(const std::vector<Tensor> tensors, self.run(lent));
    std::vector<Output> outputs;
    for (std::size_t i = 0, t = 0; i < self.outputs.size(); ++i) {
      if (self.outputs[i].tensor)
        outputs.push_back({owned(tensors[t++]), {}});
      else
        outputs.push_back({std::nullopt, self.outputs[i].literal});
    }
    return outputs;
  });
}

Status Session::run(std::span<const InputTensor> inputs, std::span<const OutputTensor> outputs) {
  return Impl::entered(impl_, [&](auto& self) -> Status {
    const Turn turn(self.source.by_methods->busy);
    TOSAIC_CHECK(turn.taken());
    TOSAIC_TRY(const std::vector<Tensor> lent, self.borrow(inputs));
    const std::vector<TensorType>& types = self.loaded->interface().outputs;
    const bool fixed = std::ranges::all_of(types, [](const TensorType& t) { return t.shape.is_static(); });
    if (fixed) TOSAIC_CHECK(check_outputs(inputs, outputs, types));
    TOSAIC_TRY(const std::vector<Tensor> tensors, self.run(lent));
    if (!fixed) TOSAIC_CHECK(check_outputs(inputs, outputs, types_of(tensors)));
    for (std::size_t i = 0; i < outputs.size(); ++i) store(tensors[i], outputs[i]);
    return {};
  });
}

Status Session::warm(std::span<const InputTensor> inputs) {
  return Impl::entered(impl_, [&](auto& self) -> Status {
    const Turn turn(self.source.by_methods->busy);
    TOSAIC_CHECK(turn.taken());
    if (self.ran) return {};
    if (!inputs.empty()) return self.warm(inputs);
    TOSAIC_TRY(const std::vector<OwnedTensor> likely, likely_inputs(*this));
    std::vector<InputTensor> views;
    for (const OwnedTensor& t : likely) views.push_back(t.view());
    Status warmed = self.warm(views);
    if (!warmed.ok() && warmed.error().code == "run.assumption") return {};  // of inputs that nobody gave
    return warmed;
  });
}

Result<OwnedTensor> Session::state(const std::string& name) const {
  return Impl::entered(impl_, [&](auto& self) -> Result<OwnedTensor> {
    const Turn turn(self.source.by_methods->busy);
    TOSAIC_CHECK(turn.taken());
    TOSAIC_TRY(const std::size_t i, self.state(name));
    TOSAIC_TRY(const Tensor state, self.loaded->state(i));
    return owned(state);
  });
}

Status Session::set_state(const std::string& name, const InputTensor& content) {
  return Impl::entered(impl_, [&](auto& self) -> Status {
    const Turn turn(self.source.by_methods->busy);
    TOSAIC_CHECK(turn.taken());
    TOSAIC_TRY(const std::size_t i, self.state(name));
    Result<Tensor> lent = borrowed(content, self.loaded->interface().states[i].second, fmt::format("state '{}'", name));
    if (!lent.ok()) {
      if (lent.error().code == "run.input-type") lent.error().code = "run.state-type";
      return std::move(lent).error();
    }
    return self.loaded->set_state(i, *lent);
  });
}

Status Session::reset() {
  return Impl::entered(impl_, [&](auto& self) -> Status {
    const Turn turn(self.source.by_methods->busy);
    TOSAIC_CHECK(turn.taken());
    return self.loaded->reset();
  });
}

Result<Session> Session::clone() const {
  return Impl::entered(impl_, [&](auto& self) -> Result<Session> {
    Source source = self.source;
    source.by_methods = std::make_shared<SharedByMethods>();
    source.by_methods->methods = self.source.by_methods->methods;
    const auto& memory = self.source.by_methods->memory;
    if (memory) { TOSAIC_TRY(source.by_methods->memory, memory->fresh()); }
    RunnablePtr loaded;
    if (!memory) { TOSAIC_TRY(loaded, self.loaded->clone()); }
    if (!loaded) { TOSAIC_TRY(loaded, load_runnable(source, self.options, {})); }
    return Session(std::make_unique<Impl>(std::move(source), self.options, std::move(loaded)));
  });
}

int Session::useful_clones() const { return device().starts_with("vulkan") ? 1 : static_cast<int>(hardware_threads()); }

Result<Session> Session::method(const std::string& name) const {
  return Impl::entered(impl_, [&](auto& self) -> Result<Session> {
    SessionOptions options = self.options;
    options.method = name;
    TOSAIC_TRY(auto impl, Impl::load(self.source, options, {}));
    return Session(std::move(impl));
  });
}

Status Session::measure(bool on) {
  return Impl::entered(impl_, [&](auto& self) -> Status {
    const Turn turn(self.source.by_methods->busy);
    TOSAIC_CHECK(turn.taken());
    self.measured = on;
    self.seconds = 0;
    return self.loaded->measure(on);
  });
}

Result<std::vector<OperationTime>> Session::profile() const {
  return Impl::entered(impl_, [&](auto& self) -> Result<std::vector<OperationTime>> {
    const Turn turn(self.source.by_methods->busy);
    TOSAIC_CHECK(turn.taken());
    std::vector<OperationTime> times;
    if (!self.measured || self.seconds <= 0) return times;
    times = self.loaded->profile();
    if (times.empty()) times.push_back({self.loaded->interface().device, self.seconds, "", "", ""});
    return times;
  });
}

}  // namespace tosaic
