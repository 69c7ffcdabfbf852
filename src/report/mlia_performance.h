// SPDX-License-Identifier: Apache-2.0
// Vela's estimates as the result "performance" of MLIA's JSON; and how members of JSON are asked for.
#pragma once
#include <simdjson.h>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "report/json_writer.h"

namespace tosaic::reporting {

// A member, or one of a member ("model/file"); or what stands for its absence: "", 0, no items.
std::string text(const simdjson::dom::element& of, std::string_view member);
double number(const simdjson::dom::element& of, std::string_view member);
std::vector<simdjson::dom::element> items(const simdjson::dom::element& of, std::string_view member);

void write_metric(JsonWriter& out, std::string_view name, double value, std::string_view unit,
                  std::string_view aggregation = "");

// What the figures are about, beyond themselves.
struct Measured {
  double percentage = 0;  // of the operators that the NPU takes
  double model_bytes = 0;
  const std::set<std::string>& exported;  // names of exported nodes that are entities
};
// `estimates`: one per delegate, as a manifest has them; they run one after another. `write_entities`: of exported
// nodes.
void write_performance(JsonWriter& out, const std::vector<simdjson::dom::element>& estimates, const Measured& of,
                       const std::function<void()>& write_entities);

}  // namespace tosaic::reporting
