// SPDX-License-Identifier: Apache-2.0
#include "lower/over_sizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "ir/extent.h"
#include "ir/program_operators.h"
#include "ir/sized_attribute.h"
#include "ir/tensor.h"
#include "ir/tosa_operators.h"
#include "lower/fitting.h"
#include "lower/separated.h"
#include "ops/builder_bounds.h"
#include "ops/definitions/tosa_op.h"
#include "ops/definitions/walk.h"
#include "ops/fixed_point.h"

namespace tosaic {
namespace {

// `what` of `who`: an operator, or what else the message is about.
Diagnostic depends(std::string_view who, const LocRef& loc, const std::string& what) {
  return located(error("lower.sizes", fmt::format("{}: {} depends on the sizes in a way that is not known", who, what))
                     .hint("choose the sizes: --sizes NAME=SIZE"),
                 loc);
}
Diagnostic depends(const Node& node, const std::string& what) { return depends(node.op.name(), node.loc, what); }

// Is `part` what lies at the beginning of `all`, along every dim?
bool begins_with(const Value& all, const Value& part) {
  const Shape &shape = part.type.shape, &whole = all.type.shape;
  if (shape.rank() != whole.rank() || part.type.dtype != all.type.dtype) return false;
  for (int d = 0; d < shape.rank(); ++d)
    if (shape.size(d) > whole.size(d)) return false;
  const std::size_t bytes = storage_size(part.type.dtype);
  std::vector<std::byte> cut(part.type.storage_bytes());
  tosa::copy_elements(shape, bytes, all.constant.data(), tosa::row_major(whole), cut.data(), tosa::row_major(shape));
  return cut.size() == part.constant.size() && std::memcmp(cut.data(), part.constant.data(), cut.size()) == 0;
}

class Joining {
 public:
  Joining(std::vector<AtSizes> given, std::span<const Symbol> symbols, const Graph& program, const Graph* delegate)
      : given_(std::move(given)), delegate_(delegate), fit_(symbols, given_) {
    know_sizes(program, symbols);
    for (AtSizes& at : given_) at.graph = separated(at.graph);
    made_ = given_[0].graph;
  }

  Result<Graph> run() {
    TOSAIC_CHECK(same_nodes());
    for (ValueId v : made_.inputs) TOSAIC_CHECK(retype(v, "input '" + made_[v].name + "'", nullptr));
    for (Node& node : made_.nodes) {
      TOSAIC_CHECK(attributes(node));
      if (!divides_by_size(node))
        for (std::size_t i = 0; i < node.inputs.size(); ++i)
          if (node.inputs[i] != no_value && made_[node.inputs[i]].is_constant()) TOSAIC_CHECK(constant(node, i));
      if (follows(node)) continue;
      for (ValueId v : node.outputs)
        if (v != no_value) TOSAIC_CHECK(retype(v, node.op.name(), node.loc));
    }
    for (ValueId v : made_.outputs)
      if (made_[v].is_constant() && differs(v)) return depends("'" + made_[v].name + "'", nullptr, "what is returned");
    for (auto product = products_.rbegin(); product != products_.rend(); ++product)
      made_.nodes.insert(made_.nodes.begin() + product->first, std::move(product->second));
    made_.nodes.insert(made_.nodes.begin(), slices_.begin(), slices_.end());
    for (const Node& node : made_.nodes) TOSAIC_CHECK(agrees(node));
    return std::move(made_);
  }

 private:
  // Of inputs' symbols; what depends on values is nothing that all sizes have.
  void know_sizes(const Graph& program, std::span<const Symbol> symbols) {
    const auto know = [&](const Dim& dim) {
      const auto is_given = [&](const Symbol& s) {
        return std::ranges::find(symbols, s.name, &Symbol::name) != symbols.end();
      };
      if (!dim.is_number() && std::ranges::all_of(dim.symbols(), is_given)) fit_.know(values_of(dim), dim);
    };
    for (const Value& value : program.values) {
      for (const Dim& dim : value.type.shape.dims()) know(dim);
      if (value.size) know(*value.size);
    }
  }

