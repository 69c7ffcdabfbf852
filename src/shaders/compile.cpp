// SPDX-License-Identifier: Apache-2.0
#include "shaders/compile.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "shaders/half_precision.h"
#include "shaders/index_bounds.h"
#include "shaders/kernels.h"
#include "shaders/prepare.h"
#include "shaders/quantised_weights.h"
#include "shaders/steps.h"

namespace tosaic::shaders {
namespace {

using vulkan_program::Arena;
using vulkan_program::Range;
using vulkan_program::View;

// What it is where all symbols are at their bounds.
std::int64_t at_bounds(const Dim& dim) {
  return dim.with([](const Symbol& s) { return Dim(most(Dim(s))); }).value();
}

// That dispatches next to each other may take for it, and a quarter of what there is.
constexpr std::uint64_t most_bytes_more = std::uint64_t{4} << 20;

std::uint64_t rounded_up(std::uint64_t bytes, std::uint64_t to) { return (bytes + to - 1) / to * to; }

// Constants one behind the other, equal ones once.
class Constants {
 public:
  Range place(const Bytes& bytes) {
    const std::uint64_t glance = glance_at(bytes);
    for (auto [at, end] = known_.equal_range(glance); at != end; ++at)
      if (at->second.bytes == bytes) return range(at->second.offset, bytes.size());
    const std::uint64_t offset = all_.size();
    known_.emplace(glance, StoredConstant{bytes, offset});
    all_.append(bytes);
    all_.zeros(rounded_up(offset + std::max<std::size_t>(bytes.size(), 1), vulkan_program::alignment) - all_.size());
    return range(offset, bytes.size());
  }
  const Rope& all() const { return all_; }

 private:
  struct StoredConstant {
    Bytes bytes;
    std::uint64_t offset;
  };
  static Range range(std::uint64_t offset, std::size_t bytes) {
    return {Arena::constants, false, View::buffer, offset, rounded_up(std::max<std::size_t>(bytes, 1), 4)};
  }
  std::unordered_multimap<std::uint64_t, StoredConstant> known_;
  Rope all_;
};

class Assembly {
 public:
  Assembly(const Graph& graph, Precision precision, const KeptWide& wide)
      : given_(graph),
        halves_(precision == Precision::fp16 ? std::optional(in_half_precision(graph, wide)) : std::nullopt),
        graph_(halves_ ? *halves_ : graph),
        uses_(graph_),
        largest_(graph_) {
    for (tosaic::Value& value : largest_.values) value.type = largest(value.type);
  }

  bool keeps_f16() const { return keeps_f16_; }

  Result<vulkan_program::Program> make(std::span<const vulkan_program::TierId> tiers) {
    place_interface();
    const auto index_bounds = find_index_bounds(given_);
    for (std::size_t i = 0; i < index_bounds.size(); ++i)
      if (index_bounds[i])
        program_.inputs[i].rows = index_bounds[i]->end, program_.inputs[i].first_row = index_bounds[i]->first;
    for (std::size_t i = 0; i < tiers.size(); ++i) {
      const Work work = work_of(tiers[i]);
      // Devices of one that another one is equal to run that.
      const auto rest = tiers.subspan(i + 1);
      if (std::ranges::none_of(rest, [&](TierId other) { return has_same_kernels(work, work_of(other)); }))
        TOSAIC_CHECK(add_tier(work));
    }
    program_.guards = given_.guards;
    program_.constants = constants_.all();
    return std::move(program_);
  }

 private:
  Status add_tier(const Work& work) {
    TOSAIC_TRY(Steps steps, steps_of(work));
    modules_.clear();
    memory_ = place(steps, {});
    if (work.tier != vulkan_program::TierId::cpu) spread(steps);
    vulkan_program::Tier tier;
    tier.name = row_of(work.tier).name;
    tier.activation_bytes = rounded_up(memory_.arena_bytes, vulkan_program::alignment);
    for (Step& step : steps.list) {
      scratch_ = memory_.scratch_offset[static_cast<std::size_t>(&step - steps.list.data())];
      for (Made& made : step.dispatches)
        if (made.invocations != Dim(0))
          add(tier, made, step.writes.front()).place = layer_text(graph_.nodes[step.nodes.front()].loc);
    }
    for (const plan::Memory::Copy& copy : memory_.copies) add_copy(work, tier, copy);
    program_.tiers.push_back(std::move(tier));
    return {};
  }

  // `levels` of the steps; none: they run one by one.
  plan::Memory place(const Steps& steps, const std::vector<std::uint32_t>& levels) const {
    std::vector<plan::StepMemory> needs;
    for (const Step& step : steps.list) {
      needs.push_back({step.reads, step.writes, step.scratch_bytes});
      if (!levels.empty()) needs.back().level = levels[needs.size() - 1];
    }
    return plan::place_values(largest_, steps.aliases, needs, vulkan_program::alignment);
  }

  // Steps that need nothing of each other stand together and share no memory, so that the device waits between levels
  // and not between steps. Not where that takes much more memory than one by one.
  void spread(Steps& steps) {
    std::vector<std::uint32_t> ready(graph_.values.size(), 0);  // by root: the first level that may read it
    const auto ready_at = [&](ValueId v) -> std::uint32_t& { return ready[memory_.location[v].root]; };
    std::vector<std::pair<std::uint32_t, Step>> sorted;
    for (const Step& step : steps.list) {
      std::uint32_t level = 0;
      for (ValueId v : step.reads)
        if (v != no_value) level = std::max(level, ready_at(v));
      for (ValueId v : step.writes) ready_at(v) = std::max(ready_at(v), level + 1);  // others may lie in it, too
      sorted.emplace_back(level, step);
    }
    std::ranges::stable_sort(sorted, {}, [](const auto& step) { return step.first; });
    Steps by_level{{}, steps.aliases};
    std::vector<std::uint32_t> levels;
    for (auto& [level, step] : sorted) {
      levels.push_back(level);
      by_level.list.push_back(std::move(step));
    }
    plan::Memory memory = place(by_level, levels);
    if (memory.arena_bytes > memory_.arena_bytes + memory_.arena_bytes / 4 + most_bytes_more) return;
    memory_ = std::move(memory);
    steps = std::move(by_level);
  }

