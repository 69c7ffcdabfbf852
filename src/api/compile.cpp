// SPDX-License-Identifier: Apache-2.0
// The straight line: read -> normalise -> quantise -> partition -> lower -> tidy -> emit -> pack -> self-check.
#include "api/compile.h"

#include <fmt/format.h>
#include <algorithm>
#include <chrono>
#include <map>
#include <random>
#include <set>

#include "api/asked.h"
#include "api/board.h"
#include "api/chosen_sizes.h"
#include "api/compile_sizes.h"
#include "api/culprit.h"
#include "api/delegation.h"
#include "api/self_check.h"
#include "ir/rewriter.h"
#include "ir/source_notes.h"
#include "lower/lower.h"
#include "lower/over_sizes.h"
#include "lower/state_variables.h"
#include "normalise/normalise.h"
#include "normalise/split_weights.h"
#include "ops/tosa_rest.h"
#include "pack/core_form.h"
#include "pack/pack.h"
#include "partition/extensions.h"
#include "quantise/coded_bodies.h"
#include "quantise/plan.h"
#include "read/samples.h"
#include "tidy/tidy.h"

namespace tosaic {
namespace {

// Names, times and prints the stages as they go by.
class Story {
 public:
  Story(const CompileOptions& options, const CompileCallbacks& callbacks, Compiled& result)
      : options_(options), callbacks_(callbacks), result_(result) {}
  // A graph that the stage made: verified in debug builds, printed when asked for.
  Status note(const std::string& stage, const Graph& graph) {
    if (std::count(options_.print_after.begin(), options_.print_after.end(), stage)) result_.printed += print(graph);
#ifndef NDEBUG
    if (auto bad = verify(graph); !bad.ok()) return internal_error("after " + stage + ": " + bad.error().message);
#endif
    return {};
  }
  Status end(const std::string& stage) {
    auto now = std::chrono::steady_clock::now();
    const double seconds = std::chrono::duration<double>(now - begin_).count();
    auto& stages = result_.stage_seconds;
    const auto known = std::ranges::find(stages, stage, &std::pair<std::string, double>::first);
    if (known == stages.end())
      stages.emplace_back(stage, seconds);
    else  // in another try
      known->second += seconds;
    begin_ = now;
    return go_on();
  }
  // What is between is no time of this program's.
  void pause() { passed_ = std::chrono::steady_clock::now() - begin_; }
  void go_on_with() { begin_ = std::chrono::steady_clock::now() - passed_; }
  Status go_on() const {
    if (!callbacks_.cancelled || !callbacks_.cancelled()) return {};
    return error("compile.cancelled", "the compilation was cancelled");
  }
  Status end(const std::string& stage, const Graph& graph) {
    TOSAIC_CHECK(end(stage));
    return note(stage, graph);
  }

 private:
  const CompileOptions& options_;
  const CompileCallbacks& callbacks_;
  Compiled& result_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::duration passed_{};
};

// Placement hardly depends on the scales' values (pieces of unlike ranges may be joined outside the delegate), so
// `explain` may make the samples up.
Samples invented_samples(const Graph& graph) {
  std::mt19937 random(1);
  std::vector<Tensor> sample;
  for (ValueId v : graph.inputs) {
    std::vector<double> values(static_cast<std::size_t>(graph[v].type.shape.elements()));
    for (double& x : values) x = is_float(graph[v].type.dtype) ? random() / 4294967296.0 - 0.5 : 0;
    sample.push_back({graph[v].type, constant_bytes(graph[v].type.dtype, values)});
  }
  return {sample};
}

// Integers need no scales.
bool computes_floats(const Graph& graph) {
  return std::any_of(graph.values.begin(), graph.values.end(), [](const Value& v) { return is_float(v.type.dtype); });
}

// The given ones, else those that the program holds.
Result<Samples> samples_for(const CompileOptions& options, const CompileCallbacks& callbacks, const SamplesFor& given,
                            const Graph& graph, const Samples& stored) {
  if (given) return given(graph);
  if (!stored.empty()) {
    auto note =
        warning("calibrate.stored-samples", fmt::format("calibrating with the {} sample input{} stored in the model",
                                                        stored.size(), stored.size() == 1 ? "" : "s"));
    note.severity = Severity::note;
    note.help = "give --calibrate FILE.npz with typical inputs for better accuracy";
    if (callbacks.sink && !options.invent_samples) callbacks.sink(note);
    return stored;
  }
  if (options.invent_samples) return invented_samples(graph);
  return Samples{};
}

// The stages, in order; each leaves to the next what the members hold.
class Line {
 public:
  Line(const Method& method, const CompileOptions& options, const CompileCallbacks& callbacks, SamplesFor samples)
      : method_(method),
        options_(options),
        callbacks_(callbacks),
        given_(std::move(samples)),
        target_(options.target),
        story_(options, callbacks, result_),
        samples_wanted_(static_cast<bool>(given_)) {
    result_.target = target_;
  }

