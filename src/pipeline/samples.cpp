// SPDX-License-Identifier: Apache-2.0
#include "pipeline/samples.h"

#include <fmt/format.h>
#include <algorithm>
#include <random>

#include "ir/specialise.h"

namespace tosaic {
namespace {

// Placement hardly depends on the scales' values (operands of unlike ranges may be joined outside the delegate), so
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

}  // namespace

Result<Samples> samples_for(const Graph& graph, const Samples& stored, const Context& c) {
  if (c.given) return c.given(graph);
  if (!stored.empty()) {
    auto note =
        warning("calibrate.stored-samples", fmt::format("calibrating with the {} sample input{} stored in the model",
                                                        stored.size(), stored.size() == 1 ? "" : "s"));
    note.severity = Severity::note;
    note.help = "give --calibrate FILE.npz with typical inputs for better accuracy";
    if (!c.request.invent_samples) c.say(note);
    return stored;
  }
  if (c.request.invent_samples) return invented_samples(graph);
  return Samples{};
}

Result<Samples> samples_of_any_sizes(const Graph& varying, const Context& c) {
  const Samples& stored = c.method->sample_inputs;
  if (!c.request.invent_samples || c.given || !stored.empty()) return samples_for(varying, stored, c);
  TOSAIC_TRY(const Sizes sizes, largest_sizes(input_symbols(varying)));
  TOSAIC_TRY(const Graph largest, specialise(varying, sizes));
  return invented_samples(largest);
}

Result<SamplesBySizes> by_sizes(const Graph& varying, Samples samples) {
  SamplesBySizes all;
  for (std::vector<Tensor>& sample : samples) {
    std::vector<Shape> shapes;
    for (const Tensor& tensor : sample) shapes.push_back(tensor.type.shape);
    TOSAIC_TRY(Sizes sizes, sizes_of(varying, shapes));
    auto found = std::ranges::find(all, sizes, &SamplesBySizes::value_type::first);
    if (found == all.end()) found = all.insert(found, {sizes, {}});
    found->second.push_back(std::move(sample));
  }
  return all;
}

void say_unused(const Normal& program, const Context& c) {
  if (!c.given || (c.options.in_integers() && !program.by_pt2e)) return;
  if (c.options.rounds_weights_of_floats() && !program.by_pt2e) return;
  c.say(program.by_pt2e
            ? warning("calibrate.unused", "the samples are not used: the program is quantised already")
                  .hint("leave them out, or give the float program")
            : warning("calibrate.unused", fmt::format("the samples are not used: {} takes floats", c.target.name))
                  .hint(c.target.spec.has(tosa::Feature::pro_int) ? "--quantize int8 makes integers of the program"
                                                                  : "choose an integer target such as tosa-int"));
}

}  // namespace tosaic
