// SPDX-License-Identifier: Apache-2.0
#include "vulkan/compute_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "ir/extent.h"
#include "vulkan/call.h"
#include "vulkan/compute_constants.h"
#include "vulkan/compute_hazards.h"
#include "vulkan/compute_readback.h"
#include "vulkan/compute_tiers.h"
#include "vulkan/self_test.h"

namespace tosaic::vulkan {
namespace {

using vulkan_program::Arena;
using vulkan_program::Dispatch;
using vulkan_program::Range;

// Blocking at once costs about 20 us more than looking at the fence, which on a CPU device takes time from the work.
constexpr double spin_seconds = 5e-3;

}  // namespace

// What all clones share.
struct ComputeModel::Shared {
  vulkan_program::Program program;
  std::shared_ptr<Device> device;
  Constants constants;
  std::unique_ptr<Pipelines> pipelines;

  const vulkan_program::Tier& tier() const { return program.tiers.front(); }

  Status make(const std::string& wanted, const std::function<void(const std::string&)>& told) {
    TOSAIC_TRY(device, Device::open(wanted, Use::compute));
    const std::lock_guard lock(device->building);
    pipelines = std::make_unique<Pipelines>(device);
    TOSAIC_CHECK(choose_tier());
    constants = Constants(tier());
    if (told)
      told(fmt::format("{}, tier {}: {} bytes for constants, {} for activations, {} for inputs and outputs",
                       device->description(), tier().name, constants.bytes(), tier().activation_bytes,
                       program.io_bytes));
    TOSAIC_CHECK(prepare(told));
    program.constants = {};  // the device has them
    return {};
  }

  // Pipelines, constants and the driver's check side by side, as far as they do not wait for each other.
  Status prepare(const std::function<void(const std::string&)>& told) {
    SelfTest check(device, program, tier());
    std::vector<std::function<void()>> others = check.tasks();
    Status uploaded;
    others.emplace(others.begin(), [&] { uploaded = constants.upload(device, program.constants); });
    TOSAIC_CHECK(pipelines->make(tier(), others));
    TOSAIC_CHECK(std::move(uploaded));
    device->save_pipeline_cache();
    return check.finish(*pipelines, constants, told);
  }

  // The best one whose dispatches the device takes, too; the others go.
  Status choose_tier() {
    TOSAIC_TRY(const std::vector<std::size_t> able, tiers_of_program(*device, program));
    Status checked;
    for (std::size_t i : able) {
      checked = pipelines->check(program.tiers[i]);
      if (!checked.ok()) continue;
      if (i != 0) program.tiers[0] = std::move(program.tiers[i]);
      program.tiers.resize(1);
      break;
    }
    return checked;
  }
};

struct ComputeModel::Session {
  explicit Session(Shared& of) : shared(of), device(of.device), commands(of.device) {}

  Shared& shared;
  std::shared_ptr<Device> device;
  std::unique_ptr<DeviceBuffer> activations, io, upload;
  std::optional<Readback> readback;  // this and `upload` where the host does not see io
  Commands commands;
  std::unique_ptr<DescriptorSets> sets;  // by dispatch
  std::vector<char> for_host;            // by output: dispatches write it into the host's memory
  VkQueryPool timestamps = VK_NULL_HANDLE;
  bool timed = false;
  bool recorded = false;  // the commands are those of the sizes at hand, and whole
  double seconds = 0;
  bool clock_is_read = true;
  std::vector<double> dispatch_seconds;
  std::vector<Dispatch> dispatches;  // of the sizes at hand
  std::vector<Shape> shapes;         // of inputs, then of outputs
  std::vector<std::size_t> input_bytes, output_bytes;
  std::vector<std::int64_t> rows;  // that inputs are places of; 0: an input is none
  Staying staying;                 // that the commands are for
  bool whole = false;              // the outputs are those of a run that came to its end
  Undo undo;

  Status make() {
    const auto& tier = shared.tier();
    dispatches = tier.dispatches;
    keep_shapes([](const Shape& shape) { return largest({DType::i8, shape, {}}).shape; });
    TOSAIC_TRY(activations, DeviceBuffer::make(device, with_room_for_views(tier.activation_bytes), Placement::device));
    TOSAIC_TRY(io, DeviceBuffer::make(device, with_room_for_views(shared.program.io_bytes), Placement::shared));
    if (!io->mapped()) { TOSAIC_TRY(upload, DeviceBuffer::make(device, io->bytes(), Placement::upload)); }
    if (!io->cached()) TOSAIC_CHECK(readback.emplace(device).make(io->bytes()));
    if (readback) for_host = outputs_for_host(shared.program, tier);
    TOSAIC_CHECK(commands.make());
    TOSAIC_CHECK(make_descriptors());
    TOSAIC_CHECK(make_timestamps());
    return record();
  }

