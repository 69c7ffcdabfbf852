// SPDX-License-Identifier: Apache-2.0
// In which order tensors of an int8 program get 16 bits: the most noise for its cost first.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "compare/rounding_noise.h"
#include "ir/provenance.h"
#include "tosaic/tuning.hpp"

namespace tosaic {

struct CallCosts {
  std::map<std::string, double> of_node;  // by the name in the exported graph, in int8
  double all = 0;
};

// A tensor has 16 bits for all that read it only if these calls compute with 16 bits; the one that makes it has to
// where several read it, or where it leaves the program. Tensors that other calls than the user's decide about are left
// out.
std::vector<TunedTensor> widening_order(const Graph& quantised, const std::vector<RoundingNoise>& noises,
                                        const std::vector<ExportedNode>& exported, const CallCosts& costs);

}  // namespace tosaic
