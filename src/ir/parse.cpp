// SPDX-License-Identifier: Apache-2.0
// Text -> graph; text.h shows the form. Every error says where, and what was expected.
#include <fmt/format.h>
#include <charconv>
#include <cmath>
#include <unordered_map>

#include "ir/base64.h"
#include "ir/graph.h"
#include "ir/tensor.h"
#include "ir/text.h"

namespace tosaic {
namespace {

// Thrown and caught inside this file only: a recursive descent reads better without a check at every step.
struct Wrong {
  Diagnostic why;
};

class Parser {
 public:
  Parser(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  Graph whole() {
    Graph g = graph(1);
    if (!at_end()) expected("the end of the text");
    return g;
  }

 private:
  // ---- characters

  [[noreturn]] void wrong(const std::string& code, const std::string& message) const {
    std::size_t begin = text_.rfind('\n', pos_ == 0 ? 0 : pos_ - 1);
    begin = begin == std::string_view::npos || begin >= pos_ ? 0 : begin + 1;
    std::size_t end = std::min(text_.find('\n', pos_), text_.size());
    std::int64_t line = 1;
    for (char c : text_.substr(0, pos_)) line += c == '\n';
    std::string quoted(text_.substr(begin, std::min<std::size_t>(end - begin, 120)));
    throw Wrong{error(code, message).at({file_, line, std::move(quoted)})};
  }
  [[noreturn]] void expected(const std::string& what) const {
    if (pos_ >= text_.size()) wrong("ir.text", "expected " + what + ", found the end of the text");
    std::size_t end = pos_ + 1;
    if (text::is_name_char(text_[pos_]))
      while (end < text_.size() && end < pos_ + 40 && text::is_name_char(text_[end])) ++end;
    wrong("ir.text", fmt::format("expected {}, found {}", what, text::quoted(text_.substr(pos_, end - pos_))));
  }
  void skip() {
    for (; pos_ < text_.size(); ++pos_) {
      const char c = text_[pos_];
      if (c == '/' && pos_ + 1 < text_.size() && text_[pos_ + 1] == '/') {
        pos_ = std::min(text_.find('\n', pos_), text_.size());
        if (pos_ == text_.size()) return;
      } else if (c != ' ' && c != '\n' && c != '\t' && c != '\r') {
        return;
      }
    }
  }
  bool at_end() {
    skip();
    return pos_ >= text_.size();
  }
  char peek() {
    skip();
    return pos_ < text_.size() ? text_[pos_] : '\0';
  }
  bool accept(std::string_view symbol) {
    skip();
    if (!text_.substr(pos_).starts_with(symbol)) return false;
    pos_ += symbol.size();
    return true;
  }
  void expect(std::string_view symbol) {
    if (!accept(symbol)) expected("'" + std::string(symbol) + "'");
  }
  std::string_view peek_word() {
    skip();
    std::size_t end = pos_;
    while (end < text_.size() && text::is_name_char(text_[end])) ++end;
    return text_.substr(pos_, end - pos_);
  }
  bool accept_word(std::string_view word) {
    if (peek_word() != word) return false;
    pos_ += word.size();
    return true;
  }

  // ---- words

  std::string string(const char* what) {
    if (peek() != '"') expected(what);
    std::string out;
    for (++pos_; pos_ < text_.size() && text_[pos_] != '"'; ++pos_) {
      char c = text_[pos_];
      if (c == '\n') break;
      if (c == '\\') {
        if (++pos_ >= text_.size()) break;
        c = text_[pos_];
        if (c == 'n')
          c = '\n';
        else if (c == 'r')
          c = '\r';
        else if (c == 't')
          c = '\t';
        else if (c == 'x') {
          unsigned code = 0;
          const char* first = text_.data() + pos_ + 1;
          const char* last = std::min(first + 2, text_.data() + text_.size());
          if (auto [p, e] = std::from_chars(first, last, code, 16); e != std::errc{} || p != first + 2)
            expected("two hexadecimal digits after \\x");
          c = static_cast<char>(code);
          pos_ += 2;
        } else if (c != '"' && c != '\\') {
          expected("one of \" \\ n r t x after a backslash");
        }
      }
      out += c;
    }
    if (pos_ >= text_.size() || text_[pos_] != '"') expected("the closing '\"'");
    ++pos_;
    return out;
  }
  std::string name(const char* what) {
    if (peek() == '"') return string(what);
    std::string_view word = peek_word();
    if (word.empty()) expected(what);
    pos_ += word.size();
    return std::string(word);
  }
  std::int64_t integer(const char* what) {
    skip();
    std::int64_t value = 0;
    auto [end, bad] = std::from_chars(text_.data() + pos_, text_.data() + text_.size(), value);
    if (bad == std::errc::result_out_of_range) wrong("ir.text", "the integer does not fit 64 bits");
    if (bad != std::errc{}) expected(what);
    pos_ = static_cast<std::size_t>(end - text_.data());
    return value;
  }
  double real(const char* what) {
    skip();
    double value = 0;
    auto [end, bad] = std::from_chars(text_.data() + pos_, text_.data() + text_.size(), value);
    if (bad == std::errc::result_out_of_range) wrong("ir.text", "the number does not fit a double");
    if (bad != std::errc{}) expected(what);
    pos_ = static_cast<std::size_t>(end - text_.data());
    return value;
  }

  // ---- types

  Dim symbolic_dim() {  // behind "("
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
  TensorType type() {
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
    if (auto problem = text::type_problem(t)) wrong("ir.type", "no tensor can have this type: " + *problem);
    return t;
  }
  DType dtype() {
    std::string_view word = peek_word();
    auto found = dtype_named(word);
    if (!found) expected("a dtype such as f32 or i8");
    pos_ += word.size();
    return *found;
  }
  Scales scales() {  // behind "<"
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

  // ---- attributes

  // The number under the cursor: an integer unless it is spelled like a float.
  Attr number() {
    std::size_t end = pos_;
    bool floating = false;
    while (end < text_.size() && (text::is_name_char(text_[end]) || text_[end] == '-' || text_[end] == '+')) {
      const char c = text_[end++];
      floating = floating || (c != '-' && (c < '0' || c > '9'));
    }
    if (floating) return real("a number");
    return integer("a number");
  }
  Attr list() {  // behind "["
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
  SymbolicArgument argument() {
    expect("$");
    SymbolicArgument a;
    a.name = name("the name of a run-time argument");
    a.size = size();
    return a;
  }
  // What an integer is that follows from sizes, where its brackets follow.
  std::optional<Dim> size() {
    if (pos_ >= text_.size() || text_[pos_] != '(') return std::nullopt;
    ++pos_;
    return symbolic_dim();
  }
  Attr attribute() {
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
  Attrs attributes() {  // behind "{"
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
  LocRef location() {  // behind "loc("
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

  // ---- constants

  Bytes constant(const TensorType& t) {
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

  // ---- graphs

  using Names = std::unordered_map<std::string, ValueId>;

  struct Typed {
    std::string name;
    TensorType type;
    std::optional<Dim> size;
    std::size_t at;
  };
  Typed typed() {  // behind "%"
    skip();
    Typed t{{}, {}, {}, pos_};
    t.name = name("a value name");
    expect(":");
    t.type = type();
    t.size = size();
    return t;
  }
  ValueId define(Graph& g, Names& names, Typed t, Bytes constant = {}) {
    auto id = static_cast<ValueId>(g.values.size());
    if (!names.emplace(t.name, id).second) {
      pos_ = t.at;
      wrong("ir.duplicate-name", "value '" + t.name + "' is defined twice");
    }
    g.add_value(std::move(t.name), std::move(t.type), std::move(constant));
    g[id].size = t.size;
    return id;
  }
  ValueId use(const Names& names) {
    if (accept_word("none")) return no_value;
    expect("%");
    const std::size_t start = pos_;
    std::string wanted = name("a value name");
    auto found = names.find(wanted);
    if (found == names.end()) {
      pos_ = start;
      wrong("ir.undefined-value", "value '" + wanted + "' is not defined before this line");
    }
    return found->second;
  }
  // "item, item, ...)" behind an opening parenthesis.
  template <class F>
  void items(F&& item) {
    if (accept(")")) return;
    do item();
    while (accept(","));
    expect(")");
  }

  Graph graph(int depth) {
    if (depth > text::max_nesting)
      wrong("ir.nesting", fmt::format("graphs are nested more than {} deep", text::max_nesting));
    if (!accept_word("graph")) expected("'graph'");
    Graph g;
    Names names;
    expect("@");
    g.name = name("the graph's name");
    expect("(");
    items([&] {
      expect("%");
      g.inputs.push_back(define(g, names, typed()));
    });
    expect("->");
    expect("(");
    // Results are defined further down: remember where each name stands.
    std::vector<std::size_t> results;
    items([&] {
      skip();
      results.push_back(pos_);
      if (accept_word("none")) return;
      expect("%");
      name("a value name");
    });
    expect("{");
    Initial initial;
    while (!accept("}")) {
      if (accept_word("state")) {
        State s;
        s.name = string("the state's name");
        s.input = use(names);
        expect("->");
        s.output = use(names);
        if (const auto found = initial.find(s.input); found != initial.end()) s.initial = found->second;
        g.states.push_back(std::move(s));
      } else if (accept_word("guard")) {
        std::string text = string("what holds");
        skip();
        const auto violation = size();
        if (!violation) expected("a symbolic size in brackets");
        g.guards.push_back({std::move(text), *violation});
      } else {
        statement(g, names, initial, depth);
      }
    }
    const std::size_t end = pos_;
    for (std::size_t start : results) {
      pos_ = start;
      g.outputs.push_back(use(names));
    }
    pos_ = end;
    return g;
  }

  using Initial = std::unordered_map<ValueId, Bytes>;  // what states hold at first
  void statement(Graph& g, Names& names, Initial& initial, int depth) {
    std::vector<std::optional<Typed>> results;
    const bool has_results = peek() == '%' || peek_word() == "none";
    if (has_results) {
      do {
        if (accept_word("none")) {
          results.emplace_back();
        } else {
          expect("%");
          results.emplace_back(typed());
        }
      } while (accept(","));
      expect("=");
    }
    const std::string_view word = peek_word();
    if (results.size() == 1 && results[0] && (word == "constant" || word == "state")) {
      pos_ += word.size();
      if (word == "state") {
        string("the state's name");  // which value it is, the closing state line says
        const TensorType type = results[0]->type;
        const ValueId id = define(g, names, std::move(*results[0]));
        if (accept("=")) initial.emplace(id, constant(type));
      } else {
        Bytes data = constant(results[0]->type);
        define(g, names, std::move(*results[0]), std::move(data));
      }
      return;
    }
    Node node;
    node.op = Operator(name(has_results ? "an operator" : "a statement or '}'"));
    expect("(");
    items([&] { node.inputs.push_back(use(names)); });
    if (accept("{")) node.attrs = attributes();
    if (accept_word("loc")) {
      expect("(");
      node.loc = location();
    }
    if (accept("("))
      while (!accept(")")) node.regions.push_back(graph(depth + 1));
    for (auto& result : results) node.outputs.push_back(result ? define(g, names, std::move(*result)) : no_value);
    g.nodes.push_back(std::move(node));
  }

  std::string_view text_;
  const std::string& file_;
  std::size_t pos_ = 0;
};

}  // namespace

Result<Graph> parse(std::string_view text, const std::string& file) {
  try {
    Graph graph = Parser(text, file).whole();
    // What has no single line to blame: states, values that nobody defines.
    if (Status status = verify(graph); !status) {
      if (status.error().place.file.empty()) return std::move(status.error()).at({file, 0, ""});
      return status.error();
    }
    return graph;
  } catch (Wrong& wrong) { return std::move(wrong.why); }
}

}  // namespace tosaic