  void keep_shapes(const std::function<Shape(const Shape&)>& at) {
    shapes.clear();
    for (auto [tensors, bytes] :
         {std::pair{&shared.program.inputs, &input_bytes}, {&shared.program.outputs, &output_bytes}}) {
      bytes->clear();
      for (const vulkan_program::Tensor& t : *tensors) {
        shapes.push_back(at(t.type.shape));
        bytes->push_back(t.in_io().with(shapes.back()).storage_bytes());
      }
    }
    rows.clear();
    for (const vulkan_program::Tensor& t : shared.program.inputs)
      rows.push_back(t.rows ? at(Shape(std::vector<Dim>{*t.rows})).size(0) : 0);
  }

  // Commands of other sizes.
  Status resize(std::span<const Shape> inputs) {
    if (recorded && std::ranges::equal(inputs, std::span(shapes).first(shared.program.inputs.size()))) return {};
    TOSAIC_TRY(const Sizes sizes, vulkan_program::sizes_of(shared.program, inputs));
    std::vector<Dispatch> made = shared.tier().dispatches;
    TOSAIC_CHECK(vulkan_program::resize(shared.program, sizes, made));
    dispatches = std::move(made);
    keep_shapes([&](const Shape& shape) { return vulkan_program::at(shape, sizes); });
    return record();
  }

  Status make_timestamps() {
    if (device->nanoseconds_per_tick() == 0) return {};
    VkQueryPoolCreateInfo info{VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO};
    info.queryType = VK_QUERY_TYPE_TIMESTAMP;
    info.queryCount = stamps();
    TOSAIC_CHECK(called("vkCreateQueryPool",
                        [&] { return device->vk.vkCreateQueryPool(device->handle, &info, nullptr, &timestamps); }));
    undo.later([this] { device->vk.vkDestroyQueryPool(device->handle, timestamps, nullptr); });
    return {};
  }

  BoundRange bound(const Range& r) const {
    if (r.arena == Arena::constants) return shared.constants.at(r);
    for (std::size_t i = 0; i < for_host.size(); ++i)
      if (const auto& t = shared.program.outputs[i];
          for_host[i] && overlap(r, {Arena::io, true, {}, t.offset, bytes_in_io(t)}))
        return bound_range(readback->memory(), r.offset, r);
    return bound_range(r.arena == Arena::io ? *io : *activations, r.offset, r);
  }

  Status make_descriptors() {
    std::vector<Bindings> all;
    for (const Dispatch& d : shared.tier().dispatches) {
      Bindings& b = all.emplace_back();
      b.layout = (*shared.pipelines)[d.module].set_layout;
      for (const Range& r : d.ranges) b.ranges.push_back(bound(r));
    }
    auto made = std::make_unique<DescriptorSets>(device);
    TOSAIC_CHECK(made->make(all));
    sets = std::move(made);
    return {};
  }

  Status record() {
    recorded = false;
    TOSAIC_CHECK(commands.begin());
    TOSAIC_CHECK(called_void("recording a command buffer", [&] {
      if (timestamps && !device->host_resets_queries())
        device->vk.vkCmdResetQueryPool(commands.handle, timestamps, 0, stamps());
      if (readback) readback->begin(places());
      record_inputs();
      stamp(0);
      record_dispatches();
      stamp(stamps() - 1);
      record_outputs();
    }));
    TOSAIC_CHECK(commands.end());
    recorded = true;
    return {};
  }

  std::uint32_t stamps() const { return static_cast<std::uint32_t>(shared.tier().dispatches.size()) + 2; }
  void stamp(std::uint32_t number) const {
    if (timestamps)
      device->vk.vkCmdWriteTimestamp(commands.handle, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, timestamps, number);
  }

  // The number of the output that an input is; none: the caller has it.
  std::optional<std::size_t> origin(std::size_t input) const {
    if (staying.origins.empty() || staying.origins[input] == 0) return {};
    return staying.origins[input] - 1;
  }
  bool stays(std::size_t output) const { return !staying.outputs.empty() && staying.outputs[output]; }

