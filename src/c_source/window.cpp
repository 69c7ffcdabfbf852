// SPDX-License-Identifier: Apache-2.0
// Pools and RESIZE.
#include "c_source/elements.h"
#include "c_source/types.h"
#include "ir/tosa_operators.h"
#include "ops/definitions/pool.h"
#include "ops/definitions/scaling.h"

namespace tosaic::c_source {
namespace {

const std::vector<std::string> nhwc{"n", "oy", "ox", "c"};

void open_outputs(Writer& w, const Shape& out, bool lanes = false) {
  for (std::size_t d = 0; d < 3; ++d) w.loop(nhwc[d], out.size(static_cast<int>(d)));
  lanes ? open_lanes(w, nhwc[3], out.size(3)) : w.loop(nhwc[3], out.size(3));
}
void close_outputs(Writer& w) {
  for (std::size_t d = 0; d < 4; ++d) w.close();
}

// The rows (columns) of a window that lie inside: first_y .. last_y.
void print_range(Writer& w, char axis, const tosa::Slide& s) {
  w.line("const int32_t start_{0} = o{0} * {1} - {2}, end_{0} = start_{0} + {3};", axis, s.stride, s.before, s.kernel);
  w.line("const int32_t first_{0} = start_{0} < 0 ? 0 : start_{0}, last_{0} = end_{0} < {1} ? end_{0} : {1};", axis,
         s.size);
}

}  // namespace

bool take_pool(Planning& planning, std::uint32_t n) {
  const Node& node = planning.node(n);
  const bool average = node.op == tosa::op::avg_pool2d;
  if (!average && node.op != tosa::op::max_pool2d) return false;
  const tosa::View view = planning.view(n);
  const DType type = view.in(0).dtype;
  if (c_type(type).empty()) return false;
  if (average && !(planning.constant(node.inputs[1]) && planning.constant(node.inputs[2]))) return false;
  const std::vector<tosa::Slide> slides = tosa::pool_slides(view);
  const bool floats = is_float(type);
  Epilogue epilogue = epilogue_of(planning, n, "made");
  const bool lanes = has_lanes(planning, epilogue, n);
  Writer w;
  open_outputs(w, view.out().shape, lanes);
  print_range(w, 'y', slides[0]);
  print_range(w, 'x', slides[1]);
  const std::string x = name_of_value(node.inputs[0]);
  const auto at = [&](const std::string& iy, const std::string& ix) {
    const std::string index = index_sum({"n", iy, ix, "c"}, dense_strides(view.in(0).shape));
    return lanes ? load_lanes(type, x, index) : fmt::format("{}[{}]", x, index);
  };
  const std::string_view on = lanes ? "tosaic_lanes_" : "tosaic_", one = lanes ? "tosaic_lanes" : "int32_t";
  if (average)
    w.line("{} sum = {};", floats ? "float" : one, lanes ? "tosaic_lanes_all(0)" : "0");
  else
    w.line("{} made = {};", lanes ? one : c_type(type), at("first_y", "first_x"));
  w.open("for (int32_t iy = first_y; iy < last_y; ++iy)");
  w.open("for (int32_t ix = first_x; ix < last_x; ++ix)");
  if (floats && average) {
    w.line("sum += {};", at("iy", "ix"));
  } else if (floats) {
    w.line("made = tosaic_maxf(made, {}, {});", at("iy", "ix"), int{tosa::ignores_nan(view)});
  } else if (average) {
    w.line("sum = {0}add(sum, {0}plus({1}, {2}));", on, at("iy", "ix"), -planning.scalar(node.inputs[1]));
  } else {
    w.line("made = {}larger(made, {});", on, at("iy", "ix"));
  }
  w.close();
  w.close();
  if (average) {
    w.line("const int32_t count = (last_y - first_y) * (last_x - first_x);");
    w.line("(void)count;");
    if (floats) {
      w.line("const float made = sum / (float)count;");
    } else {
      const auto [lowest, highest] = range_of(type);
      const std::int64_t zero = planning.scalar(node.inputs[2]);
      if (!view.all_are("pad", 0)) {
        w.line("const {} made = {}mean(sum, count, {}, {}, {});", one, on, zero, lowest, highest);
      } else {
        const auto scale = tosa::reciprocal_scale(static_cast<std::uint32_t>(slides[0].kernel * slides[1].kernel));
        w.line("const {0} made = {1}clamp({1}plus({1}scale(sum, {2}, {3}), {4}), {5}, {6});", one, on, scale.multiplier,
               scale.shift, zero, lowest, highest);
      }
    }
  }
  print_end(w, planning, epilogue, "made", nhwc, lanes);
  close_outputs(w);
  planning.add(step_of({node.inputs[0]}, epilogue, w.take()));
  return true;
}

bool take_resize(Planning& planning, std::uint32_t n) {
  const Node& node = planning.node(n);
  if (node.op != tosa::op::resize) return false;
  const tosa::View view = planning.view(n);
  const auto scale = view.constant_integers(1), offset = view.constant_integers(2);
  if (!scale || !offset || c_type(view.in(0).dtype).empty()) return false;
  const bool floats = is_float(view.in(0).dtype), bilinear = view.text("mode") == "bilinear";
  const Shape& in = view.in(0).shape;
  Epilogue epilogue = epilogue_of(planning, n, "made");
  Writer w;
  open_outputs(w, view.out().shape);
  for (const auto& [axis, i] : {std::pair{'y', 0}, std::pair{'x', 1}}) {
    const auto k = static_cast<std::size_t>(i);
    const std::int64_t numerator = (*scale)[2 * k], denominator = (*scale)[2 * k + 1];
    w.line("const int32_t at_{0} = o{0} * {1} + {2};", axis, denominator, (*offset)[k]);
    w.line("const int32_t floor_{0} = at_{0} >= 0 ? at_{0} / {1} : -((-at_{0} + {1} - 1) / {1});", axis, numerator);
    w.line("const int32_t first_{0} = tosaic_clamp(floor_{0}, 0, {1});", axis, in.size(1 + i) - 1);
    w.line("const int32_t second_{0} = tosaic_clamp(floor_{0} + 1, 0, {1});", axis, in.size(1 + i) - 1);
    w.line("const int32_t d_{0} = at_{0} - floor_{0} * {1};", axis, numerator);
  }
  const std::string x = name_of_value(node.inputs[0]);
  const auto at = [&](const std::string& iy, const std::string& ix) {
    return fmt::format("{}[{}]", x, index_sum({"n", iy, ix, "c"}, dense_strides(in)));
  };
  const std::string_view type = c_type(view.out().dtype);
  if (!bilinear) {
    w.line("const int32_t near_y = 2 * d_y >= {} ? second_y : first_y, near_x = 2 * d_x >= {} ? second_x : first_x;",
           (*scale)[0], (*scale)[2]);
    w.line("const {} made = {};", type, at("near_y", "near_x"));
  } else {
    if (floats) {
      w.line("const float part_y = (float)d_y / {}, part_x = (float)d_x / {};", (*scale)[0], (*scale)[2]);
      w.line("const float rest_y = 1 - part_y, rest_x = 1 - part_x;");
    } else {
      w.line("const {} part_y = d_y, part_x = d_x, rest_y = {} - d_y, rest_x = {} - d_x;", type, (*scale)[0],
             (*scale)[2]);
    }
    w.line("const {} made = {} * rest_y * rest_x + {} * rest_y * part_x", type, at("first_y", "first_x"),
           at("first_y", "second_x"));
    w.line("    + {} * part_y * rest_x + {} * part_y * part_x;", at("second_y", "first_x"), at("second_y", "second_x"));
  }
  print_end(w, planning, epilogue, "made", nhwc);
  close_outputs(w);
  planning.add(step_of({node.inputs[0]}, epilogue, w.take()));
  return true;
}

}  // namespace tosaic::c_source
