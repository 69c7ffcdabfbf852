// SPDX-License-Identifier: Apache-2.0
#include "pipeline/methods.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "pack/shared_states.h"
#include "pipeline/board.h"
#include "pipeline/chosen_sizes.h"
#include "pipeline/steps.h"

namespace tosaic {
namespace {

constexpr std::size_t most_methods = 64;

// The sizes behind the '=', which lie between commas.
std::vector<std::string> listed_sizes(std::string_view list) {
  std::vector<std::string> sizes;
  for (std::size_t comma = 0; comma != list.npos; list.remove_prefix(comma == list.npos ? 0 : comma + 1)) {
    comma = list.find(',');
    sizes.emplace_back(list.substr(0, comma));
  }
  return sizes;
}

template <class T>
void append(std::vector<T>& to, std::vector<T>&& from) {
  std::move(from.begin(), from.end(), std::back_inserter(to));
}

// Data with one key are one: keys are hashes of what they name.
void add_method(pte::Program& whole, pte::Program&& more) {
  append(whole.plans, std::move(more.plans));
  for (pte::NamedData& data : more.named_data)
    if (std::ranges::find(whole.named_data, data.key, &pte::NamedData::key) == whole.named_data.end())
      whole.named_data.push_back(std::move(data));
}

void add_artifacts(Compiled& whole, Compiled&& more) {
  whole.further.push_back({std::move(more.partition.outer), whole.lowered.size(), std::move(more.sample)});
  append(whole.lowered, std::move(more.lowered));
  append(whole.emitted, std::move(more.emitted));
  whole.printed += more.printed;
  for (std::size_t i = 0; i < whole.stage_seconds.size() && i < more.stage_seconds.size(); ++i)
    whole.stage_seconds[i].second += more.stage_seconds[i].second;
  if (!more.self_check_seconds) whole.self_check_seconds.reset();
  if (whole.self_check_seconds) *whole.self_check_seconds += *more.self_check_seconds;
  whole.samples += more.samples;
}

MethodStates states_of(const std::string& method, const Compiled& compiled) {
  MethodStates found{method, {}};
  const Graph& outer = compiled.partition.outer;
  for (const State& state : outer.states) found.states.emplace_back(state, outer[state.input].type);
  return found;
}

// One method's, in the order of the choices.
Result<std::vector<SizedMethod>> sized(const Method& of, const std::string& name,
                                       const std::vector<std::string>& choices) {
  std::vector<SizedMethod> methods{{"", {}, &of}};
  for (const std::string& choice : choices) {
    const std::size_t equals = choice.find('=');
    const std::vector<std::string> sizes = equals == choice.npos
                                               ? std::vector<std::string>{""}
                                               : listed_sizes(std::string_view(choice).substr(equals + 1));
    std::vector<SizedMethod> more;
    for (const SizedMethod& method : methods)
      for (const std::string& size : sizes) {
        SizedMethod& made = more.emplace_back(method);
        made.name += (made.name.empty() ? "" : "x") + size;
        made.sizes.push_back(equals == choice.npos ? choice : choice.substr(0, equals + 1) + size);
      }
    if (more.size() > most_methods)
      return error("option.value",
                   fmt::format("--sizes asks for {} methods, {} are the most", more.size(), most_methods));
    methods = std::move(more);
  }
  for (SizedMethod& method : methods)
    method.name = &method == &methods[0] ? name : fmt::format("{}_{}", name, method.name);
  for (std::size_t i = 0; i < methods.size(); ++i)
    for (std::size_t k = 0; k < i; ++k)
      if (methods[i].sizes == methods[k].sizes)
        return error("option.value", fmt::format("--sizes names {} twice", fmt::format("{}", methods[i].sizes.back())))
            .hint("each size once");
  return methods;
}

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

// What methods keep together, no delegate keeps.
std::set<std::string> shared_states(const std::vector<SizedMethod>& methods) {
  std::set<std::string> known, shared;
  for (const SizedMethod& m : methods)
    for (const State& state : m.method->graph.states)
      if (!known.insert(state.name).second) shared.insert(state.name);
  return shared;
}

Result<std::vector<Context>> contexts_of(const std::vector<SizedMethod>& methods, const CompileOptions& options,
                                         const CompileCallbacks& callbacks, Request request) {
  request.several_methods = true;
  request.shared_states = shared_states(methods);
  CompileOptions its_own = options;
  std::map<const Method*, SamplesFor> samples;  // each program's are asked for once
  std::vector<Context> contexts;
  for (const SizedMethod& m : methods) {
    if (!samples.contains(m.method)) {
      TOSAIC_TRY(samples[m.method], samples_by_size(*m.method, samples_given(*m.method, callbacks)));
    }
    its_own.sizes = m.sizes;
    contexts.emplace_back(*m.method, its_own, callbacks, samples[m.method], request);
    contexts.back().weights = contexts[0].weights;
  }
  return contexts;
}

Diagnostic in_method(const SizedMethod& method, Diagnostic why) {
  why.notes.push_back(fmt::format("in method '{}'", method.name));
  return why;
}

// Each finds the states as the one before left them, and a state has one scale in all. Takes the contexts' contents.
Result<std::vector<Begun>> begin_together(const std::vector<SizedMethod>& methods, std::vector<Context>& contexts) {
  StateContents contents;
  std::vector<Begun> begun;
  for (std::size_t i = 0; i < methods.size(); ++i) {
    auto method = begin_method(std::move(contexts[i]), contents);
    if (!method.ok()) return in_method(methods[i], std::move(method.error()));
    begun.push_back(*std::move(method));
  }
  std::vector<Calibration*> calibrations;
  for (Begun& method : begun)
    if (auto* seen = std::get_if<Observed>(&method.program); seen && seen->calibration)
      calibrations.push_back(&*seen->calibration);
  share_state_ranges(calibrations);
  return begun;
}

}  // namespace

Result<std::vector<SizedMethod>> sized_methods(const ExportedProgram& program, const CompileOptions& options) {
  const std::vector<std::string>& choices = options.sizes;
  std::vector<std::string> names;
  for (const Method& m : program.methods) names.push_back(m.name);
  TOSAIC_CHECK(names_methods(options.quantise.request, names));
  if (program.methods.size() == 1) return sized(program.methods[0], program.methods[0].name, choices);
  for (const std::string& choice : choices)
    if (std::ranges::none_of(program.methods, [&](const Method& m) { return has_size(m.graph, choice); }))
      return chosen_sizes(program.methods[0].graph, {choice}).error();
  std::vector<SizedMethod> methods;
  for (const Method& m : program.methods) {
    std::vector<std::string> its_own;
    std::ranges::copy_if(choices, std::back_inserter(its_own), [&](const auto& c) { return has_size(m.graph, c); });
    TOSAIC_TRY(std::vector<SizedMethod> more, sized(m, m.name, its_own));
    append(methods, std::move(more));
  }
  for (std::size_t i = 0; i < methods.size(); ++i)
    for (std::size_t k = 0; k < i; ++k)
      if (methods[i].name == methods[k].name)
        return error("model.methods", fmt::format("two methods are called '{}'", methods[i].name))
            .hint("give each method a name of its own, and none that ends like another's sizes");
  return methods;
}

SamplesFor samples_given(const Method& method, const CompileCallbacks& callbacks) {
  const auto found = callbacks.samples.find(method.name);
  return found == callbacks.samples.end() ? SamplesFor() : found->second;
}

Result<Compiled> compile_methods(const std::vector<SizedMethod>& methods, const CompileOptions& options,
                                 const CompileCallbacks& callbacks, const Request& request) {
  TOSAIC_TRY(std::vector<Context> contexts, contexts_of(methods, options, callbacks, request));
  // What is calibrated together is begun together. Floats pass one by one: each is done with its memory then.
  std::vector<Begun> begun;
  if (options.in_integers()) { TOSAIC_TRY(begun, begin_together(methods, contexts)); }
  Compiled whole;
  std::vector<MethodStates> states;
  for (std::size_t i = 0; i < methods.size(); ++i) {
    auto compiled = begun.empty() ? compile_method(std::move(contexts[i])) : finish_method(std::move(begun[i]));
    if (!compiled.ok()) return in_method(methods[i], std::move(compiled.error()));
    Compiled more = *std::move(compiled);
    states.push_back(states_of(methods[i].name, more));
    if (!more.packed.plans.empty()) more.packed.plans[0].name = methods[i].name;
    if (i == 0) {
      whole = std::move(more);
      continue;
    }
    if (!whole.packed.plans.empty()) add_method(whole.packed, std::move(more.packed));
    add_artifacts(whole, std::move(more));
  }
  for (const SizedMethod& m : methods)
    whole.methods.push_back(m.sizes.empty() ? m.name : fmt::format("{} ({})", m.name, fmt::join(m.sizes, ", ")));
  TOSAIC_CHECK(states_agree(states));
  if (!whole.packed.plans.empty()) {
    share_states(whole.packed);
    TOSAIC_TRY(whole.program, pte::write(whole.packed));
  }
  if (!request.written_at_once) whole.program = whole.program.joined();
  TOSAIC_CHECK(fits_flash(whole, options.emit));
  return whole;
}

}  // namespace tosaic
