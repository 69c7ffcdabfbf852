// SPDX-License-Identifier: Apache-2.0
// Graph -> text; text.h shows the form, parse.cpp reads it back.
#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <iterator>

#include "ir/base64.h"
#include "ir/graph.h"
#include "ir/lines_about.h"
#include "ir/tensor.h"
#include "ir/text.h"

namespace tosaic {
namespace text {

bool is_plain_name(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), is_name_char);
}

std::string number(double value) {
  if (std::isnan(value)) return "nan";
  std::string out = to_string(value);
  if (out.find_first_of(".ei") == std::string::npos) out += ".0";
  return out;
}

}  // namespace text

namespace {

std::string name_text(std::string_view name) {
  return text::is_plain_name(name) ? std::string(name) : text::quoted(name);
}

// Brackets mark it even when it is a number.
std::string size_text(const std::optional<Dim>& size) {
  if (!size) return "";
  return size->is_number() ? "(" + to_string(*size) + ")" : ranged_text(*size);
}

struct AttrText {
  std::string operator()(std::monostate) const { return "none"; }
  std::string operator()(bool v) const { return v ? "true" : "false"; }
  std::string operator()(std::int64_t v) const { return std::to_string(v); }
  std::string operator()(double v) const { return text::number(v); }
  std::string operator()(const std::string& v) const { return text::quoted(v); }
  std::string operator()(DType v) const { return std::string(name_of(v)); }
  std::string operator()(const SymbolicArgument& v) const {
    if (v.name.empty() && v.size && v.size->is_number()) return to_string(*v.size);
    return "$" + name_text(v.name) + size_text(v.size);
  }
  std::string operator()(const std::vector<SymbolicArgument>& v) const {
    std::string out;
    for (const SymbolicArgument& a : v) (out += out.empty() ? "" : ", ") += (*this)(a);
    return fmt::format("[{}]", out);
  }
  std::string operator()(const std::vector<std::int64_t>& v) const { return fmt::format("[{}]", fmt::join(v, ", ")); }
  std::string operator()(const std::vector<double>& v) const {
    if (v.empty()) return "[floats]";
    std::string out;
    for (double d : v) (out += out.empty() ? "" : ", ") += text::number(d);
    return fmt::format("[{}]", out);
  }
  std::string operator()(const std::vector<std::string>& v) const {
    if (v.empty()) return "[strings]";
    std::string out;
    for (const std::string& s : v) (out += out.empty() ? "" : ", ") += text::quoted(s);
    return fmt::format("[{}]", out);
  }
};

// The elements as numbers, and whether they read back as the same bytes (a NaN's payload would not).
struct ElementList {
  std::string text;
  bool exact;
};
ElementList element_list(const TensorType& of, const Bytes& data) {
  const DType type = of.dtype;
  const auto count = static_cast<std::size_t>(of.shape.elements());
  std::string out;
  std::vector<double> reals;
  std::vector<std::int64_t> integers;
  for (std::size_t i = 0; i < count; ++i) {
    if (i) out += ", ";
    if (is_float(type)) {
      const double real = element_as_double(type, data.data(), i);
      // f32 has shorter texts than the double that it converts to.
      std::string digits = type == DType::f32 ? fmt::format("{}", static_cast<float>(real)) : to_string(real);
      reals.push_back(std::strtod(digits.c_str(), nullptr));
      if (std::isnan(real)) digits = "nan";
      if (digits.find_first_of(".ein") == std::string::npos) digits += ".0";
      out += digits;
    } else {
      integers.push_back(element_as_integer(type, data.data(), i));
      out += std::to_string(integers.back());
    }
  }
  const Bytes back = is_float(type) ? constant_bytes(type, reals) : constant_bytes(type, integers);
  bool exact = back == data;
  for (std::int64_t v : integers) exact = exact && v >= range_of(type).lowest && v <= range_of(type).highest;
  for (double v : reals) exact = exact && !std::isnan(v);
  return {fmt::format("[{}]", out), exact};
}

class Printer {
 public:
  Printer(ConstantText constants, bool with_locations) : constants_(constants), with_locations_(with_locations) {}

  void graph(const Graph& g, int indent) {
    const std::string margin(static_cast<std::size_t>(indent), ' ');
    out_ += margin + "graph @" + name_text(g.name) + "(";
    for (std::size_t i = 0; i < g.inputs.size(); ++i) (out_ += i ? ", " : "") += typed(g, g.inputs[i]);
    out_ += ") -> (";
    for (std::size_t i = 0; i < g.outputs.size(); ++i) (out_ += i ? ", " : "") += operand(g, g.outputs[i]);
    out_ += ") {\n";
    const std::string inner(static_cast<std::size_t>(indent) + 2, ' ');
    std::vector<char> seen(g.values.size(), 0);
    for (ValueId v : g.inputs)
      if (v < seen.size()) seen[v] = 1;
    const auto made = producers_of(g);
    for (const State& s : g.states)
      if (s.input < seen.size() && !seen[s.input] && !made[s.input] && !g[s.input].is_constant()) {
        seen[s.input] = 1;
        const std::string initial = s.initial.null() ? "" : " = " + constant(g[s.input].type, s.initial);
        out_ += fmt::format("{}{} = state {}{}\n", inner, typed(g, s.input), text::quoted(s.name), initial);
      }
    // A constant stands just before its first reader.
    auto declare = [&](ValueId v) {
      if (v >= seen.size() || seen[v] || !g[v].is_constant()) return;
      seen[v] = 1;
      out_ += inner + value(g, v) + "\n";
    };
    for (const Node& n : g.nodes) {
      for (ValueId v : n.inputs) declare(v);
      node(g, n, indent + 2);
    }
    for (ValueId v = 0; v < g.values.size(); ++v) declare(v);
    for (const State& s : g.states)
      out_ +=
          fmt::format("{}state {} {} -> {}\n", inner, text::quoted(s.name), operand(g, s.input), operand(g, s.output));
    for (const Guard& guard : g.guards)
      out_ += fmt::format("{}guard {} {}\n", inner, text::quoted(guard.text), size_text(guard.violation));
    out_ += margin + "}\n";
  }

