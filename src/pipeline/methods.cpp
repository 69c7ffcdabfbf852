// SPDX-License-Identifier: Apache-2.0
#include "pipeline/methods.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <iterator>

#include "formats/pte/pte_file.h"
#include "pack/shared_states.h"

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

}  // namespace

Result<std::vector<SizedMethod>> sized_methods(const ExportedProgram& program,
                                               const std::vector<std::string>& choices) {
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

Result<Compiled> compiled_together(const std::vector<SizedMethod>& methods, const CompileOne& compile_one) {
  Compiled whole;
  std::vector<MethodStates> states;
  for (std::size_t i = 0; i < methods.size(); ++i) {
    auto compiled = compile_one(methods[i]);
    if (!compiled.ok()) {
      compiled.error().notes.push_back(fmt::format("in method '{}'", methods[i].name));
      return std::move(compiled).error();
    }
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
  if (whole.packed.plans.empty()) return whole;
  share_states(whole.packed);
  TOSAIC_TRY(whole.program, pte::write(whole.packed));
  return whole;
}

}  // namespace tosaic
