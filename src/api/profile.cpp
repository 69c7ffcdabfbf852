// SPDX-License-Identifier: Apache-2.0
#include "api/profile.h"

#include <algorithm>
#include <map>

namespace tosaic {
namespace {

bool is_same_part(const OperationTime& a, const OperationTime& b) {
  return a.operation == b.operation && a.within == b.within && a.value == b.value && a.place == b.place;
}

}  // namespace

void RepeatedProfile::add(const std::vector<OperationTime>& run) {
  // Runs are alike but where a program branches: the part that is looked for is nearly always the next one.
  std::vector<bool> taken(parts_.size());
  std::size_t next = 0;
  for (const OperationTime& time : run) {
    std::size_t found = taken.size();
    for (std::size_t i = 0; i < taken.size() && found == taken.size(); ++i)
      if (const std::size_t at = (next + i) % taken.size(); !taken[at] && is_same_part(parts_[at].first, time))
        found = at;
    if (found == taken.size()) {
      parts_.push_back({time, {time.seconds}});
      continue;
    }
    taken[found] = true;
    next = found + 1;
    parts_[found].seconds.push_back(time.seconds);
  }
}

std::vector<MeasuredOperation> RepeatedProfile::times() const {
  std::vector<MeasuredOperation> times;
  for (Part part : parts_) {
    std::ranges::sort(part.seconds);
    MeasuredOperation one{part.first, part.seconds.front()};
    one.seconds = part.seconds[part.seconds.size() / 2];
    times.push_back(std::move(one));
  }
  return times;
}

std::vector<KindTime> time_by_kind(const std::vector<MeasuredOperation>& profile) {
  std::vector<KindTime> kinds;
  std::map<std::string_view, std::size_t> known;
  for (std::size_t i = 0; i < profile.size(); ++i) {
    const MeasuredOperation& one = profile[i];
    // The time of a delegate that tells its parts is that of the parts.
    if (one.within.empty() && i + 1 < profile.size() && !profile[i + 1].within.empty()) continue;
    const auto [at, is_new] = known.emplace(one.operation, kinds.size());
    if (is_new) kinds.push_back({.operation = one.operation});
    KindTime& kind = kinds[at->second];
    ++kind.count;
    kind.seconds += one.seconds;
  }
  std::ranges::stable_sort(kinds, [](const KindTime& a, const KindTime& b) { return a.seconds > b.seconds; });
  return kinds;
}

}  // namespace tosaic