  Result<Compiled> run() {
    StateContents contents;
    TOSAIC_CHECK(begun(contents));
    return finished();
  }

  // As far as what the samples say; its states begin with these contents, and leave theirs.
  Status begun(StateContents& contents) {
    if (options_.pack && target_.ready) TOSAIC_CHECK(target_.ready(target_, options_.emit));
    TOSAIC_CHECK(chosen());
    if (!input_symbols(start_).empty()) return {};
    TOSAIC_CHECK(story_.note("read", start_));
    TOSAIC_CHECK(normalised());
    TOSAIC_CHECK(story_.end("normalise", graph_));
    say_unused_samples();
    if (integer_) TOSAIC_CHECK(calibrated(contents));
    story_.pause();
    return {};
  }
  Calibration* calibration() { return calibration_ ? &*calibration_ : nullptr; }
  // What the program was found to be at other sizes, instead of samples.
  void calibrate_as(Calibration* other) { at_others_ = other; }

  Result<Compiled> finished() {
    if (!input_symbols(start_).empty()) return over_sizes_within();
    story_.go_on_with();
    if (integer_) TOSAIC_CHECK(quantised());
    TOSAIC_CHECK(story_.end("quantise", graph_));
    TOSAIC_CHECK(options_.pack && target_.self_check ? delegated_rightly() : delegated());
    return std::move(result_);
  }

 private:
  // From the nodes to the program. What is wrong with its delegates is in `faults_`; then there is no program.
  Status delegated() {
    TOSAIC_CHECK(partitioned());
    TOSAIC_CHECK(story_.end("partition", result_.partition.outer));
    TOSAIC_CHECK(lowered());
    TOSAIC_CHECK(story_.end("lower"));
    TOSAIC_CHECK(tidied());
    TOSAIC_CHECK(story_.end("tidy"));
    if (options_.pack) TOSAIC_CHECK(emitted());
    TOSAIC_CHECK(story_.end("emit"));
    if (!options_.pack || !faults_.empty()) return {};
    TOSAIC_CHECK(packed());
    TOSAIC_CHECK(story_.end("pack"));
    if (options_.self_check && target_.self_check && !result_.emitted.empty()) TOSAIC_CHECK(checked());
    if (!faults_.empty()) return {};
    TOSAIC_CHECK(fits_board(result_, options_.emit));
    return options_.several_methods ? Status() : fits_flash(result_, options_.emit);
  }

  // The same, until no delegate is wrong: what its compiler cannot take goes elsewhere.
  Status delegated_rightly() {
    constexpr int most_rounds = 8;
    Graph program = graph_;
    const std::size_t printed = result_.printed.size();
    SetAside aside;
    for (int round = 1;; ++round) {
      faults_.clear();
      said_.clear();
      samples_wanted_ = given_ && aside.empty();
      Status done = delegated();
      if (!done.ok() || faults_.empty()) {
        if (callbacks_.sink)
          for (const auto& list : {aside.warnings(), said_})
            for (const Diagnostic& why : list) callbacks_.sink(why);
        return done;
      }
      if (round == 1 && !compiler_works()) return faults_[0].why;
      for (const Fault& fault : faults_) {
        const Graph& region = result_.partition.regions[fault.region];
        if (round == most_rounds || tries_ >= most_tries) {
          aside.mark_all(program, region, fault.why, target_.name);
          continue;
        }
        const Culprit found = find_culprit(
            region, fault, [&](const Graph& part, const GivenInputs& inputs) { return wrong_with(part, inputs); });
        TOSAIC_CHECK(story_.go_on());
        const Node& node = region.nodes[found.node];
        if (options_.single_delegate || options_.require_full_delegation) return stays_wrong(fault.why, node, options_);
        aside.mark(program, node, region, found.right_alone, fault.why, target_.name);
      }
      result_.printed.resize(printed);
      result_.partition = {};
      result_.lowered.clear();
      result_.emitted.clear();
      graph_ = program;
    }
  }

  // Tries leave no files.
  Options unkept(const Options& given) const {
    Options options = given;
    if (target_.emits && !target_.emits->option.empty()) options.set(target_.emits->option, "");
    return options;
  }

