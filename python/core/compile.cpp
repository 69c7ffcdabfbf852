// SPDX-License-Identifier: Apache-2.0
// The compiler, called without the interpreter's lock; what Python has to say on the way comes through callbacks.
#include <nanobind/stl/map.h>

#include "asked.h"

namespace tosaic::python {
namespace {

// Python's part in a compilation. Its exceptions end the compilation, and are raised when it has ended.
class Calls : public Asked {
 public:
  // `samples`: by the method's name (empty: the only one), an iterator, or the path of a file that the core reads.
  Calls(const Program& program, nb::object progress, const nb::dict& samples) : progress_(std::move(progress)) {
    for (const auto& [name, given] : samples) {
      const auto method = nb::cast<std::string>(name);
      if (nb::isinstance<nb::str>(given))
        samples_.emplace_back(method, value_of(read_samples(nb::cast<std::string>(given), program, method)));
      else
        samples_.emplace_back(method, Asked::samples(nb::borrow(given)));
    }
  }

  Callbacks callbacks() {
    Callbacks to;
    to.message = [this](const Diagnostic& d) { said.push_back(d); };
    if (!progress_.is_none())
      to.progress = [this](std::string_view stage, std::size_t done, std::size_t total) {
        in_python([&] { progress_(std::string(stage), done, total); });
      };
    to.cancelled = [this] { return cancelled(); };
    return to;
  }

  const MethodSamples& samples() const { return samples_; }
  // Of a program with one method; empty: none are given.
  SampleSource only_samples() const { return samples_.empty() ? SampleSource() : samples_.front().second; }

  std::vector<Diagnostic> said;

