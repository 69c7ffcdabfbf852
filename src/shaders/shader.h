// SPDX-License-Identifier: Apache-2.0
// A compute shader under construction: SPIR-V 1.3 (Vulkan 1.1) made of typed values, structured branches and loops.
// Numbers are 32 bits wide; narrower ones are in buffers only, 64-bit integers are pairs of words, so that a device
// needs neither 8-, 16- nor 64-bit arithmetic.
#pragma once
#include <array>
#include <functional>

#include "formats/spirv/module.h"

namespace tosaic::shaders {

using spirv::Function;
using spirv::Id;
using spirv::Opcode;
using spirv::Word;

enum class Kind : std::uint8_t { boolean, integer, real, wide };  // wide: a 64-bit integer, as two words

class Shader;

struct Value {
  Shader* shader = nullptr;
  Id id = 0;
  Kind kind = Kind::integer;
  Id high = 0;  // the upper word of a wide one

  Value low_word() const { return {shader, id, Kind::integer}; }
  Value high_word() const { return {shader, high, Kind::integer}; }
};

// A variable of the function.
class Variable {
 public:
  Value get() const;
  void set(Value value) const;

 private:
  friend class Shader;
  Shader* shader_ = nullptr;
  Id pointer_ = 0, high_ = 0;
  Kind kind_ = Kind::integer;
};

// A buffer of elements as tosaic keeps them, read and written, or a texel view of one, which is read alone. Of quads an
// index counts four elements.
struct Buffer {
  Id variable = 0;
  DType type = DType::f32;
  bool quads = false, texels = false;
};

// Neighbouring elements.
using Quad = std::array<Value, 4>;
bool has_quads(DType type);  // by which texel views of it can be read, too: of 8 and 32 bits

// Four reals or integers as one value (vectors.cpp).
struct Vector {
  Shader* shader = nullptr;
  Id id = 0;
  Kind kind = Kind::real;
};

class VectorVariable {
 public:
  Vector get() const;
  void set(Vector value) const;

 private:
  friend class Shader;
  Shader* shader_ = nullptr;
  Id pointer_ = 0;
  Kind kind_ = Kind::real;
};

// Four neighbours as a buffer keeps them: of 32 bits as a vector, of 16 as two words, of 8 as one.
struct RawQuad {
  Vector vector;
  std::array<Value, 2> words;
};
class RawVariable {
 public:
  RawQuad get() const;
  void set(const RawQuad& value) const;

 private:
  friend class Shader;
  std::vector<Variable> words_;
  std::vector<VectorVariable> vector_;
};

// Memory of a work group, of vectors.
struct Shared {
  Id variable = 0;
  Kind kind = Kind::real;
};

// Numbers that the invocations of a subgroup have together (matrices.cpp). Sums are 16 x 16, of 16 rows by 16 columns:
// f16, 16 deep, which are summed as reals, or 8-bit integers, 32 deep, as integers.
inline constexpr std::uint32_t matrix_side = 16, matrix_subgroup = 32;
enum class MatrixOf : std::uint8_t { f16, int8 };
struct Matrix {
  Shader* shader = nullptr;
  Id id = 0;
  spirv::MatrixUse use = spirv::MatrixUse::sum;
  MatrixOf of = MatrixOf::f16;
};
class MatrixVariable {
 public:
  Matrix get() const;
  void set(Matrix value) const;

 private:
  friend class Shader;
  Shader* shader_ = nullptr;
  Id pointer_ = 0;
  spirv::MatrixUse use_ = spirv::MatrixUse::sum;
  MatrixOf of_ = MatrixOf::f16;
};

// How often a loop's body is written out: as the device's compiler likes, as often as it runs, or once.
enum class Unrolling : Word { free = 0, all = 1, none = 2 };

class Shader : protected spirv::Module {
 public:
  static constexpr std::uint32_t usual_group_size = 64;
  static constexpr std::uint32_t row_groups = 32768;  // of one row of groups; further ones lie in further rows

  explicit Shader(std::uint32_t group_size = usual_group_size);
  // Ends the function. The whole module, with entry point "main".
  std::vector<Word> finish();

  // ---- constants
  Value integer(std::int64_t value);
  Value real(double value);
  Value boolean_value(bool value);
  Value wide(std::int64_t value);