  bool compiler_works() const {
    const Graph least = least_graph();
    const auto made = target_.emit(least, target_, unkept(options_.emit), {});
    if (!made.ok() || !options_.self_check) return made.ok();
    return !self_check_alone(target_, least, *made, {}, options_.quantise.threads);
  }

  // A part of a region by itself. What is not its compiler's fault is none here.
  std::optional<Fault> wrong_with(const Graph& part, const GivenInputs& inputs) {
    if (++tries_ > most_tries || !story_.go_on().ok()) return std::nullopt;
    auto graph = lowered_region(part);
    if (!graph.ok()) return std::nullopt;
    Node call;
    call.inputs = graph->inputs;
    tidied_region(*graph, &call);
    if (graph->inputs.empty() || !tosa::verify_graph(*graph, target_.spec).ok()) return std::nullopt;
    const auto made = target_.emit(*graph, target_, unkept(options_.emit), {});
    if (!made.ok()) return of_the_graph(made.error()) ? std::optional(Fault{0, made.error(), {}}) : std::nullopt;
    if (!options_.self_check) return std::nullopt;
    return self_check_alone(target_, *graph, *made, inputs, options_.quantise.threads);
  }

  // For the user, when it is known which try it was that counts.
  void say(Diagnostic why) {
    if (options_.pack && target_.self_check)
      said_.push_back(std::move(why));
    else if (callbacks_.sink)
      callbacks_.sink(std::move(why));
  }
  Sink saying() {
    return [this](Diagnostic why) { say(std::move(why)); };
  }

  Status chosen() {
    TOSAIC_TRY(start_, at_sizes_for(target_, method_.graph, options_.sizes));
    admit_floats();
    stored_ = fitting(start_, method_.sample_inputs);
    if (!stored_.empty()) sample_ = stored_[0];
    return {};
  }

  // The precision is the model's, unless the user said what the target takes.
  void admit_floats() {
    if (target_.spec_given || options_.in_integers()) return;
    for (const auto& [feature, dtype] : needed_extensions(start_, target_.spec)) {
      target_.spec.add(feature);
      Diagnostic note =
          warning("target.extension", fmt::format("the program has {} tensors: compiled for {}, whose {} holds them",
                                                  name_of(dtype), target_.spec.text(), name_of(feature)))
              .hint(fmt::format("what runs it needs that extension; --tosa-spec {} leaves them on the CPU",
                                options_.target.spec.text()));
      note.severity = Severity::note;
      if (callbacks_.sink) callbacks_.sink(std::move(note));
    }
    result_.target = target_;
  }

  // Sizes that stay symbols: what the program becomes at some of them is one program for all.
  Result<Compiled> over_sizes_within() {
    TOSAIC_TRY(const std::vector<Symbol> symbols, bounded(input_symbols(start_)));
    std::vector<AtSizes> inner, outer;
    std::optional<Calibration> calibration;
    if (options_.in_integers()) {
      TOSAIC_TRY(const Samples samples, samples_of_any_sizes(start_));
      TOSAIC_TRY(calibration, calibrated_over_sizes(start_, samples));
    }
    TOSAIC_TRY(const std::vector<Sizes> looked, looked_at(symbols, start_));
    for (const Sizes& sizes : looked) {
      AtSize fixed(*this, start_, sizes, calibration || !outer.empty());
      if (calibration) fixed.line->calibrate_as(&*calibration);
      TOSAIC_TRY(Compiled at, fixed.line->run());
      if (Status one = one_delegate(at); !one.ok()) {
        if (options_.pack) return std::move(one).error();
        Diagnostic& why = one.error();  // what is asked is what stands in the way
        why.severity = Severity::warning;
        why.message = "compile refuses the program: " + why.message;
        if (callbacks_.sink) callbacks_.sink(std::move(why));
        return at;
      }
      if (!at.lowered.empty()) inner.push_back({sizes, at.lowered[0]});
      outer.push_back({sizes, at.partition.outer});
      for (const auto& [k, size] : numbers_of_sizes()) {  // said below for all of them
        Graph& graph = outer.back().graph;
        if (graph[graph.outputs[k]].is_constant())
          graph[graph.outputs[k]].constant = constant_bytes(DType::i64, std::vector<std::int64_t>{0});
      }
      if (outer.size() == 1) result_ = std::move(at);
    }
    const bool delegates = !inner.empty();  // whose operators say more than a call of them does
    if (delegates) {
      TOSAIC_TRY(result_.lowered[0], over_sizes(std::move(inner), symbols, start_));
      result_.lowered[0].guards = start_.guards;
    }
    TOSAIC_TRY(result_.partition.outer,
               over_sizes(std::move(outer), symbols, start_, delegates ? &result_.lowered[0] : nullptr));
    Graph& calls = result_.partition.outer;
    for (const auto& [k, size] : numbers_of_sizes()) calls[calls.outputs[k]].size = size;
    TOSAIC_CHECK(call_alone(calls));
    if (delegates) {
      name_inputs(result_.lowered[0], calls);
      TOSAIC_CHECK(story_.note("tidy", result_.lowered[0]));
    }
    if (!options_.pack) return std::move(result_);
    std::erase_if(result_.stage_seconds, [](const auto& stage) { return stage.first == "emit"; });  // of one size: none
    TOSAIC_CHECK(emitted());
    TOSAIC_CHECK(story_.end("emit"));
    TOSAIC_CHECK(packed());
    TOSAIC_CHECK(story_.end("pack"));
    return std::move(result_);
  }

