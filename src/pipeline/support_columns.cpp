// SPDX-License-Identifier: Apache-2.0
#include "pipeline/support_columns.h"

#include <algorithm>

#include "targets/target.h"

namespace tosaic {
namespace {

struct Kind {
  std::string name;  // what the names of its targets begin with
  tosa::Spec spec;
};

// "ethos-u55-128" and "ethos-u55-64": "ethos-u55".
std::string common_words(const std::string& a, const std::string& b) {
  if (b.starts_with(a + "-")) return a;
  const auto differ = static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
  return a.substr(0, std::min(a.rfind('-', differ), a.size()));
}

std::vector<Kind> kinds() {
  std::vector<Kind> list;
  for (const Target& target : all_targets()) {
    if (!target.tabled) continue;
    const auto same = std::find_if(list.begin(), list.end(), [&](const Kind& kind) {
      return kind.spec.product == target.spec.product && kind.spec.text() == target.spec.text();
    });
    if (same == list.end())
      list.push_back({target.name, target.spec});
    else
      same->name = common_words(same->name, target.name);
  }
  return list;
}

}  // namespace

std::vector<SupportColumn> support_columns() {
  std::vector<SupportColumn> floats, int8, int16x8;
  for (const Kind& kind : kinds()) {
    if (kind.spec.has(tosa::Feature::pro_fp)) floats.push_back({kind.name + " float", {kind.spec}});
    if (!kind.spec.has(tosa::Feature::pro_int)) continue;
    int8.push_back({kind.name + " int8", {kind.spec, true}});
    int16x8.push_back({kind.name + " int16x8", {kind.spec, true, {.scheme = Scheme::int16x8}}});
  }
  for (const auto* more : {&int8, &int16x8}) floats.insert(floats.end(), more->begin(), more->end());
  return floats;
}

}  // namespace tosaic
