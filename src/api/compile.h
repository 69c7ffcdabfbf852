// SPDX-License-Identifier: Apache-2.0
// The compiler as one function over files: what include/tosaic/tosaic.hpp offers, in terms of the stages.
#pragma once
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "ir/graph.h"
#include "partition/partition.h"
#include "quantise/quantise.h"
#include "read/pt2.h"
#include "targets/target.h"

namespace tosaic {

struct CompileOptions {
  std::string model, target = "tosa-int", tosa_spec, calibrate;
  bool quantise_always = false;  // also for targets that would take floats
  QuantiseOptions quantise;
  bool quantised_io = false, require_full_delegation = false;
  bool pack = true;             // false: stop after tidy
  bool self_check = true;       // where the target has one
  bool invent_samples = false;  // random calibration samples where none are given (for `explain`)
  EmitOptions emit;
  std::vector<std::string> print_after;
};

struct Compiled {
  Target target;
  Graph quantised;  // the ATen graph that was partitioned
  Partition partition;
  std::vector<Graph> lowered;    // one TOSA graph per region
  std::vector<Emitted> emitted;  // one artifact per region
  Bytes program;                 // .pte
  std::size_t samples = 0;
  std::optional<double> self_check_seconds;  // it was done, and every delegate gave what its graph gives
  std::string printed;
  std::vector<std::pair<std::string, double>> stage_seconds;
};

Result<Compiled> compile_model(const CompileOptions& options, const Sink& sink);

}  // namespace tosaic
