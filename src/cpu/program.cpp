// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "base/memory.h"
#include "cpu/step.h"
#include "cpu/widen.h"
#include "plan/arena.h"

namespace tosaic::cpu {
namespace {

using Clock = std::chrono::steady_clock;
using Arena = std::shared_ptr<std::byte>;

// Vector loads may read this far past the last element of a buffer in the arena.
constexpr std::size_t arena_slack = 128;

// Null: there is no such memory.
Arena make_arena(std::size_t bytes, const MemorySource& memory) {
  const std::size_t all = align_up(bytes + arena_slack);
  if (memory) return memory(all);
  return Arena(static_cast<std::byte*>(std::aligned_alloc(64, all)), [](std::byte* p) { std::free(p); });
}

bool overlap(const void* a, std::size_t a_bytes, const void* b, std::size_t b_bytes) {
  const auto x = reinterpret_cast<std::uintptr_t>(a), y = reinterpret_cast<std::uintptr_t>(b);
  return x < y + b_bytes && y < x + a_bytes;
}

bool aligned_for(const TensorType& type, const void* p) {
  return reinterpret_cast<std::uintptr_t>(p) % storage_size(type.dtype) == 0;
}

enum class Home : std::uint8_t { none, constant, input, output, arena };

// Where a value lies: in the memory of `root`, at an offset.
struct Location {
  ValueId root = no_value;
  std::size_t offset = 0;
  Home home = Home::none;
  std::uint32_t slot = 0;  // input or output number
};

}  // namespace

struct Program::Impl {
  Graph graph;
  std::vector<TensorType> input_types, output_types;
  std::vector<Step> steps;
  std::vector<std::vector<ValueId>> observed_after;  // by step
  std::vector<ValueId> observed_at_start;            // graph inputs and constants
  std::vector<std::size_t> scratch_offset;           // by step
  std::vector<Location> location;                    // by value
  std::vector<std::byte*> address;                   // by value
  std::vector<ValueId> at_input, at_output;          // values whose address changes from run to run
  struct Copy {
    ValueId from;
    std::uint32_t output;
  };
  std::vector<Copy> copies;  // outputs that share memory with something else
  Arena arena;
  std::size_t arena_bytes = 0;
  bool timed = false;
  std::vector<double> seconds;  // by step, of the last run, when timed
  ThreadPool* pool = nullptr;   // the process's
  tosa::Variables own_variables;
  tosa::Variables* variables = &own_variables;  // or those of the program that this is a region of
  std::vector<std::vector<std::byte>> input_bounce, output_bounce;
  std::vector<const void*> input_pointers;
  std::vector<void*> output_pointers;

  Status plan_steps(const Options& options);
  void locate(const Planning& planning);
  Status place_buffers(const MemorySource& memory);
  Status run(std::span<const void* const> inputs, std::span<void* const> outputs, const Observer* observer);
  void bounce(std::span<const void* const> inputs, std::span<void* const> outputs);
  void observe(const Observer& observer, const std::vector<ValueId>& values) const {
    for (ValueId v : values) observer(v, {graph[v].type, address[v]}, *pool);
  }
};

Status Program::Impl::plan_steps(const Options& options) {
  pool = &ThreadPool::shared(options.threads);
  Planning planning{.graph = graph,
                    .threads = pool->threads(),
                    .variables = variables,
                    .producer = producers(graph),
                    .users = consumers(graph)};
  planning.visible.assign(graph.values.size(), false);
  planning.taken.assign(graph.nodes.size(), false);
  for (ValueId v : graph.outputs) planning.visible[v] = true;
  for (ValueId v : options.observed)
    if (v < graph.values.size()) planning.visible[v] = true;

  const auto count = static_cast<std::uint32_t>(graph.nodes.size());
  for (const KernelRow& row : kernel_rows())
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint32_t n = row.backward ? count - 1 - i : i;
      if (!planning.taken[n]) row.take(planning, n);
    }
  for (std::uint32_t n = 0; n < count; ++n)
    if (!planning.taken[n])
      return located(error("cpu.unsupported", fmt::format("no kernel runs {}", graph.nodes[n].op)), graph.nodes[n].loc);