  // Apart from shapes and constants, the graphs are one.
  Status same_nodes() const {
    for (const AtSizes& at : given_) {
      const Graph& other = at.graph;
      if (other.nodes.size() != made_.nodes.size() || other.values.size() != made_.values.size() ||
          other.inputs != made_.inputs || other.outputs != made_.outputs)
        return other_operators(at);
      for (std::size_t n = 0; n < made_.nodes.size(); ++n) {
        const Node &a = made_.nodes[n], &b = other.nodes[n];
        if (a.op != b.op || a.inputs != b.inputs || a.outputs != b.outputs || !a.regions.empty())
          return other_operators(at);
      }
      // Within the graph integers have the scales that its constants say.
      const auto outside = [&](ValueId v) {
        return std::ranges::count(made_.inputs, v) > 0 || std::ranges::count(made_.outputs, v) > 0;
      };
      for (ValueId v = 0; v < made_.values.size(); ++v)
        if (made_[v].type.dtype != other[v].type.dtype || made_[v].type.rank() != other[v].type.rank() ||
            made_[v].is_constant() != other[v].is_constant() ||
            (made_[v].type.scales != other[v].type.scales && outside(v)))
          return depends("'" + made_[v].name + "'", nullptr, "its type");
    }
    return {};
  }

  Diagnostic other_operators(const AtSizes& at) const {
    const std::vector<Node>&ours = made_.nodes, &others = at.graph.nodes;
    if (ours.empty() || others.empty()) return depends(made_.name, nullptr, "which operators it becomes");
    const auto alike = [](const Node& a, const Node& b) {
      return a.op == b.op && a.inputs == b.inputs && a.outputs == b.outputs;
    };
    std::size_t n = 0;
    while (n + 1 < ours.size() && n + 1 < others.size() && alike(ours[n], others[n])) ++n;
    return depends(ours[n], "which operators it becomes")
        .note(fmt::format("at the largest sizes this is {}, at {} it is {}", ours[n].op, text_of(at.sizes),
                          others[n].op));
  }

  static Diagnostic error_at(const Node& node, const std::string& what, const std::string& hint_text) {
    return located(error("lower.sizes", fmt::format("{}: {}", node.op, what)).hint(hint_text), node.loc);
  }

  static std::string text_of(const Sizes& sizes) {
    std::string text;
    for (const auto& [symbol, size] : sizes) text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", symbol, size);
    return text;
  }

  Numbers sizes_of(ValueId v, int d) const {
    Numbers sizes;
    for (const AtSizes& at : given_) sizes.push_back(at.graph[v].type.shape.size(d));
    return sizes;
  }

  Numbers values_of(const Dim& dim) const {
    Numbers values;
    for (const AtSizes& at : given_)
      values.push_back(dim.with([&](const Symbol& s) { return Dim(at.sizes.at(s.name)); }).value());
    return values;
  }

  // Empty: nobody can tell.
  std::vector<TensorType> inferred(const Node& node) const {
    std::vector<TensorType> types;
    if (node.op == op::delegate && delegate_) {
      for (ValueId v : delegate_->outputs) types.push_back((*delegate_)[v].type);
      return types;
    }
    const tosa::Op* op = tosa::find(node.op);
    if (!op || !op->infer) return {};
    try {
      return op->infer(tosa::View(made_, node));
    } catch (const UnknownSize&) { return {}; }
  }

  // The results' sizes as the operator's own rule has them: where it computes with symbols, and with nothing that is
  // another number at another size.
  bool follows(const Node& node) {
    const std::vector<TensorType> types = inferred(node);
    if (types.empty() || types.size() != node.outputs.size()) return false;
    for (std::size_t i = 0; i < types.size(); ++i) {
      const ValueId v = node.outputs[i];
      if (v == no_value || types[i].rank() != made_[v].type.rank()) return false;
      for (int d = 0; d < types[i].rank(); ++d)
        if (values_of(types[i].shape[d]) != sizes_of(v, d)) return false;
    }
    for (std::size_t i = 0; i < types.size(); ++i) {
      const ValueId v = node.outputs[i];
      for (int d = 0; d < types[i].rank(); ++d) fit_.learn(sizes_of(v, d), types[i].shape[d]);
      made_[v].type.shape = types[i].shape;
    }
    return true;
  }

