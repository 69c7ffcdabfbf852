// SPDX-License-Identifier: Apache-2.0
// Which operators have shaders of their own, and what makes them. Elementwise ones stand in elements.cpp, those that
// only move elements go by their strides (plan/movement.h).
#pragma once
#include <optional>
#include <span>
#include <vector>

#include "plan/expression.h"
#include "shaders/kernel.h"
#include "shaders/strided_batches.h"

namespace tosaic::shaders {

// What happens to each element that an operator computes: it is stored, or goes on through the elementwise nodes that
// are computed with it.
class Finish {
 public:
  Finish(ValueId root, const plan::Expression* epilogue) : root_(root), epilogue_(epilogue) {}
  ValueId root() const { return root_; }
  ValueId output() const {
    return row_apart_ ? row_apart_->result : strides_ ? strides_->value : epilogue_ ? epilogue_->output : root_;
  }
  // Of matrices whose elements are stored in another value, in another order: how far apart batches and rows lie there.
  // The epilogue must not depend on places.
  struct Strides {
    ValueId value;
    StridedBatches batches;
    Dim rows;
  };
  Finish(ValueId root, const plan::Expression* epilogue, const Strides& strides)
      : root_(root), epilogue_(epilogue), strides_(strides) {}
  const std::optional<Strides>& strides() const { return strides_; }
  // Nothing of it is stored: the same dispatch goes on with a depthwise convolution that reads it (fused_depthwise.h).
  struct Behind {
    const Node* node;
    const Finish* end;  // what happens to that one's elements
  };
  Finish(ValueId root, const plan::Expression* epilogue, const Behind& behind)
      : root_(root), epilogue_(epilogue), behind_(behind) {}
  const std::optional<Behind>& behind() const { return behind_; }
  // Only one row is made, of a convolution by one pixel: of `input`, which is stored alone, and as `result`.
  struct RowApart {
    ValueId input, result;
    std::int64_t first;  // element of all that the convolution makes
  };
  Finish(ValueId root, const plan::Expression* epilogue, const RowApart& row)
      : root_(root), epilogue_(epilogue), row_apart_(row) {}
  const std::optional<RowApart>& row_apart() const { return row_apart_; }
  // Element `index` of the result, in row-major order; of the row, if it is one.
  void store(Kernel& kernel, Value index, Value element) const;
  // The same in two steps: what is stored of it, and storing it.
  Value finished(Kernel& kernel, Value index, Value element) const;
  void store_finished(Kernel& kernel, Value index, Value finished) const;
  // Of four neighbours, whose number is a multiple of four: `quad` is a fourth of it.
  Quad finished_quad(Kernel& kernel, Value quad, const Quad& elements) const;
  void store_finished(Kernel& kernel, Value quad, const Quad& finished) const;
  // Four of them: `index` is a multiple of four. May a kernel that makes rows of `row` elements, four neighbours at a
  // time, store all of them so? Its own rows decide: the result may be seen in another shape after it (root()).
  bool has_quads(const Graph& graph, const Dim& row) const;
  void store_from(Kernel& kernel, Value index, const Quad& elements) const;
  // One or four, from element `index` on.
  void store_lanes(Kernel& kernel, Value index, const std::vector<Value>& elements) const;

