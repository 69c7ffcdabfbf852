// SPDX-License-Identifier: Apache-2.0
#include "session/assumptions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>

#include "ir/program_operators.h"
#include "ir/specialise.h"
#include "read/assumption.h"
#include "session/forwarding.h"

namespace tosaic {
namespace {

using Number = Assumptions::Number;
using Items = Assumptions::Items;
using Expression = std::function<Number(const Items&)>;

double real(const Number& n) {
  return std::visit([](auto v) { return static_cast<double>(v); }, n);
}

std::partial_ordering compare(const Number& a, const Number& b) {
  const auto *i = std::get_if<std::int64_t>(&a), *j = std::get_if<std::int64_t>(&b);
  if (i && j) return *i <=> *j;
  return real(a) <=> real(b);
}

bool truth(const Number& n) { return real(n) != 0; }

Number scalar_in(const Tensor& tensor) {
  const DType type = tensor.type.dtype;
  if (is_float(type)) return element_as_double(type, tensor.data.data(), 0);
  return element_as_integer(type, tensor.data.data(), 0);
}

// An assertion of more numbers is left out: what is shared is computed anew wherever it stands.
constexpr int most_scalars = 200;

struct Comparison {
  Operator op;
  bool (*holds)(std::partial_ordering);
};
constexpr Comparison comparisons[] = {{python::op::lt, std::is_lt}, {python::op::le, std::is_lteq},
                                      {python::op::gt, std::is_gt}, {python::op::ge, std::is_gteq},
                                      {python::op::eq, std::is_eq}, {python::op::ne, std::is_neq}};

// Numbers of a graph as functions of the items that they follow from.
class Numbers {
 public:
  explicit Numbers(const Graph& graph) : graph_(graph) {
    for (const Node& node : graph.nodes)
      for (ValueId v : node.outputs)
        if (v != no_value) {
          made_by_.emplace(graph[v].name, &node);
          if (!is_item(node) || !graph[v].size) continue;
          if (const auto symbols = graph[v].size->symbols(); symbols.size() == 1)
            of_symbol_.emplace(symbols[0].name, graph[v].name);
        }
  }

  // Empty: it follows from something else. `items`: those that it needs are added.
  Expression of(const Attr* number, std::vector<std::string>& items) const {
    int left = most_scalars;
    return of(number, items, left);
  }

  ValueId tensor_of(const std::string& item) const { return made_by_.find(item)->second->inputs.at(0); }
  std::string shown(const std::string& item) const {
    const auto found = std::ranges::find(of_symbol_, item, [](const auto& entry) { return entry.second; });
    return found == of_symbol_.end() ? item : found->first;
  }

 private:
  bool is_item(const Node& node) const {
    if (node.op != aten::op::item || node.inputs.size() != 1 || node.inputs[0] == no_value) return false;
    const Shape& shape = graph_[node.inputs[0]].type.shape;
    return shape.is_static() && shape.elements() == 1;
  }

  Expression of(const Attr* number, std::vector<std::string>& items, int& left) const {
    if (!number || left-- <= 0) return {};
    if (const auto* n = std::get_if<std::int64_t>(number)) return [n = *n](const Items&) { return n; };
    if (const auto* n = std::get_if<bool>(number)) return [n = *n](const Items&) { return std::int64_t{n}; };
    if (const auto* n = std::get_if<double>(number)) return [n = *n](const Items&) { return n; };
    const auto* argument = std::get_if<SymbolicArgument>(number);
    if (!argument) return {};
    const auto made = made_by_.find(argument->name);
    if (made != made_by_.end()) {
      const Node& node = *made->second;
      const auto operand = [&](const char* name) { return of(node.attrs.find(name), items, left); };
      if (is_item(node)) return item(argument->name, items);
      if (node.op == torch::op::sym_not) return with(operand("a"), [](const Number& a) { return !truth(a); });
      if (node.op == torch::op::sym_ite) return choice(operand("b"), operand("t"), operand("f"));
      for (const Comparison& c : comparisons)
        if (c.op == node.op) return comparison(operand("a"), operand("b"), c.holds);
    }
    return argument->size ? arithmetic(*argument->size, items) : Expression();
  }