  // A step stands where its last node stood: everything it reads was then computed, and only its last value is
  // read by others.
  steps = std::move(planning.steps);
  std::sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) { return a.nodes.back() < b.nodes.back(); });

  std::vector<bool> observed(graph.values.size(), false);
  for (ValueId v : options.observed)
    if (v < graph.values.size()) observed[v] = true;
  for (const Step& step : steps) {
    auto& list = observed_after.emplace_back();
    for (ValueId v : step.writes)
      if (observed[v]) list.push_back(v);
  }
  for (ValueId v = 0; v < graph.values.size(); ++v)
    if (observed[v] && planning.producer[v] < 0) observed_at_start.push_back(v);
  locate(planning);
  return {};
}

void Program::Impl::locate(const Planning& planning) {
  location.assign(graph.values.size(), {});
  std::vector<const Alias*> parent(graph.values.size(), nullptr);
  for (const Alias& a : planning.aliases) parent[a.alias] = &a;
  for (ValueId v = 0; v < graph.values.size(); ++v) {
    Location& at = location[v];
    at.root = v;
    while (const Alias* a = parent[at.root]) {
      at.offset += a->offset;
      at.root = a->of;
    }
  }
  // Homes of the roots: constants and inputs stay where they are; what becomes an output is computed there.
  for (ValueId v = 0; v < graph.values.size(); ++v)
    if (graph[v].is_constant()) location[v].home = Home::constant;
  for (std::uint32_t i = 0; i < graph.inputs.size(); ++i) {
    location[graph.inputs[i]].home = Home::input;
    location[graph.inputs[i]].slot = i;
  }
  for (std::uint32_t j = 0; j < graph.outputs.size(); ++j) {
    const ValueId v = graph.outputs[j];
    Location& root = location[location[v].root];
    const bool whole = graph[v].type.storage_bytes() == graph[location[v].root].type.storage_bytes();
    if (root.home == Home::none && whole) {
      root.home = Home::output;
      root.slot = j;
    } else {
      copies.push_back({v, j});
    }
  }
  for (const Step& step : steps)
    for (ValueId v : step.writes) {
      Location& root = location[location[v].root];
      if (root.home == Home::none) root.home = Home::arena;
    }
  for (Location& at : location) {
    at.home = location[at.root].home;
    at.slot = location[at.root].slot;
  }
}

Status Program::Impl::place_buffers(const MemorySource& memory) {
  std::vector<plan::Buffer> buffers;
  std::vector<std::int32_t> buffer_of(graph.values.size(), -1);
  auto alive = [&](ValueId v, std::uint32_t step) {
    if (v == no_value || location[v].home != Home::arena) return;
    const ValueId root = location[v].root;
    if (buffer_of[root] < 0) {
      buffer_of[root] = static_cast<std::int32_t>(buffers.size());
      buffers.push_back({graph[root].type.storage_bytes(), step, step, 0});
    }
    plan::Buffer& buffer = buffers[static_cast<std::size_t>(buffer_of[root])];
    buffer.last = std::max(buffer.last, step);
  };
  std::vector<std::size_t> scratch_buffer(steps.size());
  for (std::uint32_t s = 0; s < steps.size(); ++s) {
    for (ValueId v : steps[s].reads) alive(v, s);
    for (ValueId v : steps[s].writes) alive(v, s);
    scratch_buffer[s] = buffers.size();
    const std::size_t private_bytes = steps[s].scratch_per_thread * static_cast<std::size_t>(pool->threads());
    buffers.push_back({private_bytes + steps[s].shared_scratch, s, s, 0});
  }
  for (const Copy& copy : copies) alive(copy.from, static_cast<std::uint32_t>(steps.size()));

  arena_bytes = plan::place(buffers, 64);
  std::uint64_t all = arena_bytes;
  for (const TensorType& type : output_types) all += type.storage_bytes();
  TOSAIC_CHECK(check_memory(all, fmt::format("the graph '{}' with its intermediate tensors", graph.name)));
  arena = make_arena(arena_bytes, memory);
  if (!arena)
    return error("run.out-of-memory", fmt::format("there are no {} bytes for intermediate tensors", arena_bytes));
  for (std::size_t s : scratch_buffer) scratch_offset.push_back(buffers[s].offset);
  address.assign(graph.values.size(), nullptr);
  for (ValueId v = 0; v < graph.values.size(); ++v) {
    const Location& at = location[v];
    const std::int32_t buffer = buffer_of[at.root];
    if (at.home == Home::arena && buffer >= 0)
      address[v] = arena.get() + buffers[static_cast<std::size_t>(buffer)].offset + at.offset;
    if (at.home == Home::constant) address[v] = const_cast<std::byte*>(graph[at.root].constant.data()) + at.offset;
    if (at.home == Home::input) at_input.push_back(v);
    if (at.home == Home::output) at_output.push_back(v);
  }
  return {};
}

