// SPDX-License-Identifier: Apache-2.0
// At which of its sizes a program is looked at, to find what it is at all of them (over_sizes.h).
#include <fmt/format.h>

#include <algorithm>
#include <random>

#include "ir/dim_parts.h"
#include "lower/over_sizes.h"

namespace tosaic {
namespace {

constexpr std::int64_t few = 3;             // sizes of a symbol: all of them are looked at
constexpr std::int64_t most_walked = 4096;  // sizes of a symbol among which bends are looked for
constexpr std::size_t most_bends = 16;      // of a program

// Differences whose sign decides something: of what min and max choose between, and of compared sizes.
class Differences {
 public:
  explicit Differences(const Graph& program) { of(program); }
  const std::vector<Dim>& list() const { return list_; }

 private:
  void of(const Graph& graph) {
    for (const Value& value : graph.values) {
      for (const Dim& dim : value.type.shape.dims()) parts_of(dim);
      if (value.size) parts_of(*value.size);
    }
    for (const Guard& guard : graph.guards) parts_of(guard.violation);
    for (const Node& node : graph.nodes) {
      std::vector<Dim> numbers;
      for (const auto& named : node.attrs) {
        if (const auto* n = std::get_if<std::int64_t>(&named.second)) numbers.push_back(Dim(*n));
        const auto* symbolic = std::get_if<SymbolicArgument>(&named.second);
        if (symbolic && symbolic->size) numbers.push_back(*symbolic->size);
      }
      for (const Dim& number : numbers) parts_of(number);
      // Python's operators and torch.sym_*; that of what adds does not matter costs a look more.
      if (numbers.size() == 2 && !node.op.is_aten()) add(numbers[0] - numbers[1]);
      for (const Graph& body : node.regions) of(body);
    }
  }
  void parts_of(const Dim& dim) {
    for (const auto& [a, b] : chosen_between(dim)) add(a - b);
  }
  void add(const Dim& difference) {
    if (!difference.is_number() && std::ranges::find(list_, difference) == list_.end()) list_.push_back(difference);
  }
  std::vector<Dim> list_;
};

class Looking {
 public:
  Looking(std::span<const Symbol> symbols, const Graph& program) : symbols_(symbols), program_(program) {
    for (const Symbol& s : symbols) {
      const std::int64_t highest = *s.range.highest;
      // At 1 a dim may be left out where it would be kept.
      const std::int64_t lowest =
          highest - *s.range.lowest < few ? *s.range.lowest : std::max<std::int64_t>(*s.range.lowest, 2);
      ranges_.emplace_back(lowest, highest);
      bounds_.emplace(s.name, highest);
      lowest_.emplace(s.name, lowest);
    }
  }

  Result<std::vector<Sizes>> run() {
    if (auto held = open_guards(program_.guards, bounds_); !held.ok()) {
      held.error().code = "lower.sizes";
      held.error().help =
          "give the sizes upper bounds that hold it (torch.export.Dim(..., max=)), or choose them: "
          "--sizes NAME=SIZE";
      return std::move(held.error());
    }
    chosen_.push_back(bounds_);
    add(lowest_);
    for (const Symbol& s : symbols_) {
      Sizes one = bounds_;
      one[s.name] = lowest_[s.name];
      add(one);
      one[s.name] =
          std::min(lowest_[s.name] + 1, *s.range.highest);  // of n // 2 and (n + 1) // 2 one is another number
      add(one);
    }
    add_bends();
    add_others();
    return std::move(chosen_);
  }

 private:
  bool add(const Sizes& sizes) {
    if (std::ranges::find(chosen_, sizes) != chosen_.end() || !open_guards(program_.guards, sizes).ok()) return false;
    chosen_.push_back(sizes);
    return true;
  }

  // Along each symbol, the others at their bounds and at their lowest.
  void add_bends() {
    const std::vector<Dim> differences = Differences(program_).list();
    std::size_t added = 0;
    for (std::size_t i = 0; i < symbols_.size(); ++i)
      for (const Sizes& others : {bounds_, lowest_})
        for (const Dim& difference : differences) {
          Sizes sizes = others;
          const auto sign = [&](std::int64_t size) {
            sizes[symbols_[i].name] = size;
            const Dim d = at(difference, sizes);
            return !d.is_number() || d.value() == 0 ? 0 : d.value() < 0 ? -1 : 1;
          };
          const auto [lowest, highest] = ranges_[i];
          const std::int64_t last = std::min(highest, lowest + most_walked);
          for (std::int64_t size = lowest; size < last && added < most_bends; ++size) {
            if (sign(size) == sign(size + 1)) continue;
            for (const std::int64_t near : {size, size + 1}) {
              sizes[symbols_[i].name] = near;
              added += add(sizes);
            }
          }
        }
  }

  void add_others() {
    const std::size_t wanted = 4 + 4 * symbols_.size();
    std::uint64_t all = 1;
    for (const auto& [lowest, highest] : ranges_)
      all = std::min<std::uint64_t>(all * static_cast<std::uint64_t>(highest - lowest + 1), 1 << 20);
    std::mt19937 random(1);
    std::size_t added = 0;
    for (int tries = 0; tries < 1000 && chosen_.size() < all && added < wanted; ++tries) {
      Sizes next;
      for (std::size_t i = 0; i < symbols_.size(); ++i) {
        const auto [lowest, highest] = ranges_[i];
        next.emplace(symbols_[i].name,
                     lowest + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(highest - lowest + 1)));
      }
      added += add(next);
    }
  }

  std::span<const Symbol> symbols_;
  const Graph& program_;
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges_;
  Sizes bounds_, lowest_;
  std::vector<Sizes> chosen_;
};

}  // namespace

Result<std::vector<Sizes>> looked_at(std::span<const Symbol> symbols, const Graph& program) {
  try {
    return Looking(symbols, program).run();
  } catch (const std::exception& e) {
    return error("lower.sizes", fmt::format("the program's sizes cannot be computed: {}", e.what()))
        .hint("choose the sizes: --sizes NAME=SIZE");
  }
}

}  // namespace tosaic
