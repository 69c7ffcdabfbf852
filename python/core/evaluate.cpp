// SPDX-License-Identifier: Apache-2.0
// A program on a whole data set. Sessions run without the interpreter's lock; samples and metrics are Python's.
#include "bind.h"

namespace tosaic::python {
namespace {

// What Python is asked by the threads that evaluate. Its exceptions end the evaluation, and are raised when it has
// ended.
class Asked {
 public:
  Asked(nb::object progress, nb::object each) : progress_(std::move(progress)), each_(std::move(each)) {}

  // Samples from an iterator of (owners, described tensors, labels, name); their memory is copied, for the next one may
  // be put in the same place.
  LabelledData samples(const nb::object& iterator, std::size_t expected) {
    return {[this, from = iterator.ptr()](LabelledSample& sample) -> Result<bool> {
              bool more = false;
              in_python([&] {
                const nb::object next = nb::steal(PyIter_Next(from));
                if (!next.is_valid()) {
                  if (PyErr_Occurred()) throw nb::python_error();
                  return;
                }
                sample.inputs.clear();
                for (const InputTensor& x : all_lent(next[1])) sample.inputs.push_back(copied(x));
                sample.labels = nb::cast<std::vector<std::int64_t>>(next[2]);
                sample.name = nb::cast<std::string>(next[3]);
                more = true;
              });
              if (raised_) return ended();
              return more;
            },
            expected,
            {}};
  }

  EvaluateOptions options() {
    EvaluateOptions to;
    if (!progress_.is_none())
      to.progress = [this](std::size_t done, std::size_t expected) {
        in_python([&] { progress_("evaluate", done, expected); });
      };
    if (!each_.is_none())
      to.each = [this](std::size_t sample, const std::vector<Output>& outputs, const std::vector<Output>& floats) {
        in_python([&] { each_(sample, list_of(outputs), list_of(floats)); });
      };
    // Ctrl-C is a signal that Python keeps until somebody asks.
    to.cancelled = [this] {
      in_python([] {
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
      });
      return raised_ != nullptr;
    };
    return to;
  }

  void rethrow() const {
    if (raised_ != nullptr) std::rethrow_exception(raised_);
  }

 private:
  static OwnedTensor copied(const InputTensor& x) {
    std::size_t bytes = storage_size(x.dtype);
    for (const std::int64_t size : x.sizes) bytes *= static_cast<std::size_t>(size);
    return {x.dtype, x.sizes, Bytes::copy(x.data, bytes)};
  }
  static nb::list list_of(const std::vector<Output>& outputs) {
    nb::list list;
    for (const Output& output : outputs) list.append(given(output));
    return list;
  }
  static Diagnostic ended() {
    Diagnostic why;
    why.code = "run.cancelled";
    why.message = "the samples ended with an exception";
    return why;
  }

  template <class F>
  void in_python(F&& body) {
    const nb::gil_scoped_acquire held;
    if (raised_) return;
    try {
      body();
    } catch (...) { raised_ = std::current_exception(); }
  }

  nb::object progress_, each_;
  std::exception_ptr raised_;
};

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
        Asked asked(std::move(progress), std::move(each));
        EvaluateOptions options = asked.options();
        options.workers = workers;
        options.limit = limit;
        options.worst = worst;
        const Session* in_floats = floats ? *floats : nullptr;
        std::optional<std::string> path;
        if (nb::isinstance<nb::str>(samples)) path = nb::cast<std::string>(samples);
        const LabelledData given = path ? LabelledData() : asked.samples(samples, expected);
        std::vector<Diagnostic> said;
        auto found = unlocked([&]() -> Result<Evaluated> {
          if (!path) return evaluate(session, in_floats, given, options);
          auto data = open_data_set(*path, labels, in_floats ? in_floats->inputs() : session.inputs(),
                                    [&](const Diagnostic& d) { said.push_back(d); });
          if (!data.ok()) return data.error();
          return evaluate(session, in_floats, *data, options);
        });
        asked.rethrow();
        Evaluated value = value_of(std::move(found));
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
