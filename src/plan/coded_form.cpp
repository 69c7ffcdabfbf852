// SPDX-License-Identifier: Apache-2.0
#include "plan/coded_form.h"

#include <algorithm>
#include <atomic>

#include "base/parallel.h"

namespace tosaic::plan {

// All numbers are looked at, without a branch: it is a matter of reading them.
int bits_of_codes(std::span<const float> codes) {
  constexpr float rounds = 12582912.0f;  // 1.5 * 2^23: what is added to it becomes a whole number
  std::atomic<int> others = 0, beyond_four = 0;
  in_parallel(codes.size(), std::size_t{1} << 18, [&](std::size_t first, std::size_t last) {
    int other = 0, beyond = 0;
    for (std::size_t i = first; i < last; ++i) {
      const float c = codes[i], whole = (c + rounds) - rounds;
      other |= static_cast<int>(!(c >= -128.0f)) | static_cast<int>(!(c <= 127.0f)) | static_cast<int>(whole != c);
      beyond |= static_cast<int>(!(c >= -8.0f)) | static_cast<int>(!(c <= 7.0f));
    }
    others |= other;
    beyond_four |= beyond;
  });
  return others != 0 ? 0 : beyond_four != 0 ? 8 : 4;
}

std::optional<CodedForm> coded_form(const Graph& graph, const Node& product, std::int64_t k) {
  CodedForm form;
  form.shape = graph[product.outputs[0]].type.shape;
  const std::size_t scale_at = graph[product.inputs[0]].type.shape == form.shape ? 1 : 0;
  form.codes = product.inputs[1 - scale_at];
  form.scales = product.inputs[scale_at];
  form.of_scales = graph[form.scales].type.shape;
  if (graph[form.codes].type.shape != form.shape || form.of_scales.rank() != form.shape.rank()) return std::nullopt;
  std::int64_t run = 1;  // neighbours that share a scale
  form.outer = form.shape.rank();
  while (form.outer > 0 && form.of_scales.size(form.outer - 1) == 1) run *= form.shape.size(--form.outer);
  form.group = std::min(run, k);
  if (form.group == 0 || k % form.group != 0 || run % form.group != 0) return std::nullopt;
  form.times = run / form.group;
  return form;
}

std::vector<float> CodedForm::spread(std::span<const float> elements) const {
  std::int64_t runs = 1;
  for (int d = 0; d < outer; ++d) runs *= shape.size(d);
  std::vector<float> result;
  result.reserve(static_cast<std::size_t>(runs * times));
  for (std::int64_t i = 0; i < runs; ++i) {
    std::int64_t rest = i, at = 0, stride = 1;
    for (int d = outer - 1; d >= 0; --d) {
      at += of_scales.size(d) == 1 ? 0 : rest % shape.size(d) * stride;
      rest /= shape.size(d);
      stride *= of_scales.size(d);
    }
    result.insert(result.end(), static_cast<std::size_t>(times), elements[static_cast<std::size_t>(at)]);
  }
  return result;
}

}  // namespace tosaic::plan
