// SPDX-License-Identifier: Apache-2.0
#include "ops/domain.h"

#include <fmt/format.h>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <set>

namespace tosaic::domain {
namespace {

std::string_view trimmed(std::string_view s) {
  while (!s.empty() && s.front() == ' ') s.remove_prefix(1);
  while (!s.empty() && s.back() == ' ') s.remove_suffix(1);
  return s;
}

std::vector<std::string_view> split(std::string_view s) {
  std::vector<std::string_view> parts;
  int depth = 0;
  bool quoted = false;  // einsum's equations hold commas
  std::size_t start = 0;
  for (std::size_t i = 0; i <= s.size(); ++i) {
    if (i < s.size() && s[i] == '\'') quoted = !quoted;
    if (quoted && i < s.size()) continue;
    if (i < s.size() && (s[i] == '(' || s[i] == '[')) ++depth;
    if (i < s.size() && (s[i] == ')' || s[i] == ']')) --depth;
    if (i == s.size() || (s[i] == ',' && depth == 0)) {
      auto part = trimmed(s.substr(start, i - start));
      if (!part.empty()) parts.push_back(part);
      start = i + 1;
    }
  }
  return parts;
}

bool whole(std::string_view s, std::int64_t& out) {
  auto [end, failure] = std::from_chars(s.data(), s.data() + s.size(), out);
  return failure == std::errc() && end == s.data() + s.size();
}

bool real(std::string_view s, double& out) {
  bool negative = s.starts_with('-');
  std::string_view magnitude = s.substr(negative ? 1 : 0);
  if (magnitude == "inf")
    out = std::numeric_limits<double>::infinity();
  else if (magnitude == "nan")
    out = std::numeric_limits<double>::quiet_NaN();
  else {
    auto [end, failure] = std::from_chars(s.data(), s.data() + s.size(), out);
    return failure == std::errc() && end == s.data() + s.size();
  }
  if (negative) out = -out;
  return true;
}

std::optional<Generator> generator(std::string_view s) {
  static const std::set<std::string_view> kinds{"x", "u", "s", "e", "f", "n", "i", "l", "i8", "u8", "b"};
  static const std::set<std::string_view> bounded{"u", "s", "i", "l", "i8", "u8"};
  auto open = s.find('(');
  if (open == std::string_view::npos || s.back() != ')') return std::nullopt;
  auto inside = s.substr(open + 1, s.size() - open - 2);
  Generator g;
  g.kind = s.substr(0, open);
  if (g.kind == "const") {
    auto inner = generator(trimmed(inside));
    if (inner) inner->constant = true;
    return inner;
  }
  if (!kinds.count(g.kind)) return std::nullopt;
  auto numbers = split(inside);
  std::size_t first = 0;
  if (bounded.count(g.kind)) {
    if (numbers.size() < 2 || !real(numbers[0], g.lowest) || !real(numbers[1], g.highest)) return std::nullopt;
    first = 2;
  }
  for (std::size_t i = first; i < numbers.size(); ++i) {
    std::int64_t n;
    if (!whole(numbers[i], n) || n < 0) return std::nullopt;
    g.shape.push_back(n);
  }
  return g;
}

std::optional<Attr> literal(std::string_view s) {
  if (s == "None") return Attr{};
  if (s == "True") return Attr{true};
  if (s == "False") return Attr{false};
  if (s.size() >= 2 && s.front() == '\'' && s.back() == '\'') return Attr{std::string(s.substr(1, s.size() - 2))};
  if (auto type = dtype_named(s)) return Attr{*type};
  std::int64_t n;
  double d;
  if (whole(s, n)) return Attr{n};
  if (real(s, d)) return Attr{d};
  if (s.size() >= 2 && s.front() == '[' && s.back() == ']') {
    std::vector<std::int64_t> integers;
    std::vector<double> reals;
    bool all_whole = true;
    for (auto part : split(s.substr(1, s.size() - 2))) {
      if (part == "True" || part == "False") part = part == "True" ? "1" : "0";
      if (whole(part, n))
        integers.push_back(n);
      else
        all_whole = false;
      if (!real(part, d)) return std::nullopt;
      reals.push_back(d);
    }
    if (all_whole) return Attr{integers};
    return Attr{reals};
  }
  return std::nullopt;
}

Status exceptions(std::string_view s, Case& out) {
  auto colon = s.find(':');
  if (colon == std::string_view::npos || trimmed(s.substr(colon + 1)).empty())
    return error("domain.no-reason", fmt::format("the exception '{}' states no reason", s));
  s = trimmed(s.substr(0, colon));
  while (!s.empty()) {
    auto space = s.find(' ');
    auto word = s.substr(0, space);
    s = space == std::string_view::npos ? std::string_view{} : trimmed(s.substr(space));
    auto equals = word.find('=');
    auto value = equals == std::string_view::npos ? std::string_view{} : word.substr(equals + 1);
    auto key = word.substr(0, equals);
    if (key == "rtol" && real(value, out.rtol)) continue;
    if (key == "atol" && real(value, out.atol)) continue;
    if (key == "steps" && real(value, out.steps)) continue;
    if (key == "share" && real(value, out.share)) continue;
    if (double n = 0; key == "results" && real(value, n)) {
      out.results = static_cast<std::size_t>(n);
      continue;
    }
    if (key == "half" && value == "off") {
      out.half = false;
      continue;
    }
    if (key == "refused" && !value.empty()) {
      out.refused = value;
      continue;
    }
    if (!value.empty() && (key == "int8" || key == "integer")) out.no_int8 = value;
    if (!value.empty() && (key == "int16x8" || key == "integer")) out.no_int16 = value;
    if (!value.empty() && (key == "int8" || key == "int16x8" || key == "integer")) continue;
    if (key == "values" && value == "zeros") {
      out.zeros = true;
      continue;
    }
    return error("domain.bad-exception", fmt::format("'{}' is no exception", word));
  }
  return {};
}

// The schema that "Tensor" or "relu6.default" or "" (the first) names.
const Schema* overload(const NamedAtenOp& op, std::string_view name, std::string& tried) {
  for (auto text : op.op.schemas) {
    auto schema = parse_schema(text);
    if (!schema.ok()) continue;
    const Schema* found = find_aten(Operator(schema->full_name())).schema;
    if (!found || found->in_place) continue;
    if (name.empty() || name == found->overload || name == found->name + "." + found->overload) return found;
    tried += tried.empty() ? found->overload : ", " + found->overload;
  }
  return nullptr;
}

}  // namespace

Result<Case> parse(const NamedAtenOp& op, std::string_view text) {
  auto bad = [&](std::string why) {
    return error("domain.bad-call", fmt::format("{}: \"{}\": {}", op.file, text, why));
  };
  Case result;
  result.text = text;
  std::string_view s = text, name;
  if (auto hash = s.find('#'); hash != std::string_view::npos) {
    TOSAIC_CHECK(exceptions(trimmed(s.substr(hash + 1)), result));
    s = s.substr(0, hash);
  }
  if (auto colon = s.find(':'); colon != std::string_view::npos) {
    name = trimmed(s.substr(0, colon));
    s = s.substr(colon + 1);
  }
  std::string tried;
  result.schema = overload(op, name, tried);
  if (!result.schema) return bad(fmt::format("no overload '{}' (there are: {})", name, tried));

  std::size_t position = 0;
  for (auto part : split(s)) {
    Argument a;
    if (auto equals = part.find('='); equals != std::string_view::npos && part.find_first_of("('[") > equals) {
      a.name = trimmed(part.substr(0, equals));
      part = trimmed(part.substr(equals + 1));
      if (!result.schema->argument(a.name)) return bad(fmt::format("no argument '{}'", a.name));
    } else {
      if (position >= result.schema->arguments.size()) return bad("too many arguments");
      a.name = result.schema->arguments[position++].name;
    }
    if (auto g = generator(part)) {
      a.is_tensor = true;
      a.tensors.push_back(g);
    } else if (part.size() > 2 && part.front() == '[' && part.find('(') != std::string_view::npos) {
      a.is_tensor = a.is_list = true;
      for (auto item : split(part.substr(1, part.size() - 2))) {
        a.tensors.push_back(generator(item));
        if (!a.tensors.back() && item != "None") return bad(fmt::format("'{}' is no tensor", item));
      }
    } else if (auto value = literal(part)) {
      a.literal = *value;
    } else {
      return bad(fmt::format("'{}' is neither a tensor nor a literal", part));
    }
    result.arguments.push_back(std::move(a));
  }
  return result;
}

Tensor example(const Generator& g) {
  static const std::map<std::string_view, DType> dtypes{
      {"i", DType::i32}, {"l", DType::i32}, {"i8", DType::i8}, {"u8", DType::u8}, {"b", DType::boolean}};
  const auto it = dtypes.find(g.kind);
  const TensorType type{it == dtypes.end() ? DType::f32 : it->second, Shape(g.shape), {}};
  const bool bounded = g.highest > g.lowest;
  const double lowest = bounded ? g.lowest : is_float(type.dtype) ? -1 : 0, highest = bounded ? g.highest : lowest + 2;
  std::vector<double> values(static_cast<std::size_t>(type.shape.elements()));
  std::uint32_t state = 1;
  for (double& x : values) {
    state = state * 1664525u + 1013904223u;
    x = lowest + (highest - lowest) * (state / 4294967296.0);
    if (!is_float(type.dtype)) x = std::floor(x);
  }
  return {type, constant_bytes(type.dtype, values)};
}

namespace {

std::string number(double d) {
  if (std::isnan(d)) return "\"nan\"";
  if (std::isinf(d)) return d > 0 ? "\"inf\"" : "\"-inf\"";
  return fmt::format("{:.17g}", d);
}

std::string json(const Generator& g) {
  return fmt::format("{{\"kind\": {}, \"lowest\": {}, \"highest\": {}, \"shape\": [{}]}}", json_quote(g.kind), g.lowest,
                     g.highest, fmt::join(g.shape, ", "));
}

std::string json(const Attr& attr) {
  struct Visit {
    std::string operator()(std::monostate) const { return "{\"literal\": null}"; }
    std::string operator()(bool b) const { return fmt::format("{{\"literal\": {}}}", b); }
    std::string operator()(std::int64_t i) const { return fmt::format("{{\"literal\": {}}}", i); }
    std::string operator()(double d) const {
      return fmt::format("{{\"real\": {}}}", std::isfinite(d) ? fmt::format("{:.17g}", d) : number(d));
    }
    std::string operator()(const std::string& s) const { return fmt::format("{{\"literal\": {}}}", json_quote(s)); }
    std::string operator()(const std::vector<std::int64_t>& v) const {
      return fmt::format("{{\"literal\": [{}]}}", fmt::join(v, ", "));
    }
    std::string operator()(const std::vector<double>& v) const {
      return fmt::format("{{\"reals\": [{}]}}", fmt::join(v, ", "));
    }
    std::string operator()(const std::vector<std::string>&) const { return "{\"literal\": []}"; }
    std::string operator()(DType t) const { return fmt::format("{{\"dtype\": {}}}", json_quote(name_of(t))); }
    std::string operator()(const SymbolicArgument&) const { return "{\"literal\": null}"; }
    std::string operator()(const std::vector<SymbolicArgument>&) const { return "{\"literal\": []}"; }
  };
  return std::visit(Visit{}, attr);
}

}  // namespace

std::string json(const NamedAtenOp& op, std::size_t index, const Case& parsed) {
  std::string arguments;
  for (const Argument& a : parsed.arguments) {
    const SchemaArgument& formal = *parsed.schema->argument(a.name);
    std::string value;
    if (a.is_tensor) {
      for (const auto& g : a.tensors) value += (value.empty() ? "" : ", ") + (g ? json(*g) : std::string("null"));
      value = fmt::format("{{\"{}\": [{}]}}", a.is_list ? "tensors" : "tensor", value);
    } else {
      value = json(a.literal);
    }
    arguments += fmt::format("{}{{\"name\": {}, \"keyword\": {}, \"value\": {}}}", arguments.empty() ? "" : ", ",
                             json_quote(a.name), formal.keyword_only, value);
  }
  return fmt::format(
      "{{\"operator\": {}, \"case\": {}, \"namespace\": {}, \"name\": {}, \"overload\": {}, \"text\": {}, "
      "\"arguments\": [{}], \"refused\": {}, \"zeros\": {}}}",
      json_quote(op.file), index, json_quote(parsed.schema->ns), json_quote(parsed.schema->name),
      json_quote(parsed.schema->overload), json_quote(parsed.text), arguments, !parsed.refused.empty(), parsed.zeros);
}

}  // namespace tosaic::domain
