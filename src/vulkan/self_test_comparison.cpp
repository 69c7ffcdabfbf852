// SPDX-License-Identifier: Apache-2.0
#include "vulkan/self_test_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>

namespace tosaic::vulkan {
namespace {

using spirv::ShaderWrite;
using spirv::Word;

// Of an invocation: with those of its group that it waits for.
constexpr std::uint64_t steps_of_module = 100000, steps_of_invocation = 50000000;
constexpr std::size_t most_invocations = 32;
// To say whose fault a wrong element is: seconds, once.
constexpr std::uint64_t steps_of_contest = 200000000;
constexpr std::size_t noisy_runs = 3;

float real_of(Word bits) { return std::bit_cast<float>(bits); }
// A narrow float that is no number, or none that all devices write alike.
bool may_be_special(Word bits, Word bytes) {
  return bytes == 2 ? (bits & 0x7c00) == 0x7c00 || (bits & 0x7f80) == 0x7f80 : (bits & 0x7c) == 0x7c;
}

}  // namespace

SelfTestComparison::SelfTestComparison(const SelfTestCase& of, const Bytes& constants)
    : case_(of), constants_(constants), computed_(of.program.has_float_arithmetic() ? 1 + noisy_runs : 1) {}

void SelfTestComparison::compute(std::size_t number, std::atomic<std::int64_t>& left_of_all) {
  std::vector<std::byte> memory = case_.memory;
  const spirv::ShaderCall call = case_.call(memory, constants_);
  const auto& d = *case_.dispatch;
  const Word size = case_.program.group_size();
  const std::uint64_t all = std::uint64_t{d.groups[0]} * d.groups[1] * d.groups[2] * size;
  Computed& made = computed_[number];
  std::mt19937 random(2);
  std::uint64_t left = steps_of_module / runs();
  while (made.stores.size() < most_invocations && left > 0 && !made.too_long) {
    const std::uint64_t which = made.stores.empty() ? 0 : (std::uint64_t{random()} << 32 | random()) % all;
    spirv::ShaderProgram::Run run = at(which / size, static_cast<Word>(which % size));
    std::minstd_rand noise(static_cast<Word>(which * runs() + number));
    run.noise = number == 0 ? nullptr : &noise;
    run.most_steps = std::min<std::uint64_t>(steps_of_invocation, std::max<std::int64_t>(left_of_all, 0));
    std::uint64_t steps = 0;
    auto stores = case_.program.run(call, run, &steps);
    left_of_all -= static_cast<std::int64_t>(steps);
    left -= std::min(left, steps);
    made.too_long = !stores && steps >= run.most_steps;
    if (stores) undo(call, *stores);
    made.stores.push_back(std::move(stores));
  }
}

void SelfTestComparison::join() {
  std::size_t invocations = most_invocations;
  for (const Computed& c : computed_) invocations = std::min(invocations, c.stores.size());
  for (std::size_t i = 0; i < invocations; ++i) join(i);
}

// What all runs of the invocation have stored.
void SelfTestComparison::join(std::size_t invocation) {
  std::map<std::pair<Word, std::uint64_t>, Element> given;
  for (std::size_t n = 0; n < runs(); ++n) {
    const auto& stores = computed_[n].stores[invocation];
    if (!stores) return;
    for (const ShaderWrite& w : *stores) {
      Element& e = given[{w.binding, w.index}];
      e.binding = w.binding, e.index = w.index, e.bytes = w.element_bytes;
      e.bits.resize(n + 1, w.after);
      e.bits.back() = w.after;
    }
  }
  for (auto& [place, e] : given)
    if (e.bits.size() == runs()) elements_.push_back(std::move(e));
}

bool SelfTestComparison::is_too_long() const {
  return elements_.empty() && std::ranges::any_of(computed_, &Computed::too_long);
}

std::string SelfTestComparison::judge(std::span<const std::byte> device) {
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

bool SelfTestComparison::is_contested() const {
  std::vector<std::byte> memory = case_.memory;
  const spirv::ShaderCall call = case_.call(memory, constants_);
  const auto& d = *case_.dispatch;
  const Word size = case_.program.group_size(), together = std::max<Word>(case_.program.together(), 1);
  std::map<std::pair<Word, std::uint64_t>, Word> stored;
  std::uint64_t left = steps_of_contest;
  for (std::uint64_t group = 0; group < std::uint64_t{d.groups[0]} * d.groups[1] * d.groups[2]; ++group)
    for (Word local = 0; local < size; local += together) {
      spirv::ShaderProgram::Run run = at(group, local);
      run.most_steps = left;
      std::uint64_t used = 0;
      const auto writes = case_.program.run(call, run, &used);
      left -= std::min(left, used);
      if (!writes || left == 0) return false;
      undo(call, *writes);
      std::map<std::pair<Word, std::uint64_t>, Word> own;  // what stays of a unit that stores twice
      for (const ShaderWrite& w : *writes)
        if (wrong_.contains({w.binding, w.index})) own[{w.binding, w.index}] = w.after;
      for (const auto& [place, bits] : own)
        if (const auto [found, is_first] = stored.try_emplace(place, bits); !is_first && found->second != bits)
          return true;
    }
  return false;
}

spirv::ShaderProgram::Run SelfTestComparison::at(std::uint64_t group, Word local) const {
  const auto& d = *case_.dispatch;
  spirv::ShaderProgram::Run run;
  run.group = {static_cast<Word>(group % d.groups[0]), static_cast<Word>(group / d.groups[0] % d.groups[1]),
               static_cast<Word>(group / d.groups[0] / d.groups[1])};
  run.local = local;
  return run;
}

double SelfTestComparison::spread(const Element& e) {
  double low = real_of(e.bits[0]), high = low;
  for (Word b : e.bits) low = std::min<double>(low, real_of(b)), high = std::max<double>(high, real_of(b));
  return high - low;
}

// Three samples of how far rounding goes are few: the other elements' count as well.
bool SelfTestComparison::near(const Element& e, Word found, double usual) const {
  const double want = real_of(e.bits[0]), got = real_of(found);
  if (found == e.bits[0] || !std::isfinite(want) || !std::isfinite(spread(e))) return true;
  const double tiny = 1.2e-38;  // devices may take what is below as zero
  const double most = case_.program.has_float_arithmetic() ? 8 * (spread(e) + usual) + 1e-6 * std::abs(want) : 0;
  return std::abs(got - want) <= most + tiny;
}
bool SelfTestComparison::same(const Element& e, Word found) const {
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

}  // namespace tosaic::vulkan