  // Those of pools may be sizes: the mean of a whole image is a window as large as that.
  Status attributes(Node& node) {
    const auto n = static_cast<std::size_t>(&node - made_.nodes.data());
    for (const auto& [name, first] : Attrs(node.attrs)) {
      const auto at = [&, attribute = std::string_view(name)](const AtSizes& other) {
        return other.graph.nodes[n].attrs.find(attribute);
      };
      const auto same = [&, wanted = &first](const AtSizes& other) { return at(other) && *at(other) == *wanted; };
      const auto other = std::ranges::find_if_not(given_, same);
      if (other == given_.end()) continue;
      const auto* numbers = std::get_if<Numbers>(&first);
      const bool may = node.op == tosa::op::avg_pool2d || node.op == tosa::op::max_pool2d;
      if (!numbers || !at(*other)) return depends(node, fmt::format("its attribute '{}'", name));
      if (!may) return attribute_depends(node, name);
      std::vector<SymbolicArgument> sized;
      for (std::size_t i = 0; i < numbers->size(); ++i) {
        Numbers values;
        for (const AtSizes& g : given_)
          if (const auto* list = std::get_if<Numbers>(at(g)); list && i < list->size()) values.push_back((*list)[i]);
        const auto dim = values.size() == given_.size() ? fit_(values) : std::nullopt;
        if (!dim) return attribute_depends(node, name);
        sized.push_back({"", *dim});
      }
      node.attrs.set(sized_name(name), std::move(sized));
    }
    return {};
  }

  Diagnostic attribute_depends(const Node& node, const std::string& name) const {
    const auto n = static_cast<std::size_t>(&node - made_.nodes.data());
    return differs_at_sizes(node, fmt::format("its attribute '{}'", name), [&](const AtSizes& at) {
      const auto* list = std::get_if<Numbers>(at.graph.nodes[n].attrs.find(name));
      return list ? fmt::format("{}", fmt::join(*list, ", ")) : std::string("another");
    });
  }

  template <class Text>
  Diagnostic differs_at_sizes(const Node& node, const std::string& what, Text text) const {
    const std::string first = text(given_[0]);
    const auto other = std::ranges::find_if(given_, [&](const AtSizes& at) { return text(at) != first; });
    Diagnostic why = depends(node, what);
    if (other == given_.end()) return why;
    return std::move(why).note(
        fmt::format("it is {} at the largest sizes, {} at {}", first, text(*other), text_of(other->sizes)));
  }

  Status retype(ValueId v, std::string_view who, const LocRef& loc) {
    std::vector<Dim> dims;
    for (int d = 0; d < made_[v].type.rank(); ++d) {
      const auto dim = fit_(sizes_of(v, d));
      if (!dim) return depends(who, loc, fmt::format("dimension {} of its result", d));
      dims.push_back(*dim);
    }
    made_[v].type.shape = Shape(std::move(dims));
    return {};
  }

  bool differs(ValueId v) const {
    return std::ranges::any_of(given_, [&](const AtSizes& at) {
      return at.graph[v].type != given_[0].graph[v].type || at.graph[v].constant != given_[0].graph[v].constant;
    });
  }

  Status constant(Node& node, std::size_t operand) {
    const ValueId v = node.inputs[operand];
    if (!differs(v)) return {};
    if (made_[v].type.dtype == DType::shape) return shape_operand(node, operand);
    if (is_size(node, operand) || is_reciprocal(node, operand) || is_root(node, operand)) return {};
    if (node.op == tosa::op::rescale)
      return error_at(node,
                      "a scale that follows from the sizes, and not as 1 / size, is a constant of quantised values",
                      "choose the sizes: --sizes NAME=SIZE");
    const Value& all = given_[0].graph[v];
    for (const AtSizes& at : given_)
      if (!begins_with(all, at.graph[v])) return depends(node, fmt::format("the constant '{}'", all.name));
    const ValueId whole = made_.add_value(all.name + "_at_bounds", all.type, all.constant);
    TOSAIC_CHECK(retype(v, node.op.name(), node.loc));
    made_[v].constant = {};
    Node slice{tosa::op::slice,
               {whole, shape_constant(Numbers(static_cast<std::size_t>(all.type.rank()), 0)),
                shape_constant(all.type.shape.sizes())}};
    slice.outputs = {v};
    slice.loc = node.loc;
    slices_.push_back(std::move(slice));
    return {};
  }

