// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>

#include "base/memory.h"
#include "base/system/clock.h"
#include "base/system/interrupt.h"
#include "cpu/compiled.h"
#include "ir/aligned.h"

namespace tosaic::cpu {
namespace {

using Clock = SteadyClock;
using Arena = std::shared_ptr<std::byte>;

// Vector loads may read this far past the last element of a buffer in the arena.
constexpr std::size_t arena_slack = 128;

// Null: there is no such memory.
Arena make_arena(std::size_t bytes, const MemorySource& memory) {
  const std::size_t all = align_up(bytes + arena_slack);
  if (memory) return memory(all);
  return Arena(static_cast<std::byte*>(::operator new (all, std::align_val_t{64}, std::nothrow)),
               [](std::byte* p) { ::operator delete (p, std::align_val_t{64}); });
}

bool overlap(const void* a, std::size_t a_bytes, const void* b, std::size_t b_bytes) {
  const auto x = reinterpret_cast<std::uintptr_t>(a), y = reinterpret_cast<std::uintptr_t>(b);
  return x < y + b_bytes && y < x + a_bytes;
}

}  // namespace

// What belongs to one program alone.
struct Program::Impl {
  std::shared_ptr<const Compiled> plan;
  Arena arena;
  std::vector<std::byte*> address;            // by value
  std::vector<std::shared_ptr<void>> states;  // by step; null: it keeps none
  bool timed = false;
  std::vector<double> seconds;  // by step, of the last run, when timed
  tosa::Variables own_variables;
  tosa::Variables* variables = &own_variables;  // or those of the program that this is a region of
  std::vector<std::vector<std::byte>> input_bounce, output_bounce;
  std::vector<const void*> input_pointers;
  std::vector<void*> output_pointers;

  static Result<std::unique_ptr<Impl>> make(std::shared_ptr<const Compiled> plan, const MemorySource& memory);
  Status run(std::span<const void* const> inputs, std::span<void* const> outputs, const Observer* observer);
  void bounce(std::span<const void* const> inputs, std::span<void* const> outputs);
  Status run_step(std::size_t s);
  void observe(const Observer& observer, const std::vector<ValueId>& values) const {
    for (ValueId v : values) observer(v, {plan->graph[v].type, address[v]}, *plan->pool);
  }
};

Result<std::unique_ptr<Program::Impl>> Program::Impl::make(std::shared_ptr<const Compiled> plan,
                                                           const MemorySource& memory) {
  auto made = std::make_unique<Impl>();
  const Graph& graph = plan->graph;
  std::uint64_t all = plan->memory.arena_bytes;
  for (const TensorType& type : plan->output_types) all += type.storage_bytes();
  TOSAIC_CHECK(check_memory(all, fmt::format("the graph '{}' with its intermediate tensors", graph.name)));
  made->arena = make_arena(plan->memory.arena_bytes, memory);
  if (!made->arena)
    return error("run.out-of-memory",
                 fmt::format("there are no {} bytes for intermediate tensors", plan->memory.arena_bytes));
  made->address.assign(graph.values.size(), nullptr);
  for (ValueId v = 0; v < graph.values.size(); ++v) {
    const plan::Location& at = plan->memory.location[v];
    if (at.home == plan::Home::arena) made->address[v] = made->arena.get() + at.arena_offset;
    if (at.home == plan::Home::constant)
      made->address[v] = const_cast<std::byte*>(graph[at.root].constant.data()) + at.offset;
  }
  for (const Step& step : plan->steps) made->states.push_back(step.make_state ? step.make_state() : nullptr);
  made->input_pointers.resize(graph.inputs.size());
  made->input_bounce.resize(graph.inputs.size());
  made->output_pointers.resize(graph.outputs.size());
  made->output_bounce.resize(graph.outputs.size());
  made->plan = std::move(plan);
  return made;
}

// Odd pointers get memory of our own: unaligned ones, and an output that overlaps an input or another output
// (it would be overwritten while still needed; where it would not, it may be an input's memory).
void Program::Impl::bounce(std::span<const void* const> inputs, std::span<void* const> outputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    input_pointers[i] = inputs[i];
    if (aligned_for(plan->input_types[i], inputs[i])) continue;
    input_bounce[i].resize(plan->input_types[i].storage_bytes());
    std::memcpy(input_bounce[i].data(), inputs[i], input_bounce[i].size());
    input_pointers[i] = input_bounce[i].data();
  }
  for (std::size_t j = 0; j < outputs.size(); ++j) {
    output_pointers[j] = outputs[j];
    const std::size_t bytes = plan->output_types[j].storage_bytes();
    bool odd = !aligned_for(plan->output_types[j], outputs[j]);
    const auto one_memory = [&](const Compiled::InPlace& pair) {
      return pair.output == j && outputs[j] == inputs[pair.input] && input_pointers[pair.input] == inputs[pair.input];
    };
    const auto shared = std::ranges::find_if(plan->in_place, one_memory);
    for (std::size_t i = 0; i < inputs.size(); ++i)
      odd |= (shared == plan->in_place.end() || i != shared->input) &&
             overlap(outputs[j], bytes, inputs[i], plan->input_types[i].storage_bytes());
    for (std::size_t k = 0; k < j; ++k)
      odd |= overlap(outputs[j], bytes, outputs[k], plan->output_types[k].storage_bytes());
    if (!odd) continue;
    output_bounce[j].resize(bytes);
    output_pointers[j] = output_bounce[j].data();
  }
}