  // The program at one of its sizes, as far as the graph of what it becomes.
  struct AtSize {
    AtSize(const Line& from, const Graph& varying, const Sizes& sizes, bool silent, SamplesFor samples = {})
        : method(from.method_),
          options(from.options_),
          callbacks(from.callbacks_),
          line(std::make_unique<Line>(with_sizes(varying, sizes, silent), options, callbacks, std::move(samples))) {}
    Method method;
    CompileOptions options;
    CompileCallbacks callbacks;
    std::unique_ptr<Line> line;

   private:
    const Method& with_sizes(const Graph& varying, const Sizes& sizes, bool silent) {
      method.graph = varying;
      options.pack = options.self_check = false;
      options.target.spec.add(tosa::sizes_vary);
      options.print_after.clear();
      options.sizes.clear();
      for (const auto& [name, size] : sizes) options.sizes.push_back(fmt::format("{}={}", name, size));
      if (silent) callbacks.sink = {};
      return method;
    }
  };

  Result<Samples> samples_of_any_sizes(const Graph& varying) const {
    if (!options_.invent_samples || given_ || !method_.sample_inputs.empty())
      return samples_for(options_, callbacks_, given_, varying, method_.sample_inputs);
    TOSAIC_TRY(const Sizes sizes, largest_sizes(input_symbols(varying)));
    TOSAIC_TRY(const Graph largest, specialise(varying, sizes));
    return invented_samples(largest);
  }

  // Samples have sizes of their own, and are one sequence of runs: the program is calibrated at each size, and what a
  // tensor is seen to hold at any of them is its range at all. Nothing: it has nothing to calibrate.
  Result<std::optional<Calibration>> calibrated_over_sizes(const Graph& varying, const Samples& samples) const {
    std::vector<std::pair<Sizes, Samples>> by_sizes;
    for (const std::vector<Tensor>& sample : samples) {
      std::vector<Shape> shapes;
      for (const Tensor& tensor : sample) shapes.push_back(tensor.type.shape);
      TOSAIC_TRY(Sizes sizes, sizes_of(varying, shapes));
      auto found = std::ranges::find(by_sizes, sizes, &std::pair<Sizes, Samples>::first);
      if (found == by_sizes.end()) found = by_sizes.insert(found, {sizes, {}});
      found->second.push_back(sample);
    }
    if (by_sizes.empty()) {  // which says that there are none
      TOSAIC_TRY(Sizes largest, largest_sizes(input_symbols(varying)));
      by_sizes.push_back({largest, {}});
    }
    StateContents contents;
    std::vector<std::unique_ptr<AtSize>> lines;
    std::vector<Calibration*> calibrations;
    for (const auto& [sizes, its] : by_sizes) {
      const auto source = [&its = its](const Graph&) -> Result<Samples> { return its; };
      AtSize& fixed =
          *lines.emplace_back(std::make_unique<AtSize>(*this, varying, sizes, !lines.empty(), SamplesFor(source)));
      TOSAIC_CHECK(fixed.line->begun(contents));
      if (Calibration* found = fixed.line->calibration()) calibrations.push_back(found);
    }
    if (calibrations.empty()) return std::optional<Calibration>();
    TOSAIC_CHECK(share_ranges(calibrations));
    return std::optional<Calibration>(std::move(*calibrations[0]));
  }

  // The outputs that are numbers to the program's user and follow from sizes.
  std::vector<std::pair<std::size_t, Dim>> numbers_of_sizes() const {
    std::vector<std::pair<std::size_t, Dim>> found;
    for (std::size_t k : method_.number_outputs) {
      const auto& size = start_[start_.outputs[k]].size;
      if (size && !size->is_number()) found.emplace_back(k, *size);
    }
    return found;
  }

