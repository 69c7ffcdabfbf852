// SPDX-License-Identifier: Apache-2.0
// Matrices that the invocations of a subgroup have together (SPV_KHR_cooperative_matrix). Which of them has which
// element is the device's: they come from shared memory and go back there.
#include "shaders/shader.h"

namespace tosaic::shaders {

using spirv::MatrixUse;

Matrix MatrixVariable::get() const {
  return {shader_, shader_->emit(Opcode::load, shader_->matrix_type(use_), {pointer_}), use_};
}
void MatrixVariable::set(Matrix value) const { shader_->emit_bare(Opcode::store, {pointer_, value.id}); }

Id Shader::matrix_type(MatrixUse use) {
  require(spirv::Capability::float16);
  require(spirv::Capability::cooperative_matrix, "SPV_KHR_cooperative_matrix");
  const Id number =
      use == MatrixUse::sum ? type_of(Kind::real) : global(Opcode::type_float, {8 * storage_size(DType::f16)}, false);
  const Id side = integer(std::int64_t{matrix_side}).id;
  return global(
      Opcode::type_cooperative_matrix,
      {number, integer(std::int64_t{spirv::scope_subgroup}).id, side, side, integer(static_cast<std::int64_t>(use)).id},
      false);
}

Value Shader::subgroup() {
  if (!subgroup_value_) {
    require(spirv::Capability::group_non_uniform);
    const Id word = type_of(Kind::integer), variable = fresh();
    interface_.push_back(variable);
    put(globals_, Opcode::variable, {pointer(spirv::storage_input, word), variable, spirv::storage_input});
    put(decorations_, Opcode::decorate, {variable, spirv::decoration_built_in, spirv::built_in_subgroup});
    subgroup_value_ = emit(Opcode::load, word, {variable});
  }
  // As every device has it whose subgroups are full, said so that it is seen.
  return Value{this, subgroup_value_} % integer(std::int64_t{group_size_ / matrix_subgroup});
}

Matrix Shader::load_matrix(const Shared& memory, Value first, std::uint32_t stride, MatrixUse use, bool by_columns) {
  const Id layout = integer(std::int64_t{by_columns ? spirv::matrix_by_columns : spirv::matrix_by_rows}).id;
  const Id at = vector_pointer(memory, first);
  return {this, emit(Opcode::cooperative_matrix_load, matrix_type(use), {at, layout, integer(std::int64_t{stride}).id}),
          use};
}

void Shader::store_matrix(const Shared& memory, Value first, std::uint32_t stride, Matrix sum) {
  const Id at = vector_pointer(memory, first);
  emit_bare(Opcode::cooperative_matrix_store,
            {at, sum.id, integer(std::int64_t{spirv::matrix_by_rows}).id, integer(std::int64_t{stride}).id});
}

Matrix Shader::multiply_add(Matrix left, Matrix right, Matrix sum) {
  return {this, emit(Opcode::cooperative_matrix_mul_add, matrix_type(sum.use), {left.id, right.id, sum.id}), sum.use};
}

Matrix operator*(Matrix a, Matrix b) {
  Shader& s = *a.shader;
  return {&s, s.emit(Opcode::f_mul, s.matrix_type(a.use), {a.id, b.id}), a.use};
}

Matrix Shader::zero_sum() {
  return {this, emit(Opcode::composite_construct, matrix_type(MatrixUse::sum), {real(0).id}), MatrixUse::sum};
}

MatrixVariable Shader::zero_matrix() {
  MatrixVariable v;
  v.shader_ = this;
  const Id type = matrix_type(v.use_);
  v.pointer_ = fresh();
  put(variables_, Opcode::variable, {pointer(spirv::storage_function, type), v.pointer_, spirv::storage_function});
  v.set(zero_sum());
  return v;
}

}  // namespace tosaic::shaders
