// SPDX-License-Identifier: Apache-2.0
#include "plan/arena.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace tosaic::plan {
namespace {

std::uint64_t aligned(std::uint64_t bytes, std::uint64_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

// Bytes of the arena, [begin, end).
struct Span {
  std::uint64_t begin, end;
};

// A set of bytes, as spans that neither overlap nor touch, ascending.
class Taken {
 public:
  // False when they were taken already.
  bool add(Span span) {
    auto first = std::lower_bound(spans_.begin(), spans_.end(), span.begin,
                                  [](const Span& s, std::uint64_t begin) { return s.end < begin; });
    if (first != spans_.end() && first->begin <= span.begin && span.end <= first->end) return false;
    auto last = first;
    for (; last != spans_.end() && last->begin <= span.end; ++last) {
      span.begin = std::min(span.begin, last->begin);
      span.end = std::max(span.end, last->end);
    }
    if (first == last) {
      spans_.insert(first, span);
    } else {
      *first = span;
      spans_.erase(first + 1, last);
    }
    return true;
  }
  // The first span that does not end before `offset`, counted from `from`; null: none.
  const Span* after(std::uint64_t offset, const Span* from = nullptr) const {
    const Span* end = spans_.data() + spans_.size();
    const Span* span = std::upper_bound(from ? from : spans_.data(), end, offset,
                                        [](std::uint64_t o, const Span& s) { return o < s.end; });
    return span == end ? nullptr : span;
  }

 private:
  std::vector<Span> spans_;
};

// For every step, an offset below which everything is taken: a segment tree over time.
class Ground {
 public:
  explicit Ground(std::size_t leaves) : leaves_(leaves), low_(2 * leaves, 0), high_(2 * leaves, 0) {}

  std::uint64_t highest(const Buffer& buffer) {
    return highest(1, 0, leaves_, buffer.first, buffer.last + std::size_t{1});
  }
  // The ground of the steps of `buffer` is nowhere above span.begin; where it is there, it is now span.end.
  void raise(const Buffer& buffer, Span span) {
    raise(1, 0, leaves_, buffer.first, buffer.last + std::size_t{1}, span);
  }

 private:
  // A node whose steps are level says so alone; below it the numbers are old.
  void split(std::size_t node) {
    if (low_[node] != high_[node]) return;
    for (const std::size_t child : {2 * node, 2 * node + 1}) low_[child] = high_[child] = low_[node];
  }
  std::uint64_t highest(std::size_t node, std::size_t begin, std::size_t end, std::size_t first, std::size_t last) {
    if (last <= begin || end <= first) return 0;
    if ((first <= begin && end <= last) || low_[node] == high_[node]) return high_[node];
    const std::size_t middle = (begin + end) / 2;
    return std::max(highest(2 * node, begin, middle, first, last), highest(2 * node + 1, middle, end, first, last));
  }
  void raise(std::size_t node, std::size_t begin, std::size_t end, std::size_t first, std::size_t last, Span span) {
    if (last <= begin || end <= first || high_[node] < span.begin) return;
    if (first <= begin && end <= last && low_[node] == high_[node]) {
      low_[node] = high_[node] = span.end;
      return;
    }
    split(node);
    const std::size_t middle = (begin + end) / 2;
    raise(2 * node, begin, middle, first, last, span);
    raise(2 * node + 1, middle, end, first, last, span);
    low_[node] = std::min(low_[2 * node], low_[2 * node + 1]);
    high_[node] = std::max(high_[2 * node], high_[2 * node + 1]);
  }

  std::size_t leaves_;
  std::vector<std::uint64_t> low_, high_;  // by node; the children of n are 2n and 2n + 1
};

std::size_t power_of_two(std::size_t least) {
  std::size_t n = 1;
  while (n < least) n *= 2;
  return n;
}

// A segment tree over time. A lifetime is cut into O(log n) of its nodes; `whole` of a node are the bytes of the
// buffers that were cut to it, `any` those of all that live at some step of its time.
class Timeline {
 public:
  explicit Timeline(std::size_t steps)
      : leaves_(power_of_two(steps)), ground_(leaves_), whole_(2 * leaves_), any_(2 * leaves_) {}

  // Bytes that a buffer must avoid are those of the nodes it is cut to, and what lies whole over these nodes: over its
  // first step or its last. The spans of all these sets are gone through in ascending order, from the highest ground to
  // the first gap.
  std::uint64_t lowest(const Buffer& buffer, std::uint64_t bytes) {
    heads_.clear();
    std::uint64_t offset = ground_.highest(buffer);
    const auto look = [&](const Taken& taken) {
      if (const Span* span = taken.after(offset)) heads_.push_back({span, &taken});
    };
    for_nodes(buffer, [&](std::size_t node) { look(any_[node]); });
    for (const std::size_t leaf : {leaves_ + buffer.first, leaves_ + buffer.last})
      for (std::size_t node = leaf; node > 0; node /= 2) look(whole_[node]);
    const auto later = [](const Head& a, const Head& b) { return a.span->begin > b.span->begin; };
    std::make_heap(heads_.begin(), heads_.end(), later);
    while (!heads_.empty() && heads_.front().span->begin < offset + bytes) {
      std::pop_heap(heads_.begin(), heads_.end(), later);
      Head& head = heads_.back();
      offset = std::max(offset, head.span->end);
      head.span = head.taken->after(offset, head.span);
      if (head.span)
        std::push_heap(heads_.begin(), heads_.end(), later);
      else
        heads_.pop_back();
    }
    return offset;
  }

  void take(const Buffer& buffer, Span span) {
    ground_.raise(buffer, span);
    for_nodes(buffer, [&](std::size_t node) {
      whole_[node].add(span);
      for (; node > 0 && any_[node].add(span); node /= 2) {}  // taken here, taken in all that this is part of
    });
  }

 private:
  template <class F>
  void for_nodes(const Buffer& buffer, const F& f) {
    std::size_t low = leaves_ + buffer.first, high = leaves_ + buffer.last + 1;
    for (; low < high; low /= 2, high /= 2) {
      if (low % 2) f(low++);
      if (high % 2) f(--high);
    }
  }

  std::size_t leaves_;
  Ground ground_;
  std::vector<Taken> whole_, any_;  // by node; the children of n are 2n and 2n + 1
  struct Head {
    const Span* span;  // the next one of
    const Taken* taken;
  };
  std::vector<Head> heads_;
};

// Each at the lowest offset that is free as long as it lives. Returns the end of the highest.
std::uint64_t place_in_order(std::vector<Buffer>& buffers, const std::vector<std::size_t>& order, std::size_t steps,
                             std::uint64_t alignment) {
  Timeline timeline(steps);
  std::uint64_t end = 0;
  for (std::size_t i : order) {
    Buffer& buffer = buffers[i];
    buffer.offset = 0;
    const std::uint64_t bytes = aligned(buffer.bytes, alignment);
    if (bytes == 0) continue;
    buffer.offset = timeline.lowest(buffer, bytes);
    timeline.take(buffer, {buffer.offset, buffer.offset + bytes});
    end = std::max(end, buffer.offset + bytes);
  }
  return end;
}

}  // namespace

Peak peak_of(const std::vector<Buffer>& buffers, std::uint64_t alignment) {
  std::vector<std::uint64_t> change;  // of the sum, from the step before; it may wrap, the sums do not
  for (const Buffer& buffer : buffers) {
    change.resize(std::max(change.size(), buffer.last + std::size_t{2}));
    change[buffer.first] += aligned(buffer.bytes, alignment);
    change[buffer.last + std::size_t{1}] -= aligned(buffer.bytes, alignment);
  }
  Peak peak;
  std::uint64_t sum = 0;
  for (std::uint32_t step = 0; step < change.size(); ++step)
    if ((sum += change[step]) > peak.bytes) peak = {step, sum};
  return peak;
}

std::uint64_t place(std::vector<Buffer>& buffers, std::uint64_t alignment) {
  std::size_t steps = 0;
  for (const Buffer& buffer : buffers) steps = std::max(steps, buffer.last + std::size_t{1});
  std::vector<std::size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater{}, [&](std::size_t i) { return buffers[i].bytes; });
  const std::uint64_t end = place_in_order(buffers, order, steps, alignment);
  const Peak peak = peak_of(buffers, alignment);
  if (end == peak.bytes) return end;
  // In a chain each tensor meets the one before and the one behind it. From the peak outwards, one of them is placed.
  std::vector<Buffer> outwards = buffers;
  std::ranges::stable_sort(order, {}, [&](std::size_t i) {
    const Buffer& b = buffers[i];
    return b.first > peak.step ? b.first - peak.step : b.last < peak.step ? peak.step - b.last : 0;
  });
  const std::uint64_t other = place_in_order(outwards, order, steps, alignment);
  if (other >= end) return end;
  buffers = std::move(outwards);
  return other;
}

}  // namespace tosaic::plan
