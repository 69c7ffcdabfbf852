// SPDX-License-Identifier: Apache-2.0
// TOSA's operators, for lowerings that are written in them.
#include "tosaic/tosa.hpp"

#include "bind.h"

namespace tosaic::python {
namespace {

Literal literal_of(nb::handle value) {
  if (value.is_none()) return std::monostate{};
  if (PyBool_Check(value.ptr())) return nb::cast<bool>(value);
  if (PyLong_Check(value.ptr())) return nb::cast<std::int64_t>(value);
  if (PyFloat_Check(value.ptr())) return nb::cast<double>(value);
  if (PyUnicode_Check(value.ptr())) return nb::cast<std::string>(value);
  return nb::cast<std::vector<std::int64_t>>(value);
}

nb::list evaluate(const std::string& overload, nb::list operands, nb::dict arguments) {
  std::vector<std::pair<std::string, Literal>> literals;
  for (const auto& [name, value] : arguments) literals.emplace_back(nb::cast<std::string>(name), literal_of(value));
  const std::vector<InputTensor> lent = all_lent(operands);
  auto results = value_of(unlocked([&] { return evaluate_call(overload, lent, literals); }));
  nb::list rows;
  for (const OwnedTensor& t : results) {
    nb::object elements = t.data.null() ? nb::none() : given(t);
    rows.append(nb::make_tuple(std::string(name_of(t.dtype)), nb::tuple(nb::cast(t.sizes)), elements));
  }
  return rows;
}

nb::list bound_types(const TosaOperator& op) {
  nb::list rows;
  for (const auto& row : op.types) {
    nb::dict bound;
    for (const auto& [variable, dtype] : row) bound[variable.c_str()] = std::string(name_of(dtype));
    rows.append(bound);
  }
  return rows;
}

}  // namespace

void bind_tosa(nb::module_& m) {
  nb::class_<TosaOperand>(m, "TosaOperand", "An operand or a result of an operator of TOSA.")
      .def_ro("name", &TosaOperand::name, "As the standard calls it.")
      .def_ro("type", &TosaOperand::type, "A dtype, or a variable that `types` binds; \"shape\": a list of integers.")
      .def_ro("list", &TosaOperand::list, "Takes several tensors.")
      .def_ro("constant", &TosaOperand::constant, "Must be known when the program is compiled.");
  nb::class_<TosaOperator>(m, "TosaOperator", "An operator of TOSA as a call of a program.")
      .def_ro("name", &TosaOperator::name, "\"clamp\": the call is \"tosaic.clamp.default\", or .integer.")
      .def_ro("summary", &TosaOperator::summary, "What it computes, in one sentence.")
      .def_ro("schemas", &TosaOperator::schemas, "In PyTorch's notation: the overloads default and integer.")
      .def_ro("operands", &TosaOperator::operands, "In order.")
      .def_ro("results", &TosaOperator::results, "In order.")
      .def_prop_ro("types", &bound_types, nb::sig("def types(self) -> list[dict[str, str]]"),
                   "The supported combinations: variable to dtype.");
  m.def(
      "tosa_operators", [] { return value_of(tosa_operators()); },
      "Every operator of TOSA that takes and gives tensors.");
  m.def(
      "evaluate_call", &evaluate, nb::arg("overload"), nb::arg("operands"), nb::arg("arguments"),
      nb::sig(
          "def evaluate_call(overload: str, operands: list[tuple[int, str, tuple[int, ...], tuple[int, ...] | None]], "
          "arguments: dict[str, object]) -> list[tuple[str, tuple[int, ...], typing.Any]]"),
      "What a call gives, as (dtype, sizes, elements). Operands are lent: (address, dtype, sizes, strides); where "
      "one's "
      "address is 0, the elements of the results are None.");
}

}  // namespace tosaic::python
