// SPDX-License-Identifier: Apache-2.0
#include "ir/loc.h"

#include <fmt/format.h>

namespace tosaic {

Diagnostic located(Diagnostic d, const LocRef& loc) {
  if (!loc) return d;
  if (d.place.file.empty()) d.place = loc->place;
  if (!d.context.empty()) return d;
  if (!loc->module_path.empty()) {
    auto dot = loc->module_type.rfind('.');
    std::string type = dot == std::string::npos ? loc->module_type : loc->module_type.substr(dot + 1);
    d.context = "in module " + loc->module_path + (type.empty() ? "" : " (" + type + ")");
  }
  if (!loc->name.empty()) {
    d.context += (d.context.empty() ? "" : ", ") + std::string(loc->also.empty() ? "node " : "nodes ") + loc->name;
    for (const std::string& name : loc->also) d.context += ", " + name;
  }
  return d;
}

std::string place_text(const LocRef& loc) {
  if (!loc || loc->place.file.empty()) return "";
  return loc->place.line > 0 ? fmt::format("{}:{}", loc->place.file, loc->place.line) : loc->place.file;
}

std::string layer_text(const LocRef& loc) {
  if (!loc) return "";
  std::string place = place_text(loc);
  place.erase(0, place.find_last_of("/\\") + 1);  // npos + 1 is 0
  return loc->module_path + (loc->module_path.empty() || place.empty() ? "" : ", ") + place;
}

}  // namespace tosaic