  // The delegate itself narrows and widens integers: kernels beside it would have to be told the sizes.
  static Status call_alone(Graph& outer) {
    std::vector<Node> kept;
    Forward forward;
    for (Node& node : outer.nodes) {
      forward.operands(node);
      if (node.op == "delegate") {
        kept.push_back(node);
        continue;
      }
      const ValueId from = node.inputs.at(0), to = node.outputs.at(0);
      ValueId* written = nullptr;
      for (Node& call : kept)
        for (ValueId& v : call.outputs)
          if (v == from) written = &v;
      if (written && std::ranges::find(outer.outputs, from) == outer.outputs.end())
        *written = to;
      else
        forward.set(to, from);
      TOSAIC_CHECK(converts_integers(outer, node));
    }
    outer.nodes = std::move(kept);
    forward.outputs(outer);
    drop_dead(outer);
    return {};
  }
  // As the program calls them: runtimes tell of sizes by these names.
  static void name_inputs(Graph& region, const Graph& outer) {
    for (const Node& node : outer.nodes)
      for (std::size_t i = 0; node.op == "delegate" && i < region.inputs.size() && i < node.inputs.size(); ++i) {
        const std::string& name = outer[node.inputs[i]].name;
        if (std::ranges::find(region.values, name, &Value::name) == region.values.end())
          region[region.inputs[i]].name = name;
      }
  }

  static Status converts_integers(const Graph& outer, const Node& node) {
    const auto whole = [&](ValueId v) { return is_integer(outer[v].type.dtype); };
    if (whole(node.inputs.at(0)) && whole(node.outputs.at(0))) return {};
    return located(
        error("model.dynamic-shape", fmt::format("{} stands outside the delegate, and its sizes vary", node.op))
            .hint("choose the sizes: --sizes NAME=SIZE"),
        node.loc);
  }

  // What stands between delegates is called at the sizes of an input, and has to know them.
  static Status one_delegate(const Compiled& compiled) {
    for (const Placement& p : compiled.partition.placements)
      if (p.region < 0 && p.reason.code != "target.conversion") {
        Diagnostic why = p.reason;
        why.severity = Severity::error;
        why.notes.emplace_back("in a program whose sizes vary, all has to run on the device");
        if (why.help.empty()) why.help = "choose the sizes: --sizes NAME=SIZE";
        return why;
      }
    if (compiled.lowered.size() <= 1) return {};
    return error("model.dynamic-shape",
                 fmt::format("the program becomes {} delegates, and its sizes vary", compiled.lowered.size()))
        .hint("choose the sizes: --sizes NAME=SIZE");
  }

  Status normalised() {
    Status found = acts_on_operands(start_);
    TOSAIC_TRY(graph_, normal_form(std::move(start_), form_for(options_, target_.spec), callbacks_.sink, &narrowed_));
    if (found.ok()) found = runs_as_it_stands(graph_);
    if (!found.ok() && options_.pack) return found;
    if (!found.ok() && callbacks_.sink) {  // what nobody can write may still be asked about
      found.error().severity = Severity::warning;
      callbacks_.sink(std::move(found.error()));
    }
    integer_ = options_.in_integers() || is_quantised(graph_);
    if (!integer_ && options_.coded.bits != 0 && !target_.keeps_codes) return no_codes(target_);
    return {};
  }

  bool keeps_codes() const { return target_.keeps_codes && !options_.in_integers(); }

  // What normalise has left of these are codes, of which lowerings may make floats, too.
  static bool computes_constants(const Graph& graph) {
    constexpr std::size_t matrix = 1 << 14;
    if (std::ranges::any_of(graph.values, [](const Value& v) {
          return v.type.dtype == DType::i8 && v.constant.size() >= matrix && !v.type.quantised();
        }))
      return true;
    return std::ranges::any_of(graph.nodes, [&](const Node& node) {
      return !node.inputs.empty() &&
             std::ranges::all_of(node.inputs, [&](ValueId v) { return v == no_value || graph[v].is_constant(); });
    });
  }

  void say_unused_samples() const {
    const bool by_pt2e = is_quantised(graph_);
    if (!given_ || !callbacks_.sink || (integer_ && !by_pt2e)) return;
    callbacks_.sink(
        by_pt2e ? warning("calibrate.unused", "the samples are not used: the program is quantised already")
                      .hint("leave them out, or give the float program")
                : warning("calibrate.unused", fmt::format("the samples are not used: {} takes floats", target_.name))
                      .hint(target_.spec.has(tosa::Feature::pro_int) ? "--quantize int8 makes integers of the program"
                                                                     : "choose a target of integers, tosa-int, say"));
  }

