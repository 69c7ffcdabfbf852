// SPDX-License-Identifier: Apache-2.0
// Sessions: what runs.
#include "bind.h"

namespace tosaic::python {
namespace {

// Ctrl-C is a signal that Python keeps until somebody asks; the exception that it raises waits until the run has ended.
bool signalled() {
  const nb::gil_scoped_acquire held;
  return PyErr_Occurred() || PyErr_CheckSignals() != 0;
}

// What ended, unless Python raised something meanwhile.
template <class T>
Result<T> ended(Result<T> result) {
  if (PyErr_Occurred()) throw nb::python_error();
  return result;
}

}  // namespace

SessionOptions session_options(const nb::dict& given) {
  SessionOptions options;
  options.cancelled = signalled;
  for (auto [key, value] : given) {
    const auto name = nb::cast<std::string>(key);
    if (name == "executor") options.executor = nb::cast<std::string>(value);
    if (name == "method") options.method = nb::cast<std::string>(value);
    if (name == "device") options.device = nb::cast<std::string>(value);
    if (name == "vulkan_device") options.vulkan_device = nb::cast<std::string>(value);
    if (name == "threads") options.threads = nb::cast<int>(value);
    if (name == "data")
      for (auto [file, content] : nb::cast<nb::dict>(value)) {
        const auto bytes = nb::cast<nb::bytes>(content);
        options.data.emplace_back(nb::cast<std::string>(file), Bytes(keep(bytes), bytes.data(), bytes.size()));
      }
  }
  return options;
}

void bind_session(nb::module_& m) {
  nb::class_<Session>(m, "Session", "Something that runs, for one thread at a time.")
      .def_static(
          "open",
          [](const std::string& path, const nb::dict& options) {
            const SessionOptions how = session_options(options);
            return heard([&](const Messages& hear) { return Session::open(path, how, hear); });
          },
          nb::arg("path"), nb::arg("options"),
          nb::sig("def open(path: str, options: dict[str, typing.Any]) -> tuple[Session, list[Diagnostic]]"),
          "Of a file, and what was said while loading.")
      .def_static(
          "from_bytes",
          [](nb::bytes file, const std::string& name, const nb::dict& options) {
            const SessionOptions how = session_options(options);
            Bytes content(keep(file), file.data(), file.size());
            return heard([&](const Messages& hear) { return Session::load(std::move(content), name, how, hear); });
          },
          nb::arg("file"), nb::arg("name"), nb::arg("options"),
          nb::sig("def from_bytes(file: bytes, name: str, options: dict[str, typing.Any]) -> "
                  "tuple[Session, list[Diagnostic]]"),
          "Of a file's bytes, which are kept.")
      .def_static(
          "of_artifact",
          [](const Artifact& artifact, const nb::dict& options) {
            const SessionOptions how = session_options(options);
            return heard([&](const Messages& hear) { return Session::load(artifact, how, hear); });
          },
          nb::arg("artifact"), nb::arg("options"),
          nb::sig("def of_artifact(artifact: Artifact, options: dict[str, typing.Any]) -> "
                  "tuple[Session, list[Diagnostic]]"),
          "Of what was compiled, without a file.")
      .def_static(
          "of_program",
          [](const Program& program, const nb::dict& options) {
            const SessionOptions how = session_options(options);
            return heard([&](const Messages& hear) { return Session::load(program, how, hear); });
          },
          nb::arg("program"), nb::arg("options"),
          nb::sig("def of_program(program: Program, options: dict[str, typing.Any]) -> "
                  "tuple[Session, list[Diagnostic]]"),
          "Of an exported program, in floats.")
      .def_prop_ro(
          "inputs", [](const Session& s) { return s.inputs(); }, "The tensors that it takes.")
      .def_prop_ro(
          "outputs", [](const Session& s) { return s.outputs(); }, "What it gives.")
      .def_prop_ro(
          "arguments", [](const Session& s) { return s.arguments(); },
          "What the exported call takes: the tensors, and values that were fixed.")
      .def_prop_ro("input_tree", &Session::input_tree, "PyTorch's description of the call, of a .pte; empty: none.")
      .def_prop_ro("output_tree", &Session::output_tree, "PyTorch's description of the result, of a .pte; empty: none.")
      .def_prop_ro("device", &Session::device, "\"cpu\", \"ethos-u55-128 (simulated)\".")
      .def(
          "run",
          [](Session& s, nb::handle inputs) {
            const std::vector<InputTensor> tensors = all_lent(inputs);
            Result<std::vector<Output>> outputs = unlocked([&] { return s.run(tensors); });
            nb::list results;
            for (const Output& output : value_of(ended(std::move(outputs)))) results.append(given(output));
            return results;
          },
          nb::arg("inputs"),
          nb::sig("def run(self, inputs: collections.abc.Iterable[tuple[int, str, tuple[int, ...], "
                  "tuple[int, ...] | None]]) -> list[typing.Any]"),
          "Tensors as (address, dtype, sizes, strides) in; (an object that speaks DLPack, dtype) or a literal out.")
      .def(
          "warm",
          [](Session& s, nb::handle inputs) {
            const std::vector<InputTensor> tensors = all_lent(inputs);
            check(ended(unlocked([&] { return s.warm(tensors); })));
          },
          nb::arg("inputs"),
          nb::sig("def warm(self, inputs: collections.abc.Iterable[tuple[int, str, tuple[int, ...], "
                  "tuple[int, ...] | None]]) -> None"),
          "One run that changes no state; of no inputs: on likely ones.")
      .def_prop_ro(
          "states", [](const Session& s) { return s.states(); }, "What it keeps from run to run, by name.")
      .def(
          "state",
          [](const Session& s, const std::string& name) {
            return given({value_of(s.state(name)), {}});
          },
          nb::arg("name"), nb::sig("def state(self, name: str) -> tuple[typing.Any, str]"),
          "A copy of what a state holds now: (an object that speaks DLPack, dtype).")
      .def(
          "set_state",
          [](Session& s, const std::string& name, nb::handle content) {
            check(s.set_state(name, all_lent(nb::make_tuple(content)).front()));
          },
          nb::arg("name"), nb::arg("content"),
          nb::sig("def set_state(self, name: str, content: tuple[int, str, tuple[int, ...], tuple[int, ...] | None]) "
                  "-> None"),
          "A tensor as (address, dtype, sizes, strides).")
      .def(
          "reset", [](Session& s) { check(s.reset()); }, "The state is again the first one.")
      .def(
          "clone", [](const Session& s) { return value_of(s.clone()); }, "For another thread; weights are shared.")
      .def_prop_ro("useful_clones", &Session::useful_clones, "How many are worth having at work at once.")
      .def_prop_ro_static(
          "most_threads", [](nb::handle) { return SessionOptions::most_threads; }, "That a session takes.")
      .def_prop_ro("methods", &Session::methods, "The program's, in its order.")
      .def(
          "method", [](const Session& s, const std::string& name) { return value_of(s.method(name)); }, nb::arg("name"),
          "Another method of the program, next to this one.")
      .def(
          "measure", [](Session& s, bool on) { check(s.measure(on)); }, nb::arg("on"), "Keep times from now on.")
      .def(
          "profile",
          [](const Session& s) {
            nb::list rows;
            for (const OperationTime& t : value_of(s.profile()))
              rows.append(nb::make_tuple(t.operation, t.seconds, t.within, t.value, t.place));
            return rows;
          },
          nb::sig("def profile(self) -> list[tuple[str, float, str, str, str]]"),
          "(operation, seconds, the delegate around it, the value that it computes, its place in the program).");
}

}  // namespace tosaic::python