  void record_inputs() const {
    const auto &inputs = shared.program.inputs, &outputs = shared.program.outputs;
    const bool stayed = std::ranges::any_of(staying.origins, [](std::uint32_t number) { return number != 0; });
    if (stayed) commands.barrier(shader_writes, copy_reads);  // of the last run
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (!input_bytes[i]) continue;
      if (const auto from = origin(i))
        commands.copy(io->handle(), io->handle(), {outputs[*from].offset, inputs[i].offset, input_bytes[i]});
      else if (upload)
        commands.copy(upload->handle(), io->handle(), {inputs[i].offset, inputs[i].offset, input_bytes[i]});
    }
    // Dispatches write outputs that were read here, too.
    if (upload || stayed) commands.barrier(copy_uses, shader_uses);
  }

  // The dispatch before which a run's end is announced: what comes then takes about as long as threads to wake up.
  std::uint32_t announced() const {
    constexpr std::size_t last_ones = 5;
    return static_cast<std::uint32_t>(dispatches.size() - std::min(dispatches.size(), last_ones));
  }
  void record_dispatches() {
    Hazards hazards;
    std::uint32_t number = 0;
    for (const Dispatch& d : dispatches) {
      if (readback && number == announced()) readback->announce(commands);
      if (hazards.conflicts(d) || timed) {
        commands.barrier(shader_writes, shader_uses);
        hazards.clear();
      }
      hazards.add(d);
      if (d.groups[0]) commands.dispatch((*shared.pipelines)[d.module], (*sets)[number], d);
      ++number;
      if (timed) stamp(number);
    }
  }

  std::vector<ReadPlace> places() const {
    std::vector<ReadPlace> list;
    for (std::size_t i = 0; i < output_bytes.size(); ++i) {
      const vulkan_program::Tensor& t = shared.program.outputs[i];
      list.push_back({t.offset, stays(i) ? 0 : output_bytes[i], for_host[i] != 0, t.narrow});
    }
    return list;
  }

  void record_outputs() {
    if (!readback) {
      commands.barrier(shader_writes, host_reads);
      return;
    }
    readback->record(commands, io->handle());
  }

  // What stays is written into the device's memory, and so is all else then.
  Status keep(const Staying& wanted) {
    recorded = false;
    if (const std::vector<char> none(for_host.size(), 0); for_host != none) {
      const std::vector<char> before = std::exchange(for_host, none);
      if (Status made = make_descriptors(); !made.ok()) {
        for_host = before;
        return made;
      }
    }
    staying = wanted;
    return {};
  }

  Status run(std::span<void* const> out) {
    // The device would take a few microseconds for that.
    if (timestamps && device->host_resets_queries())
      device->vk.vkResetQueryPoolEXT(device->handle, timestamps, 0, stamps());
    const double spins = device->info().type == VK_PHYSICAL_DEVICE_TYPE_CPU ? 0 : spin_seconds;
    if (readback) return readback->run(commands, out, spins);
    TOSAIC_CHECK(device->run(commands.handle, commands.fence, spins));
    for (std::size_t i = 0; i < out.size(); ++i)
      if (const vulkan_program::Tensor& t = shared.program.outputs[i]; !stays(i))
        copy_to_caller(out[i], io->mapped() + t.offset, output_bytes[i], t.narrow);
    return {};
  }

  // Where a lost device was: with a time stamp behind each dispatch, that of the first one that did not come to its
  // end.
  Diagnostic where(Diagnostic lost) const {
    const auto named = [&](std::size_t i) {
      return fmt::format("dispatch {}, {} for '{}'", i, dispatches[i].kernel, dispatches[i].value);
    };
    if (dispatches.empty()) return lost;
    if (!timed || !timestamps) {
      lost.notes.push_back(fmt::format("it was to run {} dispatches, the first is {}", dispatches.size(), named(0)));
      lost.notes.emplace_back("`tosaic run --profile` reads the device's clock after each, and then shows at which");
      return lost;
    }
    std::size_t done = 0;
    for (std::uint64_t value[2] = {0, 1}; done < dispatches.size(); ++done) {
      value[1] = 0;
      const VkResult found = device->vk.vkGetQueryPoolResults(
          device->handle, timestamps, static_cast<std::uint32_t>(done) + 1, 1, sizeof(value), value, sizeof(value),
          VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WITH_AVAILABILITY_BIT);
      if (found < 0 || value[1] == 0) break;
    }
    lost.notes.push_back(done < dispatches.size() ? fmt::format("{} did not end", named(done))
                                                  : "all dispatches had ended");
    return lost;
  }

