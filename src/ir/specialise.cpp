// SPDX-License-Identifier: Apache-2.0
#include "ir/specialise.h"

#include <fmt/format.h>
#include <algorithm>

#include "ir/dim_form.h"
#include "ir/tensor.h"
#include "ir/text.h"

namespace tosaic {

Dim at(const Dim& dim, const Sizes& sizes) {
  return dim.with([&](const Symbol& s) {
    const auto found = sizes.find(s.name);
    return found == sizes.end() ? Dim(s) : Dim(found->second);
  });
}

namespace {

Diagnostic size_error(const std::string& message) {
  return error("model.size", message)
      .hint("`tosaic inspect` shows the symbols of the program's sizes and their ranges");
}

void collect(const Graph& graph, ValueId v, std::vector<Symbol>& found) {
  const auto add = [&](const Dim& dim) {
    for (const Symbol& s : dim.symbols())
      if (std::find(found.begin(), found.end(), s) == found.end()) found.push_back(s);
  };
  for (const Dim& dim : graph[v].type.shape.dims()) add(dim);
  if (graph[v].size) add(*graph[v].size);
}

// Where a symbol is met, as a user says it: "x.0", dimension 0 of input x.
struct NamedDim {
  std::string name;
  Dim dim;
};

// A place that is the symbol and nothing else, if there is one; that of this name does not count.
std::optional<NamedDim> find_named_dim(const Graph& graph, const Symbol& symbol, const std::string& but = "") {
  std::optional<NamedDim> found;
  const auto look = [&](std::string name, const Dim& dim) {
    const auto all = dim.symbols();
    if (name == but || std::find(all.begin(), all.end(), symbol) == all.end()) return;
    if (!found || (found->dim != Dim(symbol) && dim == Dim(symbol))) found = NamedDim{std::move(name), dim};
  };
  const auto look_in = [&](const std::string& name, const Value& value) {
    for (int d = 0; d < value.type.rank(); ++d) look(fmt::format("{}.{}", name, d), value.type.shape[d]);
    if (value.size) look(name, *value.size);
  };
  for (ValueId v : graph.inputs) look_in(graph[v].name, graph[v]);
  for (const State& s : graph.states)
    if (s.input < graph.values.size()) look_in(s.name, graph[s.input]);
  return found;
}

// "x.0 is 9 (s0 + 1)", or of no known place "s0 is 8".
std::string size_text(const std::optional<NamedDim>& named, const std::string& symbol, std::int64_t size) {
  const Dim there = named ? at(named->dim, {{symbol, size}}) : Dim(size);
  if (!named || !there.is_number()) return fmt::format("{} is {}", symbol, size);
  return fmt::format("{} is {} ({})", named->name, there.value(), to_string(named->dim));
}

std::string sizes_text(const Sizes& sizes, const Graph* graph) {
  std::vector<Symbol> symbols;
  if (graph) symbols = input_symbols(*graph);
  std::string text;
  for (const auto& [name, size] : sizes) {
    const auto symbol = std::ranges::find(symbols, name, &Symbol::name);
    const auto named = symbol == symbols.end() ? std::nullopt : find_named_dim(*graph, *symbol);
    text += (text.empty() ? "" : ", ") + size_text(named, name, size);
  }
  return text;
}

// A symbol that cannot have that size.
Diagnostic outside(const Graph& graph, const Symbol& symbol, std::int64_t size) {
  const auto named = find_named_dim(graph, symbol);
  const Bounds range = named ? named->dim.bounds() : symbol.range;
  const std::string where = size_text(named, symbol.name, size);
  if (named && named->dim.symbols().size() > 1)
    return size_error(fmt::format("{}, outside of its range {}: {} is {}", where, to_string(symbol.range), named->name,
                                  to_string(named->dim)));
  return size_error(fmt::format("{}, outside of its range {}", where, to_string(range)));
}

// Dimension `d` of an input that cannot have that size, where these are known.
Diagnostic no_such_size(const Graph& graph, ValueId input, int d, std::int64_t size, const Sizes& sizes) {
  const Dim& dim = graph[input].type.shape[d];
  const std::string name = fmt::format("{}.{}", graph[input].name, d);
  const Dim wanted = at(dim, sizes);
  if (!wanted.is_number()) return size_error(fmt::format("{} is {}, and cannot be {}", name, to_string(dim), size));
  std::string why;
  for (const Symbol& symbol : dim.symbols())
    why += (why.empty() ? ", as " : " and ") +
           size_text(find_named_dim(graph, symbol, name), symbol.name, sizes.find(symbol.name)->second);
  return size_error(fmt::format("{} is {}, and has to be {}{}{}", name, size, wanted.value(),
                                dim.is_number() || dim == Dim(dim.symbols()[0]) ? "" : " = " + to_string(dim), why));
}

class Specialiser {
 public:
  explicit Specialiser(const Sizes& sizes) : sizes_(sizes) {}

