// SPDX-License-Identifier: Apache-2.0
// Bundled programs: a .pte and cases to try it with.
#include "bind.h"

namespace tosaic::python {
namespace {

// A dense tensor as (address, dtype, sizes, strides), which is copied, or a Python number.
Output value_from(nb::handle value) {
  if (nb::isinstance<nb::bool_>(value)) return {std::nullopt, nb::cast<bool>(value)};
  if (nb::isinstance<nb::int_>(value)) return {std::nullopt, nb::cast<std::int64_t>(value)};
  if (nb::isinstance<nb::float_>(value)) return {std::nullopt, nb::cast<double>(value)};
  if (!nb::isinstance<nb::tuple>(value)) return {};  // refused where it is written
  const InputTensor tensor = lent(value);
  std::size_t bytes = storage_size(tensor.dtype);
  for (std::int64_t size : tensor.sizes) bytes *= static_cast<std::size_t>(size);
  return {OwnedTensor{tensor.dtype, tensor.sizes, Bytes::copy(tensor.data, bytes)}, {}};
}

std::vector<Output> values_from(nb::handle list) {
  std::vector<Output> values;
  for (nb::handle value : nb::cast<nb::list>(list)) values.push_back(value_from(value));
  return values;
}

}  // namespace

void bind_bundle(nb::module_& m) {
  nb::class_<CaseOutcome>(m, "CaseOutcome", "What became of one case of a bundled program.")
      .def_ro("method", &CaseOutcome::method, "\"forward\".")
      .def_ro("number", &CaseOutcome::number, "Among the cases of the method.")
      .def_ro("passed", &CaseOutcome::passed, "It gave what was expected.")
      .def_ro("why", &CaseOutcome::why, "What differs, or what went wrong; empty: it passed.")
      .def("__bool__", [](const CaseOutcome& c) { return c.passed; })
      .def("__repr__", [](const CaseOutcome& c) {
        return "<" + c.method + " " + std::to_string(c.number) + (c.passed ? " passed>" : ": " + c.why + ">");
      });
  m.def(
      "bundle",
      [](nb::bytes program, nb::list cases) {
        Bundle bundle{Bytes(keep(program), program.data(), program.size()), {}};
        for (nb::handle one : cases) {
          const auto parts = nb::cast<nb::tuple>(one);
          bundle.cases.push_back({nb::cast<std::string>(parts[0]), values_from(parts[1]), values_from(parts[2])});
        }
        return bytes_of(value_of(write_bundle(bundle)));
      },
      nb::arg("program"), nb::arg("cases"),
      nb::sig("def bundle(program: bytes, cases: list[tuple[str, list[typing.Any], list[typing.Any]]]) -> bytes"),
      "A .bpte of a .pte and cases: (method, inputs, outputs), of dense tensors as (address, dtype, sizes, strides) "
      "and "
      "numbers.");
  m.def(
      "check_cases",
      [](nb::bytes file, const std::string& name, const nb::dict& options, double rtol, double atol) {
        const SessionOptions how = session_options(options);
        const Bytes content(keep(file), file.data(), file.size());
        return heard([&](const Messages& hear) -> Result<std::vector<CaseOutcome>> {
          auto bundle = read_bundle(content, name);
          if (!bundle.ok()) return bundle.error();
          return check_cases(*bundle, name, how, {rtol, atol}, hear);
        });
      },
      nb::arg("file"), nb::arg("name"), nb::arg("options"), nb::arg("rtol"), nb::arg("atol"),
      nb::sig("def check_cases(file: bytes, name: str, options: dict[str, typing.Any], rtol: float, atol: float) -> "
              "tuple[list[CaseOutcome], list[Diagnostic]]"),
      "The outcomes of a .bpte's cases, and what was said while loading.");
}

}  // namespace tosaic::python
