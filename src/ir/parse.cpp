// SPDX-License-Identifier: Apache-2.0
// Text -> graph; text.h shows the form.
#include <fmt/format.h>
#include <unordered_map>

#include "ir/graph.h"
#include "ir/parse_values.h"
#include "ir/text.h"

namespace tosaic {
namespace {

class Parser : text::ValueParser {
 public:
  Parser(std::string_view text, const std::string& file) : ValueParser(text, file) {}

  Graph whole() {
    Graph g = graph(1);
    if (!at_end()) expected("the end of the text");
    return g;
  }

 private:
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
  } catch (text::Wrong& wrong) { return std::move(wrong.why); }
}

}  // namespace tosaic