  Status run(Graph& graph) {
    for (Value& value : graph.values) TOSAIC_CHECK(retype(value));
    std::vector<Node> kept;
    for (Node& node : graph.nodes) {
      for (auto& [name, attr] : std::vector(node.attrs.begin(), node.attrs.end())) argument(node, name, attr);
      for (Graph& region : node.regions) TOSAIC_CHECK(run(region));
      if (!becomes_constant(graph, node)) kept.push_back(std::move(node));
    }
    graph.nodes = std::move(kept);
    return {};
  }

 private:
  Status retype(Value& value) {
    if (value.type.shape.is_static() && !value.size) return {};
    const Shape before = value.type.shape;
    std::vector<Dim> dims;
    for (const Dim& dim : before.dims()) dims.push_back(at(dim, sizes_));
    value.type.shape = Shape(std::move(dims));
    if (value.size) value.size = at(*value.size, sizes_);
    if (const auto problem = text::type_problem(value.type))
      return size_error(fmt::format("'{}' cannot be {} at these sizes: {}", value.name, to_string(before), *problem));
    return {};
  }

  void argument(Node& node, const std::string& name, const Attr& attr) const {
    const auto specialised = [&](SymbolicArgument a) {
      if (a.size) a.size = at(*a.size, sizes_);
      return a;
    };
    const auto known = [](const SymbolicArgument& a) { return a.size && a.size->is_number(); };
    if (const auto* one = std::get_if<SymbolicArgument>(&attr)) {
      const SymbolicArgument a = specialised(*one);
      node.attrs.set(name, known(a) ? Attr(a.size->value()) : Attr(a));
    } else if (const auto* list = std::get_if<std::vector<SymbolicArgument>>(&attr)) {
      std::vector<SymbolicArgument> all;
      std::vector<std::int64_t> numbers;
      for (const SymbolicArgument& a : *list) {
        all.push_back(specialised(a));
        if (known(all.back())) numbers.push_back(all.back().size->value());
      }
      node.attrs.set(name, numbers.size() == all.size() ? Attr(numbers) : Attr(all));
    }
  }

  // An integer that was computed from sizes needs no computation.
  static bool becomes_constant(Graph& graph, const Node& node) {
    const bool all = !node.outputs.empty() && std::all_of(node.outputs.begin(), node.outputs.end(), [&](ValueId v) {
      return v != no_value && graph[v].size && graph[v].size->is_number() && graph[v].type.shape.rank() == 0;
    });
    if (!all) return false;
    for (ValueId v : node.outputs) {
      const std::int64_t number = graph[v].size->value();
      graph[v].constant = constant_bytes(graph[v].type.dtype, std::span(&number, 1));
      graph[v].size.reset();
    }
    return true;
  }

