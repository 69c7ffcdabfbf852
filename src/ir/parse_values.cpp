// SPDX-License-Identifier: Apache-2.0
#include "ir/parse_values.h"

#include <fmt/format.h>
#include <cmath>

#include "ir/base64.h"
#include "ir/tensor.h"
#include "ir/text.h"

namespace tosaic::text {

Dim ValueParser::symbolic_dim() {
  const std::size_t begin = pos_;
  int depth = 1;
  bool quoted = false;
  for (; pos_ < text_.size() && text_[pos_] != '\n'; ++pos_) {
    const char c = text_[pos_];
    if (quoted && c == '\\')
      ++pos_;
    else if (c == '"')
      quoted = !quoted;
    else if (!quoted)
      depth += (c == '(') - (c == ')');
    if (depth == 0) break;
  }
  if (depth != 0) expected("')' after a symbolic dimension");
  std::string why;
  const auto dim = parse_ranged(text_.substr(begin, pos_ - begin), why);
  if (!dim) {
    pos_ = begin;
    wrong("ir.type", "a symbolic dimension cannot be read: " + why);
  }
  ++pos_;
  return *dim;
}

TensorType ValueParser::type() {
  TensorType t;
  std::vector<Dim> dims;
  skip();
  while (pos_ < text_.size() && (text_[pos_] == '(' || (text_[pos_] >= '0' && text_[pos_] <= '9'))) {
    if (text_[pos_] == '(') {
      ++pos_;
      dims.push_back(symbolic_dim());
    } else {
      dims.push_back(integer("a dimension"));
    }
    if (pos_ >= text_.size() || text_[pos_] != 'x') expected("'x' after a dimension");
    ++pos_;
  }
  t.shape = Shape(std::move(dims));
  t.dtype = dtype();
  if (pos_ < text_.size() && text_[pos_] == '<') {
    ++pos_;
    t.scales = scales();
  }
  if (auto problem = type_problem(t)) wrong("ir.type", "no tensor can have this type: " + *problem);
  return t;
}

DType ValueParser::dtype() {
  std::string_view word = peek_word();
  auto found = dtype_named(word);
  if (!found) expected("a dtype such as f32 or i8");
  pos_ += word.size();
  return *found;
}

Scales ValueParser::scales() {
  Scales s;
  s.scale.clear();
  s.zero_point.clear();
  do {
    s.scale.push_back(real("a scale"));
    expect(":");
    s.zero_point.push_back(integer("a zero point"));
  } while (accept(","));
  if (accept_word("axis")) {
    const std::int64_t axis = integer("an axis");
    if (axis < 0 || axis > 1000000) wrong("ir.type", fmt::format("axis {} is not an axis", axis));
    s.axis = static_cast<int>(axis);
  }
  if (accept_word("in")) {
    s.lowest = integer("the lowest quantised value");
    expect("..");
    s.highest = integer("the highest quantised value");
  }
  expect(">");
  return s;
}

// The number under the cursor: an integer unless it is spelled like a float.
Attr ValueParser::number() {
  std::size_t end = pos_;
  bool floating = false;
  while (end < text_.size() && (is_name_char(text_[end]) || text_[end] == '-' || text_[end] == '+')) {
    const char c = text_[end++];
    floating = floating || (c != '-' && (c < '0' || c > '9'));
  }
  if (floating) return real("a number");
  return integer("a number");
}

Attr ValueParser::list() {
  if (accept("]")) return std::vector<std::int64_t>{};
  if (accept_word("floats")) {
    expect("]");
    return std::vector<double>{};
  }
  if (accept_word("strings")) {
    expect("]");
    return std::vector<std::string>{};
  }
  Attr result;
  if (peek() == '"') {
    std::vector<std::string> strings;
    do strings.push_back(string("a string"));
    while (accept(","));
    result = std::move(strings);
  } else {
    std::vector<std::int64_t> ints;
    std::vector<double> reals;
    std::vector<SymbolicArgument> arguments;
    do {
      if (peek() == '$' || !arguments.empty()) {
        if (!reals.empty()) expected("a list of integers only or of floats only");
        for (std::int64_t n : ints) arguments.push_back({"", Dim(n)});
        ints.clear();
        arguments.push_back(peek() == '$' ? argument() : SymbolicArgument{"", Dim(integer("an integer"))});
        continue;
      }
      Attr a = number();
      if (auto* d = std::get_if<double>(&a))
        reals.push_back(*d);
      else
        ints.push_back(std::get<std::int64_t>(a));
      if (!ints.empty() && !reals.empty()) expected("a list of integers only or of floats only");
    } while (accept(","));
    if (!arguments.empty())
      result = std::move(arguments);
    else if (reals.empty())
      result = std::move(ints);
    else
      result = std::move(reals);
  }
  expect("]");
  return result;
}

SymbolicArgument ValueParser::argument() {
  expect("$");
  SymbolicArgument a;
  a.name = name("the name of a run-time argument");
  a.size = size();
  return a;
}

std::optional<Dim> ValueParser::size() {
  if (pos_ >= text_.size() || text_[pos_] != '(') return std::nullopt;
  ++pos_;
  return symbolic_dim();
}

Attr ValueParser::attribute() {
  const char c = peek();
  if (c == '"') return string("a string");
  if (c == '$') { return argument(); }
  if (c == '[') {
    ++pos_;
    return list();
  }
  if (c == '-' || (c >= '0' && c <= '9')) return number();
  std::string_view word = peek_word();
  if (word == "inf" || word == "nan") return number();
  for (auto [text, value] :
       {std::pair<std::string_view, Attr>{"none", Attr{}}, {"true", Attr{true}}, {"false", Attr{false}}})
    if (word == text) {
      pos_ += word.size();
      return value;
    }
  if (!dtype_named(word)) expected("an attribute value");
  return dtype();
}

Attrs ValueParser::attributes() {
  Attrs attrs;
  if (accept("}")) return attrs;
  do {
    std::string key = name("an attribute name");
    if (attrs.find(key)) wrong("ir.duplicate-name", "attribute '" + key + "' is given twice");
    expect("=");
    attrs.set(std::move(key), attribute());
  } while (accept(","));
  expect("}");
  return attrs;
}

LocRef ValueParser::location() {
  auto loc = std::make_shared<Loc>();
  if (peek() == '"') {
    loc->place.file = string("a file name");
    expect(":");
    loc->place.line = integer("a line number");
    if (peek() == '"') loc->place.text = string("the source line");
  }
  if (accept_word("in")) {
    loc->module_path = string("a module path");
    loc->module_type = string("a module type");
  }
  if (accept_word("fn")) loc->torch_function = string("a function name");
  if (accept_word("from")) loc->op = string("an operator name");
  if (accept_word("as")) loc->name = string("a node name");
  while (!loc->name.empty() && peek() == '"') loc->also.push_back(string("a node name"));
  expect(")");
  return loc;
}

Bytes ValueParser::constant(const TensorType& t) {
  if (!t.shape.is_static()) wrong("ir.constant-size", "a constant of type " + to_string(t) + " has no certain size");
  if (accept("<")) wrong("ir.brief-constant", "the constant's data was left out when this text was printed");
  if (peek() == '"') {
    const std::size_t start = pos_;
    auto data = base64_decode(string("base64 data"));
    if (!data || data->size() != t.storage_bytes()) {
      pos_ = start;
      if (!data) wrong("ir.text", "expected base64 data");
      wrong("ir.constant-size",
            fmt::format("{} needs {} bytes, the text holds {}", to_string(t), t.storage_bytes(), data->size()));
    }
    return Bytes::of(std::move(*data));
  }
  const std::size_t start = pos_;
  expect("[");
  std::vector<double> reals;
  std::vector<std::int64_t> integers;
  if (!accept("]")) {
    do {
      if (is_float(t.dtype)) {
        reals.push_back(real("a number"));
        continue;
      }
      integers.push_back(integer("an integer"));
      const IntegerRange range = range_of(t.dtype);
      if (integers.back() < range.lowest || integers.back() > range.highest)
        wrong("ir.text", fmt::format("{} is no {}", integers.back(), name_of(t.dtype)));
    } while (accept(","));
    expect("]");
  }
  const std::size_t count = reals.size() + integers.size();
  if (count != static_cast<std::size_t>(t.shape.elements())) {
    pos_ = start;
    wrong("ir.constant-size",
          fmt::format("{} needs {} elements, the text holds {}", to_string(t), t.shape.elements(), count));
  }
  return is_float(t.dtype) ? constant_bytes(t.dtype, reals) : constant_bytes(t.dtype, integers);
}

}  // namespace tosaic::text