 private:
  nb::object progress_;
  MethodSamples samples_;
};

// body(callbacks, samples) without the lock.
template <class F>
nb::tuple called(const Program& program, nb::object progress, const nb::dict& samples, F&& body) {
  Calls calls(program, std::move(progress), samples);
  auto result = unlocked([&] { return body(calls.callbacks(), calls.samples()); });
  auto value = calls.end(std::move(result));
  return nb::make_tuple(std::move(value), calls.said);
}

nb::dict summary_of(const Summary& s) {
  nb::dict to;
  to["target"] = s.target;
  to["tosa_spec"] = s.tosa_spec;
  to["nodes"] = s.exported;
  to["delegated"] = s.delegated;
  to["delegates"] = s.delegates;
  to["pieces"] = s.nodes.size() - s.conversions;
  to["stage_seconds"] = s.stage_seconds;
  to["peer_seconds"] = s.peer_seconds;
  to["model_bytes"] = s.model_bytes;
  to["program_bytes"] = s.program_bytes;
  to["payload_bytes"] = s.payload_bytes;
  to["tosa_operators"] = s.tosa_operators;
  to["estimates"] = s.estimates;
  to["samples"] = s.samples;
  to["self_check_seconds"] = s.self_check_seconds;
  to["printed"] = s.printed;
  to["messages"] = s.messages;
  return to;
}

}  // namespace

void bind_compile(nb::module_& m) {
  nb::class_<Artifact>(m, "Artifact", "What a compilation leaves.")
      .def(
          "summary", [](const Artifact& a) { return summary_of(a.summary()); },
          nb::sig("def summary(self) -> dict[str, typing.Any]"), "The attributes of tosaic.Summary.")
      .def(
          "firmware",
          [](const Artifact& a, const std::string& name) {
            return value_of(unlocked([&] { return a.firmware(name); }));
          },
          nb::arg("name"), "C sources by file name. An empty name: the model's.")
      .def("pieces", &Artifact::pieces, "The names that `piece` takes.")
      .def(
          "piece",
          [](const Artifact& a, const std::string& name) {
            Result<Bytes> piece = unlocked([&] { return a.piece(name); });
            return bytes_of(value_of(std::move(piece)));
          },
          nb::arg("name"), "Made when asked for.")
      .def(
          "manifest", [](const Artifact& a) { return value_of(a.manifest()); }, "As JSON.")
      .def(
          "report",
          [](const Artifact& a, const std::string& profile, const std::string& comparison, const std::string& format) {
            return value_of(unlocked([&]() -> Result<std::string> {
              auto made = report(a, {.profile = profile, .comparison = comparison, .manifest = ""});
              if (!made.ok()) return made.error();
              return made->in(format);
            }));
          },
          nb::arg("profile"), nb::arg("comparison"), nb::arg("format"),
          "`format`: html, json or mlia-json. `profile` and `comparison`: JSON, which may be empty.");
  m.def(
      "compile",
      [](const Program& program, const std::string& target, const nb::dict& options, nb::object progress,
         const nb::dict& samples) {
        const Options how = options_of(options);
        return called(program, std::move(progress), samples,
                      [&](const Callbacks& callbacks, const MethodSamples& given) {
                        return compile(program, target, how, callbacks, given);
                      });
      },
      nb::arg("program"), nb::arg("target"), nb::arg("options"), nb::arg("progress").none(), nb::arg("samples"),
      nb::sig("def compile(program: Program, target: str, options: dict[str, list[str]], "
              "progress: collections.abc.Callable[[str, int, int], object] | None, "
              "samples: dict[str, collections.abc.Iterator[tuple[list[object], list[tuple[int, str, tuple[int, ...], "
              "tuple[int, ...] | None]]]] | str]) -> tuple[Artifact, list[Diagnostic]]"),
      "The artifact, and what was said. Samples by the method's name, empty for the only one: a file's path, or what "
      "owns "
      "the memory and its tensors as (address, dtype, sizes, strides).");
  nb::class_<Comparison>(m, "Comparison", "Where a program loses accuracy in integers.")
      .def(
          "text", [](const Comparison& c, std::size_t limit) { return comparison_text(c, limit); }, nb::arg("limit"),
          "As a table of the worst layers; 0: of all.")
      .def("json", &comparison_json, "All of it.");
  m.def(
      "compare",
      [](const Program& program, const std::string& target, const nb::dict& options, nb::object progress,
         const nb::dict& samples, const nb::dict& shown, const std::vector<std::int64_t>& labels, bool on_device) {
        const Options how = options_of(options);
        Calls calls(program, std::move(progress), samples), others(program, nb::none(), shown);
        auto found = unlocked([&] {
          Evaluation on(others.only_samples(), labels);
          on.on_device = on_device;
          return compare(program, target, how, calls.callbacks(), calls.only_samples(), on);
        });
        others.rethrow();
        Comparison value = calls.end(std::move(found));
        return nb::make_tuple(std::move(value), calls.said);
      },
      nb::arg("program"), nb::arg("target"), nb::arg("options"), nb::arg("progress").none(), nb::arg("samples"),
      nb::arg("shown"), nb::arg("labels"), nb::arg("on_device"),
      nb::sig("def compare(program: Program, target: str, options: dict[str, list[str]], "
              "progress: collections.abc.Callable[[str, int, int], object] | None, "
              "samples: dict[str, collections.abc.Iterator[tuple[list[object], list[tuple[int, str, tuple[int, ...], "
              "tuple[int, ...] | None]]]] | str], "
              "shown: dict[str, collections.abc.Iterator[tuple[list[object], list[tuple[int, str, tuple[int, ...], "
              "tuple[int, ...] | None]]]] | str], labels: collections.abc.Sequence[int], on_device: bool) "
              "-> tuple[Comparison, list[Diagnostic]]"),
      "The comparison, and what was said. Samples as of `compile`; `shown`: those to compare on, "
      "with their labels, which may be none.");
  nb::class_<Tuning>(m, "Tuning", "Which calls of an int8 program get 16 bits.")
      .def("text", &tuning_text, "As a table.")
      .def("json", &tuning_json, "All of it.");
  m.def(
      "tune",
      [](const Program& program, const std::string& target, const nb::dict& options, const std::string& budget,
         nb::object progress, const nb::dict& samples, const nb::dict& shown, const std::vector<std::int64_t>& labels) {
        const Options how = options_of(options);
        std::optional<Budget> asked;
        if (!budget.empty()) asked = value_of(read_budget(budget));
        Calls calls(program, std::move(progress), samples), others(program, nb::none(), shown);
        auto found = unlocked([&] {
          return tune(program, target, how, asked, calls.callbacks(), calls.only_samples(),
                      {others.only_samples(), labels});
        });
        others.rethrow();
        Tuning value = calls.end(std::move(found));
        return nb::make_tuple(std::move(value), calls.said);
      },
      nb::arg("program"), nb::arg("target"), nb::arg("options"), nb::arg("budget"), nb::arg("progress").none(),
      nb::arg("samples"), nb::arg("shown"), nb::arg("labels"),
      nb::sig("def tune(program: Program, target: str, options: dict[str, list[str]], budget: str, "
              "progress: collections.abc.Callable[[str, int, int], object] | None, "
              "samples: dict[str, collections.abc.Iterator[tuple[list[object], list[tuple[int, str, tuple[int, ...], "
              "tuple[int, ...] | None]]]] | str], "
              "shown: dict[str, collections.abc.Iterator[tuple[list[object], list[tuple[int, str, tuple[int, ...], "
              "tuple[int, ...] | None]]]] | str], labels: collections.abc.Sequence[int]) "
              "-> tuple[Tuning, list[Diagnostic]]"),
      "What was measured and chosen, and what was said. `budget` may be empty. Samples as of `compare`.");
  m.def(
      "piece_in_file", [](const std::string& path) { return value_of(piece_in_file(path)); }, nb::arg("path"),
      "The piece that a file holds, as its ending says; \"manifest\" of .json.");
  m.def(
      "explain",
      [](const Program& program, const std::string& target, const nb::dict& options) {
        const Options how = options_of(options);
        return called(program, nb::none(), nb::dict(), [&](const Callbacks& callbacks, const MethodSamples&) {
          return explain(program, target, how, callbacks);
        });
      },
      nb::arg("program"), nb::arg("target"), nb::arg("options"),
      nb::sig("def explain(program: Program, target: str, options: dict[str, list[str]]) -> "
              "tuple[Artifact, list[Diagnostic]]"),
      "An artifact without a program: its summary is what counts.");
  m.def(
      "supports",
      [](const Program& program, const std::string& target, const nb::dict& options) {
        const Options how = options_of(options);
        auto verdicts = unlocked([&] { return supports(program, target, how); });
        return value_of(std::move(verdicts));
      },
      nb::arg("program"), nb::arg("target"), nb::arg("options"),
      nb::sig("def supports(program: Program, target: str, options: dict[str, list[str]]) -> list[NodeVerdict]"),
      "A verdict per node of the exported graph.");
  m.def(
      "plan",
      [](const Program& program, const std::string& target, const nb::dict& options) {
        PrintedPlan printed = value_of(plan(program, target, options_of(options)));
        return std::make_pair(std::move(printed.text), std::move(printed.json));
      },
      nb::arg("program"), nb::arg("target"), nb::arg("options"),
      nb::sig("def plan(program: Program, target: str, options: dict[str, list[str]]) -> tuple[str, str]"),
      "The quantisation plan as text and as JSON.");
  m.def(
      "annotation",
      [](const Program& program, const std::string& target, const nb::dict& options, bool in_pieces) {
        return value_of(annotation(program, target, options_of(options), in_pieces));
      },
      nb::arg("program"), nb::arg("target"), nb::arg("options"), nb::arg("in_pieces"),
      nb::sig("def annotation(program: Program, target: str, options: dict[str, list[str]], in_pieces: bool) -> str"),
      "The plan as JSON, for PT2E's quantizers.");
  m.def(
      "equalized_parameters",
      [](const Program& program, const std::string& target, const nb::dict& options, const nb::dict& samples) {
        const Options how = options_of(options);
        Calls calls(program, nb::none(), samples);
        auto found = unlocked(
            [&] { return equalized_parameters(program, target, how, calls.callbacks(), calls.only_samples()); });
        nb::dict all;
        for (const auto& [name, tensor] : calls.end(std::move(found))) all[nb::cast(name)] = given(tensor);
        return all;
      },
      nb::arg("program"), nb::arg("target"), nb::arg("options"), nb::arg("samples"),
      nb::sig("def equalized_parameters(program: Program, target: str, options: dict[str, list[str]], "
              "samples: dict[str, collections.abc.Iterator[tuple[list[object], list[tuple[int, str, tuple[int, ...], "
              "tuple[int, ...] | None]]]] | str]) -> dict[str, typing.Any]"),
      "Parameters with which small channels are larger, by their names, as objects that speak DLPack; only those that "
      "change. For PT2E's quantizers. Samples as of `compile`.");
}

}  // namespace tosaic::python