Status Program::Impl::run_step(std::size_t s) {
  const Step& step = plan->steps[s];
  if (!step.run) return {};
  ThreadPool& pool = *plan->pool;
  std::byte* scratch = arena.get() + plan->memory.scratch_offset[s];
  std::byte* shared = scratch + step.scratch_per_thread * static_cast<std::size_t>(pool.threads());
  return step.run({address.data(), pool, scratch, shared, states[s].get(), variables});
}

Status Program::Impl::run(std::span<const void* const> inputs, std::span<void* const> outputs,
                          const Observer* observer) {
  if (inputs.size() != plan->graph.inputs.size() || outputs.size() != plan->graph.outputs.size())
    return error("run.input-count",
                 fmt::format("the program has {} inputs and {} outputs, {} and {} were given",
                             plan->graph.inputs.size(), plan->graph.outputs.size(), inputs.size(), outputs.size()));
  bounce(inputs, outputs);
  for (ValueId v : plan->memory.at_input) {
    const plan::Location& at = plan->memory.location[v];
    address[v] = static_cast<std::byte*>(const_cast<void*>(input_pointers[at.slot])) + at.offset;
  }
  for (ValueId v : plan->memory.at_output) {
    const plan::Location& at = plan->memory.location[v];
    address[v] = static_cast<std::byte*>(output_pointers[at.slot]) + at.offset;
  }
  if (observer) observe(*observer, plan->observed_at_start);
  for (std::size_t s = 0; s < plan->steps.size(); ++s) {
    TOSAIC_CHECK(go_on());
    const auto begin = timed ? Clock::now() : Clock::time_point();
    if (Status status = run_step(s); !status.ok())
      return located(std::move(status.error()), plan->graph.nodes[plan->steps[s].nodes.back()].loc);
    if (timed) seconds[s] = std::chrono::duration<double>(Clock::now() - begin).count();
    if (observer && !plan->observed_after[s].empty()) observe(*observer, plan->observed_after[s]);
  }
  const auto bytes = [&](std::size_t output) { return plan->output_types[output].storage_bytes(); };
  for (const plan::Memory::Copy& copy : plan->memory.copies)
    std::memcpy(output_pointers[copy.output], address[copy.from], bytes(copy.output));
  for (std::size_t j = 0; j < outputs.size(); ++j)
    if (output_pointers[j] != outputs[j]) std::memcpy(outputs[j], output_pointers[j], bytes(j));
  return {};
}

Program::Program(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Program::Program(Program&&) noexcept = default;
Program& Program::operator=(Program&&) noexcept = default;
Program::~Program() = default;

Result<Program> Program::compile(const Graph& graph, const Options& options) {
  TOSAIC_TRY(auto plan, Compiled::of(graph, options));
  TOSAIC_TRY(auto impl, Impl::make(std::move(plan), options.memory));
  if (options.variables) impl->variables = options.variables;
  Program program(std::move(impl));
  program.measure(options.timed);
  return program;
}

Result<Program> Program::clone(const MemorySource& memory) const {
  TOSAIC_TRY(auto impl, Impl::make(impl_->plan, memory));
  Program program(std::move(impl));
  program.measure(impl_->timed);
  return program;
}

void Program::reset() { impl_->own_variables.clear(); }

void Program::measure(bool on) {
  impl_->timed = on;
  impl_->seconds.assign(on ? impl_->plan->steps.size() : 0, 0);
}

Status Program::run(std::span<const void* const> inputs, std::span<void* const> outputs, const Observer* observer) {
  return impl_->run(inputs, outputs, observer);
}

Result<std::vector<Tensor>> Program::run(const std::vector<Tensor>& inputs, const Observer* observer) {
  const auto& types = impl_->plan->input_types;
  if (inputs.size() != types.size())
    return error("run.input-count",
                 fmt::format("the program has {} inputs, {} were given", types.size(), inputs.size()));
  std::vector<const void*> in;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Tensor& given = inputs[i];
    if (given.type.dtype != types[i].dtype || given.type.shape.sizes() != types[i].shape.sizes() ||
        given.data.size() != types[i].storage_bytes())
      return error("run.input-type",
                   fmt::format("input {} is {}, the program takes {}", i, to_string(given.type), to_string(types[i])));
    in.push_back(given.data.data());
  }
  std::vector<Tensor> results;
  std::vector<void*> out;
  for (const TensorType& type : impl_->plan->output_types) {
    // Storage of whole 8-byte words: aligned for any element.
    auto storage = std::make_shared<std::vector<std::uint64_t>>((type.storage_bytes() + 7) / 8);
    out.push_back(storage->data());
    results.push_back({type, Bytes(storage, storage->data(), type.storage_bytes())});
  }
  TOSAIC_CHECK(impl_->run(in, out, observer));
  return results;
}

const std::vector<TensorType>& Program::input_types() const { return impl_->plan->input_types; }
const std::vector<TensorType>& Program::output_types() const { return impl_->plan->output_types; }
std::size_t Program::arena_bytes() const { return impl_->plan->memory.arena_bytes; }
std::vector<std::string_view> Program::kernels() const {
  std::vector<std::string_view> names;
  for (const Step& step : impl_->plan->steps) names.push_back(step.kernel);
  return names;
}
std::vector<StepTime> Program::step_times() const {
  std::vector<StepTime> times;
  for (std::size_t s = 0; s < impl_->seconds.size(); ++s) {
    const Step& step = impl_->plan->steps[s];
    if (!step.run) continue;
    const Node& last = impl_->plan->graph.nodes[step.nodes.back()];
    times.push_back({fmt::format("{}: {}", step.kernel, last.op),
                     last.outputs.empty() ? "" : impl_->plan->graph[last.outputs[0]].name,
                     layer_text(impl_->plan->graph.nodes[step.nodes.front()].loc), impl_->seconds[s]});
  }
  return times;
}

}  // namespace tosaic::cpu
