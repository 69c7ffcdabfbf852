// SPDX-License-Identifier: Apache-2.0
// A layer by itself, on what the float program gives it: what it loses when nothing else does.
#pragma once
#include <optional>
#include <vector>

#include "compare/layers.h"
#include "compare/narrow_floats.h"
#include "compare/watched.h"

namespace tosaic {

class Alone {
 public:
  // As it is executed, its operands brought to their types: quantised, or narrower floats. `narrow`: what floats of the
  // program are kept in; nullptr: what the graph says. Nothing: it loses nothing itself (values pass, or it computes
  // floats as they are), or cannot be run alone.
  static std::optional<Alone> as_executed(const Graph& program, const Layer& layer, const Counterparts& counterparts,
                                          const tosa::Spec* spec, const NarrowFloats* narrow, int threads);
  // In floats, but with what its quantised constants stand for, or with its weights as narrow floats. Nothing: it has
  // none.
  static std::optional<Alone> with_weights(const Graph& program, const Graph& floats, const Layer& layer,
                                           const Counterparts& counterparts, const NarrowFloats* narrow, int threads);
  // The float tensors that it reads.
  const std::vector<ValueId>& reads() const { return reads_; }
  // nullopt: the float program does not have them, or they are of another type.
  std::optional<Tensor> run(const Watched& floats);

 private:
  using Kept = std::optional<DType>;
  Alone(execute::Executable program, std::vector<ValueId> reads, std::vector<TensorType> types)
      : program_(std::move(program)), reads_(std::move(reads)), types_(std::move(types)), kept_(types_.size()) {}
  static std::optional<Alone> prepared(Graph call, std::vector<ValueId> reads, const tosa::Spec* spec,
                                       const NarrowFloats* narrow, int threads);

  execute::Executable program_;
  std::vector<ValueId> reads_;
  std::vector<TensorType> types_;  // as it reads them
  std::vector<Kept> kept_;         // rounded to before
  Kept result_kept_;
};

}  // namespace tosaic