  const Sizes& sizes_;
};

}  // namespace

std::optional<std::int64_t> value_of_symbol(const Dim& dim, std::int64_t size) {
  const Sum sum = sum_of(dim);
  if (sum.terms.size() != 1) return std::nullopt;
  const auto& [product, coefficient] = *sum.terms.begin();
  std::int64_t rest;
  if (product.size() != 1 || product[0]->kind != DimAtom::symbol || coefficient < 1 ||
      __builtin_sub_overflow(size, sum.constant, &rest) || rest % coefficient != 0)
    return std::nullopt;
  return rest / coefficient;
}

std::vector<Symbol> input_symbols(const Graph& graph) {
  std::vector<Symbol> found;
  for (ValueId v : graph.inputs) collect(graph, v, found);
  for (const State& s : graph.states) collect(graph, s.input, found);
  std::sort(found.begin(), found.end(), [](const Symbol& a, const Symbol& b) { return a.name < b.name; });
  return found;
}

Result<Sizes> largest_sizes(const std::vector<Symbol>& symbols) {
  Sizes sizes;
  for (const Symbol& s : symbols) {
    if (!s.range.highest)
      return size_error(fmt::format("size '{}' ({}) has no upper bound", s.name, to_string(s.range)));
    sizes.emplace(s.name, *s.range.highest);
  }
  return sizes;
}

Result<Sizes> sizes_of(const Graph& graph, std::span<const Shape> shapes) {
  Sizes sizes;
  const auto wrong = [&](std::size_t i) {
    return size_error(fmt::format("input '{}' is {}, and cannot be {}", graph[graph.inputs[i]].name,
                                  to_string(graph[graph.inputs[i]].type.shape), to_string(shapes[i])));
  };
  for (std::size_t i = 0; i < shapes.size(); ++i)
    if (i >= graph.inputs.size() || graph[graph.inputs[i]].type.rank() != shapes[i].rank())
      return i >= graph.inputs.size() ? size_error("there are more shapes than inputs") : wrong(i);
  // What says two symbols at once says one when the other is known.
  for (bool any = true; any;) {
    any = false;
    for (std::size_t i = 0; i < shapes.size(); ++i)
      for (int d = 0; d < shapes[i].rank(); ++d) {
        const Dim dim = at(graph[graph.inputs[i]].type.shape[d], sizes);
        const auto symbols = dim.symbols();
        const auto value = symbols.size() == 1 ? value_of_symbol(dim, shapes[i].size(d)) : std::nullopt;
        if (value) any = sizes.emplace(symbols[0].name, *value).second || any;
      }
  }
  for (std::size_t i = 0; i < shapes.size(); ++i)
    for (int d = 0; d < shapes[i].rank(); ++d)
      if (at(graph[graph.inputs[i]].type.shape[d], sizes) != shapes[i][d])
        return no_such_size(graph, graph.inputs[i], d, shapes[i].size(d), sizes);
  return sizes;
}

Result<std::vector<Guard>> open_guards(const std::vector<Guard>& guards, const Sizes& sizes, const Graph* graph) {
  std::vector<Guard> open;
  for (const Guard& guard : guards) {
    try {
      const Dim violation = at(guard.violation, sizes);
      if (!violation.is_number()) open.push_back({guard.text, violation});
      if (!violation.is_number() || violation.value() == 0) continue;
    } catch (const std::exception&) {}  // a division by zero, say
    return error("model.size", fmt::format("the program was exported for sizes with {}, which these are not: {}",
                                           guard.text, sizes_text(sizes, graph)))
        .hint("export it with an example of this kind, as a program of its own, or take out the branch on sizes");
  }
  return open;
}

Status replace_symbols(Graph& graph, const Sizes& sizes) {
  try {
    return Specialiser(sizes).run(graph);
  } catch (const std::overflow_error& e) { return size_error(e.what()); } catch (const std::domain_error& e) {
    return size_error(e.what());
  }
}

Result<Graph> specialise(Graph graph, const Sizes& sizes) {
  const auto symbols = input_symbols(graph);
  std::string all;
  for (const Symbol& s : symbols) all += fmt::format("{}{} in {}", all.empty() ? "" : ", ", s.name, to_string(s.range));
  for (const Symbol& s : symbols) {
    const auto given = sizes.find(s.name);
    if (const auto named = find_named_dim(graph, s); given == sizes.end())
      return size_error(
          fmt::format("size '{}' ({}) is not given: {}", s.name, to_string(s.range),
                      named ? fmt::format("{} is {}", named->name, to_string(named->dim)) : "no input has it"));
    if (given->second < 0 || !s.range.contain(given->second)) return outside(graph, s, given->second);
  }
  for (const auto& given : sizes)
    if (std::none_of(symbols.begin(), symbols.end(), [&](const Symbol& s) { return s.name == given.first; }))
      return size_error(fmt::format("the program has no size '{}'; {}", given.first,
                                    all.empty() ? "all its sizes are fixed" : "it has " + all));
  TOSAIC_TRY(graph.guards, open_guards(graph.guards, sizes, &graph));
  if (symbols.empty()) return graph;
  TOSAIC_CHECK(replace_symbols(graph, sizes));
  drop_dead(graph);
  return graph;
}

}  // namespace tosaic
