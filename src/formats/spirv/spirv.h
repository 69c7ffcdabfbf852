// SPDX-License-Identifier: Apache-2.0
// Numbers of the SPIR-V instructions that a TOSA graph needs (SPIR-V 1.5, SPV_ARM_tensors, SPV_ARM_graph,
// SPV_EXT_replicated_composites), shared by the writer and the reader.
#pragma once
#include <cstdint>
#include <string_view>

namespace tosaic::spirv {

using Word = std::uint32_t;
using Id = Word;

inline constexpr Word magic = 0x07230203, version_1_5 = 0x00010500, version_1_6 = 0x00010600;
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
  capability = 17,
  type_bool = 20,
  type_int = 21,
  type_float = 22,
  type_array = 28,
  type_struct = 30,
  type_pointer = 32,
  constant_true = 41,
  constant_false = 42,
  constant = 43,
  constant_composite = 44,
  constant_null = 46,
  variable = 59,
  decorate = 71,
  composite_extract = 81,
  type_tensor = 4163,
  graph_constant = 4181,
  graph_entry_point = 4182,
  graph = 4183,
  graph_input = 4184,
  graph_set_output = 4185,
  graph_end = 4186,
  type_graph = 4190,
  constant_composite_replicate = 4461,
};

enum class Capability : Word {
  matrix = 0,
  shader = 1,
  float16 = 9,
  int64 = 11,
  int16 = 22,
  int8 = 39,
  tensors = 4174,
  graph = 4191,
  float8 = 4212,
  bfloat16 = 5116,
  vulkan_memory_model = 5345,
  replicated_composites = 6024,
};

// The optional operand of OpTypeFloat; none: IEEE 754.
enum class FloatEncoding : Word { bfloat16 = 0, float8_e4m3 = 4214, float8_e5m2 = 4215 };

inline constexpr Word decoration_binding = 33, decoration_descriptor_set = 34, storage_uniform_constant = 0;

}  // namespace tosaic::spirv
