// SPDX-License-Identifier: Apache-2.0
// Samples that show too little of an input: nothing but one value, or one sample over and over.
#pragma once
#include <span>
#include <vector>

#include "base/diagnostic.h"
#include "ir/graph.h"
#include "ir/tensor.h"

namespace tosaic {

// Warnings calibrate.constant and calibrate.same-samples. The samples may have several sizes.
void say_uniform(const Graph& graph, std::span<const std::vector<Tensor>> samples, const Sink& sink);

}  // namespace tosaic
