// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/definitions/row.h"
#include "ops/definitions/scaling.h"

namespace tosaic::tosa {
namespace {

// Operands {input, multiplier, shift, input_zp, output_zp}.
std::vector<TensorType> infer(const View& view) {
  // The output's dtype is the output zero point's.
  return {{view.in(4).dtype, view.in(0).shape, std::nullopt}};
}

// A zero point is read as the tensor is: unsigned where its tensor is.
std::int64_t extended(DType type, bool is_unsigned, std::int64_t value) {
  if (!is_unsigned) return value;
  return type == DType::i8 ? value & 0xff : type == DType::i16 ? value & 0xffff : value;
}

Check check_zero_point(const View& view, std::size_t operand, DType type, bool is_unsigned, std::string_view name) {
  if (view.in(operand).shape.elements() != 1)
    return broken(fmt::format("rescale.{}-size", name), "{} has shape [{}], one element is needed", name,
                  to_string(view.in(operand).shape));
  const auto constant = view.constant_integers(operand);
  if (!constant || type == DType::i8) return std::nullopt;
  const std::int64_t value = extended(type, is_unsigned, constant->front());
  if (type == DType::i16 && is_unsigned) {
    if (value != 0 && value != 32768)
      return broken(fmt::format("rescale.{}-u16", name), "{} is {}: for unsigned i16 it must be 0 or 32768", name,
                    value);
  } else if (value != 0) {
    return broken(fmt::format("rescale.{}", name), "{} is {}: it must be 0 for {}", name, value, name_of(type));
  }
  return std::nullopt;
}

Check check(const View& view) {
  const DType in = view.in(0).dtype, out = view.in(4).dtype;
  const bool scale32 = view.flag("scale32"), per_channel = view.flag("per_channel");
  const bool input_unsigned = view.flag("input_unsigned"), output_unsigned = view.flag("output_unsigned");
  if (Check c = check_zero_point(view, 3, in, input_unsigned, "input-zp")) return c;
  if (Check c = check_zero_point(view, 4, out, output_unsigned, "output-zp")) return c;
  if (scale32 && in == DType::i48) return broken("rescale.scale32-i48", "an i48 input takes 16-bit multipliers only");
  if (!scale32 && view.text("rounding_mode") == "double_round")
    return broken("rescale.double-round", "double_round needs 32-bit multipliers");
  if (input_unsigned && output_unsigned)
    return broken("rescale.both-unsigned", "input and output cannot both be unsigned");
  if (out == DType::i32 && input_unsigned)
    return broken("rescale.unsigned-to-i32", "an unsigned input cannot become i32");
  if (in == DType::i32 && output_unsigned)
    return broken("rescale.i32-to-unsigned", "an i32 input cannot become unsigned");
  if (in == DType::i48 && output_unsigned)
    return broken("rescale.i48-to-unsigned", "an i48 input cannot become unsigned");
  if (in == DType::i48 && input_unsigned) return broken("rescale.u48", "an i48 input cannot be unsigned");
  if (in == DType::i32 && input_unsigned) return broken("rescale.u32-input", "an i32 input cannot be unsigned");
  if (out == DType::i32 && output_unsigned) return broken("rescale.u32-output", "an i32 output cannot be unsigned");
  const int rank = view.in(0).rank();
  if (per_channel && rank < 1)
    return broken("rescale.per-channel-rank", "per_channel needs a last dim, the input has rank 0");
  const DType multiplier = scale32 ? DType::i32 : DType::i16;
  if (view.in(1).dtype != multiplier)
    return broken("rescale.multiplier-type", "the multiplier is {}, scale32 = {} wants {}", name_of(view.in(1).dtype),
                  scale32, name_of(multiplier));
  const std::int64_t scales = per_channel ? view.in(0).shape.size(rank - 1) : 1;
  if (view.in(1).shape.size(0) != scales)
    return broken("rescale.multiplier-size", "{} multipliers for {} scales", view.in(1).shape.size(0), scales);
  if (view.in(2).shape.size(0) != scales)
    return broken("rescale.shift-size", "{} shifts for {} scales", view.in(2).shape.size(0), scales);
  return std::nullopt;
}

struct Rescale {
  std::int64_t input_zp, output_zp, lowest, highest;
  std::vector<std::int64_t> multiplier, shift;
  bool input_unsigned, scale32, double_round;
};

// out = clip(((in - input_zp) * multiplier[c] >> shift[c]) + output_zp). inexact_round may round as it likes: it
// rounds like single_round.
template <class In, class Out>
std::string rescale(const Rescale& r, const In* in, Out* out, std::size_t count) {
  const std::size_t scales = r.multiplier.size();
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t c = scales == 1 ? 0 : i % scales;
    const std::int64_t read = r.input_unsigned ? static_cast<std::int64_t>(static_cast<std::make_unsigned_t<In>>(in[i]))
                                               : static_cast<std::int64_t>(in[i]);
    const std::int64_t value = read - r.input_zp;
    const auto scaled =
        r.scale32 ? apply_scale_32(value, static_cast<std::int32_t>(r.multiplier[c]), static_cast<int>(r.shift[c]),
                                   r.double_round)
                  : apply_scale_16(value, static_cast<std::int16_t>(r.multiplier[c]), static_cast<int>(r.shift[c]));
    if (!scaled) return fmt::format("{} cannot be scaled by {} >> {}", value, r.multiplier[c], r.shift[c]);
    const std::int64_t shifted = *scaled + r.output_zp;
    if (shifted < INT32_MIN || shifted > INT32_MAX)
      return fmt::format("{} + {} does not fit i32", *scaled, r.output_zp);
    out[i] = static_cast<Out>(std::clamp(shifted, r.lowest, r.highest));
  }
  return {};
}

Status eval(const Run& run) {
  const DType in = run.in[0].type.dtype, out = run.out[0].type.dtype;
  const bool output_unsigned = run.view.flag("output_unsigned");
  Rescale r;
  r.input_unsigned = run.view.flag("input_unsigned");
  r.scale32 = run.view.flag("scale32");
  r.double_round = run.view.text("rounding_mode") == "double_round";
  r.multiplier = integers_of(run.in[1]);
  r.shift = integers_of(run.in[2]);
  r.input_zp = extended(in, r.input_unsigned, integers_of(run.in[3])[0]);
  r.output_zp = extended(out, output_unsigned, integers_of(run.in[4])[0]);
  r.lowest = output_unsigned ? 0 : range_of(out).lowest;
  r.highest = output_unsigned ? 2 * range_of(out).highest + 1 : range_of(out).highest;
  const auto count = static_cast<std::size_t>(run.in[0].type.shape.elements());
  std::string bad;
  auto from = [&]<class In>(In) {
    auto to = [&]<class Out>(Out) {
      bad = rescale(r, static_cast<const In*>(run.in[0].data), static_cast<Out*>(run.out[0].data), count);
    };
    if (out == DType::i8)
      to(std::int8_t{});
    else if (out == DType::i16)
      to(std::int16_t{});
    else
      to(std::int32_t{});
  };
  if (in == DType::i8)
    from(std::int8_t{});
  else if (in == DType::i16)
    from(std::int16_t{});
  else if (in == DType::i32)
    from(std::int32_t{});
  else
    from(std::int64_t{});
  return bad.empty() ? Status{} : unpredictable(run, bad);
}

TypeRows types() {
  using enum DType;
  TypeRows result;
  for (DType out : {i8, i16, i32}) result = result + with(integers("in", {i8, i16, i32}), "out", out);
  for (DType out : {i8, i16, i32}) result = result + with(rows({Feature::int16}, "in", {i48}), "out", out);
  return result;
}

}  // namespace

Op tosa_rescale() {
  return {
      .name = "rescale",
      .schema_number = 66,
      .spirv_number = 65,
      .summary =
          "changes scale, zero point and dtype of integers: clip((x - input_zp) * multiplier >> shift) + output_zp)",
      .inputs = {{"input", "in"},
                 {.name = "multiplier", .type = "mul", .min_rank = 1, .max_rank = 1, .constant = true},
                 {.name = "shift", .type = "i8", .min_rank = 1, .max_rank = 1, .constant = true},
                 {.name = "input_zp", .type = "in", .min_rank = 1, .max_rank = 1, .constant = true},
                 {.name = "output_zp", .type = "out", .min_rank = 1, .max_rank = 1, .constant = true}},
      .attrs = {{"scale32", AttrKind::boolean},
                {"rounding_mode", AttrKind::rounding_mode},
                {"per_channel", AttrKind::boolean},
                {"input_unsigned", AttrKind::boolean},
                {"output_unsigned", AttrKind::boolean}},
      .outputs = {{"output", "out"}},
      .types = types(),
      .infer = infer,
      .check = check,
      .eval = eval,
      .elementwise = true,
  };
}
}  // namespace tosaic::tosa