  Work work_of(TierId tier) { return {graph_, uses_, tier, halves_.has_value(), nullptr, &matrices_}; }

  void place_interface() {
    std::uint64_t end = 0;
    const auto place = [&](const std::vector<ValueId>& values, std::vector<vulkan_program::Tensor>& tensors) {
      for (ValueId v : values) {
        tensors.push_back({graph_[v].name, given_[v].type.with(std::nullopt), end});
        tensors.back().narrow = graph_[v].type.dtype != given_[v].type.dtype;
        end = rounded_up(end + std::max<std::size_t>(largest_[v].type.storage_bytes(), 1), vulkan_program::alignment);
      }
    };
    place(graph_.inputs, program_.inputs);
    place(graph_.outputs, program_.outputs);
    program_.io_bytes = end;
  }

  Range range_of(const What& what) {
    if (const auto* bytes = std::get_if<Bytes>(&what)) return constants_.place(*bytes);
    if (const auto* scratch = std::get_if<Scratch>(&what))
      return {Arena::activations, false, View::buffer, scratch_ + scratch->offset, scratch->bytes};
    return range_of(std::get<ValueId>(what));
  }

  Range range_of(ValueId v) {
    keeps_f16_ |= graph_[v].type.dtype == DType::f16;
    const plan::Location& at = memory_.location[v];
    const std::uint64_t bytes = rounded_up(std::max<std::size_t>(largest_[v].type.storage_bytes(), 1), 4);
    switch (at.home) {
      case plan::Home::constant: return constants_.place(graph_[at.root].constant);
      case plan::Home::input:
        return {Arena::io, false, View::buffer, program_.inputs[at.slot].offset + at.offset, bytes};
      case plan::Home::output:
        return {Arena::io, false, View::buffer, program_.outputs[at.slot].offset + at.offset, bytes};
      default: return {Arena::activations, false, View::buffer, at.arena_offset, bytes};
    }
  }

  vulkan_program::Dispatch& add(vulkan_program::Tier& tier, Made& made, ValueId computes) {
    vulkan_program::Dispatch& d = tier.dispatches.emplace_back();
    d.module = module(tier, std::move(made.module));
    for (const Push& push : made.pushes) {
      const auto place = static_cast<std::uint32_t>(d.pushes.size());
      if (!push.number.is_number())
        d.sizes.push_back({place, vulkan_program::expression(program_, push.number), push.reciprocal});
      d.pushes.push_back(vulkan_program::word_of(at_bounds(push.number), push.reciprocal));
    }
    for (const Bound& b : made.bound) {
      Range range = range_of(b.what);
      range.written = b.written;
      range.view = b.view;
      // Memory is aligned to more than a quad: none reaches into another tensor.
      range.bytes = rounded_up(range.bytes, b.quads ? 16 : 4);
      d.ranges.push_back(range);
    }
    const Dim groups = ceil_div(made.invocations, std::int64_t{made.group_size});
    if (!groups.is_number()) d.group_count = vulkan_program::expression(program_, groups);
    d.groups = vulkan_program::groups_of(static_cast<std::uint64_t>(at_bounds(groups)));
    d.kernel = std::move(made.name);
    d.value = graph_[computes].name;
    return d;
  }

  // An output that shares its memory with something else.
  void add_copy(const Work& work, vulkan_program::Tier& tier, const plan::Memory::Copy& copy) {
    MadeList made = make_copy(work, copy.from, copy.from);
    if (made->front().invocations == Dim(0)) return;
    Range& written = add(tier, made->front(), copy.from).ranges.back();
    written.arena = Arena::io;
    written.offset = program_.outputs[copy.output].offset;
  }

  std::uint32_t module(vulkan_program::Tier& tier, std::vector<Word> words) {
    const Bytes bytes = Bytes::of(std::move(words));
    const auto [found, added] = modules_.try_emplace(hash_of(bytes), static_cast<std::uint32_t>(tier.modules.size()));
    if (added) tier.modules.push_back(bytes);
    return found->second;
  }

  const Graph& given_;
  const std::optional<Graph> halves_;
  const Graph& graph_;
  const plan::Uses uses_;
  Graph largest_;  // with each size at its bound: what memory is planned for
  QuantisedMatrices matrices_;
  plan::Memory memory_;
  vulkan_program::Program program_;
  Constants constants_;
  bool keeps_f16_ = false;
  std::uint64_t scratch_ = 0;                                 // of the step, where it lies
  std::unordered_map<std::uint64_t, std::uint32_t> modules_;  // of a tier, by their hash
};

}  // namespace

Result<vulkan_program::Program> compile(const Graph& graph, std::span<const vulkan_program::TierId> tiers,
                                        Precision precision, bool* keeps_f16, const KeptWide& wide) {
  const Graph ready = prepared(graph);
  Assembly assembly(ready, precision, wide);
  auto made = assembly.make(tiers);
  if (keeps_f16) *keeps_f16 = assembly.keeps_f16();
  return made;
}

}  // namespace tosaic::shaders