  Status calibrated(StateContents& contents) {
    by_pt2e_ = is_quantised(graph_);
    if (by_pt2e_ && !options_.quantise.request.empty()) return already_quantised();
    if (!by_pt2e_ && computes_floats(graph_)) {
      widen_halves(graph_);
      std::optional<Calibration> known;
      Samples given;
      if (!at_others_ && given_ && !input_symbols(method_.graph).empty()) {
        TOSAIC_TRY(given, samples_of_any_sizes(method_.graph));
        if (!given.empty() && fitting(graph_, given).size() != given.size()) {
          TOSAIC_TRY(known, calibrated_over_sizes(method_.graph, given));
        }
      }
      if (at_others_ || known) {
        TOSAIC_TRY(Calibration found, calibrated_at(at_others_ ? *at_others_ : *known, std::move(graph_),
                                                    how_to_quantise(options_, method_), callbacks_.sink));
        calibration_.emplace(std::move(found));
        return {};
      }
      if (stored_.empty() && !given_ && !options_.invent_samples && !method_.sample_inputs.empty())
        return error("calibrate.no-samples", "the samples that the model holds are of other sizes than the chosen ones")
            .hint("give --calibrate FILE.npz with samples of these sizes, or choose the sizes of those in the model");
      if (given.empty()) { TOSAIC_TRY(given, samples_for(options_, callbacks_, given_, graph_, stored_)); }
      const Samples& samples = given;
      result_.samples = samples.size();
      if (!samples.empty()) sample_ = samples[0];
      QuantiseOptions how = how_to_quantise(options_, method_);
      if (callbacks_.progress)
        how.progress = [&](std::size_t done, std::size_t total) { callbacks_.progress("calibrate", done, total); };
      how.cancelled = callbacks_.cancelled;
      const bool invented = options_.invent_samples && !given_ && stored_.empty();
      const Sink sink = invented ? Sink() : callbacks_.sink;
      TOSAIC_TRY(Calibration found, calibrate(std::move(graph_), samples, how, sink, contents));
      calibration_.emplace(std::move(found));
    }
    return {};
  }

  Status quantised() {
    if (calibration_) {
      TOSAIC_TRY(graph_, tosaic::quantised(*std::move(calibration_)));
      calibration_.reset();
    }
    insert_boundaries(graph_, options_.quantised_io ? Io::codes : by_pt2e_ ? Io::as_written : Io::floats);
    if (!codes_cross_bodies(target_.spec)) return {};
    code_control_flow(graph_, target_.spec);
    if (options_.quantised_io) codes_at_io(graph_);
    return {};
  }

  Status partitioned() {
    if (options_.single_delegate) compute_outputs(graph_);
    result_.quantised = std::move(graph_);
    if (options_.single_delegate) {
      TOSAIC_TRY(result_.partition, whole(result_.quantised, target_.spec));
    } else {
      result_.partition = partition(result_.quantised, target_.spec);
    }
    TOSAIC_TRY(const Deciding decided, deciding(options_.quantise.request.overrides, exported_nodes(method_.graph)));
    say_decided(result_.quantised, decided, target_.spec, result_.partition.placements);
    result_.verdicts = verdicts(exported_nodes(method_.graph), result_.quantised, result_.partition.placements);
    for (const Placement& p : result_.partition.placements)
      if (p.region < 0 && p.reason.code == inconsistent_model) return p.reason;
    widen_outside(result_.partition.outer, narrowed_);
    if (options_.require_full_delegation) TOSAIC_CHECK(fully_delegated(result_.partition));
    return delegated_something(options_, result_, samples_wanted_, saying());
  }

  Status lowered() {
    for (const Graph& region : result_.partition.regions) {
      TOSAIC_TRY(Graph lowered, lowered_region(region));
      result_.lowered.push_back(std::move(lowered));
    }
    for (const Graph& region : result_.lowered) TOSAIC_CHECK(story_.note("lower", region));
    return {};
  }

  Result<Graph> lowered_region(const Graph& region) const {
    TOSAIC_TRY(Lowered lowered,
               lower(region, {.spec = &target_.spec, .fold = !(keeps_codes() && computes_constants(region))}));
    return std::move(lowered.graph);
  }

