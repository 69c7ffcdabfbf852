// SPDX-License-Identifier: Apache-2.0
// Sessions: what runs.
#include "bind.h"

namespace tosaic::python {
namespace {

SessionOptions session_options(const nb::dict& given) {
  SessionOptions options;
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

}  // namespace

void bind_session(nb::module_& m) {
  nb::class_<Session>(m, "Session")
      .def_static("open",
                  [](const std::string& path, const nb::dict& options) {
                    const SessionOptions how = session_options(options);
                    return heard([&](const Messages& hear) { return Session::open(path, how, hear); });
                  })
      .def_static(
          "from_bytes",
          [](nb::bytes file, const std::string& name, const nb::dict& options) {
            const SessionOptions how = session_options(options);
            Bytes content(keep(file), file.data(), file.size());
            return heard([&](const Messages& hear) { return Session::load(std::move(content), name, how, hear); });
          })
      .def_static("of_artifact",
                  [](const Artifact& artifact, const nb::dict& options) {
                    const SessionOptions how = session_options(options);
                    return heard([&](const Messages& hear) { return Session::load(artifact, how, hear); });
                  })
      .def_static("of_program",
                  [](const Program& program, const nb::dict& options) {
                    const SessionOptions how = session_options(options);
                    return heard([&](const Messages& hear) { return Session::load(program, how, hear); });
                  })
      .def_prop_ro("inputs", [](const Session& s) { return s.inputs(); })
      .def_prop_ro("outputs", [](const Session& s) { return s.outputs(); })
      .def_prop_ro("device", &Session::device)
      .def("run",
           [](Session& s, nb::handle inputs) {
             const std::vector<InputTensor> tensors = all_lent(inputs);
             Result<std::vector<Output>> outputs = unlocked([&] { return s.run(tensors); });
             nb::list results;
             for (const Output& output : value_of(std::move(outputs))) results.append(given(output));
             return results;
           })
      .def("reset", [](Session& s) { check(s.reset()); })
      .def("clone", [](const Session& s) { return value_of(s.clone()); })
      .def("measure", [](Session& s, bool on) { check(s.measure(on)); })
      .def("profile", [](const Session& s) {
        nb::list rows;
        for (const OperationTime& t : value_of(s.profile()))
          rows.append(nb::make_tuple(t.operation, t.seconds, t.within));
        return rows;
      });
}

}  // namespace tosaic::python