  // A number by which an elementwise operator computes: a size, or what follows from one. Of f32 a CAST makes it.
  bool is_size(Node& node, std::size_t operand) {
    const ValueId v = node.inputs[operand];
    const tosa::Op* op = tosa::find(node.op);
    const DType dtype = made_[v].type.dtype;
    if (!op || !op->elementwise || op->inputs[operand].constant || (dtype != DType::f32 && dtype != DType::i32))
      return false;
    constexpr double exact = 1 << 24;  // integers up to which f32 has
    Numbers sizes;
    for (const AtSizes& at : given_) {
      const Value& value = at.graph[v];
      if (value.constant.size() != 4 || value.type.shape.elements() != 1) return false;
      const double number = element_as_double(dtype, value.constant.data(), 0);
      if (number != std::floor(number) || std::fabs(number) > exact) return false;
      sizes.push_back(static_cast<std::int64_t>(number));
    }
    const auto size = fit_.any(sizes);
    if (!size) return false;
    if (dtype == DType::i32) {
      made_[v].size = *size;
      return true;
    }
    cast_size(*size, sizes[0], v, v, node.loc);
    return true;
  }

  // A CAST of a size, which gives `to`, of the type that v has.
  void cast_size(const Dim& size, std::int64_t largest, ValueId v, ValueId to, const LocRef& loc) {
    TensorType integer = made_[v].type;
    integer.dtype = DType::i32;
    const ValueId whole = made_.add_value(made_[v].name + "_size", integer,
                                          constant_bytes(DType::i32, std::vector<std::int64_t>{largest}));
    made_[whole].size = size;
    made_[to].constant = {};
    write(tosa::op::cast, {whole}, to, loc);
  }
  void write(Operator op, std::vector<ValueId> operands, ValueId to, const LocRef& loc) {
    Node node{op, std::move(operands)};
    node.outputs = {to};
    node.loc = loc;
    slices_.push_back(std::move(node));
  }

  // A number by which an elementwise operator computes: the root of a size, or 1 / root.
  bool is_root(const Node& node, std::size_t operand) {
    constexpr double rounding = 0x1p-21;
    const ValueId v = node.inputs[operand];
    const tosa::Op* op = tosa::find(node.op);
    if (!op || !op->elementwise || op->inputs[operand].constant || made_[v].type.dtype != DType::f32) return false;
    for (const bool inverse : {true, false}) {
      Numbers sizes;
      for (const AtSizes& at : given_) {
        const Value& value = at.graph[v];
        const double number = value.constant.size() == sizeof(float) ? value.constant.as<float>()[0] : 0;
        const double square = inverse ? 1 / (number * number) : number * number, size = std::round(square);
        if (number > 0 && size >= 1 && size < 1 << 24 && std::fabs(square / size - 1) < rounding)
          sizes.push_back(static_cast<std::int64_t>(size));
      }
      const auto size = sizes.size() == given_.size() ? fit_.any(sizes) : std::nullopt;
      if (!size) continue;
      const auto another = [&](const char* name) { return made_.add_value(made_[v].name + name, made_[v].type, {}); };
      const ValueId cast = another("_cast"), root = inverse ? v : another("_rsqrt");
      cast_size(*size, sizes[0], v, cast, node.loc);
      made_[v].constant = {};
      write(tosa::op::rsqrt, {cast}, root, node.loc);
      if (!inverse) {
        const ValueId shift = made_.add_value(made_[v].name + "_shift", {DType::i8, Shape{1}, {}},
                                              constant_bytes(DType::i8, std::vector<std::int64_t>{0}));
        write(tosa::op::mul, {cast, root, shift}, v, node.loc);
      }
      return true;
    }
    return false;
  }

