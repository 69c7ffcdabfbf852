// SPDX-License-Identifier: Apache-2.0
#include "ops/schema.h"

#include <charconv>
#include <limits>

namespace tosaic {
namespace {

std::string_view trimmed(std::string_view s) {
  while (!s.empty() && s.front() == ' ') s.remove_prefix(1);
  while (!s.empty() && s.back() == ' ') s.remove_suffix(1);
  return s;
}

// Splits at commas that stand outside brackets and quotes.
std::vector<std::string_view> split_arguments(std::string_view s) {
  std::vector<std::string_view> parts;
  int depth = 0;
  char quote = 0;
  std::size_t start = 0;
  for (std::size_t i = 0; i < s.size(); ++i) {
    char c = s[i];
    if (quote) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '(' || c == '[') {
      ++depth;
    } else if (c == ')' || c == ']') {
      --depth;
    } else if (c == ',' && depth == 0) {
      parts.push_back(trimmed(s.substr(start, i - start)));
      start = i + 1;
    }
  }
  if (auto last = trimmed(s.substr(start)); !last.empty()) parts.push_back(last);
  return parts;
}

bool parse_integer(std::string_view s, std::int64_t& out) {
  auto [end, failure] = std::from_chars(s.data(), s.data() + s.size(), out);
  return failure == std::errc() && end == s.data() + s.size();
}

Attr parse_default(std::string_view s) {
  if (s == "None") return std::monostate{};
  if (s == "True") return true;
  if (s == "False") return false;
  if (s == "inf") return std::numeric_limits<double>::infinity();
  if (s == "-inf") return -std::numeric_limits<double>::infinity();
  if (s.front() == '"' || s.front() == '\'') return std::string(s.substr(1, s.size() - 2));
  if (s.front() == '[') {
    std::vector<std::int64_t> items;
    for (auto item : split_arguments(s.substr(1, s.size() - 2))) {
      std::int64_t n = 0;
      if (item == "True")
        n = 1;
      else if (item != "False")
        parse_integer(item, n);
      items.push_back(n);
    }
    return items;
  }
  std::int64_t n = 0;
  if (parse_integer(s, n)) return n;
  double d = 0;
  auto [end, failure] = std::from_chars(s.data(), s.data() + s.size(), d);
  if (failure == std::errc() && end == s.data() + s.size()) return d;
  return std::string(s);  // an enumerator: Mean, contiguous_format
}

// Where a schema is printed, dtypes are numbers of c10::ScalarType.
Attr dtype_of(std::int64_t number) {
  constexpr DType in_order[] = {DType::u8,  DType::i8,  DType::i16, DType::i32,
                                DType::i64, DType::f16, DType::f32, DType::f64};
  if (number >= 0 && number < std::ssize(in_order)) return in_order[number];
  return number == 11 ? Attr(DType::boolean) : number == 15 ? Attr(DType::bf16) : Attr(number);
}

// "Tensor(a!)?" -> "Tensor?", noting the write mark.
std::string plain_type(std::string_view s, bool& written) {
  std::string out;
  int depth = 0;
  for (char c : s) {
    if (c == '(') ++depth;
    if (depth == 0)
      out += c;
    else if (c == '!')
      written = true;
    if (c == ')') --depth;
  }
  return out;
}

}  // namespace

const SchemaArgument* Schema::argument(std::string_view wanted) const {
  for (const auto& a : arguments)
    if (a.name == wanted) return &a;
  return nullptr;
}

Result<Schema> parse_schema(std::string_view text) {
  auto bad = [&](const char* why) { return internal_error("operator schema '" + std::string(text) + "': " + why); };
  Schema schema;
  auto open = text.find('(');
  if (open == std::string_view::npos) return bad("no argument list");
  std::string_view head = text.substr(0, open);
  schema.ns = "aten";
  if (auto colons = head.find("::"); colons != std::string_view::npos) {
    schema.ns = head.substr(0, colons);
    head.remove_prefix(colons + 2);
  }
  auto dot = head.find('.');
  schema.name = head.substr(0, dot);
  schema.overload = dot == std::string_view::npos ? "default" : head.substr(dot + 1);

  auto arrow = text.rfind("->");
  if (arrow == std::string_view::npos) return bad("no return type");
  int depth = 0;
  std::size_t close = std::string_view::npos;
  for (std::size_t i = open; i < text.size(); ++i) {
    if (text[i] == '(') ++depth;
    if (text[i] == ')' && --depth == 0) {
      close = i;
      break;
    }
  }
  if (close == std::string_view::npos || (arrow = text.find("->", close)) == std::string_view::npos)
    return bad("unbalanced brackets");

  bool keyword_only = false;
  for (auto part : split_arguments(text.substr(open + 1, close - open - 1))) {
    if (part == "*") {
      keyword_only = true;
      continue;
    }
    SchemaArgument a;
    a.keyword_only = keyword_only;
    if (auto equals = part.find('='); equals != std::string_view::npos) {
      a.has_default = true;
      a.default_value = parse_default(trimmed(part.substr(equals + 1)));
      part = trimmed(part.substr(0, equals));
    }
    auto space = part.rfind(' ');
    if (space == std::string_view::npos) return bad("an argument without name");
    a.name = part.substr(space + 1);
    a.type = plain_type(trimmed(part.substr(0, space)), a.written);
    if (a.type == "ScalarType")
      if (const auto* number = std::get_if<std::int64_t>(&a.default_value)) a.default_value = dtype_of(*number);
    schema.arguments.push_back(std::move(a));
  }
  std::string_view returns = trimmed(text.substr(arrow + 2));
  schema.view = returns.find("(a)") != std::string_view::npos;
  if (!returns.empty() && returns.front() == '(') returns = returns.substr(1, returns.size() - 2);
  for (auto part : split_arguments(returns)) {
    bool written = false;
    std::string type = plain_type(part, written);
    schema.returns.push_back(type.substr(0, type.find(' ')));
  }
  schema.in_place = schema.name.size() > 1 && schema.name.back() == '_' && schema.name[schema.name.size() - 2] != '_' &&
                    !schema.arguments.empty() && schema.arguments[0].written;
  return schema;
}

}  // namespace tosaic