  // ---- what the shader is given
  Value invocation();                                           // its number, over rows of groups
  Value push(std::uint32_t index);                              // loaded at the function's beginning, usable anywhere
  Buffer buffer(DType type, bool written, bool quads = false);  // at the next binding, as this
  Buffer texels(DType type, bool quads = false);
  Value load(const Buffer& buffer, Value index);
  void store(const Buffer& buffer, Value index, Value value);
  Quad load_quad(const Buffer& buffer, Value index);
  Quad load_quad_first(const Buffer& buffer, Value index);  // at the function's beginning, usable anywhere
  void store_quad(const Buffer& buffer, Value index, const Quad& quad);
  // Elements moved as they are, without becoming numbers: of words (32), halves (16) or bytes (8).
  void copy(const Buffer& from, Value read, const Buffer& to, Value write);

  // What load() would give of a number after store().
  Value as_stored(Value number, DType type) { return number_of(word_of(number, type), type); }
  // Store floats as f16 by the device's own rounding from now on.
  void pack_f16_by_device() { packs_ = true; }

  // ---- arithmetic; what is written with operators stands below
  Value binary(Opcode opcode, Value a, Value b, Kind result);
  Value unary(Opcode opcode, Value a, Kind result);
  Value call(Function function, std::initializer_list<Value> arguments);
  Value select(Value condition, Value yes, Value no);
  Value signed_to_real(Value integer);
  Value real_to_signed(Value real);  // towards zero; it must fit
  Value bits_of(Value real);
  Value real_of(Value bits);
  // The product of two integers, unsigned or signed, in two words.
  Value wide_product(Value a, Value b, bool is_signed);
  // Of four signed 8-bit quantised values in a word with four in another.
  Value dot_of_int8(Value a, Value b);
  // Two reals as the halves of a word, rounded as those that are stored.
  Value packed_f16(Value low, Value high);
  // The halves of a word as two reals.
  Value half_to_real(Value low_half);
  // The same numbers, computed as they are said to be (SPIR-V's NoContraction, which drivers take for more than its
  // name).
  Value exactly(Value computed);

  // What the subgroup's invocation `lane` has.
  Value shuffle(Value value, Value lane);

  // ---- control flow
  Variable variable(Value initial);
  void when(Value condition, const std::function<void()>& then, const std::function<void()>& otherwise = {});
  // for (i = begin; i < end; i += step), signed
  void loop(Value begin, Value end, Value step, const std::function<void(Value i)>& body,
            Unrolling unrolling = Unrolling::free);
  void leave();  // returns from the function, inside `when`

  // ---- vectors, and what invocations of a work group do together (vectors.cpp)
  Value local();  // the invocation's number in its group
  Value group();  // the group's, over rows of groups
  Vector vector(const Quad& parts);
  Vector splat(Value part) { return vector({part, part, part, part}); }
  VectorVariable variable(Vector initial);
  RawQuad load_raw(const Buffer& buffer, Value which);                                        // of quads, no texels
  Value load_bits(const Buffer& buffer, Value index) { return load_word(buffer, index, 0); }  // of up to 16
  RawVariable variable(const RawQuad& initial);
  Quad numbers(const RawQuad& raw, DType type);
  Shared shared(Kind kind, std::uint32_t vectors);
  // Indices must be seen to be small (formats/spirv/compute/word_bounds.h): made of constants, local() and remainders.
  Vector load(const Shared& memory, Value which);
  Value load(const Shared& memory, Value which, Value part);
  void store(const Shared& memory, Value which, Vector value);
  void store(const Shared& memory, Value which, Value part, Value value);
  // All invocations of the group come here before one goes on, and see what the others have stored in shared memory.
  // Not where only some of them come, nor in a shader that some leave().
  void barrier();

  // ---- matrices of subgroups, of which a group has group size / 32. Not where only some invocations come.
  Value subgroup();  // the subgroup's number in its group
  // Rows of a matrix begin `stride` vectors apart, the first one at vector `first`; or columns do. 0: all are the same.
  Matrix load_matrix(const Shared& memory, Value first, std::uint32_t stride, spirv::MatrixUse use,
                     bool by_columns = false, MatrixOf of = MatrixOf::f16);
  void store_matrix(const Shared& memory, Value first, std::uint32_t stride, Matrix sum);
  // Whose columns are all the same sixteen numbers, from vector `first` on.
  Matrix load_column(const Shared& memory, Value first) {
    return load_matrix(memory, first, 0, spirv::MatrixUse::sum, true);
  }
  Matrix multiply_add(Matrix left, Matrix right, Matrix sum);
  Matrix filled_sum(Value number);  // of reals or integers
  Matrix zero_sum(MatrixOf of = MatrixOf::f16) { return filled_sum(of == MatrixOf::f16 ? real(0) : integer(0)); }
  MatrixVariable zero_matrix(MatrixOf of = MatrixOf::f16);

