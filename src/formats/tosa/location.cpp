// SPDX-License-Identifier: Apache-2.0
#include "formats/tosa/location.h"

#include <fmt/format.h>
#include <charconv>

namespace tosaic::tosa_file {
namespace {

constexpr std::string_view separator = " | ";

bool take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

// "model.py:6"; the line is absent when it is not known.
bool parse_place(std::string_view text, Place& place) {
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos) return false;
  const char* last = text.data() + text.size();
  const auto [end, problem] = std::from_chars(text.data() + colon + 1, last, place.line);
  if (problem != std::errc() || end != last) return false;
  place.file = std::string(text.substr(0, colon));
  return true;
}

}  // namespace

std::string location_text(const Loc& loc) {
  std::string text;
  auto part = [&](std::string_view what, const std::string& value) {
    if (value.empty()) return;
    if (!text.empty()) text += separator;
    text += what;
    text += value;
  };
  if (!loc.place.file.empty()) part("", fmt::format("{}:{}", loc.place.file, loc.place.line));
  if (!loc.module_path.empty() || !loc.module_type.empty())
    part("module ", fmt::format("{} ({})", loc.module_path, loc.module_type));
  part("function ", loc.torch_function);
  part("op ", loc.op);
  part("name ", loc.name);
  part("source ", loc.place.text);  // last: it may hold anything
  return text;
}

LocRef parse_location(std::string_view text) {
  if (text.empty()) return nullptr;
  auto loc = std::make_shared<Loc>();
  std::string_view rest = text;
  for (bool first = true; !rest.empty(); first = false) {
    const auto end = rest.starts_with("source ") ? std::string_view::npos : rest.find(separator);
    std::string_view part = rest.substr(0, end);
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + separator.size());
    if (take(part, "module ") && part.ends_with(")") && part.rfind(" (") != std::string_view::npos) {
      const auto open = part.rfind(" (");
      loc->module_path = std::string(part.substr(0, open));
      loc->module_type = std::string(part.substr(open + 2, part.size() - open - 3));
    } else if (take(part, "function ")) {
      loc->torch_function = std::string(part);
    } else if (take(part, "op ")) {
      loc->op = std::string(part);
    } else if (take(part, "name ")) {
      loc->name = std::string(part);
    } else if (take(part, "source ")) {
      loc->place.text = std::string(part);
    } else if (!first || !parse_place(part, loc->place)) {
      auto foreign = std::make_shared<Loc>();
      foreign->name = std::string(text);
      return foreign;
    }
  }
  return loc;
}

}  // namespace tosaic::tosa_file
