// SPDX-License-Identifier: Apache-2.0
// A sweep's points one by one, for whoever spreads them: rows and points cross processes.
#include <nanobind/stl/map.h>
#include <nanobind/stl/tuple.h>

#include "asked.h"

namespace tosaic::python {
namespace {

using Described = std::map<std::string, std::vector<std::string>>;
using PointState = std::tuple<std::string, std::string, std::string, Described>;
using RowState = std::tuple<std::string, std::string, std::string, std::string, std::vector<std::size_t>,
                            std::vector<std::optional<double>>, bool>;

using TensorState = std::tuple<std::string, std::vector<std::int64_t>, nb::bytes>;
using SampleState = std::vector<TensorState>;
using LabelledState = std::tuple<SampleState, std::vector<std::int64_t>, std::string, SampleState>;
using DataState = std::tuple<std::vector<SampleState>, std::vector<LabelledState>>;

SampleState state_of(const std::vector<OwnedTensor>& sample) {
  SampleState state;
  for (const OwnedTensor& t : sample) state.emplace_back(std::string(name_of(t.dtype)), t.sizes, bytes_of(t.data));
  return state;
}
// What floats give. A sample whose results are not all tensors goes without: then it is run.
SampleState state_of(const std::vector<Output>& floats) {
  std::vector<OwnedTensor> tensors;
  for (const Output& output : floats) {
    if (!output.tensor) return {};
    tensors.push_back(*output.tensor);
  }
  return state_of(tensors);
}
std::vector<OwnedTensor> sample_of(const SampleState& state) {
  std::vector<OwnedTensor> sample;
  for (const auto& [dtype, sizes, content] : state)
    sample.push_back({*dtype_named(dtype), sizes, Bytes::copy(content.data(), content.size())});
  return sample;
}

// From iterators of (owners, described) and of (owners, described, labels, name), or paths.
SweepData data_of(const Program& program, const nb::object& calibration, const nb::object& evaluation,
                  const std::string& labels, std::size_t limit, std::vector<Diagnostic>& said) {
  Asked asked;
  SampleSource source;
  LabelledData set;
  if (nb::isinstance<nb::str>(calibration))
    source = value_of(read_samples(nb::cast<std::string>(calibration), program));
  else if (!calibration.is_none())
    source = asked.samples(calibration);
  if (nb::isinstance<nb::str>(evaluation))
    set = value_of(open_data_set(nb::cast<std::string>(evaluation), labels, tensor_inputs(program),
                                 [&](const Diagnostic& d) { said.push_back(d); }));
  else if (!evaluation.is_none())
    set = asked.labelled(evaluation, 0);
  return asked.end(unlocked([&] { return sweep_data(program, source, set, limit); }));
}

RowState state_of(const SweepRow& r) {
  return {r.target,
          r.precision,
          r.memory_mode,
          r.problem,
          {r.nodes, r.delegated, r.delegates, r.macs_per_cycle, r.program_bytes},
          {r.cycles, r.inferences_per_second, r.sram_bytes, r.flash_bytes, r.db, r.right, r.right_in_floats, r.seconds},
          r.best};
}
SweepRow row_of(const RowState& state) {
  SweepRow r;
  const auto& [target, precision, memory_mode, problem, counts, numbers, best] = state;
  r.target = target;
  r.precision = precision;
  r.memory_mode = memory_mode;
  r.problem = problem;
  r.nodes = counts.at(0), r.delegated = counts.at(1), r.delegates = counts.at(2), r.macs_per_cycle = counts.at(3);
  r.program_bytes = counts.at(4);
  r.cycles = numbers.at(0), r.inferences_per_second = numbers.at(1), r.sram_bytes = numbers.at(2);
  r.flash_bytes = numbers.at(3), r.db = numbers.at(4), r.right = numbers.at(5), r.right_in_floats = numbers.at(6);
  r.seconds = numbers.at(7).value_or(0);
  r.best = best;
  return r;
}

}  // namespace

void bind_sweep(nb::module_& m) {
  nb::class_<SweepPoint>(m, "SweepPoint", "A program to be compiled.")
      .def_ro("target", &SweepPoint::target, "\"ethos-u55-128\".")
      .def_ro("precision", &SweepPoint::precision, "\"int8\".")
      .def_ro("memory_mode", &SweepPoint::memory_mode, "Vela's name; empty: the product's own.")
      .def("__getstate__",
           [](const SweepPoint& p) {
             Described options(p.options.all().begin(), p.options.all().end());
             return PointState(p.target, p.precision, p.memory_mode, std::move(options));
           })
      .def("__setstate__", [](SweepPoint& p, const PointState& state) {
        Options options;
        for (const auto& [name, values] : std::get<3>(state)) options.set(name, values);
        new (&p) SweepPoint{std::get<0>(state), std::get<1>(state), std::get<2>(state), std::move(options)};
      });
  nb::class_<SweepRow>(m, "SweepRow", "What became of one.")
      .def_ro("best", &SweepRow::best, "Is it on the Pareto front?")
      .def("__getstate__", [](const SweepRow& row) { return state_of(row); })
      .def("__setstate__", [](SweepRow& row, const RowState& state) { new (&row) SweepRow(row_of(state)); });
  m.def(
      "sweep_points",
      [](const std::vector<std::string>& targets, const std::vector<std::string>& precisions,
         const std::vector<std::string>& memory_modes, const nb::dict& options) {
        return value_of(sweep_points({targets, precisions, memory_modes, options_of(options)}));
      },
      nb::arg("targets"), nb::arg("precisions"), nb::arg("memory_modes"), nb::arg("options"),
      nb::sig("def sweep_points(targets: collections.abc.Sequence[str], precisions: collections.abc.Sequence[str], "
              "memory_modes: collections.abc.Sequence[str], options: dict[str, list[str]]) -> list[SweepPoint]"),
      "What is to be compiled.");
  nb::class_<SweepData>(m, "SweepData", "Samples in memory.")
      .def("__getstate__",
           [](const SweepData& data) {
             DataState state;
             for (const auto& sample : data.calibration) std::get<0>(state).push_back(state_of(sample));
             for (const LabelledSample& s : data.evaluation)
               std::get<1>(state).emplace_back(state_of(s.inputs), s.labels, s.name, state_of(s.floats));
             return state;
           })
      .def("__setstate__", [](SweepData& data, const DataState& state) {
        new (&data) SweepData();
        for (const SampleState& sample : std::get<0>(state)) data.calibration.push_back(sample_of(sample));
        for (const auto& [sample, labels, name, floats] : std::get<1>(state)) {
          data.evaluation.push_back({sample_of(sample), labels, name});
          for (OwnedTensor& tensor : sample_of(floats))
            data.evaluation.back().floats.push_back({std::move(tensor), {}});
        }
      });
  m.def(
      "sweep_data",
      [](const Program& program, nb::object calibration, nb::object evaluation, const std::string& labels,
         std::size_t limit) {
        std::vector<Diagnostic> said;
        SweepData data = data_of(program, calibration, evaluation, labels, limit, said);
        return nb::make_tuple(std::move(data), said);
      },
      nb::arg("program"), nb::arg("calibration").none(), nb::arg("evaluation").none(), nb::arg("labels"),
      nb::arg("limit"),
      nb::sig(
          "def sweep_data(program: Program, calibration: collections.abc.Iterator[tuple[list[object], list[tuple[int, "
          "str, tuple[int, ...], tuple[int, ...] | None]]]] | str | None, evaluation: "
          "collections.abc.Iterator[tuple[list[object], list[tuple[int, str, tuple[int, ...], tuple[int, ...] | "
          "None]], list[int], str]] | str | None, labels: str, limit: int) -> tuple[SweepData, list[Diagnostic]]"),
      "Dense samples copied into memory, or read from files, and what was said.");
  m.def(
      "run_floats",
      [](const Program& program, SweepData data) {
        unlocked([&] { run_floats(program, data); });
        return data;
      },
      nb::arg("program"), nb::arg("data"), "The data, with what floats give for each sample.");
  m.def(
      "measure_point",
      [](const Program& program, const SweepPoint& point, const SweepData& data) {
        return unlocked([&] { return measure_point(program, point, data); });
      },
      nb::arg("program"), nb::arg("point"), nb::arg("data"), "Compiled and run here.");
  m.def(
      "sweep_marked",
      [](std::vector<SweepRow> rows, double hertz) {
        if (hertz > 0) set_clock(rows, hertz);
        mark_best(rows);
        return rows;
      },
      nb::arg("rows"), nb::arg("hertz"), "The rows with the Pareto front marked; 0 Hz: at Vela's clock.");
  m.def("sweep_text", &sweep_text, nb::arg("model"), nb::arg("rows"), "As a table.");
  m.def("sweep_json", &sweep_json, nb::arg("model"), nb::arg("rows"), "All of it.");
  m.def("sweep_csv", &sweep_csv, nb::arg("rows"), "For spreadsheets.");
  m.def("sweep_html", &sweep_html, nb::arg("model"), nb::arg("rows"), "As a page that sorts.");
}

}  // namespace tosaic::python
