// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <utility>

#include "targets/ethos_u/chains.h"

#include "ir/tosa_operators.h"

namespace tosaic::ethos_u {

bool goes_along(const Node& node) {
  for (Operator op :
       {tosa::op::rescale, tosa::op::table, tosa::op::clamp, tosa::op::reshape, tosa::op::identity, tosa::op::cast})
    if (node.op == op) return true;
  return false;
}

bool commands_elements(const Node& node) {
  const tosa::Op* op = tosa::find(node.op);
  return op && op->elementwise && node.outputs.size() == 1 && !goes_along(node);
}

std::vector<std::size_t> tensor_operands(const Node& node) {
  std::vector<std::size_t> list;
  const auto& inputs = tosa::find(node.op)->inputs;
  for (std::size_t i = 0; i < node.inputs.size() && i < inputs.size(); ++i)
    if (!inputs[i].constant) list.push_back(i);
  return list;
}

Ints without_leading_ones(const Shape& shape) {
  const Ints dims = shape.sizes();
  return {std::find_if(dims.begin(), dims.end(), [](auto d) { return d != 1; }), dims.end()};
}

namespace {

// What is outside of the last three dims, with the first of these.
Ints as_image(const Shape& shape) {
  Ints dims = without_leading_ones(shape);
  for (; dims.size() > 3; dims.erase(dims.begin())) dims[1] *= dims[0];
  return dims;
}

// The image that Vela makes of one with few channels: the smallest prime factors are channels until there are 16.
Ints deepened(std::int64_t elements) {
  std::int64_t channels = 1, height = 1, width = 1;
  for (std::int64_t prime = 2; elements > 1; ++prime) {
    if (prime * prime > elements) prime = elements;
    for (; elements % prime == 0; elements /= prime) {
      std::int64_t& side = channels < 16 ? channels : width < height ? width : height;
      side *= prime;
    }
  }
  return without_leading_ones(Shape{std::max(height, width), std::min(height, width), channels});
}

std::vector<Ints> images(const Shape& shape) {
  std::vector<Ints> list{as_image(shape)};
  if (shape.elements() > 16 && shape.size(shape.rank() - 1) < 8) list.push_back(deepened(shape.elements()));
  return list;
}

using View = std::function<Ints(Ints)>;
using Holds = std::function<bool(const Ints& x, const Ints& y)>;

bool each(const std::vector<Ints>& operands, const Ints& y, const Holds& holds) {
  return std::all_of(operands.begin(), operands.end(),
                     [&](const Ints& x) { return x.size() == y.size() && holds(x, y); });
}

// Dims for each operand and for the result: the same elements in another shape, which broadcast as before. Where there
// is a choice the last dim stays: it is what a command is fast along.
std::vector<View> other_views(const std::vector<Ints>& operands, const Ints& y) {
  const std::size_t rank = y.size();
  std::vector<View> views;
  const auto merge = [&](std::size_t d) {  // d and d + 1, where all operands agree on them
    const bool agree = y[d] > 1 && y[d + 1] > 1 && each(operands, y, [d](const Ints& x, const Ints& of) {
                         return (x[d] == of[d] && x[d + 1] == of[d + 1]) || (x[d] == 1 && x[d + 1] == 1);
                       });
    if (!agree) return;
    views.emplace_back([d](Ints dims) {
      dims[d + 1] *= std::exchange(dims[d], 1);
      std::rotate(dims.begin(), dims.begin() + static_cast<std::ptrdiff_t>(d),
                  dims.begin() + static_cast<std::ptrdiff_t>(d) + 1);
      return dims;
    });
  };
  for (std::size_t d = rank; d-- > 2;) merge(d - 2);
  if (rank >= 2 && y[rank - 2] > 1 && (rank == 2 || y[rank - 3] == 1))
    views.emplace_back([](Ints dims) {
      dims.insert(dims.end() - 1, 1);
      if (dims.size() > 3) dims.erase(dims.end() - 4);
      return dims;
    });
  if (rank >= 2) merge(rank - 2);
  const bool in_line =
      rank >= 1 && y.back() > 1 && Shape(y).elements() == y.back() &&
      each(operands, y, [](const Ints& x, const Ints& of) { return x == of || Shape(x).elements() == 1; });
  if (in_line) {
    const auto rows_of = [&](std::int64_t columns) {
      views.emplace_back([columns](Ints dims) {
        const std::int64_t divisor = dims.back() == 1 ? 1 : columns;
        dims.insert(dims.end() - 1, dims.back() / divisor);
        dims.back() = divisor;
        if (dims.size() > 2) dims.erase(dims.begin());
        return dims;
      });
    };
    for (std::int64_t columns = std::min<std::int64_t>(y.back() - 1, 64); columns > 0; --columns)
      if (y.back() % columns == 0) rows_of(columns);
  }
  return views;
}

// Ones between others move to the front, where none stay of more than four dims: those Vela writes in its own way.
View gathered(const Ints& y) {
  return [y](const Ints& dims) {
    Ints moved(y.size() > 4 ? 0 : static_cast<std::size_t>(std::count(y.begin(), y.end(), 1)), 1);
    for (std::size_t d = 0; d < y.size(); ++d)
      if (y[d] != 1) moved.push_back(dims[d]);
    return moved;
  };
}

// The views above, and those of the dims without ones between.
std::vector<View> all_views(const std::vector<Ints>& operands, const Ints& y) {
  if (!each(operands, y, [](const Ints&, const Ints&) { return true; })) return {};
  std::vector<View> views;
  if (y.size() <= 4) views = other_views(operands, y);
  const View gather = gathered(y);
  const Ints moved = gather(y);
  if (moved == y || moved.empty()) return views;
  views.push_back(gather);
  std::vector<Ints> others;
  for (const Ints& x : operands) others.push_back(gather(x));
  for (const View& further : other_views(others, moved))
    views.emplace_back([gather, further](const Ints& dims) { return further(gather(dims)); });
  return views;
}

class OtherShapes {
 public:
  explicit OtherShapes(Graph& graph)
      : graph_(graph), from_(graph.values.size(), no_value), rescales_(graph.values.size()) {
    for (const Node& node : graph.nodes) {
      if (goes_along(node)) from_[node.outputs[0]] = node.inputs[0];
      if (node.op == tosa::op::rescale && !node.attrs.get<bool>("per_channel")) rescales_[node.outputs[0]] = node;
    }
  }

