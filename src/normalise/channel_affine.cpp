// SPDX-License-Identifier: Apache-2.0
#include "normalise/channel_affine.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "ir/aten_operators.h"
#include "ir/reshaped_dim.h"
#include "ir/tensor.h"
#include "ir/tosa_operators.h"
#include "ops/trial.h"

namespace tosaic {
namespace {

using Found = std::optional<ChannelAffine>;

bool all_are(const std::vector<double>& values, double value) {
  return std::ranges::all_of(values, [value](double v) { return v == value; });
}

// One TOSA node, whose first operand is of the form.
class After {
 public:
  After(const Graph& graph, const Node& node, const std::vector<Found>& of)
      : graph_(graph), node_(node), all_(of), of_(*of[node.inputs[0]]) {}

  Found result() const {
    namespace op = tosa::op;
    const Operator what = node_.op;
    if (what == op::concat) return concatenated();
    if (std::ranges::any_of(node_.inputs.begin() + 1, node_.inputs.end(), [&](ValueId v) { return has(v); })) return {};
    const auto at = static_cast<std::size_t>(of_.dim);
    if (what == op::identity) return of_;
    if (what == op::transpose) {
      const auto& perms = node_.attrs.get<std::vector<std::int64_t>>("perms");
      return moved(static_cast<int>(std::ranges::find(perms, of_.dim) - perms.begin()),
                   [](std::int64_t i) { return static_cast<std::size_t>(i); });
    }
    if (what == op::reshape) {
      const auto place = reshaped_dim(shape(), of_.dim, result_shape());
      return place ? moved(place->dim, [&](std::int64_t i) { return place->index(i); }) : Found();
    }
    if (what == op::slice) {
      const std::int64_t first = integers(1)[at];
      return moved(of_.dim, [&](std::int64_t i) { return static_cast<std::size_t>(first + i); });
    }
    if (what == op::reverse) return only_if(axis() != of_.dim);
    if (what == op::pad)
      return only_if(of_.only_scales() && number(2) == 0.0 && result_size() == shape().size(of_.dim));
    if (what == op::avg_pool2d || what == op::resize) return only_if(of_.dim == 3);  // shares that add up to 1
    if (what == op::max_pool2d) return only_if(of_.dim == 3 && rises());
    if (what == op::reduce_max || what == op::reduce_min) return only_if(axis() != of_.dim && rises());
    if (what == op::reduce_sum && axis() != of_.dim) return offset_times(static_cast<double>(shape().size(axis())));
    if (what == op::mul)
      if (const auto factor = number(1)) return offset_times(as_mean(*factor));
    return {};
  }

 private:
  const Shape& shape() const { return graph_[node_.inputs[0]].type.shape; }
  const Shape& result_shape() const { return graph_[node_.outputs[0]].type.shape; }
  std::int64_t result_size() const { return result_shape().size(of_.dim); }
  int axis() const { return static_cast<int>(node_.attrs.get<std::int64_t>("axis")); }
  bool rises() const {
    return std::ranges::all_of(of_.gain, [](double g) { return g > 0; });
  }
  // 1 / n of a mean, which f32 has but nearly: the offset is then the same for means over any n.
  static double as_mean(double factor) {
    const double n = std::round(1 / factor);
    return std::fabs(factor * n - 1) < 0x1p-22 ? 1 / n : factor;
  }
  Found only_if(bool possible) const { return possible ? Found(of_) : Found(); }
  std::span<const std::int64_t> integers(std::size_t i) const {
    return graph_[node_.inputs[i]].constant.as<std::int64_t>();
  }
  // The elements of a constant that are all one number.
  std::optional<double> number(std::size_t i) const {
    const Value& v = graph_[node_.inputs[i]];
    if (!v.is_constant()) return {};
    const std::vector<double> all = reals_of(v);
    return !all.empty() && all_are(all, all[0]) ? std::optional(all[0]) : std::nullopt;
  }

