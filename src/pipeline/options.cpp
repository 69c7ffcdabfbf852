// SPDX-License-Identifier: Apache-2.0
#include "pipeline/options.h"

#include <fmt/format.h>

#include "ops/definitions/rest.h"
#include "partition/extensions.h"

namespace tosaic {

Diagnostic no_quantised_weights(const Target& target) {
  return error("option.codes",
               fmt::format("{} computes with float weights, where the program has quantised ones", target.name))
      .hint("tosa-fp and vulkan keep them quantised; or leave the option out");
}

FormFor form_for(const CompileOptions& options, const tosa::Spec& spec) {
  const WeightQuantisation weights =
      options.keeps_quantised_weights() ? options.weight_quantisation : WeightQuantisation{};
  return {.spec = spec,
          .integer = options.in_integers(),
          .keeps_quantised_weights = options.keeps_quantised_weights(),
          .weight_quantisation = weights,
          .quantises_states = options.keeps_quantised_weights() && options.quantises_states,
          .all_inside = options.single_delegate || options.require_full_delegation,
          .fold_as_pytorch = options.fold_as_pytorch,
          .most_unlike_gains = most_unlike_gains(options.in_integers(), options.quantise, weights)};
}

bool CompileOptions::rounds_weights_of_floats() const {
  const bool by_width = quantise.rounding == Rounding::by_width && weight_quantisation.bits == 4;
  return keeps_quantised_weights() && weight_quantisation.bits != 0 &&
         (by_width || quantise.rounding == Rounding::least_squares);
}

QuantiseOptions how_to_quantise(const CompileOptions& options, const Graph& exported) {
  QuantiseOptions how = options.quantise;
  how.wide_inside = options.target.spec.has(tosa::Feature::int16);
  how.float_outputs = !options.quantised_io && !options.require_full_delegation;
  how.exported = exported_nodes(exported);
  how.spec = options.target.spec;
  how.shares_weights = how.spec->has(tosa::sizes_vary);
  if (how.shares_weights)
    for (const Value& v : exported.values) how.varying.try_emplace(v.name, v.type.shape);
  return how;
}

tosa::Spec spec_for(const Graph& program, const CompileOptions& options, const Sink& sink) {
  tosa::Spec spec = options.target.spec;
  if (options.spec_given || options.in_integers()) return spec;
  const auto say = [&](const std::string& why, std::string_view remedy) {
    Diagnostic note = warning("target.extension", why).hint(std::string(remedy));
    note.severity = Severity::note;
    if (sink) sink(std::move(note));
  };
  if (options.quantises_states && !program.states.empty() && !spec.has(tosa::Feature::pro_int)) {
    spec.add(tosa::Feature::pro_int);
    say(fmt::format("compiled for {}: caches in int8 are written by its integer profile", spec.text()),
        "what runs it needs both profiles");
  }
  for (const auto& [feature, dtype] : needed_extensions(program, spec)) {
    spec.add(feature);
    say(fmt::format("the program has {} tensors: compiled for {}, whose {} holds them", name_of(dtype), spec.text(),
                    name_of(feature)),
        fmt::format("what runs it needs that extension; --tosa-spec {} leaves them on the CPU",
                    options.target.spec.text()));
  }
  return spec;
}

}  // namespace tosaic
