// SPDX-License-Identifier: Apache-2.0
#include "pipeline/compared.h"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <utility>

#include "compare/compare.h"
#include "ir/aten_operators.h"
#include "ir/specialise.h"
#include "pipeline/chosen_sizes.h"
#include "pipeline/executed_floats.h"
#include "pipeline/methods.h"
#include "pipeline/steps.h"
#include "quantise/quantise.h"

namespace tosaic {
namespace {

bool has_nan(const Tensor& tensor) {
  if (!is_float(tensor.type.dtype)) return false;
  const auto count = static_cast<std::size_t>(tensor.type.shape.elements());
  for (std::size_t i = 0; i < count; ++i)
    if (std::isnan(element_as_double(tensor.type.dtype, tensor.data.data(), i))) return true;
  return false;
}

Result<Comparison> compare_with(CompareHow how, const FloatProgram& floats, const Split& split, const Samples& samples,
                                const ShownSamples& shown, const Context& c) {
  how.other_samples = static_cast<bool>(shown.samples);
  how.labels = shown.labels;
  how.device = shown.device;
  if (c.callbacks.progress)
    how.progress = [&](std::size_t done, std::size_t total) { c.callbacks.progress("compare", done, total); };
  TOSAIC_TRY(Comparison found, compare_programs(floats, split.quantised, samples, how));
  found.target = c.target.name;
  return found;
}

// The program in f32, its results as well, under the same names.
FloatProgram program_in_f32(Graph graph) {
  widen_half_precision(graph);
  const auto made_by = producers(graph);
  for (ValueId& v : graph.outputs) {
    if (!is_narrow_float(graph[v].type.dtype) || made_by[v] < 0) continue;
    const Node& conversion = graph.nodes[static_cast<std::size_t>(made_by[v])];
    const ValueId wide = conversion.op == aten::op::_to_copy ? conversion.inputs[0] : no_value;
    if (wide == no_value || graph[wide].name != graph[v].name + ".f32") continue;
    std::swap(graph[wide].name, graph[v].name);
    v = wide;
  }
  drop_dead(graph);
  FloatProgram program{std::move(graph), {}, {}};
  program.held.assign(program.graph.values.size(), 0);
  program.group.assign(program.graph.values.size(), no_value);
  return program;
}

// The narrowest that the program has, or that its device keeps others in.
std::optional<DType> narrowest(const Graph& program, const NarrowFloats& floats) {
  std::optional<DType> found;
  for (ValueId v = 0; v < program.values.size(); ++v) {
    const DType type = floats.kept[v].value_or(program[v].type.dtype);
    if (is_narrow_float(type) && (!found || storage_size(type) < storage_size(*found))) found = type;
  }
  return found;
}

}  // namespace

Status is_one_program(const ExportedProgram& program, const CompileOptions& options) {
  TOSAIC_TRY(const std::vector<SizedMethod> methods, sized_methods(program, options));
  if (methods.size() == 1) return {};
  return error("compare.methods", fmt::format("there are {} methods, one at a time can be compared", methods.size()))
      .hint("give the .pt2 of one method, and one size to each --sizes");
}

Status comparable(const ExportedProgram& program, const CompileOptions& options) {
  TOSAIC_CHECK(is_one_program(program, options));
  if (options.in_integers()) return {};
  return error("compare.floats", fmt::format("{} computes floats: nothing is quantised", options.target.name))
      .hint("give --quantize int8, or an integer target such as tosa-int");
}

SamplesFor keeping(SamplesFor given, const std::shared_ptr<Samples>& kept) {
  if (!given) return given;
  return [given = std::move(given), kept](const Graph& graph) -> Result<Samples> {
    TOSAIC_TRY(*kept, given(graph));
    return *kept;
  };
}

Result<Observed> at_numbers(std::variant<Graph, Observed> begun) {
  if (auto* seen = std::get_if<Observed>(&begun)) return std::move(*seen);
  return error("compare.sizes", "the program's sizes vary: one of each has to be chosen")
      .hint("choose them: --sizes INPUT.DIM=SIZE, in Python sizes=[...]");
}

Status has_floats(const Observed& seen) {
  if (seen.program.by_pt2e)
    return error("compare.already-quantised", "the program is quantised already: its floats are not in it")
        .hint("give the float program, as it was before convert_pt2e");
  if (!seen.calibration)
    return error("compare.nothing-quantised", "the program computes no floats: there is nothing to quantise")
        .hint("`tosaic inspect` shows its calls and their types");
  return {};
}

Result<Samples> samples_to_compare(const Graph& floats, const SamplesFor& shown, const Samples& calibrated,
                                   std::size_t most, Taken taken) {
  Samples samples = fitting(floats, calibrated);
  if (taken == Taken::all_over && floats.states.empty() && samples.size() > most)
    for (std::size_t i = 1; i < most; ++i) samples[i] = samples[i * samples.size() / most];
  if (samples.size() > most) samples.resize(most);
  if (shown) { TOSAIC_TRY(samples, shown(floats)); }
  if (samples.empty())
    return error("compare.no-samples", "no sample has the sizes that the program is compiled for")
        .hint("give --samples FILE.npz with arrays of these sizes, or choose others: --sizes");
  for (std::size_t s = 0; s < samples.size(); ++s)
    for (std::size_t i = 0; i < samples[s].size(); ++i)
      if (has_nan(samples[s][i]))
        return error("compare.not-a-number",
                     fmt::format("sample {} of input '{}' has NaN", s, floats[floats.inputs[i]].name))
            .hint("give samples as the model will see them: NaN is no integer");
  return samples;
}

Result<Comparison> compare_floats(Observed seen, const SamplesFor& given, const ShownSamples& shown, const Context& c) {
  if (seen.program.by_pt2e)
    return error("compare.already-quantised", "the program is quantised already: its floats are not in it")
        .hint("give the float program, as it was before convert_pt2e");
  if (c.options.weight_quantisation.bits != 0 || c.options.weight_quantisation.dynamic)
    return error("compare.floats", "quantised weights of a program of floats cannot be compared")
        .hint("leave --weights and --quantize dynamic-int8 out to see what narrow floats lose");
  const FloatProgram floats = program_in_f32(seen.program.graph);
  Samples all = seen.program.stored;
  if (given) { TOSAIC_TRY(all, given(seen.program.graph)); }
  TOSAIC_TRY(const Samples samples, samples_to_compare(floats.graph, shown.samples, all));
  TOSAIC_TRY(Typed typed, choose_types(std::move(seen), c));
  TOSAIC_TRY(const Split split, split_by_target(std::move(typed), c));
  TOSAIC_TRY(const NarrowFloats narrow, executed_floats(split, c));
  const std::optional<DType> type = narrowest(split.quantised, narrow);
  if (!type)
    return error("compare.floats",
                 fmt::format("{} computes the program's floats as they are: nothing is narrower", c.target.name))
        .hint("give --quantize int8, or an integer target such as tosa-int" +
              std::string(c.target.narrowing.empty() ? "" : "; or " + c.target.narrowing));
  CompareHow how = compare_how(split, c);
  how.narrow = &narrow;
  TOSAIC_TRY(Comparison found, compare_with(std::move(how), floats, split, samples, shown, c));
  found.scheme = name_of(*type);
  return found;
}

CompareHow compare_how(const Split& split, const Context& c) {
  CompareHow how{.spec = &c.target.spec, .threads = c.options.quantise.threads, .cancelled = c.callbacks.cancelled};
  for (const Placement& placement : split.partition.placements) how.outside.push_back(placement.region < 0);
  return how;
}

Result<Comparison> compare_split(const FloatProgram& floats, const Split& split, const Samples& samples,
                                 const ShownSamples& shown, const Context& c) {
  TOSAIC_TRY(Comparison found, compare_with(compare_how(split, c), floats, split, samples, shown, c));
  found.scheme = c.options.quantise.scheme == Scheme::int16x8 ? "int16x8" : "int8";
  return found;
}

}  // namespace tosaic
