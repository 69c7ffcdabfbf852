// SPDX-License-Identifier: Apache-2.0
// A program on a whole data set. Sessions run without the interpreter's lock; samples and metrics are Python's.
#include "asked.h"

namespace tosaic::python {
namespace {

nb::list list_of(const std::vector<Output>& outputs) {
  nb::list list;
  for (const Output& output : outputs) list.append(given(output));
  return list;
}

}  // namespace

void bind_evaluate(nb::module_& m) {
  nb::class_<Evaluated>(m, "Evaluated", "A program on a whole data set.")
      .def("text", &evaluation_text, "As a table.")
      .def("json", &evaluation_json, "All of it.");
  m.def(
      "evaluate",
      [](const Session& session, std::optional<Session*> floats, nb::object samples, const std::string& labels,
         std::size_t expected, int workers, std::size_t limit, std::size_t worst, nb::object progress, nb::object each,
         const std::string& program, const std::string& program_in_floats) {
        Asked asked;
        EvaluateOptions options;
        options.workers = workers;
        options.limit = limit;
        options.worst = worst;
        options.cancelled = [&] { return asked.cancelled(); };
        if (!progress.is_none())
          options.progress = [&](std::size_t done, std::size_t total) {
            asked.in_python([&] { progress("evaluate", done, total); });
          };
        if (!each.is_none())
          options.each = [&](std::size_t at, const std::vector<Output>& outputs, const std::vector<Output>& wanted) {
            asked.in_python([&] { each(at, list_of(outputs), list_of(wanted)); });
          };
        const Session* in_floats = floats ? *floats : nullptr;
        std::optional<std::string> path;
        if (nb::isinstance<nb::str>(samples)) path = nb::cast<std::string>(samples);
        const LabelledData given = path ? LabelledData() : asked.labelled(samples, expected);
        std::vector<Diagnostic> said;
        auto found = unlocked([&]() -> Result<Evaluated> {
          if (!path) return evaluate(session, in_floats, given, options);
          auto data = open_data_set(*path, labels, in_floats ? in_floats->inputs() : session.inputs(),
                                    [&](const Diagnostic& d) { said.push_back(d); });
          if (!data.ok()) return data.error();
          return evaluate(session, in_floats, *data, options);
        });
        Evaluated value = asked.end(std::move(found));
        value.program = program;
        value.floats = program_in_floats;
        return nb::make_tuple(std::move(value), said);
      },
      nb::arg("session"), nb::arg("floats").none(), nb::arg("samples"), nb::arg("labels"), nb::arg("expected"),
      nb::arg("workers"), nb::arg("limit"), nb::arg("worst"), nb::arg("progress").none(), nb::arg("each").none(),
      nb::arg("program"), nb::arg("program_in_floats"),
      nb::sig("def evaluate(session: Session, floats: Session | None, "
              "samples: collections.abc.Iterator[tuple[list[object], list[tuple[int, str, tuple[int, ...], "
              "tuple[int, ...] | None]], list[int], str]] | str, labels: str, expected: int, workers: int, limit: int, "
              "worst: int, progress: collections.abc.Callable[[str, int, int], object] | None, "
              "each: collections.abc.Callable[[int, list[typing.Any], list[typing.Any]], object] | None, program: str, "
              "program_in_floats: str) -> tuple[Evaluated, list[Diagnostic]]"),
      "The figures, and what was said. Samples are dense; a text is the path of a data set, `labels` of its labels.");
}

}  // namespace tosaic::python
