// SPDX-License-Identifier: Apache-2.0
// ELEMENTWISE: one or two operands, both scaled or not before the operation, the result scaled after it.
#include <fmt/format.h>
#include <algorithm>
#include <atomic>
#include <bit>

#include "ethosu/operations.h"

namespace tosaic::ethosu {
namespace {

enum Mode : std::uint32_t {
  mul = 0,
  add = 1,
  sub = 2,
  min = 3,
  max = 4,
  lrelu = 5,
  abs = 6,
  clz = 7,
  shr = 8,
  shl = 9,
  lsr = 10,
  div = 11,
  eq = 16,
  ne = 17,
  ge = 18,
  gt = 19,
  bit_and = 33,
  bit_or = 34,
  bit_xor = 35,
  bit_not = 36,
  bit_and_not = 42,
};

bool is_unary(std::uint32_t mode) { return mode == lrelu || mode == Mode::abs || mode == clz || mode == bit_not; }
bool is_known(std::uint32_t mode, bool u85) {
  if (mode <= shl) return true;
  return u85 && ((mode >= lsr && mode <= div) || (mode >= eq && mode <= gt) || (mode >= bit_and && mode <= bit_not) ||
                 mode == bit_and_not);
}

// One operand, read row by row and stretched to the OFM's shape.
struct Side {
  Operand operand;
  FeatureMap map;
  std::shared_ptr<std::vector<std::byte>> copy;
  Shape3 stored;
  std::int64_t constant = 0;
  Scale scale;
  Rounding rounding = Rounding::natural;
  bool scaled = false;
  int shift_left = 0;
  std::int64_t multiplier = 1;

