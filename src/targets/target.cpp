// SPDX-License-Identifier: Apache-2.0
#include "targets/target.h"

#include <fmt/format.h>

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

Result<Target> find_target(const std::string& name, const std::string& spec) {
  std::string known;
  for (const Target& target : all_targets()) {
    if (target.name == name) {
      Target found = target;
      if (!spec.empty()) {
        TOSAIC_TRY(found.spec, tosa::Spec::parse(spec));
        found.spec.product = target.spec.product;
      }
      return found;
    }
    known += (known.empty() ? "" : ", ") + target.name;
  }
  return error("target.unknown", fmt::format("there is no target '{}'", name)).hint("targets: " + known);
}

}  // namespace tosaic
