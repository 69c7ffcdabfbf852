// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "tosa/one_node.h"

namespace tosaic {
namespace {
using enum DType;
constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();

OneNode unary(const char* op, DType dtype, Doubles x, Attrs attrs = {}) {
  const auto n = static_cast<std::int64_t>(x.size());
  return {op, {in(dtype, {n}, std::move(x))}, std::move(attrs)};
}
OneNode binary(const char* op, DType dtype, Doubles a, Doubles b, Attrs attrs = {}) {
  const auto n = static_cast<std::int64_t>(a.size()), m = static_cast<std::int64_t>(b.size());
  return {op, {in(dtype, {n}, std::move(a)), in(dtype, {m}, std::move(b))}, std::move(attrs)};
}
Attrs nan_mode(const char* mode) { return {{"nan_mode", std::string(mode)}}; }

TEST(Elementwise, FloatFunctionsRoundOnceFromDouble) {
  struct Case {
    const char* op;
    double x, y;
  };
  for (const auto& [op, x, y] : std::initializer_list<Case>{{"erf", 0.5, 0.5204998778130465},
                                                            {"sigmoid", 1.0, 0.7310585786300049},
                                                            {"tanh", 0.5, 0.46211715726000973},
                                                            {"ceil", -1.5, -1},
                                                            {"floor", -1.5, -2},
                                                            {"cos", 1.0, 0.5403023058681398},
                                                            {"sin", 1.0, 0.8414709848078965},
                                                            {"exp", 1.0, 2.718281828459045},
                                                            {"log", 2.0, 0.6931471805599453},
                                                            {"reciprocal", 3.0, 1.0 / 3.0},
                                                            {"rsqrt", 2.0, 0.7071067811865475},
                                                            {"abs", -2.5, 2.5}}) {
    SCOPED_TRACE(op);
    EXPECT_EQ(unary(op, f32, {x}).values(), Doubles{static_cast<float>(y)});
    EXPECT_EQ(unary(op, f16, {x}).values(), Doubles{double(Half(y))});
    EXPECT_EQ(unary(op, bf16, {x}).values(), Doubles{double(BFloat16(y))});
    EXPECT_DOUBLE_EQ(unary(op, f32, {x}).values(true)[0], y);
  }
}

TEST(Elementwise, EdgesOfFloatFunctions) {
  EXPECT_EQ(unary("log", f32, {0.0, -0.0}).values(), (Doubles{-inf, -inf}));
  EXPECT_TRUE(std::isnan(unary("log", f32, {-1}).values()[0]));
  EXPECT_EQ(unary("rsqrt", f32, {0.0, inf}).values(), (Doubles{inf, 0}));
  EXPECT_TRUE(std::isnan(unary("rsqrt", f32, {-1}).values()[0]));
  EXPECT_EQ(unary("reciprocal", f32, {-0.0, inf}).values(), (Doubles{-inf, 0}));
  EXPECT_EQ(unary("sigmoid", f32, {-1000, 1000}).values(), (Doubles{0, 1}));
  EXPECT_FALSE(std::signbit(unary("abs", f32, {-0.0}).values()[0]));
}

TEST(Elementwise, Precise) {
  // In precise mode nothing rounds to the graph's dtype on the way.
  EXPECT_EQ(unary("exp", f16, {0.1}).values(true)[0], std::exp(double(Half(0.1))));
  EXPECT_EQ(binary("add", bf16, {1}, {0.0078125}).values(true), Doubles{1.0078125});
  EXPECT_EQ(binary("add", bf16, {1}, {0.001953125}).values(), Doubles{1});
}

TEST(Elementwise, IntegerUnary) {
  EXPECT_EQ(unary("abs", i32, {-3, 0, 7, -2147483647}).values(), (Doubles{3, 0, 7, 2147483647}));
  EXPECT_NE(unary("abs", i32, {-2147483648.0}).unpredictable().find("-2147483648"), std::string::npos);
  EXPECT_EQ(unary("bitwise_not", i8, {0, -1, 5}).values(), (Doubles{-1, 0, -6}));
  EXPECT_EQ(unary("clz", i32, {0, 1, -1, 65536}).values(), (Doubles{32, 31, 0, 15}));
  EXPECT_EQ(unary("logical_not", boolean, {0, 1, 255}).values(), (Doubles{1, 0, 0}));
}

TEST(Elementwise, Arithmetic) {
  EXPECT_EQ(binary("add", i32, {1, -5}, {2, 3}).values(), (Doubles{3, -2}));
  EXPECT_EQ(binary("sub", i32, {1, -5}, {2, 3}).values(), (Doubles{-1, -8}));
  EXPECT_EQ(binary("add", f32, {0.1}, {0.2}).values(), Doubles{0.1f + 0.2f});
  EXPECT_EQ(binary("sub", f16, {1}, {0.5}).values(), Doubles{0.5});
  EXPECT_EQ(binary("intdiv", i32, {7, -7, 7, -7}, {2, 2, -2, -2}).values(), (Doubles{3, -3, -3, 3}));
  EXPECT_EQ(binary("pow", f32, {2, 9, 0}, {10, 0.5, 2}).values(), (Doubles{1024, 3, 0}));
}

TEST(Elementwise, OverflowIsUnpredictable) {
  EXPECT_EQ(binary("add", i32, {1, 2147483647}, {1, 1}).unpredictable(),
            "add: the result for 2147483647 and 1 does not fit i32");
  binary("sub", i32, {-2147483648.0}, {1}).unpredictable();
  binary("intdiv", i32, {-2147483648.0}, {-1}).unpredictable();
}

TEST(Elementwise, RequirementsOnOperands) {
  EXPECT_EQ(binary("intdiv", i32, {1}, {0}).unpredictable(), "intdiv: the operands 1 and 0 are not allowed");
  for (auto [a, b] :
       std::initializer_list<std::pair<double, double>>{{-1, 2}, {0, 0}, {0, -1}, {nan, 1}, {1, nan}, {inf, 1}})
    binary("pow", f32, {a}, {b}).unpredictable();
  for (const char* op : {"logical_left_shift", "logical_right_shift"})
    for (auto [dtype, bits] : {std::pair{i8, 8}, std::pair{i16, 16}, std::pair{i32, 32}}) {
      binary(op, dtype, {1}, {double(bits)}).unpredictable();
      binary(op, dtype, {1}, {-1}).unpredictable();
      EXPECT_EQ(binary(op, dtype, {0}, {bits - 1.0}).values(), Doubles{0});
    }
  binary("arithmetic_right_shift", i8, {1}, {8}, {{"round", true}}).unpredictable();
}

TEST(Elementwise, Broadcasting) {
  OneNode node{"add", {in(i32, {2, 1, 2}, {1, 2, 3, 4}), in(i32, {1, 3, 1}, {10, 20, 30})}};
  EXPECT_EQ(node.inferred(), (TensorType{i32, {2, 3, 2}, std::nullopt}));
  EXPECT_EQ(node.values(), (Doubles{11, 12, 21, 22, 31, 32, 13, 14, 23, 24, 33, 34}));
  EXPECT_EQ((OneNode{"add", {in(i32, {}, {1}), in(i32, {}, {2})}}).values(), Doubles{3});
}

TEST(Elementwise, BroadcastKeepsTheSymbol) {
  Operand dynamic = in(f32, {8, 4});
  const Dim s0 = Symbol{"s0", {1, 8}};
  dynamic.type.shape.set(0, s0);
  for (const auto& operands : {std::vector{dynamic, in(f32, {1, 4})}, std::vector{in(f32, {1, 4}), dynamic}}) {
    const TensorType type = OneNode{"add", operands}.inferred();
    EXPECT_EQ(type.shape[0], s0);
  }
}

TEST(Elementwise, Bits) {
  EXPECT_EQ(binary("bitwise_and", i8, {12, -1}, {10, 7}).values(), (Doubles{8, 7}));
  EXPECT_EQ(binary("bitwise_or", i16, {12, -256}, {10, 7}).values(), (Doubles{14, -249}));
  EXPECT_EQ(binary("bitwise_xor", i32, {12, -1}, {10, 7}).values(), (Doubles{6, -8}));
  EXPECT_EQ(binary("logical_left_shift", i8, {1, 3, -1}, {7, 7, 4}).values(), (Doubles{-128, -128, -16}));
  EXPECT_EQ(binary("logical_right_shift", i8, {-1, -1, 64}, {0, 4, 3}).values(), (Doubles{-1, 15, 8}));
  EXPECT_EQ(binary("logical_right_shift", i32, {-1}, {31}).values(), Doubles{1});
  const Attrs plain{{"round", false}}, rounding{{"round", true}};
  EXPECT_EQ(binary("arithmetic_right_shift", i32, {7, -7, 6, -6}, {2, 2, 2, 2}, plain).values(),
            (Doubles{1, -2, 1, -2}));
  EXPECT_EQ(binary("arithmetic_right_shift", i32, {7, -7, 6, -6}, {2, 2, 2, 0}, rounding).values(),
            (Doubles{2, -2, 2, -6}));
}

TEST(Elementwise, Logic) {
  const Doubles a{0, 0, 1, 255}, b{0, 1, 0, 1};  // any non-zero byte is true
  EXPECT_EQ(binary("logical_and", boolean, a, b).values(), (Doubles{0, 0, 0, 1}));
  EXPECT_EQ(binary("logical_or", boolean, a, b).values(), (Doubles{0, 1, 1, 1}));
  EXPECT_EQ(binary("logical_xor", boolean, a, b).values(), (Doubles{0, 1, 1, 0}));
}

TEST(Elementwise, MaximumAndMinimum) {
  EXPECT_EQ(binary("maximum", i32, {1, -5}, {0, 3}, nan_mode("propagate")).values(), (Doubles{1, 3}));
  EXPECT_EQ(binary("minimum", i32, {1, -5}, {0, 3}, nan_mode("propagate")).values(), (Doubles{0, -5}));
  for (const char* op : {"maximum", "minimum"}) {
    EXPECT_EQ(binary(op, f32, {nan, 3}, {2, nan}, nan_mode("ignore")).values(), (Doubles{2, 3}));
    for (double v : binary(op, f32, {nan, 3}, {2, nan}, nan_mode("propagate")).values()) EXPECT_TRUE(std::isnan(v));
    EXPECT_TRUE(std::isnan(binary(op, f32, {nan}, {nan}, nan_mode("ignore")).values()[0]));
  }
}

TEST(Elementwise, Comparisons) {
  for (DType dtype : {i32, f32, f16, bf16}) {
    EXPECT_EQ(binary("equal", dtype, {1, 2, 3}, {2, 2, 2}).values(), (Doubles{0, 1, 0}));
    EXPECT_EQ(binary("greater", dtype, {1, 2, 3}, {2, 2, 2}).values(), (Doubles{0, 0, 1}));
    EXPECT_EQ(binary("greater_equal", dtype, {1, 2, 3}, {2, 2, 2}).values(), (Doubles{0, 1, 1}));
  }
  for (const char* op : {"equal", "greater", "greater_equal"}) {
    EXPECT_EQ(binary(op, f32, {nan, 1, nan}, {1, nan, nan}).values(), (Doubles{0, 0, 0}));
    EXPECT_EQ(binary(op, f32, {1}, {2}).inferred().dtype, boolean);
  }
}

TEST(Elementwise, Mul) {
  const auto mul = [](DType dtype, double a, double b, double shift) {
    return OneNode{"mul", {in(dtype, {1}, {a}), in(dtype, {1}, {b}), constant(i8, {1}, {shift})}};
  };
  EXPECT_EQ(mul(i8, -128, -128, 0).values(), Doubles{16384});
  EXPECT_EQ(mul(i16, -32768, 32767, 0).values(), Doubles{-1073709056});
  EXPECT_EQ(mul(i32, 65536, 65537, 0).values(), Doubles{65536});  // low 32 bits
  EXPECT_EQ(mul(i32, 7, 1, 1).values(), Doubles{4});              // 3.5 rounds half up
  EXPECT_EQ(mul(i32, -7, 1, 1).values(), Doubles{-3});
  EXPECT_EQ(mul(i32, -2147483648.0, -2147483648.0, 63).values(), Doubles{1});  // 2^62 + 2^62 would overflow
  EXPECT_EQ(mul(i32, -2147483648.0, 2147483647, 32).values(), Doubles{-1073741823});
  EXPECT_EQ(mul(i32, 2147483647, 2147483647, 30).unpredictable(),
            "mul: a product shifted right by 30 does not fit i32");
  EXPECT_EQ(mul(f32, 0.1, 3, 0).values(), Doubles{static_cast<float>(double(0.1f) * 3)});
  EXPECT_EQ(mul(i8, 1, 1, 0).inferred().dtype, i32);
  EXPECT_EQ(mul(i32, 1, 1, 64).verify(), "mul.shift-range");
  EXPECT_EQ(mul(i32, 1, 1, -1).verify(), "mul.shift-range");
  EXPECT_EQ(mul(i16, 1, 1, 1).verify(), "mul.shift-dtype");
  EXPECT_EQ(mul(f32, 1, 1, 1).verify(), "mul.shift-dtype");
  EXPECT_EQ((OneNode{"mul", {in(i32, {1}), in(i32, {1}), constant(i8, {2}, {0, 0})}}).verify(), "mul.shift-length");
}

TEST(Elementwise, MulWithAShiftKnownOnlyAtRunTime) {
  OneNode node{"mul", {in(i32, {1}, {6}), in(i32, {1}, {2}), in(i8, {1}, {2})}};
  EXPECT_EQ(node.values(), Doubles{3});
  node.operands[2].values = {64};
  EXPECT_EQ(node.run().error().code, "tosa.mul.shift-range");
  EXPECT_EQ(node.verify({tosa::Feature::pro_int}), "mul.constant");
}

TEST(Elementwise, Negate) {
  const auto negate = [](DType dtype, Doubles x, double zi, double zo) {
    const auto n = static_cast<std::int64_t>(x.size());
    return OneNode{"negate", {in(dtype, {n}, std::move(x)), constant(dtype, {1}, {zi}), constant(dtype, {1}, {zo})}};
  };
  EXPECT_EQ(negate(i8, {5, -128, 127}, 0, 0).values(), (Doubles{-5, 127, -127}));
  EXPECT_EQ(negate(i8, {5, -128}, 3, -2).values(), (Doubles{-4, 127}));
  EXPECT_EQ(negate(i16, {-32768}, 0, 0).values(), Doubles{32767});
  EXPECT_EQ(negate(i32, {7}, 0, 0).values(), Doubles{-7});
  negate(i32, {-2147483648.0}, 0, 0).unpredictable();
  EXPECT_EQ(negate(f32, {1.5, -inf}, 0, 0).values(), (Doubles{-1.5, inf}));
  EXPECT_EQ(negate(i16, {1}, 1, 0).verify(), "negate.input-zero-point");
  EXPECT_EQ(negate(f32, {1}, 0, 0.5).verify(), "negate.output-zero-point");
  EXPECT_EQ((OneNode{"negate", {in(i8, {1}), constant(i8, {2}, {0, 0}), constant(i8, {1}, {0})}}).verify(),
            "negate.input1_zp-length");
}

TEST(Elementwise, Clamp) {
  const auto clamp = [](DType dtype, Doubles x, Attr low, Attr high, const char* mode = "propagate") {
    return unary("clamp", dtype, std::move(x),
                 {{"min_val", std::move(low)}, {"max_val", std::move(high)}, {"nan_mode", std::string(mode)}});
  };
  const auto integer = [](std::int64_t v) { return Attr(v); };
  EXPECT_EQ(clamp(i8, {-128, 0, 127}, integer(-3), integer(5)).values(), (Doubles{-3, 0, 5}));
  EXPECT_EQ(clamp(i16, {-32768, 32767}, integer(0), integer(100)).values(), (Doubles{0, 100}));
  EXPECT_EQ(clamp(f32, {-1, 0.5, 7, nan}, 0.0, 6.0, "ignore").values(), (Doubles{0, 0.5, 6, 0}));
  EXPECT_TRUE(std::isnan(clamp(f32, {nan}, 0.0, 6.0).values()[0]));
  EXPECT_EQ(clamp(f16, {-1, 1e4}, 0.0, inf).values(), (Doubles{0, 1e4}));
  EXPECT_EQ(clamp(i8, {0}, integer(2), integer(1)).verify(), "clamp.bounds-order");
  EXPECT_EQ(clamp(f32, {0}, 2.0, 1.0).verify(), "clamp.bounds-order");
  EXPECT_EQ(clamp(f32, {0}, nan, 1.0).verify(), "clamp.bounds-nan");
  EXPECT_EQ(clamp(i8, {0}, integer(-129), integer(1)).verify(), "clamp.attributes");
  EXPECT_EQ(clamp(f32, {0}, integer(0), integer(1)).verify(), "clamp.attributes");
  EXPECT_EQ(clamp(i32, {0}, integer(0), integer(1)).verify(), "clamp.type");
}

TEST(Elementwise, Select) {
  OneNode node{"select", {in(boolean, {2, 1}, {0, 255}), in(i8, {1, 2}, {1, 2}), in(i8, {2, 2}, {3, 4, 5, 6})}};
  EXPECT_EQ(node.inferred(), (TensorType{i8, {2, 2}, std::nullopt}));
  EXPECT_EQ(node.values(), (Doubles{3, 4, 1, 2}));
  for (DType dtype : {boolean, i16, i32, f16, bf16, f32})
    EXPECT_EQ((OneNode{"select", {in(boolean, {1}, {1}), in(dtype, {1}, {1}), in(dtype, {1}, {0})}}).values(),
              Doubles{1});
  EXPECT_EQ((OneNode{"select", {in(boolean, {3}), in(i8, {1}), in(i8, {2})}}).verify(), "select.broadcast");
  EXPECT_EQ((OneNode{"select", {in(boolean, {1, 1}), in(i8, {1}), in(i8, {1})}}).verify(), "select.rank-mismatch");
  EXPECT_EQ((OneNode{"select", {in(i8, {1}), in(i8, {1}), in(i8, {1})}}).verify(), "select.type");
}

}  // namespace
}  // namespace tosaic
