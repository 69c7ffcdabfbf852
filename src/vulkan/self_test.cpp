// SPDX-License-Identifier: Apache-2.0
#include "vulkan/self_test.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>

#include "base/system/environment.h"
#include "base/system/own_files.h"
#include "base/system/thread_pool.h"
#include "formats/spirv/compute/run_shader.h"
#include "vulkan/compute_commands.h"

namespace tosaic::vulkan {
namespace {

using spirv::ShaderWrite;
using spirv::Word;
using vulkan_program::Arena;
using vulkan_program::Dispatch;
using vulkan_program::Range;

// Written before the hashes: another number when the check itself becomes another one.
constexpr std::uint64_t version = 1;
// Of an invocation: with those of its group that it waits for.
constexpr std::uint64_t steps_of_module = 100000, steps_of_invocation = 50000000;
constexpr std::size_t most_invocations = 32, most_batch_bytes = std::size_t{64} << 20;
// To say whose fault a wrong element is: seconds, once.
constexpr std::uint64_t steps_of_contest = 200000000;
constexpr int noisy_runs = 3;
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

// ---- numbers for a module to work on

// 4-byte integers count up with both signs, and none stands twice: as indices they name different places.
void fill(std::span<std::byte> memory, const spirv::ShaderProgram::Binding& binding, std::mt19937& random) {
  const std::size_t count = memory.size() / binding.element_bytes;
  for (std::size_t i = 0; i < count; ++i) {
    Word bits = random();
    if (binding.real)
      bits = std::bit_cast<Word>(static_cast<float>(static_cast<std::int32_t>(bits)) * 0x1p-30f);  // -2 .. 2
    else if (binding.element_bytes == 4)
      bits = static_cast<Word>(i % 2 ? -static_cast<std::int64_t>(i) : static_cast<std::int64_t>(i));
    else if (binding.element_bytes == 2)
      bits = (bits & 0x8000) | (0x2800 + (bits >> 16) % 0x1800);  // neither tiny nor huge, as f16 or as bf16
    std::memcpy(memory.data() + i * binding.element_bytes, &bits, binding.element_bytes);
  }
}

// A module in one of its dispatches.
struct Case {
  const Dispatch* dispatch = nullptr;
  std::uint64_t hash = 0;
  spirv::ShaderProgram program;
  std::vector<std::uint64_t> offsets;  // of the ranges, constants aside, in the case's memory; overlaps are kept
  std::vector<std::byte> memory;       // before the dispatch
  std::uint64_t scratch = 0;           // where that lies on the device
  bool unchecked = false;
};

std::uint64_t bytes_of(const Dispatch& d) {
  std::uint64_t bytes = 0;
  for (const Range& r : d.ranges)
    if (r.arena != Arena::constants) bytes += r.bytes;
  return bytes;
}

void place(Case& c) {
  std::vector<std::size_t> order;
  const auto& ranges = c.dispatch->ranges;
  for (std::size_t i = 0; i < ranges.size(); ++i)
    if (ranges[i].arena != Arena::constants) order.push_back(i);
  std::ranges::sort(order, {}, [&](std::size_t i) { return std::pair(ranges[i].arena, ranges[i].offset); });
  c.offsets.assign(ranges.size(), 0);
  std::uint64_t size = 0, end = 0;  // of the last piece in its arena
  const Range* before = nullptr;
  for (std::size_t i : order) {
    const Range& r = ranges[i];
    const bool joined = before && before->arena == r.arena && r.offset < end;
    if (!joined) {
      end = r.offset;
      size = (size + vulkan_program::alignment - 1) / vulkan_program::alignment * vulkan_program::alignment;
    }
    c.offsets[i] = size - (end - r.offset);
    const std::uint64_t beyond = r.offset + r.bytes;
    if (beyond > end) size += beyond - end, end = beyond;
    before = &r;
  }
  c.memory.resize(size);
  std::mt19937 random(1);
  for (const bool written : {true, false})
    for (std::size_t i : order)
      if (ranges[i].written == written) {
        spirv::ShaderProgram::Binding binding = c.program.bindings()[i];
        if (ranges[i].view != vulkan_program::View::buffer)
          binding.element_bytes = static_cast<Word>(std::min<std::uint64_t>(texel_bytes(ranges[i].view), 4));
        fill({c.memory.data() + c.offsets[i], ranges[i].bytes}, binding, random);
      }
}

spirv::ShaderCall call_of(const Case& c, std::vector<std::byte>& memory, const Bytes& constants) {
  spirv::ShaderCall call;
  for (std::size_t i = 0; i < c.dispatch->ranges.size(); ++i) {
    const Range& r = c.dispatch->ranges[i];
    call.texel_bytes.push_back(static_cast<Word>(texel_bytes(r.view)));
    if (r.arena == Arena::constants)  // which no shader writes to
      call.bindings.emplace_back(const_cast<std::byte*>(constants.data()) + r.offset, r.bytes);
    else
      call.bindings.emplace_back(memory.data() + c.offsets[i], r.bytes);
  }
  call.pushes = c.dispatch->pushes;
  call.groups = c.dispatch->groups;
  return call;
}

// ---- what an element may be

struct Element {
  Word binding = 0, bytes = 4;
  std::uint64_t index = 0;
  std::vector<Word> bits;  // of each run, the one without noise first
};

float real_of(Word bits) { return std::bit_cast<float>(bits); }
// A narrow float that is no number, or none that all devices write alike.
bool may_be_special(Word bits, Word bytes) {
  return bytes == 2 ? (bits & 0x7c00) == 0x7c00 || (bits & 0x7f80) == 0x7f80 : (bits & 0x7c) == 0x7c;
}

// The elements that some invocations give, and how many of them the device got wrong.
class Comparison {
 public:
  Comparison(const Case& c, const Bytes& constants) : case_(c), memory_(c.memory) {
    call_ = call_of(c, memory_, constants);
  }
  Comparison(const Case&, Bytes&&) = delete;  // it looks into the constants