  Status tidied() {
    for (std::size_t k = 0; k < result_.lowered.size(); ++k)
      tidied_region(result_.lowered[k], delegate_of(result_.partition.outer, static_cast<std::int64_t>(k)));
    if (target_.keeps_variables && target_.spec.has(tosa::Feature::variable))
      states_as_variables(result_.partition.outer, result_.lowered, target_.spec, options_.shared_states);
    for (const Graph& region : result_.lowered) {
      TOSAIC_CHECK(tosa::verify_graph(region, target_.spec));
      TOSAIC_CHECK(story_.note("tidy", region));
    }
    return {};
  }

  void tidied_region(Graph& region, Node* call) const {
    tidy(region, {.keep_codes = keeps_codes(), .keep_activations = target_.spec.product != nullptr});
    narrow_weights(region, target_.spec);
    if (keeps_codes() && target_.packs_codes) pack_codes(region);
    if (call && !options_.single_delegate) drop_unread_inputs(region, *call);
    if (target_.shape) target_.shape(region);
  }

  Status emitted() {
    for (const Graph& region : result_.lowered) {
      const Destination to{result_.lowered.size() > 1 ? fmt::format("_{}", result_.emitted.size()) : "",
                           options_.several_methods};
      // Another compiler's payload says nothing of the source, and its estimates are told with places.
      Graph stripped;
      const bool strip = options_.strip && !target_.self_check;
      if (strip) stripped = without_source_notes(region);
      auto done = target_.emit(strip ? stripped : region, target_, options_.emit, to);
      if (!done.ok() && target_.self_check && of_the_graph(done.error())) {
        faults_.push_back({result_.emitted.size(), std::move(done.error()), {}});
        result_.emitted.emplace_back();
        continue;
      }
      TOSAIC_TRY(Emitted made, std::move(done));
      for (const Diagnostic& note : made.notes)
        if (result_.emitted.empty()) say(note);
      if (!options_.written_at_once) {
        made.payload = made.payload.joined();
        for (ExternalData& part : made.external) part.data = Bytes::copy(part.data.data(), part.data.size());
      }
      result_.emitted.push_back(std::move(made));
    }
    return {};
  }

  Status packed() {
    warn_of_kernels(result_.partition, saying());
    std::vector<DelegatePayload> payloads;
    std::vector<pte::NamedData> inside;
    for (const Emitted& e : result_.emitted) {
      DelegatePayload& payload = payloads.emplace_back(DelegatePayload{e.payload});
      for (const auto& [key, value] : e.specs) payload.specs.push_back({key, Bytes::copy(value.data(), value.size())});
      for (const ExternalData& part : e.external)
        if (part.file.empty()) inside.push_back({part.key, part.data});
    }
    TOSAIC_TRY(result_.packed, pack_program(result_.partition.outer, payloads, target_.delegate_id,
                                            {method_.input_spec, method_.output_spec, method_.fixed_inputs,
                                             method_.fixed_outputs, method_.number_outputs},
                                            saying(), {options_.several_methods, target_.in_place}));
    result_.packed.named_data = std::move(inside);
    result_.packed.plans.at(0).name = method_.name;
    if (options_.several_methods && !target_.self_check) return {};  // who puts them together writes the program
    TOSAIC_TRY(result_.program, pte::write(result_.packed));
    if (!options_.written_at_once) result_.program = result_.program.joined();
    return {};
  }

  Status checked() {
    SelfChecked found = self_check(result_, sample_, options_.quantise.threads);
    TOSAIC_CHECK(story_.end("self-check"));
    faults_ = std::move(found.faults);
    if (!faults_.empty()) return {};
    for (const Diagnostic& why : found.undecided) say(not_checked(why));
    if (found.delegates != result_.emitted.size()) return {};
    for (const auto& [stage, seconds] : result_.stage_seconds)
      if (stage == "self-check") result_.self_check_seconds = seconds;
    return {};
  }

