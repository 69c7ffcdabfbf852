// SPDX-License-Identifier: Apache-2.0
// Invocations that need each other run together, from barrier to barrier.
#include "formats/spirv/compute/run_shader.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "formats/spirv/compute/check_shader.h"
#include "formats/spirv/compute/shader_invocation.h"

namespace tosaic::spirv {
namespace {

constexpr Word usual_subgroup_size = 8;
constexpr std::size_t most_matrix_elements = std::size_t{matrix_side} * matrix_depth(true);
// Of shared memory before anything is written there: no number that a device would have by accident.
constexpr Word unwritten = 0x5ca1ab1e;

using State = ShaderInvocation::State;

// Each gets what the one of its subgroup that it asks gives: that one must be there, at the same shuffle.
bool shuffled(std::vector<ShaderInvocation>& lanes, const std::vector<State>& states, Word subgroup_size) {
  std::vector<Word> got(lanes.size());
  for (std::size_t i = 0; i < lanes.size(); ++i) {
    if (states[i] != State::shuffles) continue;
    const Word asked = lanes[i].wanted();
    const std::size_t from = i / subgroup_size * subgroup_size + asked;
    if (asked >= subgroup_size || from >= lanes.size() || states[from] != State::shuffles ||
        lanes[from].place() != lanes[i].place())
      return false;
    got[i] = lanes[from].given();
  }
  for (std::size_t i = 0; i < lanes.size(); ++i)
    if (states[i] == State::shuffles) lanes[i].take(got[i]);
  return true;
}

// All of a subgroup come to the same product.
bool multiplied(std::vector<ShaderInvocation>& lanes, const std::vector<State>& states) {
  for (std::size_t begin = 0; begin < lanes.size(); begin += matrix_sharers) {
    const auto here = [&](std::size_t i) {
      return states[i] == State::multiplies && lanes[i].place() == lanes[begin].place();
    };
    if (states[begin] != State::multiplies) continue;
    const bool integers = lanes[begin].of_integers();
    const Word depth = matrix_depth(integers), factor_shares = matrix_size(MatrixUse::left, integers).shares(),
               shares = matrix_size(MatrixUse::sum, integers).shares();
    double left[most_matrix_elements], right[most_matrix_elements];
    for (std::size_t i = 0; i < matrix_sharers; ++i) {
      if (!here(begin + i)) return false;
      for (Word n = 0; n < factor_shares; ++n) {
        left[i * factor_shares + n] = lanes[begin + i].left(n);
        right[i * factor_shares + n] = lanes[begin + i].right(n);
      }
    }
    for (std::size_t e = 0; e < matrix_side * matrix_side; ++e) {
      ShaderInvocation& lane = lanes[begin + e / shares];
      const auto n = static_cast<Word>(e % shares);
      double sum = lane.sum(n), size = std::fabs(sum);
      for (std::size_t k = 0; k < depth; ++k) {
        const double product = left[e / matrix_side * depth + k] * right[k * matrix_side + e % matrix_side];
        sum += product, size += std::fabs(product);
      }
      lane.take_sum(n, sum, size);
    }
  }
  return true;
}

// From barrier to barrier: all come to the same one.
bool run_together(std::vector<ShaderInvocation>& lanes, Word subgroup_size) {
  std::vector<State> states(lanes.size(), State::waits);
  for (State next = State::waits;;) {
    for (std::size_t i = 0; i < lanes.size(); ++i)
      if (states[i] == next) states[i] = lanes[i].advance();
    if (std::ranges::count(states, State::undefined)) return false;
    if (std::ranges::count(states, State::shuffles)) {
      if (!shuffled(lanes, states, subgroup_size)) return false;
      next = State::shuffles;
      continue;
    }
    if (std::ranges::count(states, State::multiplies)) {
      if (!multiplied(lanes, states)) return false;
      next = State::multiplies;
      continue;
    }
    if (!std::ranges::count(states, State::waits)) return true;
    for (std::size_t i = 0; i < lanes.size(); ++i)
      if (states[i] != State::waits || lanes[i].place() != lanes[0].place()) return false;
    next = State::waits;
  }
}

}  // namespace

Word ShaderProgram::together() const { return waits_ ? group_size_ : shuffles_ ? usual_subgroup_size : 1; }
std::optional<std::vector<ShaderWrite>> ShaderProgram::run(const ShaderCall& call, const Run& run,
                                                           std::uint64_t* steps) const {
  std::vector<ShaderInvocation> lanes;
  const Word count = together();
  if (group_size_ % count != 0 || (multiplies_ && count % matrix_sharers != 0)) return std::nullopt;
  std::vector<Run> runs(count, run);
  std::vector<Word> shared(shared_words_, unwritten);
  std::uint64_t left = run.most_steps;
  lanes.reserve(count);
  for (Word i = 0; i < count; ++i) {
    runs[i].local = run.local / count * count + i;
    lanes.emplace_back(*this, call, runs[i], shared, left);
  }
  const bool defined = run_together(lanes, multiplies_ ? matrix_sharers : usual_subgroup_size);
  std::vector<ShaderWrite> writes;
  for (ShaderInvocation& lane : lanes) {
    if (steps) *steps += lane.done();
    writes.insert(writes.end(), lane.writes().begin(), lane.writes().end());
  }
  if (defined) return writes;
  undo(call, writes);
  return std::nullopt;
}

void undo(const ShaderCall& call, std::span<const ShaderWrite> writes) {
  for (auto w = writes.rbegin(); w != writes.rend(); ++w)
    std::memcpy(call.bindings[w->binding].data() + w->index * w->element_bytes, &w->before, w->element_bytes);
}

}  // namespace tosaic::spirv
