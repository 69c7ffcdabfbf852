// SPDX-License-Identifier: Apache-2.0
#include "ops/definitions/bounds.h"
#include "ops/definitions/elementwise.h"

namespace tosaic::tosa {
namespace {
Check check(const View& view) {
  const Attr &lowest = *view.node().attrs.find("min_val"), &highest = *view.node().attrs.find("max_val");
  if (const auto* low = std::get_if<std::int64_t>(&lowest)) {
    const std::int64_t high = std::get<std::int64_t>(highest);
    if (high < *low) return broken("clamp.bounds-order", "max_val {} is below min_val {}", high, *low);
    return std::nullopt;
  }
  const double low = std::get<double>(lowest), high = std::get<double>(highest);
  if (std::isnan(low) || std::isnan(high))
    return broken("clamp.bounds-nan", "bounds {} and {}: NaN bounds nothing", low, high);
  if (high < low) return broken("clamp.bounds-order", "max_val {} is below min_val {}", high, low);
  return std::nullopt;
}

Status eval(const Run& run) {
  const bool ignore = ignores_nan(run.view);
  with_element<Domain::both>(run.out[0].type.dtype, [&]<class T>() {
    using Bound = std::conditional_t<std::is_integral_v<T>, std::int64_t, double>;
    const Wide<T> low = run.view.node().attrs.get<Bound>("min_val"), high = run.view.node().attrs.get<Bound>("max_val");
    const auto in = run.in[0].as<T>();
    const auto out = run.out[0].as<T>();
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] = T(smaller(larger(static_cast<Wide<T>>(in[i]), low, ignore), high, ignore));
  });
  return {};
}
}  // namespace

Op tosa_clamp() {
  Op op = unary_row("clamp", 11, "each element held between two bounds", "input",
                    integers("in_out", {DType::i8}) + rows({Feature::int16}, "in_out", {DType::i16}) + floats("in_out"),
                    eval);
  op.attrs = {{"min_val", AttrKind::number}, {"max_val", AttrKind::number}, {"nan_mode", AttrKind::nan_mode}};
  op.check = check;
  op.bounds = bounds::clamped;
  op.moves = Moves::compared;
  op.in_core_aten = [](const View& node, CoreAten& calls) {
    const Attrs& attrs = node.node().attrs;
    return calls.gives(aten::op::clamp, {calls.operand(0)},
                       {{"min", *attrs.find("min_val")}, {"max", *attrs.find("max_val")}});
  };
  return op;
}
}  // namespace tosaic::tosa
