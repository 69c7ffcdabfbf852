// SPDX-License-Identifier: Apache-2.0
// The values that pass between the stages: each step takes one and gives the next.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "formats/pte/pte_file.h"
#include "ir/graph.h"
#include "ir/tensor.h"
#include "partition/partition.h"
#include "partition/verdict.h"
#include "quantise/quantise.h"
#include "targets/target.h"

namespace tosaic {

using Samples = std::vector<std::vector<Tensor>>;

// After normalise.
struct Normal {
  Graph graph;
  std::vector<std::string> narrowed;  // values that were int64 in the program
  bool by_pt2e = false;               // the program says its scales
  Samples stored;                     // that the program holds, of its sizes
};

// After a look at the samples. Who has several methods brings their states' ranges together here.
struct Observed {
  Normal program;
  std::optional<Calibration> calibration;  // has the program's graph, then; nothing: no float becomes an integer
  std::vector<Tensor> sample;              // for the self-check
  std::size_t samples = 0;
};

// After quantise.
struct Typed {
  Graph graph;
  std::vector<std::string> narrowed;
  std::vector<Tensor> sample;
  std::size_t samples = 0;
  bool for_a_delegate = false;  // the user gave samples for one: there has to be one
};

// After partition.
struct Split {
  Target target;
  Graph quantised;  // the ATen graph that was partitioned
  Partition partition;
  std::vector<Verdict> verdicts;  // one per node of the exported program
  std::vector<Tensor> sample;
  std::size_t samples = 0;
};

// After lower, and after tidy.
struct Tosa : Split {
  std::vector<Graph> lowered;  // one TOSA graph per region
};

// What a delegate was given, by the names of its inputs.
using GivenInputs = std::map<std::string, Tensor>;

// A delegate that is not what its graph says.
struct Fault {
  std::size_t region;
  Diagnostic why;      // located at the first operator whose result is missing, as far as that is known
  GivenInputs inputs;  // that show it; empty: it shows without any
};

// Of a program of several methods, one behind the first.
struct FurtherMethod {
  Graph outer;  // its delegates are numbered from `first_region` on
  std::size_t first_region = 0;
  std::vector<Tensor> sample;
};

// After emit, pack and self-check.
struct Compiled : Tosa {
  std::vector<Emitted> emitted;  // one artifact per region
  std::vector<Fault> faults;     // of delegates whose compiler is another's; with any there is no program
  pte::Program packed;           // what the .pte says
  Rope program;                  // .pte
  std::vector<FurtherMethod> further;
  std::vector<std::string> methods;  // of several sizes: each with its sizes. The others' graphs follow the first's
  std::optional<double> self_check_seconds;  // it was done, and every delegate gave what its graph gives
  std::string printed;
  std::vector<std::pair<std::string, double>> stage_seconds;
};

}  // namespace tosaic
