// SPDX-License-Identifier: Apache-2.0
#include "pipeline/steps.h"

#include "lower/over_sizes.h"
#include "ops/definitions/rest.h"
#include "pipeline/lone_delegate.h"
#include "pipeline/samples.h"

namespace tosaic {
namespace {

// The outputs that are scalars to the program's user and follow from sizes.
std::vector<std::pair<std::size_t, Dim>> numbers_of_sizes(const Graph& varying, const Method& method) {
  std::vector<std::pair<std::size_t, Dim>> found;
  for (std::size_t k : method.scalar_outputs) {
    const auto& size = varying[varying.outputs[k]].size;
    if (size && !size->is_number()) found.emplace_back(k, *size);
  }
  return found;
}

Result<Tosa> tosa_at(const Sizes& sizes, const Graph& varying, Calibration* calibration, const Context& c) {
  TOSAIC_TRY(Graph program, specialise(varying, sizes));
  StateContents contents;
  TOSAIC_TRY(Observed seen, observe_program(std::move(program), calibration, contents, c));
  TOSAIC_TRY(Typed typed, choose_types(std::move(seen), c));
  return make_tosa(std::move(typed), c);
}

}  // namespace

Context at_one_size(const Context& c, const Graph& varying, bool silent) {
  Context at = c;
  at.exported = &varying;
  at.given = {};
  at.request.pack = at.options.self_check = false;
  at.report = {};
  at.graphs = nullptr;
  at.options.target.spec.add(tosa::sizes_vary);
  at.target.spec.add(tosa::sizes_vary);
  if (silent) at.callbacks.sink = {};
  return at;
}

Result<Compiled> compile_over_sizes(Graph varying, const Context& c) {
  TOSAIC_TRY(const std::vector<Symbol> symbols, bounded(input_symbols(varying)));
  std::optional<Calibration> calibration;
  if (c.options.in_integers()) {
    TOSAIC_TRY(const Samples samples, samples_of_any_sizes(varying, c));
    TOSAIC_TRY(calibration, calibrate_over_sizes(varying, samples, c));
  }
  const auto numbers = numbers_of_sizes(varying, *c.method);
  std::optional<Tosa> made;  // at the first sizes
  std::vector<AtSizes> inner, outer;
  TOSAIC_TRY(const std::vector<Sizes> looked, looked_at(symbols, varying));
  for (const Sizes& sizes : looked) {
    const Context here = at_one_size(c, varying, calibration || made);
    TOSAIC_TRY(Tosa at, tosa_at(sizes, varying, calibration ? &*calibration : nullptr, here));
    if (Status one = is_one_delegate(at); !one.ok()) {
      if (c.request.pack) return std::move(one).error();
      Diagnostic& why = one.error();  // what is asked is what stands in the way
      why.severity = Severity::warning;
      why.message = "compile refuses the program: " + why.message;
      c.say(std::move(why));
      return make_program(std::move(at), c);
    }
    if (!at.lowered.empty()) inner.push_back({sizes, at.lowered[0]});
    Graph& calls = outer.emplace_back(AtSizes{sizes, at.partition.outer}).graph;
    for (const auto& [k, size] : numbers)  // said below for all of them
      if (Value& number = calls[calls.outputs[k]]; number.is_constant())
        number.constant = constant_bytes(DType::i64, std::vector<std::int64_t>{0});
    if (!made) made = std::move(at);
  }
  const bool delegates = !inner.empty();  // whose operators say more than a call of them does
  if (delegates) {
    TOSAIC_TRY(made->lowered[0], over_sizes(std::move(inner), symbols, varying));
    made->lowered[0].guards = varying.guards;
  }
  Graph& calls = made->partition.outer;
  TOSAIC_TRY(calls, over_sizes(std::move(outer), symbols, varying, delegates ? &made->lowered[0] : nullptr));
  for (const auto& [k, size] : numbers) calls[calls.outputs[k]].size = size;
  TOSAIC_CHECK(call_alone(calls));
  if (delegates) {
    name_inputs(made->lowered[0], calls);
    TOSAIC_CHECK(c.note("tidy", made->lowered[0]));
  }
  TOSAIC_CHECK(c.end("tidy"));
  return make_program(*std::move(made), c);
}

}  // namespace tosaic