  static constexpr int most_tries = 80;  // of parts
  const Method& method_;
  const CompileOptions& options_;
  const CompileCallbacks& callbacks_;
  const SamplesFor given_;
  Target target_;
  bool integer_ = false, by_pt2e_ = false;
  Compiled result_;
  Story story_;
  Graph start_;     // the program, its sizes numbers
  Samples stored_;  // that it holds, of these sizes
  Graph graph_;     // until it is partitioned
  std::optional<Calibration> calibration_;
  Calibration* at_others_ = nullptr;
  std::vector<std::string> narrowed_;  // values that were int64 in the program
  std::vector<Tensor> sample_;         // for the self-check
  std::vector<Fault> faults_;          // of the delegates that were made
  std::vector<Diagnostic> said_;       // in this try
  bool samples_wanted_ = false;        // for a delegate
  int tries_ = 0;
};

}  // namespace

QuantiseOptions how_to_quantise(const CompileOptions& options, const Method& method) {
  QuantiseOptions how = options.quantise;
  how.wide_inside = options.target.spec.has(tosa::Feature::int16);
  how.float_outputs = !options.quantised_io && !options.require_full_delegation;
  how.exported = exported_nodes(method.graph);
  how.spec = options.target.spec;
  if (how.spec->has(tosa::sizes_vary))
    for (const Value& v : method.graph.values) how.varying.try_emplace(v.name, v.type.shape);
  return how;
}

namespace {

// Asked once, for all sizes: each method is calibrated with the samples that have its own.
Result<SamplesFor> samples_by_size(const Method& method, const SamplesFor& source) {
  if (!source) return SamplesFor();
  TOSAIC_TRY(const Samples all, source(method.graph));
  return SamplesFor([all](const Graph& at_sizes) -> Result<Samples> {
    if (!input_symbols(at_sizes).empty()) return Samples();  // of any sizes: each method has its own
    Samples found = fitting(at_sizes, all);
    if (!found.empty()) return found;
    std::string sizes;
    for (ValueId v : at_sizes.inputs)
      sizes += fmt::format("{}{} {}", sizes.empty() ? "" : ", ", at_sizes[v].name, to_string(at_sizes[v].type.shape));
    return error("calibrate.no-samples", fmt::format("no sample has the sizes {}", sizes))
        .hint("give at least one sample of each combination of sizes");
  });
}

SamplesFor given_for(const Method& method, const CompileCallbacks& callbacks) {
  const auto found = callbacks.samples.find(method.name);
  return found == callbacks.samples.end() ? SamplesFor() : found->second;
}

// Each method finds the states as the one before left them, and a state has one scale in all of them.
Status calibrated_together(const std::vector<SizedMethod>& methods, const std::vector<std::unique_ptr<Line>>& lines) {
  StateContents contents;
  std::vector<Calibration*> calibrations;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (Status begun = lines[i]->begun(contents); !begun.ok()) {
      begun.error().notes.push_back(fmt::format("in method '{}'", methods[i].name));
      return begun;
    }
    if (Calibration* calibration = lines[i]->calibration()) calibrations.push_back(calibration);
  }
  share_state_ranges(calibrations);
  return {};
}

}  // namespace

Result<Compiled> compile_model(const ExportedProgram& program, const CompileOptions& options,
                               const CompileCallbacks& callbacks) {
  TOSAIC_TRY(const std::vector<SizedMethod> methods, sized_methods(program, options.sizes));
  if (methods.size() == 1) {
    const Method& method = program.methods[0];
    return Line(method, options, callbacks, given_for(method, callbacks)).run();
  }
  // Each program's samples are asked for once.
  std::map<const Method*, SamplesFor> samples;
  for (const SizedMethod& m : methods)
    if (!samples.contains(m.method)) {
      TOSAIC_TRY(samples[m.method], samples_by_size(*m.method, given_for(*m.method, callbacks)));
    }
  std::set<std::string> known, shared;  // states: what methods keep together, no delegate keeps
  for (const SizedMethod& m : methods)
    for (const State& state : m.method->graph.states)
      if (!known.insert(state.name).second) shared.insert(state.name);
  std::vector<CompileOptions> its_own(methods.size(), options);
  std::vector<std::unique_ptr<Line>> lines;
  for (std::size_t i = 0; i < methods.size(); ++i) {
    its_own[i].sizes = methods[i].sizes;
    its_own[i].several_methods = true;
    its_own[i].shared_states = shared;
    const Method& method = *methods[i].method;
    lines.push_back(std::make_unique<Line>(method, its_own[i], callbacks, samples[&method]));
  }
  // What is calibrated together is begun together. Floats pass one by one: each is done with its memory then.
  if (options.in_integers()) TOSAIC_CHECK(calibrated_together(methods, lines));
  std::size_t next = 0;
  TOSAIC_TRY(Compiled compiled, compiled_together(methods, [&](const SizedMethod&) {
               const std::unique_ptr<Line> line = std::move(lines[next++]);
               return options.in_integers() ? line->finished() : line->run();
             }));
  if (!options.written_at_once) compiled.program = compiled.program.joined();
  TOSAIC_CHECK(fits_flash(compiled, options.emit));
  return compiled;
}

}  // namespace tosaic