  void read(Scratch& scratch, std::int64_t y, const Shape3& shape, std::int64_t* to) const;
};

void Side::read(Scratch& scratch, std::int64_t y, const Shape3& shape, std::int64_t* to) const {
  const std::int64_t count = shape.w * shape.c;
  if (operand.broadcast.scalar) {
    std::fill_n(to, count, constant);
    return;
  }
  std::int64_t* row = to;
  const bool stretched = stored.w != shape.w || stored.c != shape.c;
  if (stretched) row = Scratch::of(scratch.stored, stored.w * stored.c);
  const std::int64_t stored_count = stored.w * stored.c;
  map.read_row(stored.h == 1 ? 0 : y, 0, stored.w, 0, stored.c, row);
  const std::int64_t zero = mutated("elementwise.zero_point") ? 0 : operand.zero_point;
  for (std::int64_t i = 0; i < stored_count; ++i) row[i] = ((row[i] - zero) * multiplier) << shift_left;
  if (scaled)
    for (std::int64_t i = 0; i < stored_count; ++i) row[i] = rescale(row[i], scale, rounding);
  if (!stretched) return;
  for (std::int64_t x = 0; x < shape.w; ++x) {
    const std::int64_t* from = row + (stored.w == 1 ? 0 : x * stored.c);
    if (stored.c == shape.c)
      std::copy_n(from, shape.c, to + x * shape.c);
    else
      std::fill_n(to + x * shape.c, shape.c, *from);
  }
}

Result<Side> prepare(Context& context, const OutputStage& out, Operand operand, const char* what) {
  Side side;
  const Shape3& shape = out.shape();
  const Broadcast b = operand.broadcast;
  side.stored = {b.h ? 1 : shape.h, b.w ? 1 : shape.w, b.c ? 1 : shape.c};
  side.operand = operand;
  const ElementType type = operand.layout.type;
  if (type.bytes == 8) return error("ethosu.undecidable", fmt::format("{} with 64-bit elements", what));
  if (b.scalar) {
    const int bits = context.config.u85() ? std::min(32, 8 * type.bytes) : 16;
    side.constant =
        type.is_signed
            ? static_cast<std::int64_t>(static_cast<std::uint64_t>(operand.scalar) << (64 - bits)) >> (64 - bits)
            : operand.scalar & ((std::int64_t{1} << bits) - 1);
    side.constant -= operand.zero_point;
    return side;
  }
  TOSAIC_TRY(side.map, place_operand(context, operand, side.stored, false, what));
  // In place is fine: a row is read before it is written. Anything else that overlaps is copied first.
  if (out.stores() && side.map.overlaps(out.map()) && !side.map.same_place(out.map())) {
    side.copy = std::make_shared<std::vector<std::byte>>();
    side.map = side.map.snapshot(*side.copy);
  }
  return side;
}

// A scalar takes part in the scaling like everything else.
void scale_constant(Side& side) {
  if (!side.operand.broadcast.scalar) return;
  side.constant = (side.constant * side.multiplier) << side.shift_left;
  if (side.scaled) side.constant = rescale(side.constant, side.scale, side.rounding);
}

std::int64_t shift_amount(std::int64_t b, bool& defined) {
  if (b < 0 || b > 31) defined = false;
  return std::clamp<std::int64_t>(b, 0, 31);
}

// One row. A comparison gives all ones or zero. False when a result is not defined (a shift by more than the word, a
// division by zero).
bool compute(std::uint32_t mode, Rounding rounding, int bits, const std::int64_t* a, const std::int64_t* b,
             std::int64_t count, std::int64_t* out) {
  bool defined = true;
  const auto each = [&](auto f) {
    for (std::int64_t i = 0; i < count; ++i) out[i] = f(a[i], b[i]);
  };
  using I = std::int64_t;
  // Logical shifts work on words of the operand's width.
  const std::uint64_t word = (std::uint64_t{1} << bits) - 1;
  const auto truncate = [&](std::uint64_t x) { return static_cast<I>(x << (64 - bits)) >> (64 - bits); };
  switch (mode) {
    case mul: each([](I x, I y) { return x * y; }); break;
    case add: each([](I x, I y) { return x + y; }); break;
    case sub: each([](I x, I y) { return x - y; }); break;
    case Mode::min: each([](I x, I y) { return std::min(x, y); }); break;
    case Mode::max: each([](I x, I y) { return std::max(x, y); }); break;
    case Mode::abs: each([](I x, I) { return mutated("elementwise.abs") ? x : x < 0 ? -x : x; }); break;
    case clz: each([](I x, I) { return I{std::countl_zero(static_cast<std::uint32_t>(x))}; }); break;
    case shl:
      each([&](I x, I y) {
        const I by = mutated("elementwise.shl") ? shift_amount(y, defined) ^ 1 : shift_amount(y, defined);
        return truncate(static_cast<std::uint64_t>(x) << by);
      });
      break;
    case shr:
      each([&](I x, I y) {
        const I by = shift_amount(y, defined);
        const bool rounds = rounding == Rounding::natural && by > 0 && !mutated("elementwise.shr_rounding");
        return (x + (rounds ? I{1} << (by - 1) : 0)) >> by;
      });
      break;
    case lsr:
      each([&](I x, I y) { return truncate((static_cast<std::uint64_t>(x) & word) >> shift_amount(y, defined)); });
      break;
    case div:
      each([&](I x, I y) {
        if (y == 0 || (x == INT32_MIN && y == -1)) defined = false, y = 1;
        return x / y;
      });
      break;
    case eq: each([](I x, I y) { return -I{x == y}; }); break;
    case ne: each([](I x, I y) { return -I{x != y}; }); break;
    case ge: each([](I x, I y) { return mutated("elementwise.ge") ? -I{x > y} : -I{x >= y}; }); break;
    case gt: each([](I x, I y) { return -I{x > y}; }); break;
    case bit_and: each([](I x, I y) { return x & y; }); break;
    case bit_or: each([](I x, I y) { return x | y; }); break;
    case bit_xor: each([](I x, I y) { return x ^ y; }); break;
    case bit_not: each([](I x, I) { return ~x; }); break;
    case bit_and_not: each([](I x, I y) { return x & ~y; }); break;
    default: defined = false;
  }
  return defined;
}

// What a sum of the operands may be before it is scaled: the accumulator's range.
std::int64_t largest_sum(const Registers& r) {
  if (!r.written<"ACC_FORMAT">()) return INT64_MAX;
  const std::uint64_t format = r.get<"ACC_FORMAT", "acc_format">();
  return format == 0 ? INT32_MAX : (std::int64_t{1} << (r.u85() ? 47 : 39)) - 1;
}

Status set_input_scales(const Context& context, std::uint32_t mode, Side& a, Side& b) {
  const Registers& r = context.registers;
  if (!r.u85()) {
    if (mode != add && mode != sub) return {};
    const Scale opa{static_cast<std::uint32_t>(r.get<"OPA_SCALE", "scale">()),
                    static_cast<std::uint8_t>(r.get<"OPA_SCALE", "shift">())};
    const std::uint64_t scale_mode = r.get<"IFM_PRECISION", "scale_mode">();
    if (scale_mode == 0) {
      if (opa.shift) return error("ethosu.undecidable", "16-bit operand scales with a shift");
      a.multiplier = opa.multiplier & 0xffff;
      b.multiplier = static_cast<std::int64_t>(r.get<"OPB_SCALE", "scale">());
      if (mutated("elementwise.opa")) a.multiplier = 1;
      if (mutated("elementwise.opb")) b.multiplier = 1;
      return {};
    }
    if (scale_mode == 3) return error("ethosu.reserved", "IFM scale mode 3");
    // The mode names operand A or B; in reverse order A is IFM2.
    const bool reversed = r.get<"IFM2_BROADCAST", "operand_order">() != 0 && !mutated("elementwise.scaled_operand");
    Side& chosen = (scale_mode == 1) != reversed ? a : b;
    Side& other = &chosen == &a ? b : a;
    const int bytes = a.operand.layout.type.bytes;
    // Vela leaves the low half of the mantissa of 2^19 or 2^14 there: 0, or 2^14 itself. Any other number it writes
    // only for factors that are whole, and then the fixed shift is not the factor it means.
    if (const auto opb = r.get<"OPB_SCALE", "scale">(); opb != 0 && !(opb == 1 << 14 && bytes == 2))
      return error("ethosu.undecidable",
                   fmt::format("one 32-bit operand scale besides OPB_SCALE {}: whether the other operand is "
                               "multiplied by it is not known",
                               opb));
    if (bytes > 2) return error("ethosu.undecidable", "a 32-bit operand scale with 32-bit operands");
    chosen.scaled = true;
    chosen.scale = opa;
    TOSAIC_TRY(chosen.rounding, ifm_rounding(r));
    other.shift_left =
        bytes == 1 ? (mutated("elementwise.shift_19") ? 18 : 19) : (mutated("elementwise.shift_14") ? 15 : 14);
    return {};
  }
  const auto set = [](Side& side, std::uint64_t multiplier, std::uint64_t shift, std::uint64_t double_bits,
                      std::uint64_t round) {
    side.scale = {static_cast<std::uint32_t>(multiplier), static_cast<std::uint8_t>(shift),
                  static_cast<std::uint8_t>(double_bits)};
    side.rounding = round ? Rounding::natural : Rounding::double_round;
    side.scaled = !side.scale.unit();
  };
  if (!mutated("elementwise.ifm_scale"))
    set(a, r.get<"IFM_SCALE", "scale">(), r.get<"IFM_SCALE", "shift">(), r.get<"IFM_SCALE", "dbl_rnd">(),
        r.get<"IFM_SCALE", "round_mode">());
  if (!is_unary(mode) && !mutated("elementwise.ifm2_scale"))
    set(b, r.get<"IFM2_SCALE", "scale">(), r.get<"IFM2_SCALE", "shift">(), r.get<"IFM2_SCALE", "dbl_rnd">(),
        r.get<"IFM2_SCALE", "round_mode">());
  return {};
}

Result<Rounding> rounding_of(const Registers& r, std::uint32_t mode) {
  if (mode != shr && mode != lrelu) return Rounding::natural;
  TOSAIC_TRY(const Rounding rounding, ofm_rounding(r));
  if (mode == shr && rounding != Rounding::natural && !r.u85())
    return error("ethosu.undecidable", "SHR without natural rounding: whether the hardware rounds then is not known")
        .note("Vela encodes TOSA's ARITHMETIC_RIGHT_SHIFT with round=false this way, and there is no other way for it");
  return rounding;
}

}  // namespace

Result<OutputStage> run_elementwise(Context& context, std::uint32_t mode) {
  const Registers& r = context.registers;
  if (!is_known(mode, r.u85())) return error("ethosu.reserved", fmt::format("elementwise mode {}", mode));
  const bool global = r.get<"OFM_PRECISION", "scale_mode">() == 1;
  const bool scaleless =
      mode == Mode::min || mode == Mode::max || mode == clz || mode == shl || mode == shr || mode >= lsr;
  if (!global && !scaleless && mode != lrelu)
    return error("ethosu.undecidable", "an elementwise operation with a scale per channel");
  const bool scales = r.u85() ? global : !scaleless && mode != lrelu;
  TOSAIC_TRY(OutputStage out, OutputStage::create(context, scales ? Scaling::global : Scaling::none));
  const Shape3& shape = out.shape();
  TOSAIC_TRY(Operand ifm, ifm_operand(r, Broadcasts::yes));
  TOSAIC_TRY(Side a, prepare(context, out, ifm, "IFM"));
  Side b;
  b.operand.broadcast.scalar = true;
  if (!is_unary(mode)) {
    TOSAIC_TRY(Operand ifm2, ifm2_operand(r, Broadcasts::yes));
    TOSAIC_TRY(b, prepare(context, out, ifm2, "IFM2"));
  }
  TOSAIC_CHECK(set_input_scales(context, mode, a, b));
  scale_constant(a), scale_constant(b);

  TOSAIC_TRY(const Rounding rounding, rounding_of(r, mode));
  const Scale alpha = mode == lrelu ? ofm_scale(r) : Scale{};
  bool reversed = false;
  if (!r.u85() && !is_unary(mode)) {
    reversed = r.get<"IFM2_BROADCAST", "operand_order">() != 0;
    if (mutated("elementwise.operand_order")) reversed = false;
  }
  if (shape.w * shape.c > most_elements) return error("ethosu.too-large", "an OFM row");
  if (r.missing()) return out;

  std::atomic<bool> defined{true}, fits{true};
  const std::int64_t most = largest_sum(r);
  context.pool.run(shape.h, [&](std::int64_t y, int thread) {
    Scratch& scratch = context.scratch[static_cast<std::size_t>(thread)];
    std::vector<std::int64_t>&left = scratch.left, &right = scratch.right;
    const std::int64_t count = shape.w * shape.c;
    left.resize(static_cast<std::size_t>(count));
    right.resize(static_cast<std::size_t>(count));
    a.read(scratch, y, shape, left.data());
    if (!is_unary(mode)) b.read(scratch, y, shape, right.data());
    if (mode == lrelu) {
      for (std::int64_t& v : left)
        if (v < 0) v = rescale(v, alpha, rounding);
    } else if (!compute(mode, rounding, 8 * ifm.layout.type.bytes, reversed ? right.data() : left.data(),
                        reversed ? left.data() : right.data(), count, left.data())) {
      defined = false;
    }
    if (mode == add || mode == sub)
      if (std::any_of(left.begin(), left.end(), [&](std::int64_t v) { return v > most || v < -most - 1; }))
        fits = false;
    out.finish_row(scratch, y, 0, shape.c, left.data(), shape.c);
  });
  if (!defined) return error("ethosu.undefined", "a shift outside 0 to 31, or a division that has no result");
  if (!fits) return error("ethosu.overflow", "a sum does not fit the accumulator; what becomes of it is not known");
  TOSAIC_CHECK(out.close(context));
  return out;
}

}  // namespace tosaic::ethosu
