// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "ops/op.h"

#include "ir/aten_operators.h"

namespace tosaic {
namespace {
// Images first, then the depth as rows of images that are one pixel high and keep their width.
Vals lower(Builder& b, const Call& call) {
  const auto& name = call.schema().name;
  const bool linear = name == "upsample_trilinear3d", vec = call.overload() == "vec";
  Val x = call.tensor(vec ? "input" : "self");
  if (x.rank() != 5) b.refuse("aten." + name + ".rank", "an input of shape " + to_string(x.shape()));
  const char* const names[3] = {"scales_d", "scales_h", "scales_w"};
  std::vector<double> factors;
  if (vec && call.has("scale_factors")) factors = call.numbers("scale_factors");
  const auto sizes = call.has("output_size") ? call.spread("output_size", 3) : std::vector<std::int64_t>{};
  if ((sizes.empty() && factors.empty()) || (!factors.empty() && factors.size() != 3))
    b.refuse("aten." + name + ".size", "neither output_size nor 3 scale_factors are given");
  std::int64_t size[3];
  Attr scale[3];
  for (int i = 0; i < 3; ++i) {
    const auto k = static_cast<std::size_t>(i);
    size[i] = !sizes.empty() ? sizes[k]
                             : static_cast<std::int64_t>(std::floor(static_cast<double>(x.dim(2 + i)) * factors[k]));
    if (vec ? !factors.empty() : call.has(names[i])) scale[i] = vec ? factors[k] : call.number(names[i]);
  }
  Operator op = linear                         ? aten::op::upsample_bilinear2d
                : name == "upsample_nearest3d" ? aten::op::upsample_nearest2d
                                               : aten::op::_upsample_nearest_exact2d;
  auto resized = [&](Val v, std::int64_t height, std::int64_t width, const Attr& by_height, const Attr& by_width) {
    Attrs attrs{
        {"output_size", std::vector<std::int64_t>{height, width}}, {"scales_h", by_height}, {"scales_w", by_width}};
    if (linear) attrs.set("align_corners", call.flag("align_corners"));
    return b.aten(op, {v}, attrs);
  };
  const std::int64_t n = x.dim(0), c = x.dim(1), depth = x.dim(2);
  Val y = resized(b.reshape(x, {n, c * depth, x.dim(3), x.dim(4)}), size[1], size[2], scale[1], scale[2]);
  y = resized(b.reshape(y, {n, c, depth, size[1] * size[2]}), size[0], size[1] * size[2], scale[0], {});
  return b.reshape(y, {n, c, size[0], size[1], size[2]});
}
}  // namespace

AtenOp aten_upsample_trilinear3d() {
  return {.schemas = {"upsample_trilinear3d(Tensor self, SymInt[3] output_size, bool align_corners, float? "
                      "scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor",
                      "upsample_trilinear3d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? "
                      "scale_factors) -> Tensor",
                      "upsample_nearest3d(Tensor self, SymInt[3] output_size, float? scales_d=None, float? "
                      "scales_h=None, float? scales_w=None) -> Tensor",
                      "upsample_nearest3d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor",
                      "_upsample_nearest_exact3d(Tensor self, SymInt[3] output_size, float? scales_d=None, float? "
                      "scales_h=None, float? scales_w=None) -> Tensor",
                      "_upsample_nearest_exact3d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> "
                      "Tensor"},
          .summary = "a volume resized, by weighing or by taking pixels",
          .rule = Rule::transparent,
          .lower = {lower},
          .domain = {"default: x(1,2,1,1,1), [3,4,5], True", "upsample_nearest3d.default: x(1,2,1,2,1), [3,4,5]",
                     "default: x(1,2,3,4,5), [6,8,5], False", "default: x(1,2,3,2,4), [4,5,7], True",
                     "vec: x(1,2,2,3,4), None, False, [2.0,1.5,2.0]", "vec: x(2,1,2,3,4), [3,3,2], True, None",
                     "upsample_nearest3d.default: x(1,2,3,4,5), [6,7,5]",
                     "upsample_nearest3d.vec: x(1,2,2,3,4), None, [2.0,1.5,2.0]",
                     "_upsample_nearest_exact3d.default: x(1,2,3,4,5), [2,7,5]",
                     "_upsample_nearest_exact3d.vec: x(1,2,2,3,4), None, [2.0,2.0,2.0]"}};
}
}  // namespace tosaic