  void run(const std::vector<char>& marked) {
    Rewriter out(graph_);
    for (std::size_t n = 0; n < marked.size(); ++n) {
      Node node = std::move(out.nodes()[n]);
      const auto view = marked[n] ? other_shape(node) : std::nullopt;
      if (view)
        in_shape(out, node, *view);
      else
        out.keep(std::move(node));
    }
  }

 private:
  // One that neither the node has nor what computes its operands.
  std::optional<View> other_shape(const Node& node) const {
    const Shape& shape = graph_[node.outputs[0]].type.shape;
    std::vector<Shape> taken{shape};
    std::vector<Ints> operands;
    for (std::size_t i : tensor_operands(node)) {
      operands.push_back(graph_[node.inputs[i]].type.shape.sizes());
      for (ValueId v = node.inputs[i]; v != no_value; v = from_[v]) taken.push_back(graph_[v].type.shape);
    }
    for (const View& view : all_views(operands, shape.sizes())) {
      const Shape other(view(shape.sizes()));
      if (std::none_of(taken.begin(), taken.end(), [&](const Shape& is) { return compared_equal(is, other); }))
        return view;
    }
    return std::nullopt;
  }

  void in_shape(Rewriter& out, const Node& node, const View& view) {
    std::vector<ValueId> inputs = node.inputs;
    for (std::size_t i : tensor_operands(node)) inputs[i] = viewed(out, inputs[i], view, node.loc);
    const ValueId y = node.outputs[0];
    const TensorType type = graph_[y].type.with(Shape(view(graph_[y].type.shape.sizes())));
    out.reshape(out.add(node.op, inputs, node.attrs, type, node.loc), graph_[y].type.shape.sizes(), node.loc, y);
  }

  // The view stands before the RESCALE that widens an operand: that one is to be fused.
  ValueId viewed(Rewriter& out, ValueId v, const View& view, const LocRef& loc) {
    const TensorType type = graph_[v].type.with(Shape(view(graph_[v].type.shape.sizes())));
    if (graph_[v].is_constant()) return graph_.add_value(graph_[v].name, type, graph_[v].constant);
    if (v >= rescales_.size() || rescales_[v].op.none()) return out.reshape(v, type.shape.sizes(), loc);
    Node& rescale = rescales_[v];
    std::vector<ValueId> inputs = rescale.inputs;
    inputs[0] = viewed(out, inputs[0], view, loc);
    return out.add(rescale.op, inputs, rescale.attrs, type, rescale.loc);
  }

  Graph& graph_;
  std::vector<ValueId> from_;   // what a value goes along with
  std::vector<Node> rescales_;  // by the value that they write
};

}  // namespace

bool compared_equal(const Shape& a, const Shape& b) {
  const auto first = images(a), second = images(b);
  return std::find_first_of(first.begin(), first.end(), second.begin(), second.end()) != first.end();
}

void in_other_shapes(Graph& graph, const std::vector<char>& marked) {
  OtherShapes(graph).run(marked);
  drop_dead(graph);
}

}  // namespace tosaic::ethos_u