// Odd pointers get memory of our own: unaligned ones, and an output that overlaps an input or another output
// (it would be overwritten while still needed).
void Program::Impl::bounce(std::span<const void* const> inputs, std::span<void* const> outputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    input_pointers[i] = inputs[i];
    if (aligned_for(input_types[i], inputs[i])) continue;
    input_bounce[i].resize(input_types[i].storage_bytes());
    std::memcpy(input_bounce[i].data(), inputs[i], input_bounce[i].size());
    input_pointers[i] = input_bounce[i].data();
  }
  for (std::size_t j = 0; j < outputs.size(); ++j) {
    output_pointers[j] = outputs[j];
    const std::size_t bytes = output_types[j].storage_bytes();
    bool odd = !aligned_for(output_types[j], outputs[j]);
    for (std::size_t i = 0; i < inputs.size(); ++i)
      odd |= overlap(outputs[j], bytes, inputs[i], input_types[i].storage_bytes());
    for (std::size_t k = 0; k < j; ++k) odd |= overlap(outputs[j], bytes, outputs[k], output_types[k].storage_bytes());
    if (!odd) continue;
    output_bounce[j].resize(bytes);
    output_pointers[j] = output_bounce[j].data();
  }
}

Status Program::Impl::run(std::span<const void* const> inputs, std::span<void* const> outputs,
                          const Observer* observer) {
  if (inputs.size() != graph.inputs.size() || outputs.size() != graph.outputs.size())
    return error("run.input-count",
                 fmt::format("the program has {} inputs and {} outputs, {} and {} were given", graph.inputs.size(),
                             graph.outputs.size(), inputs.size(), outputs.size()));
  bounce(inputs, outputs);
  own_variables.clear();  // VARIABLEs keep their content within a run
  for (ValueId v : at_input)
    address[v] = static_cast<std::byte*>(const_cast<void*>(input_pointers[location[v].slot])) + location[v].offset;
  for (ValueId v : at_output)
    address[v] = static_cast<std::byte*>(output_pointers[location[v].slot]) + location[v].offset;
  if (observer) observe(*observer, observed_at_start);
  for (std::size_t s = 0; s < steps.size(); ++s) {
    const Step& step = steps[s];
    const auto begin = timed ? Clock::now() : Clock::time_point();
    if (step.run) {
      std::byte* scratch = arena.get() + scratch_offset[s];
      std::byte* shared = scratch + step.scratch_per_thread * static_cast<std::size_t>(pool->threads());
      Status status = step.run({address.data(), *pool, scratch, shared});
      if (!status.ok()) return located(std::move(status.error()), graph.nodes[step.nodes.back()].loc);
    }
    if (timed) seconds[s] = std::chrono::duration<double>(Clock::now() - begin).count();
    if (observer && !observed_after[s].empty()) observe(*observer, observed_after[s]);
  }
  for (const Copy& copy : copies)
    std::memcpy(output_pointers[copy.output], address[copy.from], output_types[copy.output].storage_bytes());
  for (std::size_t j = 0; j < outputs.size(); ++j)
    if (output_pointers[j] != outputs[j]) std::memcpy(outputs[j], output_pointers[j], output_types[j].storage_bytes());
  return {};
}

