// SPDX-License-Identifier: Apache-2.0
#include "ops/lowering/convolution.h"

#include <fmt/format.h>
#include <algorithm>

#include "ir/aten_operators.h"
#include "ir/tosa_operators.h"
#include "ops/core_form.h"
#include "ops/lowering/layout.h"

namespace tosaic {
namespace {

using Ints = std::vector<std::int64_t>;

Ints ints_of(std::size_t count, std::int64_t value) { return Ints(count, value); }

// N,C,L -> N,C,1,L: one spatial dim is two, of which the first is 1.
Val with_height(Val x) { return x.builder().unsqueeze(x, 2); }
Val without_height(Val x) { return x.builder().squeeze(x, {2}); }

void add_height(Convolution& how) {
  how.stride.insert(how.stride.begin(), 1);
  how.dilation.insert(how.dilation.begin(), 1);
  how.pad_before.insert(how.pad_before.begin(), 0);
  how.pad_after.insert(how.pad_after.begin(), 0);
  if (!how.output_padding.empty()) how.output_padding.insert(how.output_padding.begin(), 0);
}

Ints tosa_pads(const Convolution& how) {
  Ints pads;
  for (std::size_t i = 0; i < how.pad_before.size(); ++i) {
    pads.push_back(how.pad_before[i]);
    pads.push_back(how.pad_after[i]);
  }
  return pads;
}

// One group. x: channels last; weight: OC,IC,spatial.
Val convolve_group(Builder& b, Val x, Val weight, std::optional<Val> bias, const Convolution& how) {
  Val w = channels_last(weight);
  if (x.rank() == 5) return b.conv3d(x, w, bias, tosa_pads(how), how.stride, how.dilation);
  return b.conv2d(x, w, bias, tosa_pads(how), how.stride, how.dilation);
}

// Weight C*M,1,KH,KW -> KH,KW,C,M. Output channel c*M + m in both.
Val depthwise_weight(Builder& b, Val weight, std::int64_t channels) {
  Val split = b.reshape(weight, {channels, weight.dim(0) / channels, weight.dim(2), weight.dim(3)});
  return b.transpose(split, {2, 3, 0, 1});
}

// x channels last, `how` with two or three spatial dims; the result is channels last.
Val convolve_nhwc(Builder& b, Val x, Val weight, std::optional<Val> bias, const Convolution& how) {
  if (how.groups == 1) return convolve_group(b, x, weight, bias, how);
  const std::int64_t channels = x.dim(-1), in = channels / how.groups, out = weight.dim(0) / how.groups;
  if (in == 1 && x.rank() == 4)
    return b.depthwise_conv2d(x, depthwise_weight(b, weight, channels), bias, tosa_pads(how), how.stride, how.dilation);
  std::vector<Val> parts;
  for (std::int64_t g = 0; g < how.groups; ++g) {
    std::optional<Val> group_bias;
    if (bias) group_bias = b.slice_axis(*bias, 0, g * out, out);
    parts.push_back(convolve_group(b, b.slice_axis(x, x.rank() - 1, g * in, in), b.slice_axis(weight, 0, g * out, out),
                                   group_bias, how));
  }
  return b.concat(parts, x.rank() - 1);
}

// Puts step - 1 zeros between the elements of the dims `first`, `first + 1`, ... What is too much behind the last is
// cut at the end, in one SLICE.
Val spread_out(Builder& b, Val x, int first, const Ints& steps) {
  Ints start = ints_of(static_cast<std::size_t>(x.rank()), 0), size = x.shape().sizes();
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (steps[i] == 1) continue;
    const int axis = first + static_cast<int>(i);
    const std::int64_t count = x.dim(axis);
    Val y = b.unsqueeze(x, axis + 1);
    Ints before = ints_of(static_cast<std::size_t>(y.rank()), 0), after = before;
    after[static_cast<std::size_t>(axis) + 1] = steps[i] - 1;
    y = b.pad(y, before, after, 0.0);
    auto dims = x.shape().sizes();
    dims[static_cast<std::size_t>(axis)] = count * steps[i];
    size[static_cast<std::size_t>(axis)] = (count - 1) * steps[i] + 1;
    x = b.reshape(y, Shape(dims));
  }
  return x.shape().sizes() == size ? x : b.slice(x, start, size);
}

// A transposed convolution as the plain convolution that it is the adjoint of: zeros between the input's elements,
// the kernel turned around. For groups and for three spatial dims, which TRANSPOSE_CONV2D does not have.
Val transposed_by_spreading(Builder& b, Val x, Val weight, std::optional<Val> bias, const Convolution& how) {
  const std::int64_t g = how.groups, in = weight.dim(0) / g, out = weight.dim(1);
  const int spatial = weight.rank() - 2;
  // g*in, out, K... -> g*out, in, K...
  Ints split{g, in, out}, joined{g * out, in};
  std::vector<int> permutation{0, 2, 1};
  for (int i = 0; i < spatial; ++i) {
    split.push_back(weight.dim(2 + i));
    joined.push_back(weight.dim(2 + i));
    permutation.push_back(3 + i);
  }
  if (weight.type().quantised() && !weight.type().scales->per_tensor() && g > 1 && out > 1)
    b.refuse("aten.conv_transpose.grouped-per-channel",
             fmt::format("a transposed convolution with {} groups of {} output channels shares per-channel weight "
                         "scales between groups",
                         g, out));
  Val w = b.reshape(b.transpose(b.reshape(weight, Shape(split)), permutation), Shape(joined));
  for (int i = 0; i < spatial; ++i)
    if (w.dim(2 + i) > 1) {
      TensorType type = w.type();
      w = b.tosa(tosa::op::reverse, {w}, {{"axis", std::int64_t{2 + i}}});
      b.graph()[w.id()].type = type;
    }

  Val y = spread_out(b, x, 1, how.stride);
  Convolution plain;
  plain.groups = g;
  plain.stride = ints_of(static_cast<std::size_t>(spatial), 1);
  plain.dilation = how.dilation;
  for (int i = 0; i < spatial; ++i) {
    const auto k = static_cast<std::size_t>(i);
    const std::int64_t reach = (weight.dim(2 + i) - 1) * how.dilation[k];
    // Negative: the padding takes off more than the kernel adds, so rows of the input never matter.
    std::int64_t before = reach - how.pad_before[k], after = reach - how.pad_after[k] + how.output_padding[k];
    const std::int64_t start = std::max<std::int64_t>(-before, 0), stop = std::max<std::int64_t>(-after, 0);
    y = b.slice_axis(y, 1 + i, start, y.dim(1 + i) - start - stop);
    plain.pad_before.push_back(std::max<std::int64_t>(before, 0));
    plain.pad_after.push_back(std::max<std::int64_t>(after, 0));
  }
  return convolve_nhwc(b, y, w, bias, plain);
}

Val transposed_nhwc(Builder& b, Val x, Val weight, std::optional<Val> bias, const Convolution& how) {
  if (how.groups != 1 || x.rank() != 4) return transposed_by_spreading(b, x, weight, bias, how);
  Val w = spread_out(b, b.transpose(weight, {1, 2, 3, 0}), 1, how.dilation);
  // OUT_PAD may take off less than the whole kernel; the rest is cut from the result.
  Ints out_pad, cut;
  for (std::size_t i = 0; i < 2; ++i) {
    const std::int64_t least = 1 - w.dim(1 + static_cast<int>(i));
    const std::int64_t wanted[2] = {-how.pad_before[i], -how.pad_after[i] + how.output_padding[i]};
    for (std::int64_t pad : wanted) {
      out_pad.push_back(std::max(pad, least));
      cut.push_back(std::max<std::int64_t>(least - pad, 0));
    }
  }
  Val y = b.transpose_conv2d(x, w, bias, out_pad, how.stride);
  return b.slice(y, {0, cut[0], cut[2], 0},
                 {y.dim(0), y.dim(1) - cut[0] - cut[1], y.dim(2) - cut[2] - cut[3], y.dim(3)});
}

void check_sizes(Builder& b, const std::string& op, Val x, Val weight, std::optional<Val> bias, const Convolution& how,
                 bool transposed) {
  if (how.groups < 1 || x.dim(1) % how.groups || weight.dim(0) % how.groups)
    b.refuse("aten." + op + ".groups", fmt::format("{} groups do not divide {} input channels and a weight of shape {}",
                                                   how.groups, x.dim(1), to_string(weight.shape())));
  const std::int64_t expected = transposed ? weight.dim(0) : weight.dim(1) * how.groups;
  if (expected != x.dim(1))
    b.refuse("aten." + op + ".channels",
             fmt::format("the input has {} channels, the weight of shape {} with {} groups takes {}", x.dim(1),
                         to_string(weight.shape()), how.groups, expected));
  const std::int64_t outputs = transposed ? weight.dim(1) * how.groups : weight.dim(0);
  if (bias && (bias->rank() != 1 || bias->dim(0) != outputs))
    b.refuse("aten." + op + ".bias",
             fmt::format("a bias of shape {} for {} output channels", to_string(bias->shape()), outputs));
  const std::size_t spatial = static_cast<std::size_t>(weight.rank()) - 2;
  for (const Ints* list : {&how.stride, &how.pad_before, &how.pad_after, &how.dilation})
    if (list->size() != spatial)
      b.refuse("aten." + op + ".arguments", fmt::format("{} numbers for {} spatial dims", list->size(), spatial));
  for (std::size_t i = 0; i < spatial; ++i)
    if (how.stride[i] < 1 || how.dilation[i] < 1 || how.pad_before[i] < 0 || how.pad_after[i] < 0)
      b.refuse("aten." + op + ".arguments",
               fmt::format("stride {}, dilation {}, padding {}", how.stride[i], how.dilation[i], how.pad_before[i]));
}

void check_rank(Builder& b, const Call& call, Val weight, int spatial) {
  if (weight.rank() != spatial + 2)
    b.refuse("aten." + call.schema().name + ".rank",
             fmt::format("a weight of shape {} for {} spatial dims", to_string(weight.shape()), spatial));
}

template <class Body>
Val around(Builder& b, const std::string& op, Val x, Val& weight, Convolution& how, Body body) {
  const int rank = weight.rank();
  if (rank < 3 || rank > 5) b.refuse("aten." + op + ".rank", "a weight of shape " + to_string(weight.shape()));
  Batched whole = batched(x, rank, op);
  x = whole.x;
  if (rank == 3) {
    x = with_height(x);
    weight = with_height(weight);
    add_height(how);
  }
  Val y = channels_first(body(channels_last(x)));
  if (rank == 3) y = without_height(y);
  return whole.restore(y);
}

}  // namespace