  // `left_of_all`: steps for what all modules of the program do here.
  void compute(std::atomic<std::int64_t>& left_of_all) {
    const auto& d = *case_.dispatch;
    const std::uint64_t groups = std::uint64_t{d.groups[0]} * d.groups[1] * d.groups[2];
    const std::uint64_t all = groups * case_.program.group_size();
    std::mt19937 random(2);
    std::uint64_t left = steps_of_module;
    for (std::size_t n = 0; n < most_invocations && left > 0; ++n) {
      const std::uint64_t which = n == 0 ? 0 : (std::uint64_t{random()} << 32 | random()) % all;
      const std::uint64_t used = invocation(which, left_of_all);
      left -= std::min(left, used);
    }
  }

  // Nothing was compared, because it takes too long.
  bool is_too_long() const { return elements_.empty() && too_long_; }

  // What is wrong; empty: nothing.
  std::string judge(std::span<const std::byte> device) {
    double squares = 0;
    std::size_t reals = 0;
    for (const Element& e : elements_)
      if (is_real(e) && std::isfinite(spread(e))) squares += spread(e) * spread(e), ++reals;
    const double usual = reals ? std::sqrt(squares / static_cast<double>(reals)) : 0;
    std::size_t wrong = 0;
    std::string first;
    for (const Element& e : elements_) {
      Word found = 0;
      std::memcpy(&found, device.data() + case_.offsets[e.binding] + e.index * e.bytes, e.bytes);
      if (is_real(e) ? near(e, found, usual) : same(e, found)) continue;
      ++wrong;
      wrong_.emplace(e.binding, e.index);
      if (first.empty())
        first = is_real(e) ? fmt::format("element {} is {}, not {}", e.index, real_of(found), real_of(e.bits[0]))
                           : fmt::format("element {} is {:#x}, not {:#x}", e.index, found, e.bits[0]);
    }
    // Where floats are rounded, an element in a hundred may be an accident: a condition that two ways of rounding
    // decide in two ways.
    const std::size_t allowed =
        case_.program.has_float_arithmetic() ? std::max<std::size_t>(1, elements_.size() / 50) : 0;
    return wrong > allowed ? fmt::format("{} ({} of {} that were compared)", first, wrong, elements_.size()) : "";
  }

  // Do several invocations store different numbers in what is wrong? Then each of them is right, and the shader is not.
  // false, too: it takes too long to say.
  bool is_contested() {
    const auto& d = *case_.dispatch;
    const Word size = case_.program.group_size(), together = std::max<Word>(case_.program.together(), 1);
    std::map<std::pair<Word, std::uint64_t>, Word> stored;
    std::uint64_t left = steps_of_contest;
    for (std::uint64_t group = 0; group < std::uint64_t{d.groups[0]} * d.groups[1] * d.groups[2]; ++group)
      for (Word local = 0; local < size; local += together) {
        spirv::ShaderProgram::Run run = at(group, local);
        run.most_steps = left;
        std::uint64_t used = 0;
        const auto writes = case_.program.run(call_, run, &used);
        left -= std::min(left, used);
        if (!writes || left == 0) return false;
        undo(call_, *writes);
        std::map<std::pair<Word, std::uint64_t>, Word> own;  // what stays of a unit that stores twice
        for (const ShaderWrite& w : *writes)
          if (wrong_.contains({w.binding, w.index})) own[{w.binding, w.index}] = w.after;
        for (const auto& [place, bits] : own)
          if (const auto [found, is_first] = stored.try_emplace(place, bits); !is_first && found->second != bits)
            return true;
      }
    return false;
  }

