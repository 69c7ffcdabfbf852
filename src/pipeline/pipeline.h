// SPDX-License-Identifier: Apache-2.0
// The compiler as one function in memory: what include/tosaic/compile.hpp offers, in terms of the stages.
#pragma once
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "formats/pte/pte_file.h"
#include "ir/graph.h"
#include "ir/tensor.h"
#include "partition/verdict.h"
#include "quantise/coded_weights.h"
#include "quantise/quantise.h"
#include "read/pt2.h"
#include "targets/target.h"

namespace tosaic {

struct CompileOptions {
  Target target;
  Options emit;                  // the target's own
  bool quantise_always = false;  // also for targets that would take floats
  QuantiseOptions quantise;
  CodedWeights coded;  // of a program that stays floats
  bool quantised_io = false, require_full_delegation = false, single_delegate = false;
  bool pack = true;  // false: stop after tidy
  // What is made may look into the model's file or memory, as who compiles writes it at once. Else it is a copy:
  // whoever has the result may change the model.
  bool written_at_once = false;
  bool self_check = true;       // where the target has one
  bool invent_samples = false;  // random calibration samples where none are given (for `explain`)
  bool strip = false;           // payloads and graphs without places in the user's source
  std::vector<std::string> print_after;
  std::vector<std::string> sizes;            // "x.0=4": of dynamic sizes
  bool several_methods = false;              // what is compiled is one of them
  std::set<std::string> shared_states = {};  // that others of them keep, too
  // Floats become integers. (Targets without integers keep PT2E's conversions as arithmetic.)
  bool in_integers() const { return target.integer() || quantise_always || !quantise.request.empty(); }
};

// Why a program of floats gets no weights of codes for this target.
Diagnostic no_codes(const Target& target);

struct Compiled {
  Target target;
  Graph quantised;  // the ATen graph that was partitioned
  Partition partition;
  std::vector<Verdict> verdicts;     // one per node of the exported program
  std::vector<Graph> lowered;        // one TOSA graph per region
  std::vector<Emitted> emitted;      // one artifact per region
  pte::Program packed;               // what the .pte says
  Rope program;                      // .pte
  std::vector<std::string> methods;  // of several sizes: each with its sizes. The others' graphs follow the first's
  std::size_t samples = 0;
  std::optional<double> self_check_seconds;  // it was done, and every delegate gave what its graph gives
  std::string printed;
  std::vector<std::pair<std::string, double>> stage_seconds;
};

using Samples = std::vector<std::vector<Tensor>>;
// The calibration samples, for a method's graph; an empty function: none are given.
using SamplesFor = std::function<Result<Samples>(const Graph& graph)>;
using SamplesOfMethods = std::map<std::string, SamplesFor>;  // by the methods' names

struct CompileCallbacks {
  Sink sink;
  SamplesOfMethods samples;
  std::function<void(std::string_view stage, std::size_t done, std::size_t total)> progress;
  std::function<bool()> cancelled;
};

// How the options want a program quantised.
QuantiseOptions how_to_quantise(const CompileOptions& options, const Method& method);

Result<Compiled> compile_model(const ExportedProgram& program, const CompileOptions& options,
                               const CompileCallbacks& callbacks);

}  // namespace tosaic