  Result<std::uint64_t> ticks(std::uint32_t number) const {
    std::uint64_t value = 0;
    TOSAIC_CHECK(called("vkGetQueryPoolResults", [&] {
      return device->vk.vkGetQueryPoolResults(device->handle, timestamps, number, 1, sizeof(value), &value,
                                              sizeof(value), VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT);
    }));
    return value;
  }

  // When it is asked for: it takes longer than a small model's run.
  Status read_clock() {
    clock_is_read = true;
    if (!timestamps) return {};
    const auto count = static_cast<std::uint32_t>(dispatches.size());
    const double tick = device->nanoseconds_per_tick() * 1e-9;
    TOSAIC_TRY(const std::uint64_t begin, ticks(0));
    TOSAIC_TRY(const std::uint64_t end, ticks(count + 1));
    seconds = static_cast<double>(end - begin) * tick;
    if (!timed) return {};
    dispatch_seconds.clear();
    std::uint64_t before = begin;
    for (std::uint32_t i = 1; i <= count; ++i) {
      TOSAIC_TRY(const std::uint64_t now, ticks(i));
      dispatch_seconds.push_back(static_cast<double>(now - before) * tick);
      before = now;
    }
    return {};
  }
};

ComputeModel::ComputeModel(std::shared_ptr<Shared> shared, std::unique_ptr<Session> session)
    : shared_(std::move(shared)), session_(std::move(session)) {}
ComputeModel::ComputeModel(ComputeModel&&) noexcept = default;
ComputeModel& ComputeModel::operator=(ComputeModel&& other) noexcept {
  session_ = std::move(other.session_);  // before what it uses
  shared_ = std::move(other.shared_);
  return *this;
}
ComputeModel::~ComputeModel() { session_.reset(); }

namespace {

// What a program takes is known before it is allocated.
Diagnostic with_sizes(Diagnostic why, std::uint64_t constants, std::uint64_t activations, std::uint64_t io) {
  if (why.code == "vulkan.memory")
    why.notes.push_back(
        fmt::format("the program takes {} bytes for constants, {} for activations and {} for inputs and outputs",
                    constants, activations, io));
  return why;
}

}  // namespace

Result<ComputeModel> ComputeModel::load(vulkan_program::Program program, const std::string& device,
                                        const std::function<void(const std::string&)>& told) {
  auto shared = std::make_shared<Shared>();
  shared->program = std::move(program);
  Status made = shared->make(device, told);
  std::unique_ptr<Session> session;
  if (made.ok()) {
    session = std::make_unique<Session>(*shared);
    made = session->make();
  }
  if (shared->device) made = shared->device->noticed(std::move(made));
  if (!made.ok())
    return with_sizes(std::move(made).error(), shared->constants.bytes(), shared->tier().activation_bytes,
                      shared->program.io_bytes);
  return ComputeModel(std::move(shared), std::move(session));
}

Result<ComputeModel> ComputeModel::clone() const {
  auto session = std::make_unique<Session>(*shared_);
  if (Status made = shared_->device->noticed(session->make()); !made.ok())
    return with_sizes(std::move(made).error(), shared_->constants.bytes(), shared_->tier().activation_bytes,
                      shared_->program.io_bytes);
  return ComputeModel(shared_, std::move(session));
}

const std::vector<vulkan_program::Tensor>& ComputeModel::inputs() const { return shared_->program.inputs; }
const std::vector<vulkan_program::Tensor>& ComputeModel::outputs() const { return shared_->program.outputs; }
std::string ComputeModel::device() const { return shared_->device->description(); }
const std::string& ComputeModel::tier() const { return shared_->tier().name; }
std::uint64_t ComputeModel::memory_bytes() const {
  return shared_->tier().activation_bytes + shared_->program.io_bytes;
}
double ComputeModel::device_seconds() const {
  if (!session_->clock_is_read && !session_->device->noticed(session_->read_clock()).ok()) session_->seconds = 0;
  return session_->seconds;
}

Result<std::vector<Shape>> ComputeModel::resize(std::span<const Shape> shapes) {
  TOSAIC_CHECK(session_->device->noticed(session_->resize(shapes)));
  const auto& all = session_->shapes;
  return std::vector<Shape>(all.begin() + static_cast<std::ptrdiff_t>(inputs().size()), all.end());
}

