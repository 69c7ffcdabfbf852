// SPDX-License-Identifier: Apache-2.0
#include "quantise/overrides.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "base/diagnostic.h"
#include "base/spelling.h"

namespace tosaic {
namespace {

constexpr std::array<std::pair<std::string_view, Form>, 3> forms{
    {{"float", Form::floating}, {"int8", Form::int8}, {"int16x8", Form::int16x8}}};

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blank = " \t\r";
  const auto first = text.find_first_not_of(blank);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(blank) - first + 1);
}

// "aten.softmax.int" is "aten.softmax", too.
std::string_view without_overload(std::string_view op) { return op.substr(0, op.rfind('.')); }

bool matches(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0, star = pattern.npos, from = 0;
  while (t < text.size()) {
    if (p < pattern.size() && (pattern[p] == '?' || (pattern[p] == text[t] && pattern[p] != '*'))) {
      ++p, ++t;
    } else if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      from = t;
    } else if (star != pattern.npos) {
      p = star + 1;
      t = ++from;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

// What a node may be called by: its own name, its operator, its modules, its place.
std::vector<std::string> names_of(const ExportedNode& node) {
  std::vector<std::string> names{node.name, node.op, std::string(without_overload(node.op))};
  if (!node.loc) return names;
  // A module that is called several times has "@1", "@2" behind its path.
  const std::string path = node.loc->module_path.substr(0, node.loc->module_path.find('@'));
  for (std::size_t end = 0; !path.empty() && end != path.npos;) {
    end = path.find('.', end + 1);
    names.push_back(path.substr(0, end));
  }
  const Place& place = node.loc->place;
  if (place.file.empty()) return names;
  // The file by its name or by any end of its path.
  for (std::size_t slash = place.file.size(); slash != place.file.npos && slash > 0;) {
    slash = place.file.rfind('/', slash - 1);
    const std::string file = place.file.substr(slash == place.file.npos ? 0 : slash + 1);
    names.push_back(file);
    if (place.line > 0) names.push_back(fmt::format("{}:{}", file, place.line));
  }
  return names;
}

bool names(const Override& given, const ExportedNode& node) {
  const auto all = names_of(node);
  const std::string bare = given.name.starts_with('%') ? given.name.substr(1) : given.name;
  return std::any_of(all.begin(), all.end(), [&](const std::string& name) { return matches(bare, name); });
}

Diagnostic names_nothing(const Override& given, const std::vector<ExportedNode>& exported) {
  std::set<std::string> known;
  for (const ExportedNode& node : exported)
    for (std::string& name : names_of(node)) known.insert(std::move(name));
  const auto near = nearest(given.name, {known.begin(), known.end()});
  std::set<std::string> outermost;
  for (const ExportedNode& node : exported)
    if (node.loc && !node.loc->module_path.empty())
      outermost.insert(node.loc->module_path.substr(0, node.loc->module_path.find_first_of(".@")));
  return error("plan.names-nothing",
               fmt::format("'{}' is no module, operator, node or line of the program", given.name))
      .at(given.place)
      .hint(near.empty() ? fmt::format("`tosaic explain --plan` prints the program's operators and nodes{}",
                                       outermost.empty()
                                           ? ""
                                           : fmt::format("; its outermost modules are {}", fmt::join(outermost, ", ")))
                         : fmt::format("did you mean {}?", alternatives(near)));
}

Diagnostic no_form(const Place& place, std::string_view word, std::size_t column) {
  std::vector<std::string> known;
  for (const auto& [name, form] : forms) known.emplace_back(name);
  const auto near = nearest(word, known);
  return error("plan.syntax", word.empty() ? fmt::format("column {}: a form is missing after the colon", column)
                                           : fmt::format("column {}: '{}' is no form", column, word))
      .at(place)
      .hint(near.size() == 1 ? fmt::format("did you mean {}?", near[0])
                             : fmt::format("there are {}", alternatives(known)));
}

}  // namespace

std::string_view name_of(Form form) {
  for (const auto& [name, known] : forms)
    if (known == form) return name;
  return "";
}

std::optional<Form> form_named(std::string_view name) {
  for (const auto& [known, form] : forms)
    if (known == name) return form;
  return std::nullopt;
}

std::string Override::text() const { return fmt::format("{}: {}", name, name_of(form)); }

bool PlanRequest::has_whole() const {
  return !whole.empty() || std::ranges::any_of(methods, [](const OfMethod& m) { return !m.whole.empty(); });
}

PlanRequest PlanRequest::of(const std::string& method) const {
  PlanRequest its = *this;
  std::erase_if(its.overrides, [&](const Override& o) { return !o.method.empty() && o.method != method; });
  for (const OfMethod& m : methods)
    if (m.name == method && !m.whole.empty()) its.whole = m.whole;
  its.methods.clear();
  return its;
}

Status names_methods(const PlanRequest& request, const std::vector<std::string>& methods) {
  for (const PlanRequest::OfMethod& m : request.methods)
    if (std::ranges::find(methods, m.name) == methods.end())
      return error("plan.names-nothing", fmt::format("'{}' is no method of the program", m.name))
          .at(m.place)
          .hint(fmt::format("there {} {}", methods.size() == 1 ? "is" : "are", fmt::join(methods, ", ")));
  return {};
}

Status add_plan_text(PlanRequest& to, const std::string& source, std::string_view text) {
  const bool is_text = std::none_of(text.begin(), text.end(), [](unsigned char c) {
    return (c < ' ' && c != '\t' && c != '\n' && c != '\r' && c != '\f') || c == 0x7f;
  });
  if (!is_text)
    return error("plan.not-text", "this is no text file")
        .at({source, 0, ""})
        .hint("`tosaic explain --plan` prints a plan; a line such as head: float is one, too");
  std::string whole, method;
  bool any = false;
  const auto finish = [&] {
    if (!std::exchange(any, false)) return;
    (method.empty() ? to.whole : to.methods.back().whole) = std::move(whole);
    to.source = source;
  };
  for (std::int64_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view raw = text.substr(0, end), line = trimmed(raw.substr(0, raw.find("  #")));
    text.remove_prefix(std::min(end + 1, text.size()));
    const Place place{source, number, std::string(trimmed(raw))};
    const auto column_of = [&](std::string_view part) {
      return static_cast<std::size_t>(part.data() - raw.data()) + 1;
    };
    if (line.starts_with("method ")) {
      finish();
      method = trimmed(line.substr(7));
      if (std::ranges::find(to.methods, method, &PlanRequest::OfMethod::name) != to.methods.end())
        return error("plan.syntax", fmt::format("column {}: the method '{}' has a plan above", column_of(line), method))
            .at(place)
            .hint("put the overrides of a method together, after one line of its name");
      to.methods.push_back({method, "", place});
      whole.assign(static_cast<std::size_t>(number), '\n');
      continue;
    }
    if (line.starts_with("program ")) {
      to.program = trimmed(line.substr(8));
      to.program_at = place;
      whole += "\n";
      continue;
    }
    if (line.starts_with("scheme ")) {
      const std::string_view word = trimmed(line.substr(7));
      const auto scheme = form_named(word);
      if (!scheme || *scheme == Form::floating)
        return error("plan.syntax", fmt::format("column {}: '{}' is no scheme", column_of(word), word))
            .at(place)
            .hint("there are int8 and int16x8");
      if (to.scheme != Form::unset && to.scheme != *scheme && !method.empty())
        return error("plan.scheme", fmt::format("another method's scheme is {}", name_of(to.scheme)))
            .at(place)
            .hint("give all methods the same one, and the calls that are to differ a form of their own");
      to.scheme = *scheme;
      whole += "\n";
      continue;
    }
    const std::size_t colon = line.rfind(':'), space = line.find(' ');
    const bool says_something = !line.empty() && line[0] != '#';
    // A tensor's or a call's line of a whole plan: a colon may only stand in a quoted name.
    if (!says_something || line.find(" %") != line.npos || line.starts_with("%\"") ||
        (line[0] == '%' && space < colon) || (colon == line.npos && space != line.npos)) {
      any |= says_something;
      whole.append(raw).append("\n");
      continue;
    }
    if (colon == line.npos)
      return error("plan.syntax", fmt::format("column {}: a colon and a form are missing after '{}'",
                                              column_of(line) + line.size(), line))
          .at(place)
          .hint(fmt::format("write {}: float, or int8 or int16x8", line));
    whole += "\n";
    const std::string_view name = trimmed(line.substr(0, colon)), word = trimmed(line.substr(colon + 1));
    if (name.empty())
      return error("plan.syntax", fmt::format("column {}: nothing is named before the colon", column_of(line)))
          .at(place)
          .hint("name a module, an operator, a node or a line of the program, as in head: float");
    const auto form = form_named(word);
    if (!form) return no_form(place, word, word.empty() ? column_of(line) + line.size() : column_of(word));
    to.overrides.push_back({std::string(name), *form, place, method});
  }
  finish();
  return {};
}

Result<Deciding> deciding(const std::vector<Override>& overrides, const std::vector<ExportedNode>& exported) {
  Deciding by_node;
  for (const Override& given : overrides) {
    bool any = false;
    for (const ExportedNode& node : exported)
      if (names(given, node)) {
        any = true;
        by_node[node.name] = &given;
      }
    if (!any) return names_nothing(given, exported);
  }
  return by_node;
}

const Override* deciding_of(const Node& node, const Deciding& deciding) {
  const Override* last = nullptr;  // they stand in order
  if (!node.loc || deciding.empty()) return last;
  for (std::string_view name : exported_names(*node.loc))
    if (auto it = deciding.find(std::string(name)); it != deciding.end() && (!last || it->second > last))
      last = it->second;
  return last;
}

}  // namespace tosaic
