// SPDX-License-Identifier: Apache-2.0
#include "pipeline/chosen_sizes.h"

#include <fmt/format.h>
#include <algorithm>
#include <charconv>
#include <limits>
#include <map>

namespace tosaic {
namespace {

constexpr const char* hint_text =
    "--sizes NAME=SIZE, once per size: NAME is INPUT.DIM, SIZE a number or max, or several with commas";

struct DynamicDim {
  std::string name;  // "x.0"
  Dim dim;
};

std::vector<DynamicDim> dynamic_dims(const Graph& graph) {
  std::vector<DynamicDim> dims;
  for (ValueId v : graph.inputs) {
    const Shape& shape = graph[v].type.shape;
    for (int d = 0; d < shape.rank(); ++d)
      if (!shape[d].is_number()) dims.push_back({fmt::format("{}.{}", graph[v].name, d), shape[d]});
  }
  return dims;
}

std::string listed(const std::vector<DynamicDim>& dims) {
  std::string text;
  for (const DynamicDim& p : dims) {
    text += fmt::format("{}{} is {}", text.empty() ? "" : ", ", p.name, to_string(p.dim));
    for (const Symbol& s : p.dim.symbols()) text += fmt::format(", {} in {}", s.name, to_string(s.range));
  }
  return text.empty() ? "all its sizes are fixed" : text;
}

// A number, or nothing: "max".
Result<std::optional<std::int64_t>> size_in(const std::string& choice, const std::string& text) {
  if (text == "max") return std::optional<std::int64_t>();
  std::int64_t number = 0;
  const auto end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  const bool beyond = read.ec == std::errc::result_out_of_range && text[0] != '-';
  if (beyond) number = std::numeric_limits<std::int64_t>::max();
  if ((read.ec != std::errc() && !beyond) || read.ptr != end || number < 0)
    return error("option.value", fmt::format("'{}' of --sizes {} is neither a number nor max", text, choice))
        .hint(hint_text);
  if (number > std::numeric_limits<std::int32_t>::max())
    return error("model.size", fmt::format("--sizes {}: no dimension of a tensor is larger than {}", choice,
                                           std::numeric_limits<std::int32_t>::max()))
        .hint("choose a smaller size: what is computed of it has to fit into memory, too");
  return std::optional(number);
}

class Choosing {
 public:
  explicit Choosing(const Graph& graph) : symbols_(input_symbols(graph)), dims_(dynamic_dims(graph)) {}

  Status take(const std::string& choice) {
    const std::size_t equals = choice.find('=');
    if (equals == std::string::npos)
      return error("option.value", fmt::format("--sizes {} has no =", choice)).hint(hint_text);
    const std::string name = choice.substr(0, equals);
    TOSAIC_TRY(const auto size, size_in(choice, choice.substr(equals + 1)));
    TOSAIC_TRY(const Dim dim, named(name));
    const auto of_dim = dim.symbols();
    if (of_dim.size() != 1)
      return error("model.size", fmt::format("{} is {}: more than one size makes it", name, to_string(dim)))
          .hint("choose each of its symbols by name");
    const Symbol& symbol = of_dim[0];
    if (!size && !symbol.range.highest)
      return error("model.size", fmt::format("{} is {}, which has no upper bound", name, to_string(dim)))
          .hint("choose a number");
    const auto value = size ? value_of_symbol(dim, *size) : symbol.range.highest;
    if (!value)
      return error("model.size", fmt::format("{} is {}, and cannot be {}", name, to_string(dim), *size))
          .hint(fmt::format("choose a size of that form, or {} itself", symbol.name));
    const auto [known, fresh] = sizes_.emplace(symbol.name, *value);
    if (fresh) chosen_by_.emplace(symbol.name, choice);
    if (fresh || known->second == *value) return {};
    const std::string& before = chosen_by_.find(symbol.name)->second;
    return error("model.size",
                 fmt::format("{} and {} do not fit together: {}", before, choice,
                             before.starts_with(name + "=") ? fmt::format("{} cannot be both", name) : listed(dims_)))
        .hint("choose one of them: the other size follows");
  }

  const Sizes& sizes() const { return sizes_; }

 private:
  Result<Dim> named(const std::string& name) const {
    const auto symbol = std::ranges::find(symbols_, name, &Symbol::name);
    if (symbol != symbols_.end()) return Dim(*symbol);
    const auto place = std::ranges::find(dims_, name, &DynamicDim::name);
    if (place != dims_.end()) return place->dim;
    return error("model.size", fmt::format("the program has no dynamic size '{}': {}", name, listed(dims_)))
        .hint(hint_text);
  }

  std::vector<Symbol> symbols_;
  std::vector<DynamicDim> dims_;
  Sizes sizes_;
  std::map<std::string, std::string> chosen_by_;  // of each symbol, the choice that said it first
};

}  // namespace

Result<Sizes> chosen_sizes(const Graph& graph, const std::vector<std::string>& choices) {
  Choosing choosing(graph);
  for (const std::string& choice : choices) TOSAIC_CHECK(choosing.take(choice));
  return choosing.sizes();
}

bool has_size(const Graph& graph, const std::string& choice) {
  const std::string name = choice.substr(0, choice.find('='));
  const auto symbols = input_symbols(graph);
  const auto dims = dynamic_dims(graph);
  return std::ranges::find(symbols, name, &Symbol::name) != symbols.end() ||
         std::ranges::find(dims, name, &DynamicDim::name) != dims.end();
}

Result<Graph> at_chosen_sizes(const Graph& graph, const std::vector<std::string>& choices) {
  TOSAIC_TRY(const Sizes sizes, chosen_sizes(graph, choices));
  const std::vector<DynamicDim> dims = dynamic_dims(graph);
  if (dims.empty()) return graph;
  for (const Symbol& s : input_symbols(graph))
    if (!sizes.contains(s.name))
      return error("model.dynamic-shape",
                   fmt::format("the program is for many sizes ({}), a compiled one for one of each", listed(dims)))
          .hint(fmt::format("choose: --sizes {}=4, say{}; or export the model without dynamic_shapes", dims[0].name,
                            dims[0].dim.bounds().highest ? ", or =max" : ""));
  return specialise(graph, sizes);
}

Result<Graph> with_chosen_sizes(const Graph& graph, const std::vector<std::string>& choices) {
  TOSAIC_TRY(const Sizes sizes, chosen_sizes(graph, choices));
  const std::vector<Symbol> symbols = input_symbols(graph);
  if (sizes.size() == symbols.size()) return at_chosen_sizes(graph, choices);
  for (const Symbol& s : symbols)
    if (const auto chosen = sizes.find(s.name); chosen != sizes.end() && !s.range.contain(chosen->second))
      return at_chosen_sizes(graph, choices);  // which says what is wrong
  Graph made = graph;
  TOSAIC_CHECK(replace_symbols(made, sizes));
  drop_dead(made);
  return made;
}

Result<Graph> at_sizes_for(const Target& target, const Graph& graph, const std::vector<std::string>& choices) {
  return target.varies ? with_chosen_sizes(graph, choices) : at_chosen_sizes(graph, choices);
}

std::vector<std::vector<Tensor>> fitting(const Graph& graph, const std::vector<std::vector<Tensor>>& samples) {
  std::vector<std::vector<Tensor>> found;
  for (const std::vector<Tensor>& sample : samples) {
    bool fits = sample.size() == graph.inputs.size();
    for (std::size_t i = 0; fits && i < sample.size(); ++i)
      fits = sample[i].type.shape == graph[graph.inputs[i]].type.shape;
    if (fits) found.push_back(sample);
  }
  return found;
}

}  // namespace tosaic
