// SPDX-License-Identifier: Apache-2.0
// A layer by itself, on what the float program gives it: what it loses when nothing else does.
#pragma once
#include <optional>
#include <vector>

#include "compare/layers.h"
#include "compare/watched.h"

namespace tosaic {

class Alone {
 public:
  // In integers, its operands quantised to their types. Nothing: it loses nothing itself (quantised values pass, or it
  // computes floats), or cannot be run alone.
  static std::optional<Alone> in_integers(const Graph& quantised, const Layer& layer, const Counterparts& counterparts,
                                          const tosa::Spec* spec, int threads);
  // In floats, but with what its quantised constants stand for. Nothing: it has none.
  static std::optional<Alone> with_weights(const Graph& quantised, const Graph& floats, const Layer& layer,
                                           const Counterparts& counterparts, int threads);
  // The float tensors that it reads.
  const std::vector<ValueId>& reads() const { return reads_; }
  // nullopt: the float program does not have them, or they are of another type.
  std::optional<Tensor> run(const Watched& floats);

 private:
  Alone(execute::Executable program, std::vector<ValueId> reads, std::vector<TensorType> types)
      : program_(std::move(program)), reads_(std::move(reads)), types_(std::move(types)) {}
  static std::optional<Alone> prepared(Graph call, std::vector<ValueId> reads, const tosa::Spec* spec, int threads);

  execute::Executable program_;
  std::vector<ValueId> reads_;
  std::vector<TensorType> types_;  // as it reads them
};

}  // namespace tosaic
