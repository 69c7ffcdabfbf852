// SPDX-License-Identifier: Apache-2.0
// Calibration samples from files: a .npz with one array per input (named after the input, or input_N), samples
// stacked along a new first axis; a .npy for a model with one input; or a folder of such files.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "ir/tensor.h"

namespace tosaic {

// One list of tensors per sample, in the order of graph.inputs. Errors: calibrate.unknown-input,
// calibrate.missing-input, calibrate.sample-type (shape or dtype), calibrate.sample-count, calibrate.no-samples.
Result<std::vector<std::vector<Tensor>>> read_samples(const std::string& path, const Graph& graph);

struct LabelledSamples {
  std::vector<std::vector<Tensor>> samples;
  std::vector<std::int64_t> labels;  // the array's elements in order
};
// From a .npz with an array "labels" or "label", too. Errors: compare.labels, those of read_samples.
Result<LabelledSamples> read_labelled_samples(const std::string& path, const Graph& graph);

}  // namespace tosaic