Val convolve(Builder& b, const std::string& op, Val x, Val weight, std::optional<Val> bias, Convolution how) {
  check_sizes(b, op, batched(x, weight.rank(), op).x, weight, bias, how, false);
  return around(b, op, x, weight, how, [&](Val nhwc) { return convolve_nhwc(b, nhwc, weight, bias, how); });
}

Val convolve_transposed(Builder& b, const std::string& op, Val x, Val weight, std::optional<Val> bias,
                        Convolution how) {
  check_sizes(b, op, batched(x, weight.rank(), op).x, weight, bias, how, true);
  if (how.output_padding.empty()) how.output_padding = ints_of(how.stride.size(), 0);
  return around(b, op, x, weight, how, [&](Val nhwc) { return transposed_nhwc(b, nhwc, weight, bias, how); });
}

Vals lower_convolution(Builder& b, const Call& call, int spatial) {
  Val weight = call.tensor("weight");
  check_rank(b, call, weight, spatial);
  Convolution how;
  how.stride = call.spread("stride", spatial);
  how.dilation = call.spread("dilation", spatial);
  how.groups = call.integer("groups");
  if (static_cast<int>(how.dilation.size()) != spatial)
    b.refuse("aten." + call.schema().name + ".arguments",
             fmt::format("{} dilations for {} spatial dims", how.dilation.size(), spatial));
  if (call.overload() == "padding") {
    const std::string mode = call.text("padding");
    if (mode != "valid" && mode != "same")
      b.refuse("aten." + call.schema().name + ".padding", "padding '" + mode + "' is neither 'same' nor 'valid'");
    for (int i = 0; i < spatial; ++i) {
      const std::int64_t total =
          mode == "same" ? how.dilation[static_cast<std::size_t>(i)] * (weight.dim(2 + i) - 1) : 0;
      how.pad_before.push_back(total / 2);
      how.pad_after.push_back(total - total / 2);
    }
  } else {
    how.pad_before = how.pad_after = call.spread("padding", spatial);
  }
  return convolve(b, call.schema().name, call.tensor("input"), weight, call.optional_tensor("bias"), how);
}

