// SPDX-License-Identifier: Apache-2.0
#include "normalise/complex_pairs.h"

#include <fmt/format.h>
#include <algorithm>

#include "ir/aten_operators.h"
#include "ir/marks.h"
#include "ir/rewriter.h"
#include "normalise/pair_forms.h"
#include "ops/composer.h"
#include "ops/inconsistent.h"
#include "ops/trial.h"

namespace tosaic {
namespace {

class PairWriter {
 public:
  explicit PairWriter(Graph& graph) : graph_(graph), complex_(graph.values.size(), 0) {}

  Status run() {
    const auto concerns = [](const Node& n) { return has_mark(n, mark::complex_results) || has_form_on_pairs(n.op); };
    if (std::none_of(graph_.nodes.begin(), graph_.nodes.end(), concerns)) return {};
    Rewriter out(graph_);
    for (Node& node : out.nodes()) {
      const bool gives = has_mark(node, mark::complex_results);
      const bool takes =
          std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId v) { return v != no_value && complex_[v]; });
      if (!gives && !takes && !has_form_on_pairs(node.op)) {
        out.keep(std::move(node));
        continue;
      }
      if (node.op.is_aten() && node.op.base().starts_with("_assert")) continue;  // what the types say
      if (gives && !std::ranges::all_of(node.outputs, [&](ValueId v) { return v == no_value || may_be_pairs(v); }))
        return located(
            error(std::string(inconsistent_model), node.op.text() + " gives complex numbers that are no pairs")
                .hint("the file is damaged or was changed by hand: save the program again"),
            node.loc);
      if (auto done = say(node); !done.ok()) return done;
      for (ValueId v : node.outputs)
        if (v != no_value && gives) complex_[v] = 1;
    }
    return {};
  }

 private:
  bool may_be_pairs(ValueId v) const {
    const TensorType& type = graph_[v].type;
    return type.dtype == DType::f32 && !type.quantised() && type.rank() > 0 && type.shape[type.rank() - 1] == Dim(2);
  }

  Status say(const Node& node) {
    Composer b(graph_);
    b.set_loc(node.loc);
    try {
      const Vals made = pairs::in_pairs(b, graph_, node, complex_);
      for (std::size_t i = 0; i < node.outputs.size(); ++i) {
        const ValueId v = node.outputs[i];
        if (v == no_value) continue;
        if (i >= made.size() || made[i].type().shape != graph_[v].type.shape)
          b.refuse("model.complex",
                   fmt::format("{} gives {}, but {} where its pairs are computed", node.op, to_string(graph_[v].type),
                               i < made.size() ? to_string(made[i].type()) : "nothing"));
        graph_.nodes.push_back({aten::op::alias, {made[i].id()}, {}, {v}, node.loc, {}});
      }
    } catch (const Refusal& refusal) {
      Diagnostic why = refusal.why;
      if (why.help.empty())
        why.help =
            "take complex numbers apart before it: torch.view_as_real(x) gives pairs, x.real and x.imag the parts";
      return why;
    } catch (const UnknownSize& why) { return unknown_size(node, why); }
    complex_.resize(graph_.values.size(), 0);
    return {};
  }

  Graph& graph_;
  std::vector<char> complex_;
};

}  // namespace

Status say_complex_in_pairs(Graph& graph) {
  TOSAIC_CHECK(PairWriter(graph).run());
  for (Node& node : graph.nodes)
    for (Graph& body : node.regions) TOSAIC_CHECK(say_complex_in_pairs(body));
  return {};
}

}  // namespace tosaic
