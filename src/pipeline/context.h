// SPDX-License-Identifier: Apache-2.0
// What every step may look at in addition to the value that it is given, and where it says what it does.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/system/clock.h"
#include "pipeline/options.h"
#include "pipeline/stages.h"

namespace tosaic {

class WeightsOnSamples;

// The calibration samples, for a method's graph; an empty function: none are given.
using SamplesFor = std::function<Result<Samples>(const Graph& graph)>;
using SamplesOfMethods = std::map<std::string, SamplesFor>;  // by the methods' names

// What a program is measured on. No samples: some of those that it is calibrated with.
struct ShownSamples {
  SamplesFor samples;
  std::vector<std::int64_t> labels;
  std::function<Result<std::vector<Tensor>>(const std::vector<Tensor>& sample)> device = {};  // runs the program, too
};

struct CompileCallbacks {
  Sink sink;
  SamplesOfMethods samples;
  std::function<void(std::string_view stage, std::size_t done, std::size_t total)> progress;
  std::function<bool()> cancelled;
  RewriteTrace* graphs = nullptr;  // sees them go by, in place of the options' report
};

// What the stages took, as they go by.
struct Trace {
  std::vector<std::pair<std::string, double>> stage_seconds;
  SteadyClock::time_point begin = SteadyClock::now();
};

// What is asked of a program, next to what its user says.
struct Request {
  bool pack = true;             // false: stop after tidy
  bool invent_samples = false;  // random calibration samples where none are given
  bool stored_samples = false;  // what is given are those that the program holds
  // What is made may look into the model's file or memory, as who compiles writes it at once. Else it is a copy:
  // whoever has the result may change the model.
  bool written_at_once = false;
  bool several_methods = false;                     // it is about one of them
  std::set<std::string> shared_states = {};         // that others of them keep, too
  std::shared_ptr<const NormRounds> norms_as = {};  // as in QuantiseOptions

  static Request question() { return {.pack = false, .invent_samples = true}; }
};

struct Context {
  const Method* method;
  const Graph* exported;  // the method's graph; where sizes vary, with those that were chosen
  CompileOptions options;
  CompileCallbacks callbacks;
  SamplesFor given;  // of this method
  Request request;
  Target target;  // the options', with what the program's floats need
  std::shared_ptr<Trace> trace = std::make_shared<Trace>();
  std::shared_ptr<WeightsOnSamples> weights;  // rounded ones, of all methods
  std::shared_ptr<GraphReport> report;        // that the options ask for; null: none
  RewriteTrace* graphs = nullptr;             // who sees them go by; null: nobody

  Context(const Method& method, const CompileOptions& options, const CompileCallbacks& callbacks, SamplesFor given,
          Request request = {});

  void say(Diagnostic why) const;
  // How the stage applies its rewrites.
  Rewrites rewrites(std::string_view stage) const { return {graphs, stage}; }
  // What belongs to it besides, for who follows a node.
  void note_part(std::string_view stage, const Graph& part) const {
    if (graphs) graphs->made_part(stage, part);
  }
  // A graph that the stage made: verified in debug builds, printed when asked for.
  Status note(const std::string& stage, const Graph& graph) const;
  // Ends a stage, or a part of it: since the end before, it was at work. Error: compile.cancelled.
  Status end(const std::string& stage) const;
  Status end(const std::string& stage, const Graph& graph) const;
  // What was between is no time of this program's.
  void go_on() const { trace->begin = SteadyClock::now(); }
  Status not_cancelled() const;
};

}  // namespace tosaic
