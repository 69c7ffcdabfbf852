// SPDX-License-Identifier: Apache-2.0
// The options of every compilation: each is described and read here, and nowhere else.
#include "api/compile_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <sstream>

#include "api/c_array.h"
#include "base/option_check.h"
#include "pipeline/step_names.h"
#include "tosaic/session.hpp"

namespace tosaic {
namespace {

using Kind = OptionInfo::Kind;

struct GeneralOption {
  OptionInfo info;
  void (*apply)(CompileOptions& to, const Options& from, const std::string& name);
};

std::vector<GeneralOption> options_of_integers() {
  return {
      {{.name = "quantize",
        .kind = Kind::text,
        .default_value = "auto",
        .sentence = "auto: int8 when the target is integer only; dynamic-int8: a program of floats whose linear layers "
                    "have weights in int8 and quantise their inputs as they come, without samples",
        .allowed = {"auto", "int8", "int16x8", "dynamic-int8"},
        .alias = "quantise"},
       [](CompileOptions& to, const Options& from, const std::string& name) {
         to.weight_quantisation.dynamic = from.text(name) == "dynamic-int8";
         to.quantise_always = from.text(name) != "auto" && !to.weight_quantisation.dynamic;
         to.quantise.scheme = from.text(name) == "int16x8" ? Scheme::int16x8 : Scheme::int8;
       }},
      {{.name = "io",
        .kind = Kind::text,
        .default_value = "float",
        .sentence = "inputs and outputs of an integer program",
        .allowed = {"float", "quantized"}},
       [](CompileOptions& to, const Options& from, const std::string& name) {
         to.quantised_io = from.text(name) == "quantized";
       }},
      {{.name = "observer",
        .kind = Kind::text,
        .default_value = "histogram",
        .sentence = "how ranges are chosen",
        .allowed = {"histogram", "minmax"}},
       [](CompileOptions& to, const Options& from, const std::string& name) {
         to.quantise.observer = from.text(name) == "minmax" ? Observer::minmax : Observer::histogram;
       }},
      {{.name = "effort",
        .kind = Kind::text,
        .default_value = "default",
        .sentence = "fast: ranges as the samples show them, and no corrections; best: which observer and rounding are "
                    "better is found by trials on halves of the samples, which takes some five times as long",
        .allowed = {"fast", "default", "best"}},
       [](CompileOptions& to, const Options& from, const std::string& name) {
         to.effort = from.text(name) == "best" ? Effort::best : Effort::usual;
       }},
      {{.name = "bias-correction",
        .kind = Kind::flag,
        .default_value = "true",
        .sentence = "leave biases as they are; else they take back what the rounding of weights adds to the mean of "
                    "each channel"},
       [](CompileOptions& to, const Options& from, const std::string& name) {
         to.quantise.bias_correction = from.flag(name);
       }},
      {{.name = "equalization",
        .kind = Kind::flag,
        .default_value = "true",
        .sentence = "leave channels where and as large as they are; else those of int8 tensors that lie far from zero "
                    "are moved, and small ones made larger, where the layers that read them can take that back"},
       [](CompileOptions& to, const Options& from, const std::string& name) {
         to.quantise.equalisation = from.flag(name);
       }},
      {{.name = "rounding",
        .kind = Kind::text,
        .default_value = "auto",
        .sentence = "of weights: each to the nearest quantised value, or least-squares: together, such that the sums "
                    "that they go into have the least error on the samples; auto: that for weights of 4 bits",
        .allowed = {"auto", "nearest", "least-squares"}},
       [](CompileOptions& to, const Options& from, const std::string& name) {
         to.quantise.rounding = from.text(name) == "nearest"         ? Rounding::nearest
                                : from.text(name) == "least-squares" ? Rounding::least_squares
                                                                     : Rounding::by_width;
       }},
      {{.name = "widen-steep",
        .kind = Kind::flag,
        .default_value = "true",
        .sentence =
            "keep 8 bits for operands of functions that are steep there (the root of a sum of squares), and for "
            "tensors of a few large channels that norms and depthwise convolutions make little of, which else "
            "take 16"},
       [](CompileOptions& to, const Options& from, const std::string& name) {
         to.quantise.widen_steep = from.flag(name);
       }},
      {{.name = "weights",
        .kind = Kind::text,
        .default_value = "per-channel",
        .sentence =
            "scales of weights; int4: one per channel, in 4 bits; int16: with int16x8, 16 bits by two layers in "
            "place of one; in a float program int8 and int4 quantise the weights of linear layers and embeddings",
        .allowed = {"per-channel", "per-tensor", "int4", "int8", "int16"}},
       [](CompileOptions& to, const Options& from, const std::string& name) {
         to.quantise.per_channel = from.text(name) != "per-tensor";
         to.quantise.four_bits = from.text(name) == "int4";
         to.quantise.sixteen_bits = from.text(name) == "int16";
         to.weight_quantisation.bits = from.text(name) == "int4"                                     ? 4
                                       : from.text(name) == "int8" || to.weight_quantisation.dynamic ? 8
                                                                                                     : 0;
       }},
      {{.name = "group-size",
        .kind = Kind::number,
        .default_value = "32",
        .sentence = "int4 in a program of floats: neighbours in a row that share a scale, 0: the row",
        .lowest = 0,
        .highest = 1 << 16},
       [](CompileOptions& to, const Options& from, const std::string& name) {
         to.weight_quantisation.group = to.weight_quantisation.bits == 4 ? from.number(name) : 0;
       }},
      {{.name = "plan",
        .kind = Kind::file,
        .sentence =
            "what becomes integers, and of which width: a plan as `explain --plan` prints it, or overrides, one "
            "per line"},
       nullptr},  // read below
      {{.name = "override",
        .kind = Kind::list,
        .sentence = "the precision of a part, e.g. 'head: float' or 'features.0: int16x8': a module, operator, node or "
                    "line of the model, and float, int8 or int16x8; later ones win",
        .placeholder = "'NAME: FORM'"},
       nullptr}};  // read below
}

// "read,tidy" is two names.
std::vector<std::string> at_commas(const std::vector<std::string>& lists) {
  std::vector<std::string> names;
  for (const std::string& list : lists) {
    std::istringstream parts(list);
    for (std::string name; std::getline(parts, name, ',');) names.push_back(name);
  }
  return names;
}

std::vector<GeneralOption> options_of_all() {
  return {
      {{.name = "tosa-spec",
        .kind = Kind::text,
        .sentence = "replaces the target's specification, e.g. TOSA-1.0+INT",
        .placeholder = "SPEC",
        .of_integers = true},
       nullptr},  // read with the target, below
      {{.name = "sizes",
        .kind = Kind::list,
        .sentence = "of a program with dynamic sizes: dimension DIM of INPUT is SIZE, or its upper bound, max; several "
                    "with commas make a method each; also by the name of the size's symbol",
        .placeholder = "INPUT.DIM=SIZE",
        .of_integers = true},
       [](CompileOptions& to, const Options& from, const std::string& name) { to.sizes = from.list(name); }},
      {{.name = "input-layout",
        .kind = Kind::list,
        .sentence =
            "nhwc: inputs of four dimensions are batch, height, width, channels, as cameras give them, in samples "
            "as well; nchw: as the model has them; INPUT=nhwc is about one of them",
        .placeholder = "[INPUT=]LAYOUT",
        .of_integers = true},
       [](CompileOptions& to, const Options& from, const std::string& name) { to.input_layout = from.list(name); }},
      {{.name = "budget",
        .kind = Kind::text,
        .sentence =
            "16 bits where they help most, as `tosaic tune` finds them: 'snr>=30', so many dB of signal to noise "
            "in the worst output, as cheaply as possible; 'cycles<=1.15x' or 'bytes<=1.15x', as accurate as "
            "possible at that cost, against int8",
        .placeholder = "BUDGET"},
       nullptr},  // read below
      {{.name = "kv",
        .kind = Kind::text,
        .default_value = "float",
        .sentence =
            "caches of a program of floats, such as keys and values of a language model: int8 quantises each row as "
            "it is written, with a scale of its own",
        .allowed = {"float", "int8"}},
       [](CompileOptions& to, const Options& from, const std::string& name) {
         to.quantises_states = from.text(name) == "int8";
       }},
      {{.name = "require-full-delegation",
        .kind = Kind::flag,
        .sentence = "fail when any node stays outside the delegate"},
       [](CompileOptions& to, const Options& from, const std::string& name) {
         to.require_full_delegation = from.flag(name);
       }},
      {{.name = "single-delegate",
        .kind = Kind::flag,
        .sentence = "the whole program is one delegate, whose inputs and outputs are the program's; fail when any node "
                    "cannot be in it"},
       [](CompileOptions& to, const Options& from, const std::string& name) { to.single_delegate = from.flag(name); }},
      {{.name = "strip",
        .kind = Kind::flag,
        .sentence = "leave out of the files where in the model's source their operators come from: paths, source "
                    "lines, modules (tensors keep their names); profiles then show no source lines"},
       [](CompileOptions& to, const Options& from, const std::string& name) { to.strip = from.flag(name); }},
      {{.name = "print-after",
        .kind = Kind::list,
        .sentence = "print the graph after a stage, such as tidy, or each time one of its rewrites changed it, such as "
                    "tidy/merge_rescales; list: print the names of all that the program goes through",
        .placeholder = "STAGE[/REWRITE]"},
       [](CompileOptions& to, const Options& from, const std::string& name) {
         to.show.print_after = at_commas(from.list(name));
       }},
      {{.name = "trace-node",
        .kind = Kind::text,
        .sentence = "print what each stage and rewrite made of the node or value of this name",
        .placeholder = "NAME"},
       [](CompileOptions& to, const Options& from, const std::string& name) { to.show.trace_node = from.text(name); }},
      {{.name = "dump-dir",
        .kind = Kind::file,
        .sentence = "a folder for the graphs after each stage and each rewrite that changed something: numbered, as "
                    "text and as pictures in Graphviz's language (.dot)",
        .placeholder = "DIR"},
       [](CompileOptions& to, const Options& from, const std::string& name) { to.show.dump_dir = from.text(name); }},
      {{.name = "threads",
        .kind = Kind::number,
        .default_value = "0",
        .sentence = "threads for calibration, 0: all cores (results do not depend on it)",
        .lowest = 0,
        .highest = SessionOptions::most_threads,
        .of_integers = true},
       [](CompileOptions& to, const Options& from, const std::string& name) {
         to.quantise.threads = static_cast<int>(from.number(name));
       }}};
}

const std::vector<GeneralOption>& table() {
  static const std::vector<GeneralOption> rows = [] {
    std::vector<GeneralOption> list = options_of_integers();
    for (GeneralOption& option : list) option.info.of_integers = true;
    for (const GeneralOption& option : options_of_all()) list.push_back(option);
    for (const OptionInfo& option : c_array_options()) list.push_back({option, nullptr});  // read when it is made
    return list;
  }();
  return rows;
}

// Whose option it is, when it is not this target's.
Status known_elsewhere(const Target& target, std::span<const OptionInfo> known, const Options& given) {
  for (const auto& [name, values] : given.all()) {
    if (find_option(known, name)) continue;
    std::vector<std::string> families, takers;
    for (const Target& other : all_targets()) {
      if (!find_option(other.options, name) || std::ranges::find(families, other.family) != families.end()) continue;
      families.push_back(other.family);
      takers.push_back(fmt::format("{} targets, such as {}", other.family, other.name));
    }
    if (!takers.empty())
      return error("option.target", fmt::format("the target {} takes no option '{}'", target.name, name))
          .hint(fmt::format("it belongs to {}", fmt::join(takers, ", and to ")));
  }
  return {};
}

// The plan file's lines, then those of the command line.
Status read_request(PlanRequest& to, const Options& from) {
  if (const std::string path = from.text("plan"); !path.empty()) {
    TOSAIC_TRY(const Bytes file, map_file(path));
    TOSAIC_CHECK(add_plan_text(to, path, file.text()));
    if (to.empty() && to.scheme == Form::unset)
      return error("plan.empty", "the plan file is empty")
          .at({path, 0, ""})
          .hint("`tosaic explain --plan` prints a plan; a line such as head: float is one, too");
  }
  to.source = from.text("plan");
  for (const std::string& line : from.list("override")) TOSAIC_CHECK(add_plan_text(to, "--override", line));
  return {};
}

// A plan says by itself for which scheme it is.
Status take_scheme(CompileOptions& to) {
  const PlanRequest& request = to.quantise.request;
  if (request.scheme == Form::unset) return {};
  const Scheme scheme = request.scheme == Form::int16x8 ? Scheme::int16x8 : Scheme::int8;
  if (to.quantise_always && to.quantise.scheme != scheme)
    return error("plan.scheme", fmt::format("the plan is for {}, the option 'quantize' asks for another scheme",
                                            name_of(request.scheme)))
        .at({request.source, 0, ""})
        .hint("leave the option out, or print a plan with it");
  to.quantise.scheme = scheme;
  to.quantise_always = true;
  return {};
}

// Integer programs have quantised weights in their own way.
Status settle_weights(CompileOptions& to) {
  if (to.quantise.sixteen_bits && !(to.in_integers() && to.quantise.scheme == Scheme::int16x8))
    return error("option.weights", "weights of 16 bits go with activations of 16")
        .hint("add --quantize int16x8, or leave out --weights int16");
  if (to.in_integers() && to.weight_quantisation.dynamic)
    return error("option.dynamic",
                 fmt::format("{} takes integers with fixed scales: nothing is left for dynamic quantisation",
                             to.target.name))
        .hint("leave out --quantize dynamic-int8, or choose a float target such as tosa-fp");
  if (to.in_integers() && to.quantises_states)
    return error("option.kv", "states of an integer program are integers anyway")
        .hint("leave out --kv, or choose a float target such as tosa-fp");
  if (to.quantises_states && !to.target.keeps_quantised_weights())
    return error("option.kv", fmt::format("{} has no quantised values in programs of floats", to.target.name))
        .hint("tosa-fp and vulkan have them; or leave the option out");
  if (to.in_integers()) to.weight_quantisation = {};
  // 4 bits are also what a program may mean whose own conversions made integers: that is known when it is read.
  const bool of_floats = to.weight_quantisation.dynamic || to.emit.text("weights") == "int8";
  if (of_floats && !to.target.keeps_quantised_weights()) return no_quantised_weights(to.target);
  return {};
}

// What the user leaves open, where little effort is asked for.
Options with_effort(Options said) {
  if (said.text("effort") != "fast") return said;
  for (const auto& [name, value] : {std::pair("observer", "minmax"),
                                    {"bias-correction", "false"},
                                    {"equalization", "false"},
                                    {"rounding", "nearest"}})
    if (!said.has(name)) said.set(name, value);
  return said;
}

}  // namespace

const std::vector<OptionInfo>& compile_options() {
  static const std::vector<OptionInfo> all = [] {
    std::vector<OptionInfo> list;
    for (const GeneralOption& option : table()) list.push_back(option.info);
    return list;
  }();
  return all;
}

Result<CompileOptions> compile_options_for(const std::string& target, const Options& said) {
  CompileOptions options;
  const Options given = with_effort(said);
  TOSAIC_TRY(options.target, find_target(target, given.text("tosa-spec")));
  options.spec_given = !given.text("tosa-spec").empty();
  std::vector<OptionInfo> known = compile_options();
  known.insert(known.end(), options.target.options.begin(), options.target.options.end());
  TOSAIC_CHECK(known_elsewhere(options.target, known, given));
  TOSAIC_TRY(options.emit, checked_options(given, known));
  for (const GeneralOption& option : table())
    if (option.apply) option.apply(options, options.emit, option.info.name);
  options.said = said;
  options.self_check = options.emit.flag("self-check");
  if (const std::string budget = given.text("budget"); !budget.empty()) {
    TOSAIC_TRY(options.budget, read_budget(budget));
  }
  TOSAIC_CHECK(check_c_array_options(options.emit));
  TOSAIC_CHECK(read_request(options.quantise.request, options.emit));
  TOSAIC_CHECK(take_scheme(options));
  TOSAIC_CHECK(settle_weights(options));
  // Where a target takes floats and nobody asks for integers, these are what the overrides name.
  PlanRequest& request = options.quantise.request;
  if (!request.empty() && !request.has_whole() && !options.target.integer() && !options.quantise_always)
    request.overrides.insert(request.overrides.begin(), {"*", Form::floating, {}});
  TOSAIC_CHECK(check_step_names(options));
  return options;
}

const std::vector<TargetInfo>& targets() {
  static const std::vector<TargetInfo> all = [] {
    std::vector<TargetInfo> list;
    for (const Target& t : all_targets())
      list.push_back({t.name, t.summary, t.family, t.spec.text(), t.options, t.emits ? t.emits->name : "",
                      t.emits ? t.emits->sentence : ""});
    return list;
  }();
  return all;
}

}  // namespace tosaic
