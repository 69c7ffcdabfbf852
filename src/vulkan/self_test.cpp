// SPDX-License-Identifier: Apache-2.0
#include "vulkan/self_test.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>

#include "base/system/environment.h"
#include "base/system/own_files.h"
#include "base/system/thread_pool.h"
#include "vulkan/compute_commands.h"
#include "vulkan/self_test_comparison.h"

namespace tosaic::vulkan {
namespace {

using vulkan_program::Arena;
using vulkan_program::Dispatch;
using vulkan_program::Range;

// Written before the hashes: another number when the check itself becomes another one.
constexpr std::uint64_t version = 1;
constexpr std::size_t most_batch_bytes = std::size_t{64} << 20;
// Of the file that remembers what has passed: two million shaders.
constexpr std::size_t most_remembered_bytes = std::size_t{16} << 20;

enum class When : std::uint8_t { once, always, never };
When when() {
  const std::string said = environment_variable("TOSAIC_VULKAN_SELF_TEST");
  return said == "always" ? When::always : said == "never" ? When::never : When::once;
}

// ---- what is remembered

std::set<std::uint64_t> read_checked(const std::string& path) {
  std::set<std::uint64_t> hashes;
  const Bytes file = path.empty() ? Bytes() : copy_of_file(path, most_remembered_bytes);
  if (file.size() < 8 || file.size() % 8 != 0) return hashes;
  std::vector<std::uint64_t> words(file.size() / 8);
  std::memcpy(words.data(), file.data(), file.size());
  // The last word is the sum of the others: damaged files count as empty.
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i + 1 < words.size(); ++i) sum += words[i];
  if (words.size() > 1 && words.front() == version && sum == words.back())
    hashes.insert(words.begin() + 1, words.end() - 1);
  return hashes;
}

void write_checked(const std::string& path, const std::set<std::uint64_t>& hashes) {
  if (path.empty() || (hashes.size() + 2) * sizeof(std::uint64_t) > most_remembered_bytes) return;
  std::vector<std::uint64_t> words{version};
  words.insert(words.end(), hashes.begin(), hashes.end());
  std::uint64_t sum = 0;
  for (std::uint64_t w : words) sum += w;
  words.push_back(sum);
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
  replace_file(path, Bytes::of(std::move(words)));
}

// ---- on the device

class Test {
 public:
  Test(const std::shared_ptr<Device>& device, const Pipelines& pipelines, const Constants& constants)
      : device_(device), pipelines_(pipelines), constants_(constants) {}

  // In one submission; what the cases gave lies in results() then.
  Status run(std::span<SelfTestCase> cases) {
    std::uint64_t size = 0;
    for (SelfTestCase& c : cases) {
      c.scratch = size;
      size += (c.memory.size() + vulkan_program::alignment - 1) / vulkan_program::alignment * vulkan_program::alignment;
    }
    TOSAIC_TRY(const auto scratch, DeviceBuffer::make(device_, with_room_for_views(size), Placement::device));
    TOSAIC_TRY(host_, DeviceBuffer::make(device_, size, Placement::readback));
    for (const SelfTestCase& c : cases) std::memcpy(host_->mapped() + c.scratch, c.memory.data(), c.memory.size());
    std::vector<Bindings> bindings;
    for (const SelfTestCase& c : cases) {
      Bindings& b = bindings.emplace_back();
      b.layout = pipelines_[c.dispatch->module].set_layout;
      for (std::size_t i = 0; i < c.offsets.size(); ++i) {
        const Range& r = c.dispatch->ranges[i];
        b.ranges.push_back(r.arena == Arena::constants ? constants_.at(r)
                                                       : bound_range(*scratch, c.scratch + c.offsets[i], r));
      }
    }
    DescriptorSets sets(device_);
    TOSAIC_CHECK(sets.make(bindings));
    Commands commands(device_);
    TOSAIC_CHECK(commands.make());
    TOSAIC_CHECK(commands.begin());
    commands.copy(host_->handle(), scratch->handle(), {0, 0, size});
    commands.barrier(copy_writes, shader_uses);
    for (std::size_t i = 0; i < cases.size(); ++i)
      commands.dispatch(pipelines_[cases[i].dispatch->module], sets[i], *cases[i].dispatch);
    commands.barrier(shader_writes, copy_reads);
    commands.copy(scratch->handle(), host_->handle(), {0, 0, size});
    commands.barrier(copy_writes, host_reads);
    TOSAIC_CHECK(commands.end());
    return device_->run(commands.handle, commands.fence, 0);
  }

  // On all cores: each case's own. Those that take too long are marked.
  Status judge(std::span<SelfTestCase> cases, std::span<SelfTestComparison> comparisons) const {
    std::vector<std::string> wrong(cases.size());
    std::vector<char> contested(cases.size(), 0);
    ThreadPool::shared().run(static_cast<std::int64_t>(cases.size()), [&](std::int64_t number, int) {
      const auto i = static_cast<std::size_t>(number);
      SelfTestComparison& comparison = comparisons[i];
      comparison.join();
      cases[i].unchecked = comparison.is_too_long();
      wrong[i] = comparison.judge({host_->mapped() + cases[i].scratch, cases[i].memory.size()});
      contested[i] = !wrong[i].empty() && comparison.is_contested();
    });
    for (std::size_t i = 0; i < cases.size(); ++i)
      if (!wrong[i].empty())
        return contested[i] ? ambiguous(*cases[i].dispatch, wrong[i]) : wrong_result(*cases[i].dispatch, wrong[i]);
    return {};
  }

