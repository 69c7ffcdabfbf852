// SPDX-License-Identifier: Apache-2.0
#include "cpu/elementwise/row_groups.h"

#include <algorithm>
#include <set>

namespace tosaic::cpu {
namespace {

constexpr std::int64_t elements_at_once = 16384;  // of the longest rows: blocks of a few values of them stay near
constexpr std::size_t most_steps = 24;            // all their values have memory for a block
constexpr std::size_t slack = 128;                // that vector loads may read past the end

struct RowGroup {
  struct Inner {  // a value that no other step reads
    ValueId value;
    std::int64_t row_bytes;
    std::size_t place;
  };
  std::vector<Step::Rows> steps;
  std::vector<ValueId> outer;  // values in memory
  std::vector<Inner> inner;
  ValueId lowest = 0;  // of all
  std::int64_t rows = 0, at_once = 0;
  std::size_t table_bytes = 0, inner_bytes = 0, scratch = 0;

  void run_block(const Frame& frame, std::int64_t block, std::byte* memory) const {
    const std::int64_t first = block * at_once, last = std::min(rows, first + at_once);
    auto* table = reinterpret_cast<std::byte**>(memory);
    for (ValueId v : outer) table[v - lowest] = frame.address[v];
    // Each row where it would be if the first one were before the block.
    for (const Inner& v : inner) table[v.value - lowest] = memory + table_bytes + v.place - first * v.row_bytes;
    const Frame own{table - lowest, frame.pool, frame.scratch, frame.shared, frame.state, frame.variables};
    for (const Step::Rows& step : steps) step.run(own, first, last, memory + table_bytes + inner_bytes);
  }
};

class Grouping {
 public:
  explicit Grouping(const Planning& planning) : planning_(planning), within_(planning.graph.values.size(), no_value) {
    for (const plan::Alias& alias : planning.aliases) {
      within_[alias.alias] = alias.of;
      if (within_[alias.of] == no_value) within_[alias.of] = alias.of;
    }
  }

  // Steps from `begin` on that are one group, without views among them.
  std::vector<std::size_t> members(const std::vector<Step>& steps, std::size_t begin) const {
    std::vector<std::size_t> found;
    Made made;
    for (std::size_t s = begin; s < steps.size() && found.size() < most_steps; ++s) {
      const Step& step = steps[s];
      if (!step.run) continue;
      if (!step.rows || step.rows->count < least_rows() || (!found.empty() && !follows(step, steps[found[0]], made)))
        break;
      found.push_back(s);
      for (ValueId v : step.writes) {
        made.values.insert(v);
        made.roots.insert(root(v));
      }
    }
    return found;
  }

  Step join(const std::vector<Step>& steps, const std::vector<std::size_t>& members) const {
    auto group = std::make_shared<RowGroup>();
    Step joined{.kernel = "row_group", .nodes = {}, .reads = {}, .writes = {}};
    std::vector<ValueId> made;
    for (std::size_t s : members) {
      joined.nodes.insert(joined.nodes.end(), steps[s].nodes.begin(), steps[s].nodes.end());
      made.insert(made.end(), steps[s].writes.begin(), steps[s].writes.end());
    }
    std::ranges::sort(joined.nodes);
    std::size_t scratch = 0;
    for (std::size_t s : members) {
      group->steps.push_back(*steps[s].rows);
      scratch = std::max(scratch, steps[s].scratch_per_thread);
      for (ValueId v : steps[s].reads)
        if (std::ranges::find(made, v) == made.end()) joined.reads.push_back(v);
    }
    share(*group, made);
    for (ValueId v : made)
      if (is_seen(v, joined.nodes))
        joined.writes.push_back(v);
      else
        add_inner(*group, v);
    group->outer = joined.reads;
    group->outer.insert(group->outer.end(), joined.writes.begin(), joined.writes.end());
    std::vector<ValueId> all = group->outer;
    for (const RowGroup::Inner& v : group->inner) all.push_back(v.value);
    const auto [low, high] = std::ranges::minmax(all);
    group->lowest = low;
    group->table_bytes = align_up((high - low + 1) * sizeof(std::byte*));
    group->scratch = group->table_bytes + group->inner_bytes + scratch;
    joined.scratch_per_thread = group->scratch;
    joined.run = [group](const Frame& frame) -> Status {
      frame.pool.run((group->rows + group->at_once - 1) / group->at_once, [&](std::int64_t block, int thread) {
        group->run_block(frame, block, frame.scratch + static_cast<std::size_t>(thread) * group->scratch);
      });
      return {};
    };
    return joined;
  }

 private:
  // Of fewer, threads share elements.
  std::int64_t least_rows() const { return std::int64_t{8} * planning_.threads; }

  struct Made {  // by the steps of a group
    std::set<ValueId> values, roots;
  };
  bool follows(const Step& step, const Step& first, const Made& made) const {
    if (step.rows->count != first.rows->count) return false;
    const auto is_made = [&](ValueId v) { return made.values.contains(v); };
    // Other rows of what has been made may be what a view shows.
    const auto is_view_of_made = [&](ValueId v) { return !is_made(v) && made.roots.contains(root(v)); };
    return std::ranges::none_of(step.rows->whole, is_made) && std::ranges::none_of(step.reads, is_view_of_made);
  }
  ValueId root(ValueId v) const {
    while (within_[v] != no_value && within_[v] != v) v = within_[v];
    return v;
  }
  bool is_seen(ValueId v, const std::vector<std::uint32_t>& nodes) const {
    return planning_.visible[v] || within_[v] != no_value ||
           std::ranges::any_of(planning_.users[v],
                               [&](std::uint32_t n) { return !std::ranges::binary_search(nodes, n); });
  }
  void share(RowGroup& group, const std::vector<ValueId>& made) const {
    group.rows = group.steps[0].count;
    std::int64_t longest = 1;
    for (ValueId v : made) longest = std::max(longest, planning_.type(v).shape.elements() / group.rows);
    const std::int64_t threads = planning_.threads, most = std::max<std::int64_t>(1, elements_at_once / longest);
    const std::int64_t blocks = ((group.rows + most - 1) / most + threads - 1) / threads * threads;
    group.at_once = (group.rows + blocks - 1) / blocks;
  }
  void add_inner(RowGroup& group, ValueId v) const {
    const auto row_bytes = static_cast<std::int64_t>(planning_.type(v).storage_bytes()) / group.rows;
    group.inner.push_back({v, row_bytes, group.inner_bytes});
    group.inner_bytes += align_up(static_cast<std::size_t>(row_bytes * group.at_once) + slack);
  }

  const Planning& planning_;
  std::vector<ValueId> within_;  // which value each is a view of; itself: it has views
};

}  // namespace

void group_rows(const Planning& planning, std::vector<Step>& steps) {
  const Grouping grouping(planning);
  std::vector<Step> result;
  for (std::size_t s = 0; s < steps.size();) {
    const std::vector<std::size_t> members = grouping.members(steps, s);
    if (members.size() < 2) {
      result.push_back(std::move(steps[s++]));
      continue;
    }
    result.push_back(grouping.join(steps, members));
    for (std::size_t i = s; i < members.back(); ++i)  // views, which may be observed when what they show is there
      if (std::ranges::find(members, i) == members.end()) result.push_back(std::move(steps[i]));
    s = members.back() + 1;
  }
  steps = std::move(result);
}

}  // namespace tosaic::cpu
