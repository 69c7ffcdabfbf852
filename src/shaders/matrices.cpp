// SPDX-License-Identifier: Apache-2.0
// Matrices that the invocations of a subgroup have together (SPV_KHR_cooperative_matrix). Which of them has which
// element is the device's: they come from shared memory and go back there.
#include "shaders/shader.h"

namespace tosaic::shaders {

using spirv::MatrixUse;

Matrix MatrixVariable::get() const {
  return {shader_, shader_->emit(Opcode::load, shader_->matrix_type(use_, of_), {pointer_}), use_, of_};
}
void MatrixVariable::set(Matrix value) const { shader_->emit_bare(Opcode::store, {pointer_, value.id}); }

Id Shader::matrix_type(MatrixUse use, MatrixOf of) {
  const bool f16 = of == MatrixOf::f16;
  require(f16 ? spirv::Capability::float16 : spirv::Capability::int8);
  require(spirv::Capability::cooperative_matrix, "SPV_KHR_cooperative_matrix");
  Id number = type_of(f16 ? Kind::real : Kind::integer);
  if (use != MatrixUse::sum)
    number = f16 ? global(Opcode::type_float, {8 * storage_size(DType::f16)}, false)
                 : global(Opcode::type_int, {8 * storage_size(DType::i8), 0}, false);
  const std::int64_t side = matrix_side, depth = f16 ? side : 2 * side;
  const Id rows = integer(use == MatrixUse::right ? depth : side).id,
           columns = integer(use == MatrixUse::left ? depth : side).id;
  return global(Opcode::type_cooperative_matrix,
                {number, integer(std::int64_t{spirv::scope_subgroup}).id, rows, columns,
                 integer(static_cast<std::int64_t>(use)).id},
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

Matrix Shader::load_matrix(const Shared& memory, Value first, std::uint32_t stride, MatrixUse use, bool by_columns,
                           MatrixOf of) {
  const Id layout = integer(std::int64_t{by_columns ? spirv::matrix_by_columns : spirv::matrix_by_rows}).id;
  const Id at = vector_pointer(memory, first), apart = integer(std::int64_t{stride}).id;
  return {this, emit(Opcode::cooperative_matrix_load, matrix_type(use, of), {at, layout, apart}), use, of};
}

void Shader::store_matrix(const Shared& memory, Value first, std::uint32_t stride, Matrix sum) {
  const Id at = vector_pointer(memory, first);
  emit_bare(Opcode::cooperative_matrix_store,
            {at, sum.id, integer(std::int64_t{spirv::matrix_by_rows}).id, integer(std::int64_t{stride}).id});
}

Matrix Shader::multiply_add(Matrix left, Matrix right, Matrix sum) {
  Words operands{left.id, right.id, sum.id};
  if (sum.of == MatrixOf::int8) operands.push_back(spirv::all_matrices_signed);
  return {this, emit(Opcode::cooperative_matrix_mul_add, matrix_type(sum.use, sum.of), std::move(operands)), sum.use,
          sum.of};
}

Matrix operator*(Matrix a, Matrix b) {
  Shader& s = *a.shader;
  const Opcode opcode = a.of == MatrixOf::f16 ? Opcode::f_mul : Opcode::i_mul;
  return {&s, s.emit(opcode, s.matrix_type(a.use, a.of), {a.id, b.id}), a.use, a.of};
}
Matrix operator+(Matrix a, Matrix b) {
  Shader& s = *a.shader;
  const Opcode opcode = a.of == MatrixOf::f16 ? Opcode::f_add : Opcode::i_add;
  return {&s, s.emit(opcode, s.matrix_type(a.use, a.of), {a.id, b.id}), a.use, a.of};
}

Matrix Shader::filled_sum(Value number) {
  const MatrixOf of = number.kind == Kind::real ? MatrixOf::f16 : MatrixOf::int8;
  const Id type = matrix_type(MatrixUse::sum, of);
  return {this, emit(Opcode::composite_construct, type, {number.id}), MatrixUse::sum, of};
}

MatrixVariable Shader::zero_matrix(MatrixOf of) {
  MatrixVariable v;
  v.shader_ = this;
  v.of_ = of;
  const Id type = matrix_type(v.use_, of);
  v.pointer_ = fresh();
  put(variables_, Opcode::variable, {pointer(spirv::storage_function, type), v.pointer_, spirv::storage_function});
  v.set(zero_sum(of));
  return v;
}

}  // namespace tosaic::shaders
