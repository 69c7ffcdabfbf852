// SPDX-License-Identifier: Apache-2.0
#include "shaders/group_fold.h"

#include <algorithm>
#include <bit>

namespace tosaic::shaders {
namespace {

constexpr std::int64_t shortest = 16, most_parts = 128;
// Of lines whose elements lie apart, next to each other: fewer where lines are so long that reading them after each
// other takes longer than reading parts of what comes at once.
constexpr std::int64_t neighbours = 16, long_line = 256, neighbours_of_long = 4;
constexpr std::uint32_t at_once = 8;  // elements that an invocation reads before it folds them

// How many invocations go along a line, and how many lines a group has. Lines whose elements lie apart stand
// next to each other, so that neighbouring invocations read neighbours.
struct Division {
  bool dense;
  std::uint32_t size, parts, lines;  // size: of a group
  explicit Division(const Lines& l) : dense(l.inner == Dim(1)) {
    const bool is_long = least(l.size) > long_line;
    size = is_long && !dense ? 256 : 128;
    const std::int64_t apart = size / (is_long ? neighbours_of_long : neighbours),
                       most = std::min({least(l.size), most_parts, dense ? most_parts : apart});
    parts = std::bit_floor(static_cast<std::uint32_t>(most));
    lines = size / parts;
  }
};

}  // namespace

bool GroupFold::takes(const Lines& lines, DType type) {
  return least(lines.size) >= shortest && type != DType::boolean && storage_size(type) <= 4;
}

Groups GroupFold::groups_of(const Lines& lines) {
  const Division by(lines);
  return {ceil_div(lines.count(), std::int64_t{by.lines}), by.size};
}

GroupFold::GroupFold(Kernel& s, const Lines& lines, const Load& load, const Fold& fold) : s_(s) {
  const Division by(lines);
  const Value local = s.local(), parts = s.integer(by.parts);
  line_ = s.group() * by.lines + (by.dense ? local / parts : local % s.integer(by.lines));
  part_ = by.dense ? local % parts : local / s.integer(by.lines);
  exists_ = line_ < s.param(lines.count());
  const Value size = s.param(lines.size), line = s.select(exists_, line_, s.integer(0));
  Value inner = s.integer(1), begin = line * size;
  if (!by.dense) {
    inner = s.param(lines.inner);
    begin = line / inner * size * inner + line % inner;
  }
  // There is an element for every invocation: what an empty fold would begin with changes nothing of it.
  const Variable sum = s.variable(load(begin + part_ * inner));
  if (least(lines.size) <= long_line) {
    s.loop(part_ + by.parts, size, parts, [&](Value i) { sum.set(fold(sum.get(), load(begin + i * inner))); });
  } else {
    s.loop(part_ + by.parts, size, parts * std::int64_t{at_once}, [&](Value first) {
      Value inside[at_once], elements[at_once];
      for (std::uint32_t n = 0; n < at_once; ++n) {
        const Value i = first + std::int64_t{n * by.parts};
        inside[n] = i < size;
        elements[n] = load(begin + s.select(inside[n], i, first) * inner);
      }
      for (std::uint32_t n = 0; n < at_once; ++n) {
        const Value before = sum.get(), now = fold(before, elements[n]);
        sum.set(n ? s.select(inside[n], now, before) : now);
      }
    });
  }
  const Shared memory = s.shared(sum.get().kind, by.size / 4);
  const auto four = [&](Value at) { return at / s.integer(4); };
  const auto part = [&](Value at) { return at % s.integer(4); };
  s.store(memory, four(local), part(local), sum.get());
  for (std::uint32_t half = by.parts / 2; half > 0; half /= 2) {
    s.barrier();
    s.when(part_ < half, [&] {
      const Value other = (local + half * (by.dense ? 1 : by.lines)) % s.integer(by.size);
      sum.set(fold(sum.get(), s.load(memory, four(other), part(other))));
      s.store(memory, four(local), part(local), sum.get());
    });
  }
  folded_ = sum.get();
}

void GroupFold::for_lines(const std::function<void(Value line, Value folded)>& body) {
  s_.when((part_ == 0) & exists_, [&] { body(line_, folded_); });
}

}  // namespace tosaic::shaders
