// SPDX-License-Identifier: Apache-2.0
#include "targets/target.h"

#include <fmt/format.h>
#include <algorithm>
#include <numeric>

#include "ops/operator_list.h"

namespace tosaic {

std::span<const OperatorEntry<std::vector<Target>>> target_list();

const std::vector<Target>& all_targets() {
  static const std::vector<Target> all = [] {
    std::vector<Target> targets;
    for (const auto& entry : target_list())
      for (Target& t : entry.make()) targets.push_back(std::move(t));
    return targets;
  }();
  return all;
}

namespace {

// Insertions, deletions and replacements between two words.
std::size_t edits(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] != b[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({row[j] + 1, row[j + 1] + 1, replaced});
    }
  }
  return row.back();
}

// The names with the fewest edits, all of them where nothing is near.
std::string nearest(const std::string& name) {
  std::size_t least = name.size();
  for (const Target& target : all_targets()) least = std::min(least, edits(name, target.name));
  const bool near = least <= name.size() / 3;
  std::string names;
  for (const Target& target : all_targets())
    if (!near || edits(name, target.name) == least) names += (names.empty() ? "" : ", ") + target.name;
  return (near ? "did you mean " : "targets: ") + names;
}

}  // namespace

Result<Target> find_target(const std::string& name, const std::string& spec) {
  for (const Target& target : all_targets()) {
    if (target.name == name) {
      Target found = target;
      if (!spec.empty()) {
        TOSAIC_TRY(found.spec, tosa::Spec::parse(spec));
        found.spec.product = target.spec.product;
      }
      return found;
    }
  }
  return error("target.unknown", fmt::format("there is no target '{}'", name)).hint(nearest(name));
}

}  // namespace tosaic
