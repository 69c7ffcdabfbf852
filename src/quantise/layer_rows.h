// SPDX-License-Identifier: Apache-2.0
// What the samples multiply weights with: for some positions of a layer's result, the row of inputs whose products with
// each channel's weights are summed there (a window of a convolution, unfolded). Which positions is a fixed choice, so
// the same samples give the same rows.
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "base/system/thread_pool.h"
#include "ir/graph.h"
#include "quantise/plan.h"
#include "quantise/window.h"

namespace tosaic {

// Weights that are multiplied with the same rows.
struct LayersOfRows {
  std::vector<Window> windows;         // several: of layers that share their weights
  std::vector<WeightKey> weights;      // [channels, inputs]
  std::size_t groups = 1, inputs = 0;  // inputs: of a group
  bool centred = false;                // a bias corrects the means
  std::vector<float> rows;             // [any, groups, inputs]
  std::size_t width() const { return groups * inputs; }
  std::size_t count() const { return rows.size() / width(); }
};

// A layer whose weight, operand 1, is to be rounded by least squares.
struct RoundedLayer {
  std::size_t node;
  int axis;      // of its scales
  DType dtype;   // that its quantised values will have
  bool centred;  // a bias corrects the means
};
// Those of a plan, as `options` say.
std::vector<RoundedLayer> layers_to_round(const Graph& graph, const QuantisationPlan& plan,
                                          const QuantiseOptions& options);

class LayerRows {
 public:
  LayerRows() = default;
  // Of the layers that multiply their weights with rows, of `most_inputs` at most: the time to solve for a layer grows
  // with the cube of its inputs. `samples`: as many looks there will be at each tensor.
  LayerRows(const Graph& graph, std::span<const RoundedLayer> layers, std::size_t samples, std::int64_t most_inputs);
  LayerRows(const Graph& graph, const QuantisationPlan& plan, const QuantiseOptions& options, std::size_t samples);

  // `at`: v, whose elements stand where its moves bring them.
  void see(ValueId v, const Look& at, ThreadPool& pool);
  // Weights of another program, by what they were called, once all tensors were seen.
  void rename(const std::map<ValueId, ValueId>& now);
  std::vector<LayersOfRows>& layers() { return layers_; }

 private:
  struct Reader {
    std::size_t layers, window, looks = 0;
  };
  std::vector<LayersOfRows> layers_;
  std::multimap<ValueId, Reader> readers_;
  std::size_t samples_ = 0;
};

}  // namespace tosaic
