// SPDX-License-Identifier: Apache-2.0
// The rewrites of a stage, by name. A stage applies each of them through `Rewrites`, and that call is the one place
// where the name stands: lists of names, printed graphs and tests of one rewrite alone are all RewriteTraces.
#pragma once
#include <functional>
#include <string_view>
#include <type_traits>
#include <utility>

#include "ir/graph.h"

namespace tosaic {

class RewriteTrace {
 public:
  virtual ~RewriteTrace() = default;
  // `apply` is the rewrite of `graph`. Who does not call it leaves the rewrite out.
  virtual void rewrite(std::string_view stage, std::string_view name, Graph& graph,
                       const std::function<void()>& apply) = 0;
  // The stage has made this graph.
  virtual void made(std::string_view stage, const Graph& graph) = 0;
  // And this, which is told of with it: what a delegate has of a program.
  virtual void made_part(std::string_view stage, const Graph& part) = 0;
};

// How one stage applies its rewrites. Nobody looks, usually: that costs a comparison with null.
class Rewrites {
 public:
  Rewrites() = default;
  Rewrites(RewriteTrace* trace, std::string_view stage) : trace_(trace), stage_(stage) {}

  // rewrite("fold_constants", graph, fold_constants, keep_quantised_weights) is fold_constants(graph,
  // keep_quantised_weights). Of one that is left out the answer is that nothing changed.
  template <class Rewrite, class... Arguments>
  auto operator()(std::string_view name, Graph& graph, Rewrite&& rewrite, Arguments&&... arguments) const {
    using Answer = std::invoke_result_t<Rewrite&, Graph&, Arguments&...>;
    if (!trace_) return rewrite(graph, arguments...);
    if constexpr (std::is_void_v<Answer>) {
      trace_->rewrite(stage_, name, graph, [&] { rewrite(graph, arguments...); });
    } else {
      Answer answer = unchanged<Answer>();
      trace_->rewrite(stage_, name, graph, [&] { answer = rewrite(graph, arguments...); });
      return answer;
    }
  }

 private:
  template <class Answer>
  static Answer unchanged() {  // of bool, Status and Result<bool>
    if constexpr (std::is_constructible_v<Answer, bool>)
      return Answer(false);
    else
      return Answer();
  }

  RewriteTrace* trace_ = nullptr;
  std::string_view stage_;
};

}  // namespace tosaic