  // A number by which an elementwise operator computes: 1 / size, as in a mean.
  bool is_reciprocal(const Node& node, std::size_t operand) {
    const ValueId v = node.inputs[operand];
    const tosa::Op* op = tosa::find(node.op);
    if (!op || !op->elementwise || op->inputs[operand].constant || made_[v].type.dtype != DType::f32) return false;
    Numbers sizes;
    for (const AtSizes& at : given_) {
      const Value& value = at.graph[v];
      if (value.constant.size() != sizeof(float)) return false;
      const float number = value.constant.as<float>()[0];
      const double size = std::round(1 / static_cast<double>(number));
      if (!(size >= 1 && size < 1e9) || reciprocal_of(static_cast<std::int64_t>(size)) != number) return false;
      sizes.push_back(static_cast<std::int64_t>(size));
    }
    made_[v].size = fit_(sizes);
    return made_[v].size.has_value();
  }

  // A RESCALE whose factor has 1 / size in it, as that of a mean: the sum is multiplied by 2^30 / size first, with as
  // many digits as 32 bits hold, and what is left of the factor is a constant.
  bool divides_by_size(Node& node) {
    if (node.op != tosa::op::rescale || (!differs(node.inputs[1]) && !differs(node.inputs[2])) ||
        made_[node.inputs[0]].type.dtype != DType::i32)
      return false;
    const ValueId x = node.inputs[0];
    std::vector<double> factors, inverse;
    for (const AtSizes& at : given_) {
      const Value &multiplier = at.graph[node.inputs[1]], &shift = at.graph[node.inputs[2]];
      if (differs(node.inputs[3]) || multiplier.type.dtype != DType::i32 || multiplier.type.shape.elements() != 1)
        return false;
      factors.push_back(std::ldexp(element_as_double(DType::i32, multiplier.constant.data(), 0),
                                   -static_cast<int>(element_as_double(DType::i8, shift.constant.data(), 0))));
      inverse.push_back(1 / factors.back());
    }
    const auto size = fit_.multiplied(inverse);
    if (!size || element_as_double(DType::i32, made_[node.inputs[3]].constant.data(), 0) != 0) return false;
    double largest = 1, rest = 0;
    const Numbers sizes = values_of(*size);
    for (std::size_t k = 0; k < given_.size(); ++k) {
      largest = std::max(largest, largest_integer(given_[k].graph, x) / static_cast<double>(sizes[k]));
      rest += factors[k] * static_cast<double>(sizes[k]) / static_cast<double>(given_.size());
    }
    const int digits = 30 - static_cast<int>(std::ceil(std::log2(largest + 1)));
    const auto factor = digits > 0 ? fixed_point(std::ldexp(rest, -digits), true) : std::nullopt;
    if (!factor || factor->shift < 32) return false;  // which is all that RESCALE takes 31 bits by
    const Shape ones(std::vector<std::int64_t>(static_cast<std::size_t>(made_[x].type.rank()), 1));
    const auto integer = [&](std::string_view name, const Shape& shape, DType dtype, std::int64_t number) {
      return made_.add_value(fmt::format("{}_{}", name, made_.values.size()), {dtype, shape, {}},
                             constant_bytes(dtype, std::vector<std::int64_t>{number}));
    };
    const ValueId divisor = integer("size", ones, DType::i32, sizes[0]);
    made_[divisor].size = *size;
    const auto computed = [&](Operator op, std::vector<ValueId> operands, const TensorType& type) {
      Node made{op, std::move(operands)};
      made.outputs = {made_.add_value(fmt::format("{}_{}", made_[x].name, made_.values.size()), type, {})};
      made.loc = node.loc;
      return made;
    };
    slices_.push_back(
        computed(tosa::op::intdiv, {integer("one", ones, DType::i32, 1 << 30), divisor}, {DType::i32, ones, {}}));
    const Node& product =
        products_
            .emplace_back(&node - made_.nodes.data(),
                          computed(tosa::op::mul,
                                   {x, slices_.back().outputs[0], integer("shift", Shape{1}, DType::i8, 30 - digits)},
                                   {DType::i32, made_[x].type.shape, {}}))
            .second;
    node.inputs[0] = product.outputs[0];
    node.inputs[1] = integer("multiplier", Shape{1}, DType::i32, factor->multiplier);
    node.inputs[2] = integer("shift", Shape{1}, DType::i8, factor->shift);
    return true;
  }