 private:
  ValueId root_;
  const plan::Expression* epilogue_;
  std::optional<Strides> strides_;
  std::optional<Behind> behind_;
  std::optional<RowApart> row_apart_;
};

// Dispatches in order. nullopt: this kernel does not fit, with its epilogue.
using MadeList = std::optional<std::vector<Made>>;

struct KernelRow {
  Operator op;
  MadeList (*make)(const Work& work, const Node& node, const Finish& finish);
  TierSet tiers = vulkan_program::all_tiers;
  // Does the kernel take this node? nullptr: any that holds to the standard.
  bool (*takes)(const tosa::View& view) = nullptr;
  bool by_strides = false;        // does it store so? (Finish::strides)
  bool before_depthwise = false;  // does it go on so? (Finish::behind)
};
// All of them, by the operators' names.
std::span<const KernelRow> kernel_rows();
// Rows of the operator, best first. The last one is for every tier and every node of the operator.
std::span<const KernelRow> kernel_rows(const Node& node);
// Do two tiers have the same ones for all nodes of the graph?
bool has_same_kernels(const Work& a, const Work& b);

MadeList one(Kernel& kernel);

MadeList make_convolution(const Work&, const Node&, const Finish&);  // conv2d, conv3d, grouped_conv2d
MadeList make_tiled_convolution(const Work&, const Node&, const Finish&);
// By dot products of quantised values.
bool takes_dot_convolution(const tosa::View& view);
MadeList make_dot_convolution(const Work&, const Node&, const Finish&);
MadeList make_row_product(const Work&, const Node&, const Finish&);
MadeList make_tiled_matmul(const Work&, const Node&, const Finish&);
// By matrices of subgroups.
bool takes_matrix_convolution(const tosa::View& view);
bool takes_int8_matrix_convolution(const tosa::View& view);
MadeList make_matrix_convolution(const Work&, const Node&, const Finish&);
bool takes_matrix_matmul(const tosa::View& view);
bool takes_int8_matrix_matmul(const tosa::View& view);
MadeList make_matrix_matmul(const Work&, const Node&, const Finish&);
// Of groups of whole quads of channels; of so many that tiles of products are worth more; also of f16 and 8-bit
// integers by matrices.
bool takes_wide_groups(const tosa::View& view);
bool takes_wide_dot_groups(const tosa::View& view);
bool takes_matrix_groups(const tosa::View& view);
bool takes_int8_matrix_groups(const tosa::View& view);
bool takes_quad_groups(const tosa::View& view);
MadeList make_quad_groups(const Work&, const Node&, const Finish&);
bool takes_dot_groups(const tosa::View& view);
MadeList make_dot_groups(const Work&, const Node&, const Finish&);
MadeList make_depthwise(const Work&, const Node&, const Finish&);
MadeList make_quad_depthwise(const Work&, const Node&, const Finish&);
// For CPU devices.
bool takes_subgroup_convolution(const tosa::View& view);
bool takes_block_depthwise(const tosa::View& view);
MadeList make_block_depthwise(const Work&, const Node&, const Finish&);
MadeList make_subgroup_convolution(const Work&, const Node&, const Finish&);
bool takes_subgroup_matmul(const tosa::View& view);
MadeList make_subgroup_matmul(const Work&, const Node&, const Finish&);
MadeList make_transpose_convolution(const Work&, const Node&, const Finish&);
MadeList make_matmul(const Work&, const Node&, const Finish&);
MadeList make_pool(const Work&, const Node&, const Finish&);
MadeList make_shared_pool(const Work&, const Node&, const Finish&);
MadeList make_shared_reduction(const Work&, const Node&, const Finish&);
MadeList make_reduction(const Work&, const Node&, const Finish&);
MadeList make_argmax(const Work&, const Node&, const Finish&);
MadeList make_fourier(const Work&, const Node&, const Finish&);  // fft2d, rfft2d
MadeList make_gather(const Work&, const Node&, const Finish&);
MadeList make_scatter(const Work&, const Node&, const Finish&);
MadeList make_resize(const Work&, const Node&, const Finish&);

// An elementwise expression by itself, which stores the results of `others` of its calls as well: these have its shape.
MadeList make_elementwise(const Work& work, const plan::Expression& expression, std::span<const ValueId> others = {});
// The same stored where a data layout operator takes each element; nullopt, too: it is not one move of all of them.
MadeList make_moved_elementwise(const Work& work, const plan::Expression& expression, const Node& movement);
// TRANSPOSE, SLICE, PAD, ...; nullopt, too: the node moves nothing.
MadeList make_movement(const Work& work, const Node& node);
// Element for element; their types have elements of one size. `to` is the second binding.
MadeList make_copy(const Work& work, ValueId from, ValueId to);

// Which nodes kernels of devices with memory for work groups take (group_fold.h, depthwise.cpp).
bool has_quad_taps(const tosa::View& view);   // depthwise convolutions of four channels at a time
bool has_long_lines(const tosa::View& view);  // reductions
bool has_one_window(const tosa::View& view);  // average pools
// One element of a value, or four from a multiple of four on.
std::vector<Value> load_lanes(Kernel& kernel, ValueId v, Value index, int lanes);

// The sum that an operator keeps, of its result's kind.
struct Sum {
  Variable sum;
  static Sum of(Kernel& kernel, DType result);
  void add_product(Value a, Value b) const;
  void add(Value term) const;
};

}  // namespace tosaic::shaders
