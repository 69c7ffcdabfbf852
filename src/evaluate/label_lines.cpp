// SPDX-License-Identifier: Apache-2.0
#include "evaluate/label_lines.h"

#include <fmt/format.h>
#include <charconv>
#include <optional>

namespace tosaic {
namespace {

std::vector<std::string_view> words_of(std::string_view line) {
  constexpr std::string_view between = ",; \t\r";
  std::vector<std::string_view> words;
  for (std::size_t at = line.find_first_not_of(between); at < line.size(); at = line.find_first_not_of(between, at)) {
    const std::size_t end = std::min(line.find_first_of(between, at), line.size());
    words.push_back(line.substr(at, end - at));
    at = end;
  }
  return words;
}

std::optional<std::int64_t> whole(std::string_view word) {
  std::int64_t number = 0;
  const auto [end, failed] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (failed != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return number;
}

}  // namespace

Result<LabelLines> read_label_lines(std::string_view text, const std::string& file) {
  LabelLines read;
  std::int64_t line_number = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++line_number;
    const auto words = words_of(line);
    if (words.empty()) continue;
    const bool named = !whole(words[0]).has_value();
    std::vector<std::int64_t> labels;
    for (std::size_t i = named; i < words.size(); ++i)
      if (const auto label = whole(words[i])) labels.push_back(*label);
    if (labels.size() != words.size() - named || labels.empty()) {
      if (line_number == 1) continue;  // a heading
      return error("evaluate.labels", "this line has no label")
          .at({file, line_number, std::string(line)})
          .hint("a line is 'NAME,LABEL' or 'LABEL'; labels are the classes' numbers, from 0");
    }
    if (named)
      read.by_name[std::string(words[0])] = std::move(labels);
    else
      read.in_order.insert(read.in_order.end(), labels.begin(), labels.end());
  }
  if (read.in_order.empty() == read.by_name.empty())
    return error("evaluate.labels",
                 read.in_order.empty() ? "the file holds no labels" : "some lines begin with a name, others do not")
        .at({file, 0, ""})
        .hint("every line is 'NAME,LABEL', or every line is 'LABEL', in the order of the samples");
  return read;
}

}  // namespace tosaic
