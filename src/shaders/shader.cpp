// SPDX-License-Identifier: Apache-2.0
#include "shaders/shader.h"

#include <bit>
#include <cmath>

namespace tosaic::shaders {
Value Variable::get() const {
  const Id type = shader_->type_of(kind_);
  Value value{shader_, shader_->emit(Opcode::load, type, {pointer_}), kind_};
  if (kind_ == Kind::wide) value.high = shader_->emit(Opcode::load, type, {high_});
  return value;
}

void Variable::set(Value value) const {
  shader_->emit_bare(Opcode::store, {pointer_, value.id});
  if (kind_ == Kind::wide) shader_->emit_bare(Opcode::store, {high_, value.high});
}

Shader::Shader(std::uint32_t group_size) : Module(Empty{}), group_size_(group_size) {
  require(spirv::Capability::shader);
  function_ = fresh();
  begin_block(fresh());
}

Id Shader::type_of(Kind kind) {
  switch (kind) {
    case Kind::boolean: return global(Opcode::type_bool, {}, false);
    case Kind::real: return global(Opcode::type_float, {32}, false);
    case Kind::integer:
    case Kind::wide: break;
  }
  return global(Opcode::type_int, {32, 0}, false);
}

Id Shader::emit(Opcode opcode, Id type, Words operands) {
  const Id id = fresh();
  operands.insert(operands.begin(), {type, id});
  put(body_, opcode, operands);
  return id;
}

void Shader::begin_block(Id label) {
  put(body_, Opcode::label, {label});
  left_ = false;
}

Id Shader::vector3() { return global(Opcode::type_vector, {type_of(Kind::integer), 3}, false); }

Id Shader::glsl() {
  if (!glsl_) glsl_ = instructions("GLSL.std.450");
  return glsl_;
}

std::vector<Word> Shader::finish() {
  if (!left_) put(body_, Opcode::return_, {});
  put(body_, Opcode::function_end, {});
  const Id nothing = global(Opcode::type_void, {}, false);
  const Id type = global(Opcode::type_function, {nothing}, false);
  Words entry{spirv::model_compute, function_};
  for (Word w : spirv::literal("main")) entry.push_back(w);
  entry.insert(entry.end(), interface_.begin(), interface_.end());
  Words all{spirv::magic, spirv::version_1_3, 0, next_, 0};
  for (Word c : capabilities_) put(all, Opcode::capability, {c});
  for (const std::string& e : extensions_) put(all, Opcode::extension, spirv::literal(e));
  all.insert(all.end(), imports_.begin(), imports_.end());
  put(all, Opcode::memory_model, {0, spirv::memory_glsl450});
  put(all, Opcode::entry_point, entry);
  put(all, Opcode::execution_mode, {function_, spirv::mode_local_size, group_size_, 1, 1});
  all.insert(all.end(), decorations_.begin(), decorations_.end());
  all.insert(all.end(), globals_.begin(), globals_.end());
  put(all, Opcode::function, {nothing, function_, 0, type});
  // Variables stand at the beginning of the first block, which is the function's.
  all.insert(all.end(), body_.begin(), body_.begin() + 2);
  all.insert(all.end(), variables_.begin(), variables_.end());
  all.insert(all.end(), prologue_.begin(), prologue_.end());
  all.insert(all.end(), body_.begin() + 2, body_.end());
  return all;
}

Value Shader::integer(std::int64_t value) {
  return {this, Module::integer(static_cast<std::uint32_t>(value)), Kind::integer};
}

Value Shader::real(double value) {
  const Word bits = std::bit_cast<Word>(static_cast<float>(value));
  return {this, global(Opcode::constant, {type_of(Kind::real), bits}, true), Kind::real};
}

Value Shader::boolean_value(bool value) { return {this, boolean(value), Kind::boolean}; }

Value Shader::wide(std::int64_t value) {
  return {this, integer(value & 0xffffffff).id, Kind::wide, integer(value >> 32).id};
}

// The three numbers of a built-in input.
Id Shader::built_in(Word which) {
  const Id variable = fresh();
  interface_.push_back(variable);
  put(globals_, Opcode::variable, {pointer(spirv::storage_input, vector3()), variable, spirv::storage_input});
  put(decorations_, Opcode::decorate, {variable, spirv::decoration_built_in, which});
  return emit(Opcode::load, vector3(), {variable});
}

Value Shader::invocation() {
  if (!invocation_value_) {
    const Id at = built_in(spirv::built_in_invocation), word = type_of(Kind::integer);
    const Value x{this, emit(Opcode::composite_extract, word, {at, 0})};
    const Value y{this, emit(Opcode::composite_extract, word, {at, 1})};
    invocation_value_ = (x + y * (std::int64_t{row_groups} * group_size_)).id;
  }
  return {this, invocation_value_};
}

Value Shader::push(std::uint32_t index) {
  const Id word = type_of(Kind::integer);
  if (!push_variable_) {
    const Id array = global(Opcode::type_array, {word, integer(most_pushes).id}, false);
    put(decorations_, Opcode::decorate, {array, spirv::decoration_array_stride, 4});
    const Id block = global(Opcode::type_struct, {array}, false);
    put(decorations_, Opcode::decorate, {block, spirv::decoration_block});
    put(decorations_, Opcode::member_decorate, {block, 0, spirv::decoration_offset, 0});
    push_variable_ = fresh();
    put(globals_, Opcode::variable, {pointer(spirv::storage_push, block), push_variable_, spirv::storage_push});
  }
  const Id at = fresh(), loaded = fresh();
  put(prologue_, Opcode::access_chain,
      {pointer(spirv::storage_push, word), at, push_variable_, integer(0).id, integer(index).id});
  put(prologue_, Opcode::load, {word, loaded, at});
  return {this, loaded};
}

Value Shader::half_to_real(Value low_half) {
  const Id pair = global(Opcode::type_vector, {type_of(Kind::real), 2}, false);
  const Id both = emit(Opcode::ext_inst, pair, {glsl(), static_cast<Word>(Function::unpack_half_2x16), low_half.id});
  return {this, emit(Opcode::composite_extract, type_of(Kind::real), {both, 0}), Kind::real};
}

Value Shader::binary(Opcode opcode, Value a, Value b, Kind result) {
  return {this, emit(opcode, type_of(result), {a.id, b.id}), result};
}
Value Shader::unary(Opcode opcode, Value a, Kind result) {
  return {this, emit(opcode, type_of(result), {a.id}), result};
}

Value Shader::dot_of_int8(Value a, Value b) {
  require(spirv::Capability::dot_product, "SPV_KHR_integer_dot_product");
  require(spirv::Capability::dot_product_packed);
  return {this, emit(Opcode::s_dot, type_of(Kind::integer), {a.id, b.id, spirv::packed_4x8})};
}

Value Shader::exactly(Value computed) {
  put(decorations_, Opcode::decorate, {computed.id, spirv::decoration_no_contraction});
  return computed;
}

Value Shader::call(Function function, std::initializer_list<Value> arguments) {
  const Kind kind = arguments.begin()->kind;
  Words operands{glsl(), static_cast<Word>(function)};
  for (const Value& v : arguments) operands.push_back(v.id);
  return {this, emit(Opcode::ext_inst, type_of(kind), std::move(operands)), kind};
}

Value Shader::select(Value condition, Value yes, Value no) {
  Value chosen{this, emit(Opcode::select, type_of(yes.kind), {condition.id, yes.id, no.id}), yes.kind};
  if (yes.kind == Kind::wide) chosen.high = emit(Opcode::select, type_of(yes.kind), {condition.id, yes.high, no.high});
  return chosen;
}

Value Shader::signed_to_real(Value integer) { return unary(Opcode::convert_s_to_f, integer, Kind::real); }
Value Shader::real_to_signed(Value real) { return unary(Opcode::convert_f_to_s, real, Kind::integer); }
Value Shader::bits_of(Value real) { return unary(Opcode::bitcast, real, Kind::integer); }
Value Shader::real_of(Value bits) { return unary(Opcode::bitcast, bits, Kind::real); }

Value Shader::wide_product(Value a, Value b, bool is_signed) {
  const Id word = type_of(Kind::integer);
  const Id pair = global(Opcode::type_struct, {word, word}, false);
  const Id both = emit(is_signed ? Opcode::s_mul_extended : Opcode::u_mul_extended, pair, {a.id, b.id});
  const Id low = emit(Opcode::composite_extract, word, {both, 0});
  return {this, low, Kind::wide, emit(Opcode::composite_extract, word, {both, 1})};
}

Variable Shader::variable(Value initial) {
  Variable v;
  v.shader_ = this;
  v.kind_ = initial.kind;
  const auto make = [&] {
    const Id id = fresh();
    put(variables_, Opcode::variable,
        {pointer(spirv::storage_function, type_of(initial.kind)), id, spirv::storage_function});
    return id;
  };
  v.pointer_ = make();
  if (initial.kind == Kind::wide) v.high_ = make();
  v.set(initial);
  return v;
}

void Shader::when(Value condition, const std::function<void()>& then, const std::function<void()>& otherwise) {
  const Id yes = fresh(), after = fresh(), no = otherwise ? fresh() : after;
  emit_bare(Opcode::selection_merge, {after, 0});
  emit_bare(Opcode::branch_conditional, {condition.id, yes, no});
  const auto block = [&](Id label, const std::function<void()>& body) {
    begin_block(label);
    body();
    if (!left_) emit_bare(Opcode::branch, {after});
  };
  block(yes, then);
  if (otherwise) block(no, otherwise);
  begin_block(after);
}

void Shader::loop(Value begin, Value end, Value step, const std::function<void(Value i)>& body, Unrolling unrolling) {
  const Variable counter = variable(begin);
  const Id header = fresh(), test = fresh(), inside = fresh(), next = fresh(), after = fresh();
  emit_bare(Opcode::branch, {header});
  begin_block(header);
  emit_bare(Opcode::loop_merge, {after, next, static_cast<Word>(unrolling)});
  emit_bare(Opcode::branch, {test});
  begin_block(test);
  const Value i = counter.get();
  emit_bare(Opcode::branch_conditional, {(i < end).id, inside, after});
  begin_block(inside);
  body(i);
  emit_bare(Opcode::branch, {next});
  begin_block(next);
  counter.set(counter.get() + step);
  emit_bare(Opcode::branch, {header});
  begin_block(after);
}

void Shader::leave() {
  put(body_, Opcode::return_, {});
  left_ = true;
}

namespace {
Value arithmetic(Opcode integers, Opcode reals, Value a, Value b) {
  Shader& s = *a.shader;
  return a.kind == Kind::real ? s.exactly(s.binary(reals, a, b, a.kind)) : s.binary(integers, a, b, a.kind);
}
Value compared(Opcode integers, Opcode reals, Value a, Value b) {
  Shader& s = *a.shader;
  return a.kind == Kind::real ? s.exactly(s.binary(reals, a, b, Kind::boolean))
                              : s.binary(integers, a, b, Kind::boolean);
}
}  // namespace

Value operator+(Value a, Value b) { return arithmetic(Opcode::i_add, Opcode::f_add, a, b); }
Value operator-(Value a, Value b) { return arithmetic(Opcode::i_sub, Opcode::f_sub, a, b); }
Value operator*(Value a, Value b) { return arithmetic(Opcode::i_mul, Opcode::f_mul, a, b); }
Value operator/(Value a, Value b) { return arithmetic(Opcode::u_div, Opcode::f_div, a, b); }
Value operator%(Value a, Value b) { return a.shader->binary(Opcode::u_mod, a, b, Kind::integer); }
Value operator<(Value a, Value b) { return compared(Opcode::s_less_than, Opcode::f_ord_less_than, a, b); }
Value operator>(Value a, Value b) { return compared(Opcode::s_greater_than, Opcode::f_ord_greater_than, a, b); }
Value operator<=(Value a, Value b) { return compared(Opcode::s_less_than_equal, Opcode::f_ord_less_than_equal, a, b); }
Value operator>=(Value a, Value b) {
  return compared(Opcode::s_greater_than_equal, Opcode::f_ord_greater_than_equal, a, b);
}
Value operator==(Value a, Value b) {
  if (a.kind == Kind::boolean) return a.shader->binary(Opcode::logical_equal, a, b, Kind::boolean);
  return compared(Opcode::i_equal, Opcode::f_ord_equal, a, b);
}
Value operator!=(Value a, Value b) {
  if (a.kind == Kind::boolean) return a.shader->binary(Opcode::logical_not_equal, a, b, Kind::boolean);
  return a.kind == Kind::real ? !(a == b) : a.shader->binary(Opcode::i_not_equal, a, b, Kind::boolean);
}
Value operator&(Value a, Value b) {
  return a.shader->binary(a.kind == Kind::boolean ? Opcode::logical_and : Opcode::bitwise_and, a, b, a.kind);
}
Value operator|(Value a, Value b) {
  return a.shader->binary(a.kind == Kind::boolean ? Opcode::logical_or : Opcode::bitwise_or, a, b, a.kind);
}
Value operator^(Value a, Value b) {
  return a.shader->binary(a.kind == Kind::boolean ? Opcode::logical_not_equal : Opcode::bitwise_xor, a, b, a.kind);
}
Value operator!(Value a) { return a.shader->unary(Opcode::logical_not, a, Kind::boolean); }
Value operator~(Value a) { return a.shader->unary(Opcode::bit_not, a, Kind::integer); }
Value operator-(Value a) {
  Shader& s = *a.shader;
  return a.kind == Kind::real ? s.exactly(s.unary(Opcode::f_negate, a, a.kind)) : s.unary(Opcode::s_negate, a, a.kind);
}
Value operator<<(Value a, Value b) { return a.shader->binary(Opcode::shift_left_logical, a, b, Kind::integer); }
Value shift_right_signed(Value a, Value b) {
  return a.shader->binary(Opcode::shift_right_arithmetic, a, b, Kind::integer);
}
Value shift_right_unsigned(Value a, Value b) {
  return a.shader->binary(Opcode::shift_right_logical, a, b, Kind::integer);
}
Value below_unsigned(Value a, Value b) { return a.shader->binary(Opcode::u_less_than, a, b, Kind::boolean); }

Value operator+(Value a, std::int64_t b) { return a + a.shader->integer(b); }
Value operator-(Value a, std::int64_t b) { return a - a.shader->integer(b); }
Value operator*(Value a, std::int64_t b) { return a * a.shader->integer(b); }
Value operator&(Value a, std::int64_t b) { return a & a.shader->integer(b); }
Value operator<(Value a, std::int64_t b) { return a < a.shader->integer(b); }
Value operator>(Value a, std::int64_t b) { return a > a.shader->integer(b); }
Value operator>=(Value a, std::int64_t b) { return a >= a.shader->integer(b); }
Value operator==(Value a, std::int64_t b) { return a == a.shader->integer(b); }

Value add_product(Value sum, Value a, Value b) {
  if (sum.kind != Kind::real) return sum + a * b;
  Shader& s = *sum.shader;
  return s.binary(Opcode::f_add, sum, s.binary(Opcode::f_mul, a, b, Kind::real), Kind::real);
}
Value smallest(Value a, Value b) { return a.shader->call(Function::smin, {a, b}); }
Value largest(Value a, Value b) { return a.shader->call(Function::smax, {a, b}); }
Value clamped(Value x, std::int64_t low, std::int64_t high) {
  return smallest(largest(x, x.shader->integer(low)), x.shader->integer(high));
}

// By its bits: comparisons of NaN are what compilers like to optimise away.
Value is_nan(Value real) { return (real.shader->bits_of(real) & 0x7fffffff) > 0x7f800000; }

namespace {

// A float of fewer bits than f32: its exponent, its mantissa, and the code of NaN; the one before infinity or, where
// the format has none, NaN is the largest number.
struct Format {
  int exponent_bits, mantissa_bits;
  std::int64_t overflow, nan;
  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
};
constexpr Format half{5, 10, 0x7c00, 0x7e00}, e4m3{4, 3, 0x7f, 0x7f}, e5m2{5, 2, 0x7c, 0x7e};

const Format& format_of(DType type) { return type == DType::f8e4m3 ? e4m3 : type == DType::f8e5m2 ? e5m2 : half; }

Value bits_in(Value real, const Format& f) {
  Shader& s = *real.shader;
  const int shift = 23 - f.mantissa_bits;
  const Value bits = s.bits_of(real), magnitude = bits & 0x7fffffff;
  const Value rebased = magnitude - (std::int64_t{127 - f.bias()} << 23);
  const Value odd = shift_right_unsigned(rebased, s.integer(shift)) & 1;
  const Value normal = shift_right_unsigned(rebased + odd + ((1 << (shift - 1)) - 1), s.integer(shift));
  // Below the least normal number the result counts in units of its last bit.
  const Value tiny_bound = s.integer(std::int64_t{128 - f.bias()} << 23);
  const Value scale = s.real(std::ldexp(1.0, f.bias() - 1 + f.mantissa_bits));
  const Value units = s.call(Function::round_even, {s.real_of(smallest(magnitude, tiny_bound)) * scale});
  const Value finite = s.select(magnitude < tiny_bound, s.real_to_signed(units), normal);
  const Value bounded =
      s.select(magnitude >= 0x7f800000, s.integer(f.overflow), smallest(finite, s.integer(f.overflow)));
  const Value all = s.select(magnitude > 0x7f800000, s.integer(f.nan), bounded);
  const int sign = f.exponent_bits + f.mantissa_bits;
  return all | (shift_right_unsigned(bits, s.integer(31 - sign)) & (1 << sign));
}

}  // namespace

Value narrow_bits(Value real, DType type) {
  if (type != DType::bf16) return bits_in(real, format_of(type));
  Shader& s = *real.shader;
  const Value bits = s.bits_of(real);
  const Value upper = shift_right_unsigned(bits, s.integer(16));
  const Value near = shift_right_unsigned(bits + (upper & 1) + 0x7fff, s.integer(16));
  return s.select(is_nan(real), upper | s.integer(0x40), near);
}

Value byte_to_real(Value code, DType type) {
  Shader& s = *code.shader;
  const Format& f = format_of(type);
  const Value magnitude = code & 0x7f;
  const Value moved = magnitude << s.integer(23 - f.mantissa_bits);
  const Value normal = s.real_of(moved + (std::int64_t{127 - f.bias()} << 23));
  const Value tiny = s.signed_to_real(magnitude) * s.real(std::ldexp(1.0, 1 - f.bias() - f.mantissa_bits));
  const Value finite = s.select(magnitude < (1 << f.mantissa_bits), tiny, normal);
  const Value special = type == DType::f8e4m3 ? s.integer(0x7fc00000) : moved | s.integer(0x7f800000);
  const Value bits = s.select(magnitude >= f.overflow, special, s.bits_of(finite));
  return s.real_of(bits | ((code & 0x80) << s.integer(24)));
}

Value rounded(Value real, DType type) {
  Shader& s = *real.shader;
  if (type == DType::f16) return s.half_to_real(narrow_bits(real, type));
  if (type == DType::f8e4m3 || type == DType::f8e5m2) return byte_to_real(narrow_bits(real, type), type);
  if (type == DType::bf16) return s.real_of(narrow_bits(real, type) << s.integer(16));
  return real;
}

Value widened(Value integer) {
  Shader& s = *integer.shader;
  return {&s, integer.id, Kind::wide, shift_right_signed(integer, s.integer(31)).id};
}

Value add_wide(Value a, Value b) {
  Shader& s = *a.shader;
  const Value low = a.low_word() + b.low_word();
  const Value carry = s.select(below_unsigned(low, a.low_word()), s.integer(1), s.integer(0));
  return {&s, low.id, Kind::wide, (a.high_word() + b.high_word() + carry).id};
}

// Shifts of words by 32 or more are undefined: each amount is brought into 0..31, and unused results are dropped.
Value shift_right_wide(Value a, Value by) {
  Shader& s = *a.shader;
  const Value part = by & 31, high = a.high_word();
  const Value fill = s.select(part == 0, s.integer(0), high << ((s.integer(32) - part) & 31));
  const Value near = shift_right_unsigned(a.low_word(), part) | fill, far = shift_right_signed(high, part);
  const Value is_far = by >= 32;
  return {&s, s.select(is_far, far, near).id, Kind::wide,
          s.select(is_far, shift_right_signed(high, s.integer(31)), far).id};
}

}  // namespace tosaic::shaders