  std::string take() { return std::move(out_); }

  std::string value(const Graph& g, ValueId v) const {
    return g[v].is_constant() ? fmt::format("{} = constant {}", typed(g, v), constant(g[v].type, g[v].constant))
                              : typed(g, v);
  }

 private:
  static std::vector<char> producers_of(const Graph& g) {
    std::vector<char> made(g.values.size(), 0);
    for (const Node& n : g.nodes)
      for (ValueId v : n.outputs)
        if (v < made.size()) made[v] = 1;
    return made;
  }
  // Graphs that do not verify are printed as well: that is when a person needs to see them.
  static std::string operand(const Graph& g, ValueId v) {
    if (v == no_value) return "none";
    return v < g.values.size() ? fmt::format("%{}", name_text(g[v].name)) : fmt::format("%\"?{}\"", v);
  }
  static std::string typed(const Graph& g, ValueId v) {
    return v < g.values.size() ? operand(g, v) + ": " + to_string(g[v].type) + size_text(g[v].size) : operand(g, v);
  }

  std::string constant(const TensorType& type, const Bytes& data) const {
    const bool whole = !text::type_problem(type) && type.shape.is_static() && data.size() == type.storage_bytes();
    if (whole && type.shape.elements() <= text::max_listed_elements) {
      ElementList list = element_list(type, data);
      if (list.exact || constants_ == ConstantText::brief) return list.text;
    }
    // A look at a model of gigabytes does not read all of it.
    constexpr std::size_t largest_hashed = 1 << 24;
    if (constants_ == ConstantText::brief && data.size() > largest_hashed)
      return fmt::format("<{} bytes>", data.size());
    if (constants_ == ConstantText::brief) return fmt::format("<{} bytes, xxh3 {:016x}>", data.size(), hash_of(data));
    return '"' + base64_encode(data.data(), data.size()) + '"';
  }

  void node(const Graph& g, const Node& n, int indent) {
    const std::string margin(static_cast<std::size_t>(indent), ' ');
    out_ += margin;
    call(g, n);
    if (!n.regions.empty()) {
      out_ += " (\n";
      for (const Graph& region : n.regions) graph(region, indent + 2);
      out_ += margin + ")";
    }
    out_ += "\n";
  }

 public:
  // Without its bodies.
  void call(const Graph& g, const Node& n) {
    for (std::size_t i = 0; i < n.outputs.size(); ++i) (out_ += i ? ", " : "") += typed(g, n.outputs[i]);
    if (!n.outputs.empty()) out_ += " = ";
    // A name without a dot could be taken for a word of the text form.
    out_ += n.op.name().find('.') != std::string_view::npos ? name_text(n.op.name()) : text::quoted(n.op.name());
    out_ += "(";
    for (std::size_t i = 0; i < n.inputs.size(); ++i) (out_ += i ? ", " : "") += operand(g, n.inputs[i]);
    out_ += ")";
    if (n.attrs.size() > 0) out_ += " {" + attributes_of(n) + "}";
    if (with_locations_ && n.loc) location(*n.loc);
  }

 private:
  void location(const Loc& loc) {
    std::string parts;
    if (!loc.place.file.empty() || loc.place.line != 0 || !loc.place.text.empty()) {
      parts += fmt::format(" {}:{}", text::quoted(loc.place.file), loc.place.line);
      if (!loc.place.text.empty()) parts += " " + text::quoted(loc.place.text);
    }
    if (!loc.module_path.empty() || !loc.module_type.empty())
      parts += fmt::format(" in {} {}", text::quoted(loc.module_path), text::quoted(loc.module_type));
    if (!loc.torch_function.empty()) parts += " fn " + text::quoted(loc.torch_function);
    if (!loc.op.empty()) parts += " from " + text::quoted(loc.op);
    if (!loc.name.empty()) parts += " as " + text::quoted(loc.name);
    for (const std::string& name : loc.also) parts += " " + text::quoted(name);
    out_ += " loc(" + (parts.empty() ? parts : parts.substr(1)) + ")";
  }

  ConstantText constants_;
  bool with_locations_;
  std::string out_;
};

}  // namespace

std::string attributes_of(const Node& node) {
  std::string out;
  for (const auto& [name, attr] : node.attrs)
    out += fmt::format("{}{}={}", out.empty() ? "" : ", ", name_text(name), std::visit(AttrText{}, attr));
  return out;
}

std::string print(const Graph& graph, ConstantText constants, bool with_locations) {
  Printer printer(constants, with_locations);
  printer.graph(graph, 0);
  return printer.take();
}

std::string line_of(const Graph& graph, const Node& node) {
  Printer printer(ConstantText::brief, false);
  printer.call(graph, node);
  return printer.take();
}

std::string line_of(const Graph& graph, ValueId value) {
  return Printer(ConstantText::brief, false).value(graph, value);
}

}  // namespace tosaic
