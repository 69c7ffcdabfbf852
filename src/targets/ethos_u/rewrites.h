// SPDX-License-Identifier: Apache-2.0
// What the rewrites of shape.cpp are made of, and those that have a file of their own.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "ir/rewriter.h"
#include "ir/tensor.h"
#include "ir/tosa_operators.h"
#include "ops/definitions/tosa_op.h"

namespace tosaic::ethos_u {

using Ints = std::vector<std::int64_t>;
constexpr std::int64_t longest_axis = 65536;  // what one command's width, height or depth can hold

// By value: does one node read it, once, and nobody outside the graph?
std::vector<char> read_once(const Graph& graph);

// With the words that rewrites are made of.
class Rewriter : public tosaic::Rewriter {
 public:
  explicit Rewriter(Graph& graph) : tosaic::Rewriter(graph), graph_(graph) {}

  // Each writes `to`, or a new value; a reshape to the shape that x has is x.
  ValueId reshape(ValueId x, const Ints& dims, const LocRef& loc, ValueId to = no_value) {
    if (to == no_value && graph_[x].type.shape.sizes() == dims) return x;
    return add(tosa::op::reshape, {x, constant(dims)}, {}, graph_[x].type.with(Shape(dims)), loc, to);
  }
  // Elements [start, start + size) of every dim.
  ValueId slice(ValueId x, const Ints& start, const Ints& size, const LocRef& loc, ValueId to = no_value) {
    return add(tosa::op::slice, {x, constant(start), constant(size)}, {}, graph_[x].type.with(Shape(size)), loc, to);
  }
  ValueId transpose(ValueId x, const Ints& perm, const LocRef& loc, ValueId to = no_value) {
    Ints dims;
    for (std::int64_t p : perm) dims.push_back(graph_[x].type.shape.size(static_cast<int>(p)));
    return add(tosa::op::transpose, {x}, {{"perms", perm}}, graph_[x].type.with(Shape(dims)), loc, to);
  }
  // The same elements in memory of their own: RESCALE by exactly 1, which is a command.
  ValueId copied(ValueId x, const LocRef& loc) { return rescaled_by_one(x, graph_[x].type, loc); }
  ValueId rescaled_by_one(ValueId x, TensorType type, const LocRef& loc, ValueId to = no_value) {
    const auto constant = [&](DType dtype, std::int64_t value) {
      return graph_.add_value("one", {dtype, Shape{1}, {}}, constant_bytes(dtype, Ints{value}));
    };
    const ValueId zero_in = constant(graph_[x].type.dtype, 0), zero_out = constant(type.dtype, 0);
    return add(tosa::op::rescale,
               {x, constant(DType::i32, std::int64_t{1} << 30), constant(DType::i8, 30), zero_in, zero_out},
               {{"scale32", true},
                {"rounding_mode", std::string("single_round")},
                {"per_channel", false},
                {"input_unsigned", false},
                {"output_unsigned", false}},
               std::move(type), loc, to);
  }
  ValueId add(Operator op, std::vector<ValueId> inputs, Attrs attrs, TensorType type, const LocRef& loc,
              ValueId to = no_value) {
    if (to == no_value) to = graph_.add_value("npu", std::move(type));
    return tosaic::Rewriter::add(op, std::move(inputs), std::move(attrs), to, loc);
  }

 private:
  ValueId constant(const Ints& dims) {
    return graph_.add_value("dims", {DType::shape, Shape{static_cast<std::int64_t>(dims.size())}, {}},
                            constant_bytes(DType::shape, dims));
  }
  Graph& graph_;
};

// Where a SLICE takes its elements from, if its operands are constants.
struct Cut {
  Ints start, size;
};
std::optional<Cut> constant_cut(const Graph& graph, const Node& node);

// One image of several planes that the node turns from channels first to channels last: its shape before.
std::optional<Shape> turned_image(const Graph& graph, const Node& node);

void slices_before_transposes(Graph& graph);
void at_most_four_dims(Graph& graph);
void windows_into_channels(Graph& graph);
void turn_images_one_by_one(Graph& graph);  // U85
// An image of few planes becomes channels last by a convolution with weights 0 and 1, which takes a tenth of the
// cycles.
void images_by_convolution(Graph& graph);   // U65, U85
void separate_chains(Graph& graph);         // U85
void separate_chained_views(Graph& graph);  // U85
void rescales_before_views(Graph& graph);   // U85
void images_as_single_rows(Graph& graph);   // U85 of up to 256 MACs
void strides_into_channels(Graph& graph);
void narrow_constants(Graph& graph);
void merge_neighbouring_reductions(Graph& graph);
void split_linears(Graph& graph);
void activations_before_views(Graph& graph, bool inputs_too);
void views_of_their_own(Graph& graph);
void move_rescales_after_views(Graph& graph);
void copy_shared_operands(Graph& graph);    // U55, U65
void separate_lone_rescales(Graph& graph);  // U55, U65
void copy_selected_operands(Graph& graph);  // U85
void booleans_of_their_own(Graph& graph);   // U85

}  // namespace tosaic::ethos_u
