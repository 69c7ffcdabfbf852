// SPDX-License-Identifier: Apache-2.0
#include "targets/target.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/generated_list.h"
#include "base/spelling.h"

namespace tosaic {

std::span<const ListEntry<std::vector<Target>>> target_list();

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

// The names that were meant, or all of them.
std::string suggestion(const std::string& name) {
  std::vector<std::string> names;
  for (const Target& target : all_targets()) names.push_back(target.name);
  const auto near = nearest(name, names);
  return near.empty() || near.size() > 4
             ? fmt::format("targets: {}; a PC's processor runs tosa-fp, and tosa-int in integers",
                           fmt::join(names, ", "))
             : "did you mean " + alternatives(near) + "?";
}

// Payloads in formats of their own hold TOSA 1.0, which expresses what 1.1 adds.
tosa::Spec in_1_0(const tosa::Spec& spec) {
  tosa::Spec older;
  older.level = spec.level;
  for (auto f = tosa::Feature::pro_int; f < tosa::Feature::v1_1;
       f = static_cast<tosa::Feature>(static_cast<int>(f) + 1))
    if (spec.has(f)) older.add(f);
  return older;
}

}  // namespace

Result<Target> find_target(const std::string& name, const std::string& spec) {
  for (const Target& target : all_targets()) {
    if (target.name == name) {
      Target found = target;
      if (!spec.empty()) {
        TOSAIC_TRY(found.spec, tosa::Spec::parse(spec));
        if (!target.device.empty() || target.payload_is_tosa) found.spec = in_1_0(found.spec);
        found.spec.product = target.spec.product;
      }
      return found;
    }
  }
  return error("target.unknown", fmt::format("there is no target '{}'", name)).hint(suggestion(name));
}

}  // namespace tosaic