 private:
  Diagnostic wrong_result(const Dispatch& d, const std::string& wrong) const {
    return error("vulkan.wrong-result",
                 fmt::format("{} ({}) computes the shader of '{}' ({}) wrongly: {}", device_->description(),
                             device_->driver(), d.value, d.kernel, wrong))
        .hint(
            "where drivers of two makers say so, the program is at fault: report it. Else install another version of "
            "the driver, choose another device (--vulkan-device) or the CPU (--device cpu, "
            "or --target tosa-fp where the program has a Vulkan delegate); TOSAIC_VULKAN_SELF_TEST=never runs it all "
            "the same");
  }
  static Diagnostic ambiguous(const Dispatch& d, const std::string& wrong) {
    return error("vulkan.ambiguous-shader", fmt::format("the shader of '{}' ({}) stores different values in one "
                                                        "element, and which of them stays is the device's choice: {}",
                                                        d.value, d.kernel, wrong))
        .hint(
            "this is a fault of what made the program and not of the driver: compile it with another version of "
            "tosaic, report it, and run it on the CPU until then (--device cpu, or --target tosa-fp where the program "
            "has a Vulkan delegate)");
  }

  const std::shared_ptr<Device>& device_;
  const Pipelines& pipelines_;
  const Constants& constants_;
  std::unique_ptr<DeviceBuffer> host_;
};

Diagnostic naming(Diagnostic why, std::span<const SelfTestCase> cases) {
  std::string kernels;
  for (const SelfTestCase& c : cases.first(std::min<std::size_t>(cases.size(), 8)))
    kernels += fmt::format("{}{} ('{}')", kernels.empty() ? "" : ", ", c.dispatch->kernel, c.dispatch->value);
  why.notes.push_back(
      fmt::format("it was checking its shaders of {}{}", kernels, cases.size() > 8 ? " and others" : ""));
  return why;
}

}  // namespace

// Cases are checked batch by batch; of the first one the host's part may be done next to other things.
struct SelfTest::State {
  State(std::shared_ptr<Device> on, const vulkan_program::Program& program, const vulkan_program::Tier& tier)
      : device(std::move(on)), file(device->cache_file(".checked")) {
    if (device->checked.empty()) device->checked = read_checked(file);
    cases = self_test_cases(tier, when() == When::once ? device->checked : std::set<std::uint64_t>());
    if (cases.empty()) return;
    constants = program.constants.joined();
    // What takes longest begins first.
    std::ranges::stable_sort(cases, std::greater(), [&](const SelfTestCase& c) {
      return c.program.together() * tier.modules[c.dispatch->module].size();
    });
    begin_batch();
  }

  std::span<SelfTestCase> batch() { return {cases.data() + begin, end - begin}; }

  void begin_batch() {
    begin = end;
    comparisons.clear();
    for (std::uint64_t bytes = 0; end < cases.size() && (end == begin || bytes < most_batch_bytes); ++end)
      bytes += cases[end].bytes;
    const std::span<SelfTestCase> of = batch();
    ThreadPool::shared().run(static_cast<std::int64_t>(of.size()),
                             [&](std::int64_t i, int) { of[static_cast<std::size_t>(i)].fill_memory(); });
    for (const SelfTestCase& c : of) comparisons.emplace_back(c, constants);
  }

  std::vector<std::function<void()>> tasks() {
    std::vector<std::function<void()>> list;
    for (SelfTestComparison& comparison : comparisons)
      for (std::size_t run = 0; run < comparison.runs(); ++run)
        list.emplace_back([this, &comparison, run] { comparison.compute(run, left); });
    return list;
  }

  Status check_batch(const Pipelines& pipelines, const Constants& uploaded) {
    Test test(device, pipelines, uploaded);
    if (Status ran = test.run(batch()); !ran.ok()) return naming(std::move(ran).error(), batch());
    TOSAIC_CHECK(test.judge(batch(), comparisons));
    for (SelfTestCase& c : batch()) {
      c.memory = {};
      if (!c.unchecked) device->checked.insert(c.hash);
    }
    return {};
  }

  std::shared_ptr<Device> device;
  const std::string file;
  Bytes constants;  // comparisons look into it
  std::vector<SelfTestCase> cases;
  std::size_t begin = 0, end = 0;
  std::vector<SelfTestComparison> comparisons;  // of the batch
  std::atomic<std::int64_t> left = static_cast<std::int64_t>(most_self_test_steps);
};

SelfTest::SelfTest(const std::shared_ptr<Device>& device, const vulkan_program::Program& program,
                   const vulkan_program::Tier& tier) {
  if (when() != When::never) state_ = std::make_unique<State>(device, program, tier);
}
SelfTest::~SelfTest() = default;

std::vector<std::function<void()>> SelfTest::tasks() {
  return state_ ? state_->tasks() : std::vector<std::function<void()>>();
}

Status SelfTest::finish(const Pipelines& pipelines, const Constants& constants,
                        const std::function<void(const std::string&)>& told) {
  if (!state_ || state_->cases.empty()) return {};
  State& s = *state_;
  TOSAIC_CHECK(s.check_batch(pipelines, constants));
  while (s.end < s.cases.size()) {
    s.begin_batch();
    const auto tasks = s.tasks();
    ThreadPool::shared().run(static_cast<std::int64_t>(tasks.size()),
                             [&](std::int64_t i, int) { tasks[static_cast<std::size_t>(i)](); });
    TOSAIC_CHECK(s.check_batch(pipelines, constants));
  }
  if (const auto count = std::ranges::count_if(s.cases, &SelfTestCase::unchecked); count > 0 && told)
    told(fmt::format("{} of {} shaders were not checked: computing them on the CPU takes too long", count,
                     s.cases.size()));
  s.device->checked.merge(read_checked(s.file));  // what other processes have added
  write_checked(s.file, s.device->checked);
  return {};
}

}  // namespace tosaic::vulkan
