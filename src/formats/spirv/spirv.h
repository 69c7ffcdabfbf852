// SPDX-License-Identifier: Apache-2.0
// Numbers of the SPIR-V instructions that a TOSA graph needs (SPIR-V 1.5, SPV_ARM_tensors, SPV_ARM_graph,
// SPV_EXT_replicated_composites), and those of our compute shaders (SPIR-V 1.3); shared by writers and readers.
#pragma once
#include <cstdint>
#include <string_view>

namespace tosaic::spirv {

using Word = std::uint32_t;
using Id = Word;

inline constexpr Word magic = 0x07230203, version_1_3 = 0x00010300, version_1_5 = 0x00010500, version_1_6 = 0x00010600;
inline constexpr std::string_view tosa_set = "TOSA.001000.1";  // the extended instruction set
// Arm's set for operators that TOSA does not define. Its instruction 0, CALL, takes a literal that stands for a domain,
// then the operator's name and its attributes as arrays of bytes, then tensors.
inline constexpr std::string_view call_set = "Arm.ExperimentalMLOperations.1";
inline constexpr Word call_instruction = 0;
inline constexpr std::string_view bespoke_domain = "com.arm.bespoke";  // number 0

enum class Opcode : std::uint16_t {
  name = 5,
  string = 7,
  extension = 10,
  ext_inst_import = 11,
  ext_inst = 12,
  memory_model = 14,
  entry_point = 15,
  execution_mode = 16,
  capability = 17,
  type_void = 19,
  type_bool = 20,
  type_int = 21,
  type_float = 22,
  type_vector = 23,
  type_image = 25,
  type_array = 28,
  type_runtime_array = 29,
  type_struct = 30,
  type_pointer = 32,
  type_function = 33,
  constant_true = 41,
  constant_false = 42,
  constant = 43,
  constant_composite = 44,
  constant_null = 46,
  function = 54,
  function_end = 56,
  variable = 59,
  load = 61,
  store = 62,
  access_chain = 65,
  decorate = 71,
  member_decorate = 72,
  composite_construct = 80,
  composite_extract = 81,
  image_fetch = 95,
  convert_f_to_s = 110,
  convert_s_to_f = 111,
  convert_u_to_f = 112,
  u_convert = 113,
  s_convert = 114,
  bitcast = 124,
  s_negate = 126,
  f_negate = 127,
  i_add = 128,
  f_add = 129,
  i_sub = 130,
  f_sub = 131,
  i_mul = 132,
  f_mul = 133,
  u_div = 134,
  s_div = 135,
  f_div = 136,
  u_mod = 137,
  vector_times_scalar = 142,
  u_mul_extended = 151,
  s_mul_extended = 152,
  logical_equal = 164,
  logical_not_equal = 165,
  logical_or = 166,
  logical_and = 167,
  logical_not = 168,
  select = 169,
  i_equal = 170,
  i_not_equal = 171,
  s_greater_than = 173,
  s_greater_than_equal = 175,
  u_less_than = 176,
  s_less_than = 177,
  s_less_than_equal = 179,
  f_ord_equal = 180,
  f_ord_less_than = 184,
  f_ord_greater_than = 186,
  f_ord_less_than_equal = 188,
  f_ord_greater_than_equal = 190,
  shift_right_logical = 194,
  shift_right_arithmetic = 195,
  shift_left_logical = 196,
  bitwise_or = 197,
  bitwise_xor = 198,
  bitwise_and = 199,
  bit_not = 200,
  control_barrier = 224,
  loop_merge = 246,
  selection_merge = 247,
  label = 248,
  branch = 249,
  branch_conditional = 250,
  return_ = 253,
  group_non_uniform_shuffle = 345,
  type_tensor = 4163,
  graph_constant = 4181,
  graph_entry_point = 4182,
  graph = 4183,
  graph_input = 4184,
  graph_set_output = 4185,
  graph_end = 4186,
  type_graph = 4190,
  s_dot = 4450,
  type_cooperative_matrix = 4456,
  cooperative_matrix_load = 4457,
  cooperative_matrix_store = 4458,
  cooperative_matrix_mul_add = 4459,
  constant_composite_replicate = 4461,
};

enum class Capability : Word {
  matrix = 0,
  shader = 1,
  float16 = 9,
  int64 = 11,
  int16 = 22,
  int8 = 39,
  sampled_buffer = 46,
  group_non_uniform = 61,
  group_non_uniform_shuffle = 65,
  tensors = 4174,
  storage_buffer_16 = 4433,
  storage_buffer_8 = 4448,
  graph = 4191,
  float8 = 4212,
  bfloat16 = 5116,
  vulkan_memory_model = 5345,
  dot_product_packed = 6018,  // of four 8-bit quantised values in a word
  dot_product = 6019,
  cooperative_matrix = 6022,
  replicated_composites = 6024,
};

// The optional operand of OpTypeFloat; none: IEEE 754.
enum class FloatEncoding : Word { bfloat16 = 0, float8_e4m3 = 4214, float8_e5m2 = 4215 };

// The last operand of OpSDot of two words: four 8-bit quantised values in each.
inline constexpr Word packed_4x8 = 0;

// What a cooperative matrix is for, and how it lies in memory.
enum class MatrixUse : Word { left = 0, right = 1, sum = 2 };
inline constexpr Word matrix_by_rows = 0, matrix_by_columns = 1;
// The last operand of a product of integer matrices: both factors, the sum and the result are signed.
inline constexpr Word all_matrices_signed = 0xf;

// Of compute shaders: how they are called, where their variables are, and what a barrier or a shuffle reaches.
inline constexpr Word memory_glsl450 = 1, model_compute = 5, mode_local_size = 17;
inline constexpr Word storage_uniform_constant = 0, storage_input = 1, storage_shared = 4, storage_function = 7,
                      storage_push = 9, storage_buffer = 12;
inline constexpr Word built_in_group = 26, built_in_local = 27, built_in_invocation = 28, built_in_subgroup = 40;
inline constexpr Word scope_group = 2, scope_subgroup = 3, acquire_release_shared = 0x108;

inline constexpr Word decoration_block = 2, decoration_array_stride = 6, decoration_built_in = 11,
                      decoration_non_writable = 24, decoration_binding = 33, decoration_descriptor_set = 34,
                      decoration_offset = 35, decoration_no_contraction = 42;

// Functions of GLSL.std.450 that are exact, or whose rounding does no harm.
enum class Function : Word {
  round_even = 2,
  trunc = 3,
  abs = 4,
  floor = 8,
  ceil = 9,
  exp2 = 29,  // within 3 + 2 |x| units in the last place: for what is rounded to half precision
  sqrt = 31,
  inverse_sqrt = 32,
  umin = 38,
  smin = 39,
  smax = 42,
  fma = 50,
  pack_half_2x16 = 58,
  unpack_half_2x16 = 62,
  highest_bit = 75,
};

}  // namespace tosaic::spirv