bool ComputeModel::can_stay(std::size_t output) const {
  const vulkan_program::Tensor& mine = outputs()[output];
  const auto apart = [&](const vulkan_program::Tensor& other) {
    return &other == &mine || mine.offset + bytes_in_io(mine) <= other.offset ||
           other.offset + bytes_in_io(other) <= mine.offset;
  };
  // The input that it may become.
  const auto alike = [&](const vulkan_program::Tensor& other) {
    return other.narrow == mine.narrow || other.type != mine.type;
  };
  return std::ranges::all_of(inputs(), apart) && std::ranges::all_of(outputs(), apart) &&
         std::ranges::all_of(inputs(), alike);
}

Status ComputeModel::fetch(std::size_t output, std::span<std::byte> to) {
  Session& s = *session_;
  if (!s.whole) return error("vulkan.failed", "the outputs of the last run are lost: it did not come to its end");
  if (to.empty()) return {};
  const VkDeviceSize offset = outputs()[output].offset;
  const bool narrow = outputs()[output].narrow;
  const std::size_t bytes = narrow ? to.size() / 2 : to.size();
  if (s.readback && !s.for_host[output]) {
    Commands copy(s.device);
    TOSAIC_CHECK(s.device->noticed(copy.make()));
    TOSAIC_CHECK(s.device->noticed(copy.begin()));
    copy.barrier(shader_writes, copy_reads);
    copy.copy(s.io->handle(), s.readback->handle(), {offset, offset, bytes});
    copy.barrier(copy_writes, host_reads);
    TOSAIC_CHECK(s.device->noticed(copy.end()));
    TOSAIC_CHECK(s.device->run(copy.handle, copy.fence, 0));
  }
  copy_to_caller(to.data(), (s.readback ? s.readback->mapped() : s.io->mapped()) + offset, bytes, narrow);
  return {};
}

Status ComputeModel::run(std::span<const void* const> in, std::span<void* const> out, const Staying& staying) {
  Session& s = *session_;
  const auto& to = inputs();
  if (in.size() != to.size() || out.size() != outputs().size())
    return error("run.input-count", fmt::format("{} inputs and {} outputs are given, the model has {} and {}",
                                                in.size(), out.size(), to.size(), outputs().size()));
  for (std::size_t i = 0; i < in.size(); ++i)  // shaders would write nothing there, and read something
    if (s.rows[i] > 0) {
      const auto* indices = static_cast<const std::int32_t*>(in[i]);
      const std::size_t count = s.input_bytes[i] / sizeof(std::int32_t);
      std::vector<std::int32_t> fetched;
      if (!staying.origins.empty() && staying.origins[i]) {
        fetched.resize(count);
        TOSAIC_CHECK(fetch(staying.origins[i] - 1, std::as_writable_bytes(std::span(fetched))));
        indices = fetched.data();
      }
      TOSAIC_CHECK(vulkan_program::check_indices(to[i], s.rows[i], {indices, count}));
    }
  if (staying != s.staying) TOSAIC_CHECK(s.device->noticed(s.keep(staying)));
  if (!s.recorded) TOSAIC_CHECK(s.device->noticed(s.record()));
  std::byte* const write = (s.upload ? *s.upload : *s.io).mapped();
  for (std::size_t i = 0; i < in.size(); ++i)
    if (!s.origin(i)) copy_to_device(write + to[i].offset, in[i], s.input_bytes[i], to[i].narrow);
  s.whole = false;
  if (Status ran = s.run(out); !ran.ok())
    return ran.error().code == "vulkan.lost" ? s.where(std::move(ran).error()) : std::move(ran).error();
  s.whole = true;
  s.clock_is_read = false;
  return s.timed ? s.device->noticed(s.read_clock()) : Status();
}

Status ComputeModel::measure(bool on) {
  if (session_->timed == on) return {};
  session_->timed = on;
  session_->dispatch_seconds.clear();
  return session_->device->noticed(session_->record());
}

std::vector<DispatchTime> ComputeModel::times() const {
  std::vector<DispatchTime> times;
  const auto& dispatches = shared_->tier().dispatches;
  for (std::size_t i = 0; i < session_->dispatch_seconds.size(); ++i)
    times.push_back({dispatches[i].kernel, dispatches[i].value, dispatches[i].place, session_->dispatch_seconds[i]});
  return times;
}

}  // namespace tosaic::vulkan