  static Expression item(const std::string& name, std::vector<std::string>& items) {
    if (std::ranges::find(items, name) == items.end()) items.push_back(name);
    return [name](const Items& all) { return all.find(name)->second; };
  }
  template <class F>
  static Expression with(Expression a, F f) {
    if (!a) return {};
    return [a = std::move(a), f](const Items& all) { return Number(std::int64_t{f(a(all))}); };
  }
  static Expression choice(Expression c, Expression t, Expression f) {
    if (!c || !t || !f) return {};
    return [=](const Items& all) { return truth(c(all)) ? t(all) : f(all); };
  }
  static Expression comparison(Expression a, Expression b, bool (*holds)(std::partial_ordering)) {
    if (!a || !b) return {};
    return [=](const Items& all) { return Number(std::int64_t{holds(compare(a(all), b(all)))}); };
  }
  Expression arithmetic(const Dim& dim, std::vector<std::string>& items) const {
    std::map<std::string, Expression> values;
    for (const Symbol& symbol : dim.symbols()) {
      const auto found = of_symbol_.find(symbol.name);
      if (found == of_symbol_.end()) return {};
      values.emplace(symbol.name, item(found->second, items));
    }
    return [=](const Items& all) {
      Sizes sizes;
      for (const auto& [name, value] : values) sizes.emplace(name, std::get<std::int64_t>(value(all)));
      return Number(at(dim, sizes).value());
    };
  }

  const Graph& graph_;
  std::map<std::string, const Node*> made_by_;
  std::map<std::string, std::string> of_symbol_;
};

}  // namespace

Assumptions::Assumptions(Graph& graph) {
  const Numbers numbers(graph);
  for (const Node& node : graph.nodes) {
    if (node.op != aten::op::_assert_scalar) continue;
    const Attr* message = node.attrs.find("assert_msg");
    const auto* text = message ? std::get_if<std::string>(message) : nullptr;
    if (!text) continue;
    Assumption assumption;
    assumption.text = computed_assumption(*text);
    assumption.loc = node.loc;
    assumption.holds = numbers.of(node.attrs.find("self"), assumption.items);
    if (assumption.text.empty() || !assumption.holds || assumption.items.empty()) continue;
    for (const std::string& item : assumption.items) {
      if (!shown_.emplace(item, numbers.shown(item)).second) continue;
      items_.push_back(item);
      graph.outputs.push_back(numbers.tensor_of(item));
    }
    list_.push_back(std::move(assumption));
  }
}

Status Assumptions::check(const std::vector<Tensor>& tensors) const {
  Items items;
  for (std::size_t i = 0; i < items_.size(); ++i) items.emplace(items_[i], scalar_in(tensors[i]));
  for (const Assumption& a : list_) {
    if (truth(a.holds(items))) continue;
    std::vector<std::string> are;
    for (const std::string& item : a.items)
      are.push_back(std::visit([&](auto n) { return fmt::format("{} is {}", shown_.find(item)->second, n); },
                               items.find(item)->second));
    Diagnostic what = error("run.assumption", "");
    what.message = fmt::format("the program is the module's only where {}, and {}", a.text, fmt::join(are, ", "));
    return located(std::move(what)
                       .note("torch._check asserts such things, torch.export.draft_export assumes them")
                       .hint("run it with inputs for which that holds"),
                   a.loc);
  }
  return {};
}

class Assumptions::Checked : public Forwarding {
 public:
  Checked(Interface outside, RunnablePtr inner, const Assumptions& assumptions)
      : Forwarding(std::move(outside), std::move(inner)), assumptions_(assumptions) {}

  Result<std::vector<Tensor>> run(const std::vector<Tensor>& inputs) override {
    TOSAIC_TRY(std::vector<Tensor> results, Forwarding::run(inputs));
    const std::size_t outputs = interface().outputs.size();
    TOSAIC_CHECK(assumptions_.check({results.begin() + static_cast<std::ptrdiff_t>(outputs), results.end()}));
    results.resize(outputs);
    return results;
  }

 private:
  RunnablePtr around(RunnablePtr inner) const override {
    return std::make_unique<Checked>(interface(), std::move(inner), assumptions_);
  }

  Assumptions assumptions_;
};

RunnablePtr Assumptions::checked(RunnablePtr inner) const {
  if (list_.empty()) return inner;
  Interface outside = inner->interface();
  outside.outputs.resize(outside.outputs.size() - items_.size());
  outside.output_names.resize(std::min(outside.output_names.size(), outside.outputs.size()));
  return std::make_unique<Checked>(std::move(outside), std::move(inner), *this);
}

}  // namespace tosaic