  bool has(ValueId v) const { return v != no_value && all_[v]; }

  Found concatenated() const {
    const bool by_channel = axis() == of_.dim;
    ChannelAffine to{of_.dim, {}, {}};
    for (const ValueId v : node_.inputs) {
      if (!has(v) || all_[v]->dim != of_.dim) return {};
      if (!by_channel && *all_[v] != of_) return {};
      to.gain.insert(to.gain.end(), all_[v]->gain.begin(), all_[v]->gain.end());
      to.offset.insert(to.offset.end(), all_[v]->offset.begin(), all_[v]->offset.end());
    }
    return by_channel ? to : of_;
  }

  template <class Index>
  Found moved(int dim, const Index& index) const {
    ChannelAffine to{dim, {}, {}};
    for (std::int64_t i = 0; i < result_shape().size(dim); ++i) {
      to.gain.push_back(of_.gain[index(i)]);
      to.offset.push_back(of_.offset[index(i)]);
    }
    return to;
  }
  // A linear map f of the other dims: f(g x + t) = g f(x) + f(t).
  Found offset_times(double factor) const {
    ChannelAffine to = of_;
    for (double& t : to.offset) t *= factor;
    return to;
  }

  const Graph& graph_;
  const Node& node_;
  const std::vector<Found>& all_;  // per value
  const ChannelAffine& of_;
};

}  // namespace

bool ChannelAffine::only_scales() const { return all_are(offset, 0); }

std::vector<double> reals_of(const Value& value) {
  std::vector<double> out(static_cast<std::size_t>(value.type.shape.elements()));
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = element_as_double(value.type.dtype, value.constant.data(), i);
  return out;
}

bool is_batch_norm(Operator op) {
  return op == aten::op::batch_norm || op == aten::op::_native_batch_norm_legit_no_training;
}

Found channel_affine(const Graph& graph, const Node& node) {
  if (node.inputs.size() < 5 || node.attrs.get_or("training", false)) return std::nullopt;
  for (std::size_t i = 3; i < 5; ++i)
    if (node.inputs[i] == no_value || !graph[node.inputs[i]].is_constant()) return std::nullopt;
  auto mean = reals_of(graph[node.inputs[3]]), variance = reals_of(graph[node.inputs[4]]);
  const double eps = node.attrs.get_or("eps", 1e-5);
  ChannelAffine a{1, std::vector<double>(mean.size(), 1.0), std::vector<double>(mean.size(), 0.0)};
  for (int which = 1; which <= 2; ++which) {
    ValueId v = node.inputs[static_cast<std::size_t>(which)];
    if (v == no_value) continue;
    if (!graph[v].is_constant()) return std::nullopt;
    (which == 1 ? a.gain : a.offset) = reals_of(graph[v]);
  }
  if (a.gain.size() != mean.size() || a.offset.size() != mean.size() || variance.size() != mean.size())
    return std::nullopt;
  for (std::size_t c = 0; c < mean.size(); ++c) {
    a.gain[c] /= std::sqrt(variance[c] + eps);
    a.offset[c] -= mean[c] * a.gain[c];
  }
  return a;
}

Found affine_after(const Graph& graph, const Node& call, const ChannelAffine& operand) {
  const auto trial = try_node(graph, call);
  if (!trial.ok() || trial->graph.inputs != std::vector{trial->operands[0]}) return {};
  std::vector<Found> of(trial->graph.values.size());
  of[trial->operands[0]] = operand;
  for (const Node& node : trial->graph.nodes) {
    if (std::ranges::none_of(node.inputs, [&](ValueId v) { return v != no_value && of[v]; })) continue;
    if (!of[node.inputs[0]]) return {};
    of[node.outputs[0]] = After(trial->graph, node, of).result();
    if (!of[node.outputs[0]]) return {};
  }
  return of[trial->results[0]];
}

}  // namespace tosaic