 private:
  spirv::ShaderProgram::Run at(std::uint64_t group, Word local) const {
    const auto& d = *case_.dispatch;
    spirv::ShaderProgram::Run run;
    run.group = {static_cast<Word>(group % d.groups[0]), static_cast<Word>(group / d.groups[0] % d.groups[1]),
                 static_cast<Word>(group / d.groups[0] / d.groups[1])};
    run.local = local;
    return run;
  }

  // Steps that it took, about.
  std::uint64_t invocation(std::uint64_t which, std::atomic<std::int64_t>& left_of_all) {
    const Word size = case_.program.group_size();
    spirv::ShaderProgram::Run run = at(which / size, static_cast<Word>(which % size));
    std::minstd_rand noise(static_cast<Word>(which));
    std::map<std::pair<Word, std::uint64_t>, Element> given;
    const int runs = case_.program.has_float_arithmetic() ? 1 + noisy_runs : 1;
    std::uint64_t steps = 0;
    for (int n = 0; n < runs; ++n) {
      run.noise = n == 0 ? nullptr : &noise;
      run.most_steps = std::min<std::uint64_t>(steps_of_invocation, std::max<std::int64_t>(left_of_all, 0));
      std::uint64_t now = 0;
      const auto writes = case_.program.run(call_, run, &now);
      steps += now;
      left_of_all -= static_cast<std::int64_t>(now);
      too_long_ |= !writes && now >= run.most_steps;
      if (!writes) return std::max<std::uint64_t>(steps, too_long_ ? steps_of_module : 0);
      for (const ShaderWrite& w : *writes) {
        Element& e = given[{w.binding, w.index}];
        e.binding = w.binding, e.index = w.index, e.bytes = w.element_bytes;
        e.bits.resize(static_cast<std::size_t>(n) + 1, w.after);
        e.bits.back() = w.after;
      }
      undo(call_, *writes);
    }
    for (auto& [place, e] : given)
      if (e.bits.size() == static_cast<std::size_t>(runs)) elements_.push_back(std::move(e));
    return steps;
  }

  bool is_real(const Element& e) const { return case_.program.bindings()[e.binding].real; }
  static double spread(const Element& e) {
    double low = real_of(e.bits[0]), high = low;
    for (Word b : e.bits) low = std::min<double>(low, real_of(b)), high = std::max<double>(high, real_of(b));
    return high - low;
  }
  // Three samples of how far rounding goes are few: the other elements' count as well.
  bool near(const Element& e, Word found, double usual) const {
    const double want = real_of(e.bits[0]), got = real_of(found);
    if (found == e.bits[0] || !std::isfinite(want) || !std::isfinite(spread(e))) return true;
    const double tiny = 1.2e-38;  // devices may take what is below as zero
    const double most = case_.program.has_float_arithmetic() ? 8 * (spread(e) + usual) + 1e-6 * std::abs(want) : 0;
    return std::abs(got - want) <= most + tiny;
  }
  bool same(const Element& e, Word found) const {
    if (found == e.bits[0]) return true;
    if (!case_.program.has_float_arithmetic()) return false;
    const auto code = [&](Word bits) {
      return e.bytes == 1   ? static_cast<std::int64_t>(static_cast<std::int8_t>(bits))
             : e.bytes == 2 ? static_cast<std::int64_t>(static_cast<std::int16_t>(bits))
                            : static_cast<std::int64_t>(static_cast<std::int32_t>(bits));
    };
    const Word sign = e.bytes == 1 ? 0x80 : 0x8000;
    if (e.bytes < 4 && ((found | e.bits[0]) & ~sign) == 0) return true;  // zeros of both signs
    if (e.bytes < 4 && may_be_special(e.bits[0], e.bytes)) return true;
    std::int64_t low = code(e.bits[0]), high = low;
    for (Word b : e.bits) low = std::min(low, code(b)), high = std::max(high, code(b));
    const std::int64_t room = 2 * (high - low) + 1;
    return code(found) >= low - room && code(found) <= high + room;
  }

  const Case& case_;
  std::vector<std::byte> memory_;
  spirv::ShaderCall call_;
  std::vector<Element> elements_;
  std::set<std::pair<Word, std::uint64_t>> wrong_;  // binding and index
  bool too_long_ = false;
};

// ---- on the device

class Test {
 public:
  Test(const std::shared_ptr<Device>& device, const vulkan_program::Program& program, const Pipelines& pipelines,
       const Constants& constants)
      : device_(device), program_(program), pipelines_(pipelines), constants_(constants) {}