Program::Program(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Program::Program(Program&&) noexcept = default;
Program& Program::operator=(Program&&) noexcept = default;
Program::~Program() = default;

Result<Program> Program::compile(const Graph& graph, const Options& options) {
  auto impl = std::make_unique<Impl>();
  impl->graph = graph;
  if (options.variables) impl->variables = options.variables;
  for (ValueId v : graph.inputs) impl->input_types.push_back(graph[v].type);
  for (ValueId v : graph.outputs) impl->output_types.push_back(graph[v].type);
  // Constants of a mapped file may lie at any byte; kernels want them aligned.
  for (Value& value : impl->graph.values)
    if (value.is_constant() && !aligned_for(value.type, value.constant.data()))
      value.constant = Bytes::copy(value.constant.data(), value.constant.size());
  widen_narrow_floats(impl->graph);
  TOSAIC_CHECK(impl->plan_steps(options));
  TOSAIC_CHECK(impl->place_buffers(options.memory));
  impl->timed = options.timed;
  impl->seconds.resize(options.timed ? impl->steps.size() : 0);
  impl->input_pointers.resize(graph.inputs.size());
  impl->input_bounce.resize(graph.inputs.size());
  impl->output_pointers.resize(graph.outputs.size());
  impl->output_bounce.resize(graph.outputs.size());
  return Program(std::move(impl));
}

Status Program::run(std::span<const void* const> inputs, std::span<void* const> outputs, const Observer* observer) {
  return impl_->run(inputs, outputs, observer);
}

Result<std::vector<Tensor>> Program::run(const std::vector<Tensor>& inputs, const Observer* observer) {
  const auto& types = impl_->input_types;
  if (inputs.size() != types.size())
    return error("run.input-count",
                 fmt::format("the program has {} inputs, {} were given", types.size(), inputs.size()));
  std::vector<const void*> in;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Tensor& given = inputs[i];
    if (given.type.dtype != types[i].dtype || given.type.shape.dims() != types[i].shape.dims() ||
        given.data.size() != types[i].storage_bytes())
      return error("run.input-type",
                   fmt::format("input {} is {}, the program takes {}", i, to_string(given.type), to_string(types[i])));
    in.push_back(given.data.data());
  }
  std::vector<Tensor> results;
  std::vector<void*> out;
  for (const TensorType& type : impl_->output_types) {
    // Storage of whole 8-byte words: aligned for any element.
    auto storage = std::make_shared<std::vector<std::uint64_t>>((type.storage_bytes() + 7) / 8);
    out.push_back(storage->data());
    results.push_back({type, Bytes(storage, storage->data(), type.storage_bytes())});
  }
  TOSAIC_CHECK(impl_->run(in, out, observer));
  return results;
}

const std::vector<TensorType>& Program::input_types() const { return impl_->input_types; }
const std::vector<TensorType>& Program::output_types() const { return impl_->output_types; }
std::size_t Program::arena_bytes() const { return impl_->arena_bytes; }
std::vector<std::string_view> Program::kernels() const {
  std::vector<std::string_view> names;
  for (const Step& step : impl_->steps) names.push_back(step.kernel);
  return names;
}
std::vector<StepTime> Program::step_times() const {
  std::vector<StepTime> times;
  for (std::size_t s = 0; s < impl_->seconds.size(); ++s) {
    const Step& step = impl_->steps[s];
    if (step.run)
      times.push_back(
          {fmt::format("{}: {}", step.kernel, impl_->graph.nodes[step.nodes.back()].op), impl_->seconds[s]});
  }
  return times;
}

}  // namespace tosaic::cpu