Vals lower_transposed_convolution(Builder& b, const Call& call, int spatial) {
  check_rank(b, call, call.tensor("weight"), spatial);
  Convolution how;
  how.stride = call.spread("stride", spatial);
  how.dilation = call.spread("dilation", spatial);
  how.groups = call.integer("groups");
  how.pad_before = how.pad_after = call.spread("padding", spatial);
  how.output_padding = call.spread("output_padding", spatial);
  return convolve_transposed(b, call.schema().name, call.tensor("input"), call.tensor("weight"),
                             call.optional_tensor("bias"), how);
}

std::optional<Node> core_convolution(const CoreCall& call) {
  const std::string& name = call.schema.name;
  const bool transposed = name.starts_with("conv_transpose");
  const auto dims = static_cast<std::size_t>(name[name.size() - 2] - '0');  // conv2d
  if (call.in(0).rank() != static_cast<int>(dims) + 2) return std::nullopt;
  std::vector<std::int64_t> padding = call.ints("padding", dims);
  const std::vector<std::int64_t> dilation = call.ints("dilation", dims), none(dims, 0);
  if (const auto* text = std::get_if<std::string>(&call.attr("padding"))) {
    padding = none;
    for (std::size_t d = 0; *text == "same" && d < dims; ++d) {
      const std::int64_t total = dilation[d] * (call.in(1).shape.size(static_cast<int>(d) + 2) - 1);
      if (total % 2 != 0) return std::nullopt;  // convolution pads both sides alike
      padding[d] = total / 2;
    }
  }
  return call.call(aten::op::convolution, {call.operand(0), call.operand(1), call.operand(2)},
                   {{"stride", call.ints("stride", dims)},
                    {"padding", padding},
                    {"dilation", dilation},
                    {"transposed", transposed},
                    {"output_padding", transposed ? call.ints("output_padding", dims) : none},
                    {"groups", call.integer("groups")}});
}

}  // namespace tosaic