  // In one submission; what the cases gave lies in results() then.
  Status run(std::span<Case> cases) {
    std::uint64_t size = 0;
    for (Case& c : cases) {
      c.scratch = size;
      size += (c.memory.size() + vulkan_program::alignment - 1) / vulkan_program::alignment * vulkan_program::alignment;
    }
    TOSAIC_TRY(const auto scratch, DeviceBuffer::make(device_, with_room_for_views(size), Placement::device));
    TOSAIC_TRY(host_, DeviceBuffer::make(device_, size, Placement::readback));
    for (const Case& c : cases) std::memcpy(host_->mapped() + c.scratch, c.memory.data(), c.memory.size());
    std::vector<Bindings> bindings;
    for (const Case& c : cases) {
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
  Status compare(std::span<Case> cases, std::atomic<std::int64_t>& left) const {
    std::vector<std::string> wrong(cases.size());
    std::vector<char> contested(cases.size(), 0);
    const Bytes constants = program_.constants.joined();  // comparisons look into it
    ThreadPool::shared().run(static_cast<std::int64_t>(cases.size()), [&](std::int64_t number, int) {
      const auto i = static_cast<std::size_t>(number);
      Comparison comparison(cases[i], constants);
      comparison.compute(left);
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
  const vulkan_program::Program& program_;
  const Pipelines& pipelines_;
  const Constants& constants_;
  std::unique_ptr<DeviceBuffer> host_;
};

// One dispatch for each module that is new here and that can be computed here.
std::vector<Case> cases_of(const vulkan_program::Tier& tier, const std::set<std::uint64_t>& checked) {
  std::map<std::uint32_t, const Dispatch*> smallest;
  for (const Dispatch& d : tier.dispatches) {
    const Dispatch*& best = smallest[d.module];
    if (!best || bytes_of(d) < bytes_of(*best)) best = &d;
  }
  std::vector<Case> cases;
  for (const auto& [module, dispatch] : smallest) {
    const Bytes& code = tier.modules[module];
    const std::uint64_t hash = hash_of(code);
    if (checked.contains(hash)) continue;
    auto program = spirv::ShaderProgram::decode(code.as<Word>());
    if (!program) continue;
    cases.push_back({dispatch, hash, *std::move(program), {}, {}, 0, false});
  }
  return cases;
}

Diagnostic naming(Diagnostic why, std::span<const Case> cases) {
  std::string kernels;
  for (const Case& c : cases.first(std::min<std::size_t>(cases.size(), 8)))
    kernels += fmt::format("{}{} ('{}')", kernels.empty() ? "" : ", ", c.dispatch->kernel, c.dispatch->value);
  why.notes.push_back(
      fmt::format("it was checking its shaders of {}{}", kernels, cases.size() > 8 ? " and others" : ""));
  return why;
}

}  // namespace

Status self_test(const std::shared_ptr<Device>& device, const vulkan_program::Program& program,
                 const vulkan_program::Tier& tier, const Pipelines& pipelines, const Constants& constants,
                 const std::function<void(const std::string&)>& told) {
  const When asked = when();
  if (asked == When::never) return {};
  const std::string file = device->cache_file(".checked");
  if (device->checked.empty()) device->checked = read_checked(file);
  std::vector<Case> cases = cases_of(tier, asked == When::once ? device->checked : std::set<std::uint64_t>());
  std::atomic<std::int64_t> left = static_cast<std::int64_t>(most_self_test_steps);
  for (std::size_t begin = 0, end = 0; begin < cases.size(); begin = end) {
    for (std::uint64_t bytes = 0; end < cases.size() && (end == begin || bytes < most_batch_bytes); ++end) {
      place(cases[end]);
      bytes += cases[end].memory.size();
    }
    const std::span<Case> batch(cases.data() + begin, end - begin);
    Test test(device, program, pipelines, constants);
    if (Status ran = test.run(batch); !ran.ok()) return naming(std::move(ran).error(), batch);
    TOSAIC_CHECK(test.compare(batch, left));
    for (Case& c : batch) {
      c.memory = {};
      if (!c.unchecked) device->checked.insert(c.hash);
    }
  }
  if (const auto count = std::ranges::count_if(cases, &Case::unchecked); count > 0 && told)
    told(fmt::format("{} of {} shaders were not checked: computing them on the CPU takes too long", count,
                     cases.size()));
  if (!cases.empty()) {
    device->checked.merge(read_checked(file));  // what other processes have added
    write_checked(file, device->checked);
  }
  return {};
}

}  // namespace tosaic::vulkan