  ValueId shape_constant(const Numbers& numbers) {
    const TensorType type{DType::shape, Shape{static_cast<std::int64_t>(numbers.size())}, {}};
    return made_.add_value(fmt::format("shape_over_sizes_{}", made_.values.size()), type, Bytes::of(numbers));
  }

  // The result's type says what is resized, a SLICE's beginning an attribute.
  Status shape_operand(Node& node, std::size_t operand) {
    if (node.op == tosa::op::reshape || node.op == tosa::op::tile || (node.op == tosa::op::slice && operand == 2))
      return {};
    if (node.op != tosa::op::slice) {
      const auto text = [&](const AtSizes& at) {
        return fmt::format("{}", fmt::join(at.graph[node.inputs[operand]].constant.as<std::int64_t>(), ", "));
      };
      return differs_at_sizes(node, fmt::format("its operand '{}'", tosa::find(node.op)->inputs[operand].name), text);
    }
    std::vector<SymbolicArgument> start;
    const std::size_t rank = given_[0].graph[node.inputs[1]].constant.size() / sizeof(std::int64_t);
    for (std::size_t d = 0; d < rank; ++d) {
      Numbers begins;
      for (const AtSizes& at : given_) begins.push_back(at.graph[node.inputs[1]].constant.as<std::int64_t>()[d]);
      const auto dim = fit_(begins);
      if (!dim) return depends(node, "where it begins");
      start.push_back({"", *dim});
    }
    node.attrs.set(symbolic_start, std::move(start));
    return {};
  }

  // Does the operator's own rule, where it can compute with symbols, give these results?
  Status agrees(const Node& node) const {
    const tosa::Op* op = tosa::find(node.op);
    if (!op || !op->infer) return {};
    const bool resized = node.op == tosa::op::reshape || node.op == tosa::op::tile || node.op == tosa::op::slice;
    if (resized && node.op != tosa::op::reshape) return {};
    if (resized) {
      if (elements_of(made_[node.inputs[0]].type.shape) == elements_of(made_[node.outputs[0]].type.shape)) return {};
      return depends(node, "the new shape");
    }
    const std::vector<TensorType> types = inferred(node);
    for (std::size_t i = 0; i < types.size() && i < node.outputs.size(); ++i)
      if (types[i].shape != made_[node.outputs[i]].type.shape)
        return depends(node, fmt::format("its result, {} or {},", to_string(types[i].shape),
                                         to_string(made_[node.outputs[i]].type.shape)));
    return {};
  }

  std::vector<AtSizes> given_;
  const Graph* delegate_;
  Fitting fit_;
  Graph made_;
  std::vector<Node> slices_;                               // of constants, before all others
  std::vector<std::pair<std::ptrdiff_t, Node>> products_;  // each before the node of this number
};

}  // namespace

Result<std::vector<Symbol>> bounded(std::vector<Symbol> symbols) {
  for (Symbol& s : symbols) {
    if (!s.range.highest)
      return error("model.size", fmt::format("size '{}' ({}) has no upper bound", s.name, to_string(s.range)))
          .hint("give one when exporting (torch.export.Dim(..., max=)), or choose it: --sizes NAME=SIZE");
    s.range.lowest = std::max<std::int64_t>(s.range.lowest.value_or(1), 1);
  }
  return symbols;
}

Result<Graph> over_sizes(std::vector<AtSizes> given, std::span<const Symbol> symbols, const Graph& program,
                         const Graph* delegate) {
  return Joining(std::move(given), symbols, program, delegate).run();
}

}  // namespace tosaic
