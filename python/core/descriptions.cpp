// SPDX-License-Identifier: Apache-2.0
// What the library tells as data: diagnostics, tensors, nodes, estimates, options.
#include "bind.h"

namespace tosaic::python {
namespace {

std::string name_of_severity(const Diagnostic& d) {
  return d.severity == Severity::error ? "error" : d.severity == Severity::warning ? "warning" : "note";
}

void bind_diagnostics(nb::module_& m) {
  nb::class_<Diagnostic>(m, "Diagnostic", "What went wrong, where, and what to do.")
      .def_prop_ro("severity", &name_of_severity, "\"error\", \"warning\" or \"note\".")
      .def_ro("code", &Diagnostic::code, "Stable and searchable: \"target.unsupported\".")
      .def_ro("message", &Diagnostic::message, "One sentence.")
      .def_prop_ro(
          "file", [](const Diagnostic& d) { return d.place.file; }, "The user's source; empty: not known.")
      .def_prop_ro(
          "line", [](const Diagnostic& d) { return d.place.line; }, "1-based; 0: none.")
      .def_prop_ro(
          "text", [](const Diagnostic& d) { return d.place.text; }, "The source line itself.")
      .def_ro("context", &Diagnostic::context, "\"in module self.act (GELU)\".")
      .def_ro("notes", &Diagnostic::notes, "Facts: what disagrees with what.")
      .def_ro("help", &Diagnostic::help, "The hint: what to do.")
      .def_prop_ro(
          "reason", [](const Diagnostic& d) { return one_line(d); }, "In one line, for tables.")
      .def("render", &render, nb::arg("colour") = false, "As a compiler prints it.")
      .def("__str__", [](const Diagnostic& d) { return render(d, false); })
      .def("__repr__", [](const Diagnostic& d) { return "<" + name_of_severity(d) + " " + d.code + ">"; });
}

void bind_tensors(nb::module_& m) {
  nb::class_<Dimension>(m, "Dimension", "A number, or a size that is known when the program runs.")
      .def_ro("size", &Dimension::size, "Of a dynamic one the upper bound; -1: it has none.")
      .def_ro("lowest", &Dimension::lowest, "Equal to size: a plain number.")
      .def_ro("expression", &Dimension::expression, "\"s77\"; empty: a plain number.");
  nb::class_<TensorInfo>(m, "TensorInfo", "A tensor's name, dtype and dims, and what its integers stand for.")
      .def_ro("name", &TensorInfo::name, "Empty where the file has none.")
      .def_prop_ro(
          "dtype", [](const TensorInfo& t) { return std::string(name_of(t.dtype)); }, "\"f32\", \"i8\".")
      .def_ro("dims", &TensorInfo::dims, "Outermost first; none: a scalar.")
      .def_prop_ro("sizes", &TensorInfo::sizes, "Upper bounds of the dims.")
      .def_ro("scale", &TensorInfo::scale, "real = scale * (code - zero_point); empty: the values themselves.")
      .def_ro("zero_point", &TensorInfo::zero_point, "One per scale: the code of zero.")
      .def_ro("axis", &TensorInfo::axis, "Which dim has a scale each; -1: one scale for all.")
      .def("__repr__", [](const TensorInfo& t) { return t.name + ": " + to_string(t); });
  nb::class_<Argument>(m, "Argument", "One input or output, in the order of the flattened pytree.")
      .def_ro("name", &Argument::name, "As in the exported signature.")
      .def_ro("tensor", &Argument::tensor, "None: no tensor, but a value that was fixed when exporting.")
      .def_prop_ro(
          "literal", [](const Argument& a) { return given(a.literal); },
          nb::sig("def literal(self) -> int | float | bool | str | list[int] | list[float] | None"),
          "The value where `tensor` is None.")
      .def("__repr__", [](const Argument& a) {
        return a.tensor ? a.name + ": " + to_string(*a.tensor) : nb::cast<std::string>(nb::repr(given(a.literal)));
      });
}

void bind_nodes(nb::module_& m) {
  nb::class_<NodeVerdict>(m, "NodeVerdict", "What became of one node of the exported graph.")
      .def_ro("name", &NodeVerdict::name, "As in ep.graph: \"conv2d_4\".")
      .def_ro("op", &NodeVerdict::op, "\"aten.conv2d.default\".")
      .def_ro("module", &NodeVerdict::module, "\"features.3.conv\"; empty: not known.")
      .def_ro("place", &NodeVerdict::place, "\"model.py:6\"; empty: not known.")
      .def_ro("taken", &NodeVerdict::taken, "All that it became runs in delegates.")
      .def_ro("pieces", &NodeVerdict::pieces, "The nodes that it became.")
      .def_ro("delegates", &NodeVerdict::delegates, "In which, ascending; of supports none.")
      .def_ro("reason", &NodeVerdict::reason, "Why the first piece stays outside; None: taken.")
      .def("__repr__", [](const NodeVerdict& v) {
        return "<" + v.name + " " + v.op + (v.taken ? " taken>" : " outside: " + one_line(*v.reason) + ">");
      });
  nb::class_<NpuLayer>(m, "NpuLayer", "One NPU operator as Vela's estimator sees it.")
      .def_ro("name", &NpuLayer::name, "Of the TOSA tensor that it writes.")
      .def_ro("operation", &NpuLayer::operation, "Vela's kind: \"Conv2D\".")
      .def_ro("processor", &NpuLayer::processor, "\"NPU\" or \"CPU\".")
      .def_ro("node", &NpuLayer::node, "In the exported graph: \"conv2d_4\"; several where they became one.")
      .def_ro("module", &NpuLayer::module, "That node's module: \"features.3.conv\".")
      .def_ro("place", &NpuLayer::place, "That node's line: \"model.py:6\".")
      .def_ro("cycles", &NpuLayer::cycles, "NPU cycles of one inference.")
      .def_ro("macs", &NpuLayer::macs, "Multiplications with addition of one inference.")
      .def_ro("utilisation_percent", &NpuLayer::utilisation_percent, "Of the multipliers, 0 to 100.");
  nb::class_<NpuEstimate>(m, "NpuEstimate", "Vela's figures: estimates, not measurements. Memory in bytes.")
      .def_ro("accelerator", &NpuEstimate::accelerator, "\"ethos-u55-128\".")
      .def_ro("system_config", &NpuEstimate::system_config,
              "The section of Vela's configuration with clocks and memories.")
      .def_ro("memory_mode", &NpuEstimate::memory_mode, "The section that says what lies where.")
      .def_ro("cycles", &NpuEstimate::cycles, "NPU cycles of one inference.")
      .def_ro("inferences_per_second", &NpuEstimate::inferences_per_second, "At the clock of `system_config`.")
      .def_ro("macs", &NpuEstimate::macs, "Multiplications with addition of one inference.")
      .def_ro("sram_bytes", &NpuEstimate::sram_bytes, "Peak use of on-chip memory.")
      .def_ro("dram_bytes", &NpuEstimate::dram_bytes, "Peak use of DRAM.")
      .def_ro("flash_bytes", &NpuEstimate::flash_bytes, "Commands and weights.")
      .def_ro("layers", &NpuEstimate::layers, "One per NPU operator, in order of execution.");
}

void bind_options(nb::module_& m) {
  nb::class_<OptionInfo>(m, "OptionInfo", "One option: what it takes and what it does.")
      .def_ro("name", &OptionInfo::name, "As on the command line, without dashes: \"memory-mode\".")
      .def_prop_ro(
          "kind",
          [](const OptionInfo& o) {
            constexpr const char* names[] = {"flag", "text", "file", "number", "list", "pairs", "size"};
            return names[static_cast<int>(o.kind)];
          },
          "\"flag\", \"text\", \"file\", \"number\", \"list\" or \"pairs\".")
      .def_ro("default", &OptionInfo::default_value, "As text; empty: none.")
      .def_ro("sentence", &OptionInfo::sentence, "What it does.")
      .def_ro("allowed", &OptionInfo::allowed, "The values that it takes; empty: any of its kind.")
      .def_ro("alias", &OptionInfo::alias, "Another name; empty: none.");
  nb::class_<TargetInfo>(m, "TargetInfo", "A target and the options that it alone, or its family, understands.")
      .def_ro("name", &TargetInfo::name, "What `compile` takes as target: \"ethos-u55-128\".")
      .def_ro("summary", &TargetInfo::summary, "In one sentence.")
      .def_ro("family", &TargetInfo::family, "Whose options are told together: \"Ethos-U\".")
      .def_ro("tosa_spec", &TargetInfo::tosa_spec, "The TOSA that it takes: \"TOSA-1.0+INT\".")
      .def_ro("options", &TargetInfo::options, "Those beyond every target's.")
      .def_ro("emits", &TargetInfo::emits, "A piece of its own: \"vgf\", \"vela\"; empty: none.")
      .def("__repr__", [](const TargetInfo& t) { return t.name + ": " + t.summary; });
  nb::class_<OperatorInfo>(m, "OperatorInfo", "A PyTorch operator that tosaic lowers.")
      .def_ro("name", &OperatorInfo::name, "\"conv2d\".")
      .def_ro("schemas", &OperatorInfo::schemas, "As PyTorch prints them, one per overload.")
      .def_ro("summary", &OperatorInfo::summary, "What it computes, in one sentence.")
      .def_ro("rule", &OperatorInfo::rule, "How its integer form follows: \"pointwise\", \"transparent\", ...");
  m.def(
      "targets", [] { return targets(); }, "Every target that `compile` knows, with its options.");
  m.def(
      "compile_options", [] { return compile_options(); }, "The options of every target.");
  m.def(
      "operators", [] { return operators(); }, "Every PyTorch operator that is lowered.");
  m.def(
      "knows", [](const std::string& overload) { return knows_operator(overload); }, nb::arg("overload"),
      "Is there a lowering of this overload, \"aten.relu.default\"?");
  m.def(
      "explain_error", [](const std::string& code) { return value_of(explain_error(code)); }, nb::arg("code") = "",
      "What an error code or a family of codes means, and what to do; without it: the list of families.");
}

}  // namespace

void bind_descriptions(nb::module_& m) {
  bind_diagnostics(m);
  bind_tensors(m);
  bind_nodes(m);
  bind_options(m);
}

}  // namespace tosaic::python