 private:
  friend class Variable;
  friend class MatrixVariable;
  friend class VectorVariable;
  friend Vector operator+(Vector a, Vector b);
  friend Vector operator*(Vector a, Value b);
  friend Matrix operator*(Matrix a, Matrix b);
  friend Matrix operator+(Matrix a, Matrix b);
  friend Value lane(Vector v, Word which);
  Id type_of(Kind kind);
  Id pointer(Word storage, Id type) { return global(Opcode::type_pointer, {storage, type}, false); }
  Id stored_type(const Buffer& buffer);
  Id image_type(const Buffer& buffer);
  void place(Id variable);
  Id fetch(const Buffer& buffer, Value index);
  Value part(Id whole, Word which, Kind kind);
  Value load_word(const Buffer& buffer, Value index, Word word);
  Value number_of(Value word, DType type);
  Value word_of(Value value, DType type);
  Id emit(Opcode opcode, Id type, Words operands);
  void emit_bare(Opcode opcode, const Words& operands) { put(body_, opcode, operands); }
  void begin_block(Id label);
  Id vector3();
  Id glsl();
  Id index_pointer(const Buffer& buffer, Value index, Word member);
  Id built_in(Word which);
  Id matrix_type(spirv::MatrixUse use, MatrixOf of);
  Id vector_pointer(const Shared& memory, Value which);
  Id vector4(Kind kind) { return global(Opcode::type_vector, {type_of(kind), 4}, false); }

  const std::uint32_t group_size_;
  Words variables_, prologue_;  // of the first block
  std::set<Id> decorated_;
  std::vector<Id> interface_;
  Id function_ = 0, glsl_ = 0, push_variable_ = 0;
  Id invocation_value_ = 0, local_value_ = 0, group_value_ = 0, subgroup_value_ = 0;
  std::uint32_t bindings_ = 0;
  bool left_ = false;  // the block has ended with a return
  bool packs_ = false;
};

// How many words of push constants every Vulkan device takes.
inline constexpr std::uint32_t most_pushes = 32;

// Integers wrap around; / and % take them as unsigned (indices), the comparisons as signed.
// Reals are computed one by one, as written: a driver may neither fuse, reorder nor drop any of it, since x - x is NaN
// of infinity, and !(a < b) holds for NaN. Products that are summed are the exception (add_product, and vectors).
Value operator+(Value a, Value b);
Value operator-(Value a, Value b);
Value operator*(Value a, Value b);
Value operator/(Value a, Value b);
Value operator%(Value a, Value b);
Value operator<(Value a, Value b);
Value operator>(Value a, Value b);
Value operator<=(Value a, Value b);
Value operator>=(Value a, Value b);
Value operator==(Value a, Value b);
Value operator!=(Value a, Value b);
Value operator&(Value a, Value b);  // booleans, too
Value operator|(Value a, Value b);
Value operator^(Value a, Value b);
Value operator!(Value a);
Value operator~(Value a);
Value operator-(Value a);
Value operator<<(Value a, Value b);
Value shift_right_signed(Value a, Value b);
Value shift_right_unsigned(Value a, Value b);
Value below_unsigned(Value a, Value b);

Value operator+(Value a, std::int64_t b);
Value operator-(Value a, std::int64_t b);
Value operator*(Value a, std::int64_t b);
Value operator&(Value a, std::int64_t b);
Value operator<(Value a, std::int64_t b);
Value operator>(Value a, std::int64_t b);
Value operator>=(Value a, std::int64_t b);
Value operator==(Value a, std::int64_t b);

Value add_product(Value sum, Value a, Value b);  // sum + a * b, which of reals a driver may round once
Value smallest(Value a, Value b);                // of integers, signed
Value largest(Value a, Value b);
Value clamped(Value x, std::int64_t low, std::int64_t high);
Value is_nan(Value real);

// ---- vectors
Vector operator+(Vector a, Vector b);
Vector operator*(Vector a, Value b);  // each part by it
Value lane(Vector v, Word which);

// ---- matrices of sums, element by element
Matrix operator*(Matrix a, Matrix b);
Matrix operator+(Matrix a, Matrix b);

// ---- narrow floats, rounded to nearest even whatever the device does
Value narrow_bits(Value real, DType type);   // f16, bf16 or one of 8 bits
Value byte_to_real(Value code, DType type);  // of a float of 8 bits
Value rounded(Value real, DType type);       // as a real; other types are left as they are

// ---- 64-bit integers as pairs
Value widened(Value integer);  // sign extended
Value add_wide(Value a, Value b);
// Arithmetic shift by 0..63.
Value shift_right_wide(Value a, Value by);

}  // namespace tosaic::shaders
