// SPDX-License-Identifier: Apache-2.0
#include "plan/quantised_form.h"

#include <algorithm>

namespace tosaic::plan {

std::optional<QuantisedForm> find_quantised_form(const Graph& graph, const Node& product, std::int64_t k) {
  QuantisedForm form;
  form.shape = graph[product.outputs[0]].type.shape;
  const std::size_t scale_at = graph[product.inputs[0]].type.shape == form.shape ? 1 : 0;
  form.quantised = product.inputs[1 - scale_at];
  form.scales = product.inputs[scale_at];
  form.of_scales = graph[form.scales].type.shape;
  if (graph[form.quantised].type.shape != form.shape || form.of_scales.rank() != form.shape.rank()) return std::nullopt;
  std::int64_t run = 1;  // neighbours that share a scale
  form.outer = form.shape.rank();
  while (form.outer > 0 && form.of_scales.size(form.outer - 1) == 1) run *= form.shape.size(--form.outer);
  form.group = std::min(run, k);
  if (form.group == 0 || k % form.group != 0 || run % form.group != 0) return std::nullopt;
  form.times = run / form.group;
  return form;
}

void QuantisedForm::read_scales(std::span<const float> elements, std::int64_t first, std::span<float> to) const {
  bool one_each = true;
  for (int d = 0; d < outer; ++d) one_each = one_each && of_scales.size(d) == shape.size(d);
  const auto element_of = [&](std::int64_t run) {
    if (one_each) return run;
    std::int64_t at = 0, stride = 1;
    for (int d = outer - 1; d >= 0; --d) {
      at += of_scales.size(d) == 1 ? 0 : run % shape.size(d) * stride;
      run /= shape.size(d);
      stride *= of_scales.size(d);
    }
    return at;
  };
  for (float& scale : to) scale = elements[static_cast<std::size_t>(element_of(first++ / times))];
}

}  // namespace tosaic::plan
