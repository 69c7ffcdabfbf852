// SPDX-License-Identifier: Apache-2.0
// Magnitudes, sqrt(a * a + b * b): of a signal that is 40 dB quieter than the loudest, squares have no bit left of 16.
// hypot(a, b) keeps them whole. The same with a number added to the squares or as their least, and of the two halves of
// a tensor, as complex numbers have them.
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "ir/rewriter.h"
#include "ops/composer.h"
#include "ops/lowering/calls.h"
#include "quantise/powers.h"
#include "quantise/quantise.h"
#include "quantise/steps.h"

namespace tosaic {
namespace {

using Found = std::optional<Val>;

class OfMagnitudes {
 public:
  OfMagnitudes(Graph& graph, const QuantiseOptions& options)
      : graph_(graph), options_(options), calls_(graph), out_(graph), b_(graph) {}

  void run() {
    for (Node& node : out_.nodes())
      if (!said_anew(node)) out_.keep(std::move(node));
    drop_dead_nodes(graph_);
  }

 private:
  bool said_anew(const Node& node) {
    if (node.inputs.empty() || node.inputs[0] == no_value || node.outputs[0] == no_value ||
        graph_[node.inputs[0]].type.dtype != DType::f32)
      return false;
    b_.set_loc(node.loc);
    const auto made = unless_refused([&]() -> Result<Found> { return magnitude(node); });
    if (!made.ok() || !*made) return false;
    graph_.nodes.back().outputs[0] = node.outputs[0];
    return true;
  }

  Found magnitude(const Node& node) {
    if (node.op == aten::op::linalg_vector_norm)
      return number_of(node, "ord").value_or(2) == 2 && !node.attrs.find("dtype") ? of_halves(node.inputs[0], node)
                                                                                  : Found();
    return exponent_of(graph_, calls_, node) == 0.5 ? root_of(node.inputs[0]) : Found();
  }

  // The root of v, where v is known to be a sum of two squares.
  Found root_of(ValueId v) {
    const Node* maker = calls_.maker(v);
    if (!maker || maker->inputs.empty() || maker->inputs[0] == no_value) return {};
    if (const auto added = number_added(*maker)) {
      const Found root = *added > 0 ? root_of(maker->inputs[0]) : Found();
      return root ? b_.aten(aten::op::hypot, {*root, b_.scalar(std::sqrt(*added), DType::f32)}) : root;
    }
    if (is_plain_sum(*maker)) {
      const auto a = root_of_square(maker->inputs[0]), b = root_of_square(maker->inputs[1]);
      return a && b ? Found(b_.aten(aten::op::hypot, {b_.value(*a), b_.value(*b)})) : Found();
    }
    if (const auto least = least_of(*maker)) {
      const Found root = *least > 0 ? root_of(maker->inputs[0]) : Found();
      return root ? Found(calls::at_least(*root, std::sqrt(*least))) : root;
    }
    const auto of = maker->op == aten::op::sum_dim_IntList ? root_of_square(maker->inputs[0]) : std::nullopt;
    return of ? of_halves(*of, *maker) : Found();
  }

  std::optional<ValueId> root_of_square(ValueId v) const {
    const Node* maker = calls_.maker(v);
    return maker && exponent_of(graph_, calls_, *maker) == 2 ? std::optional(maker->inputs[0]) : std::nullopt;
  }

  // What is added to the first operand.
  std::optional<double> number_added(const Node& node) const {
    if ((node.op != aten::op::add_Tensor && node.op != aten::op::add_Scalar) ||
        number_of(node, "alpha").value_or(1) != 1)
      return {};
    return scalar_among(graph_, node);
  }

  // Of x's two halves along the dim that `node` reduces.
  Found of_halves(ValueId x, const Node& node) {
    const auto* dims = std::get_if<std::vector<std::int64_t>>(node.attrs.find("dim"));
    if (!dims || dims->size() != 1) return {};
    const int rank = graph_[x].type.rank(),
              dim = static_cast<int>(dims->front() < 0 ? dims->front() + rank : dims->front());
    if (!size_stays(options_, graph_, x, dim) || graph_[x].type.shape.size(dim) != 2) return {};
    const bool keep = node.attrs.get_or("keepdim", false);
    const auto half = [&](std::int64_t i) {
      return keep ? calls::slice(b_.value(x), dim, i, 1)
                  : b_.aten(aten::op::select_int, {b_.value(x)}, {{"dim", std::int64_t{dim}}, {"index", i}});
    };
    return b_.aten(aten::op::hypot, {half(0), half(1)});
  }

  Graph& graph_;
  const QuantiseOptions& options_;
  const Calls calls_;
  Rewriter out_;
  Composer b_;
};

}  // namespace

void roots_of_squares(Graph& graph, std::vector<char>& inner, const QuantiseOptions& options) {
  inner.resize(graph.values.size(), 0);
  const bool has_16_bits = options.scheme == Scheme::int16x8 || options.wide_inside;
  if (has_16_bits && may_have_roots(graph)) OfMagnitudes(graph, options).run();
  inner.resize(graph.values.size(), 1);
}

}  // namespace tosaic
