// SPDX-License-Identifier: Apache-2.0
// Programs from files, bytes, and the memory of the process that exported them.
#include "bind.h"

namespace tosaic::python {
namespace {

// (name, object that owns the storage, its address, its bytes, dtype, sizes, strides, offset)
std::pair<std::string, HeldTensor> held_tensor(nb::handle row) {
  HeldTensor tensor;
  tensor.storage = Bytes(keep(row[1]), reinterpret_cast<const void*>(nb::cast<std::uintptr_t>(row[2])),
                         nb::cast<std::size_t>(row[3]));
  const InputTensor described = lent(nb::make_tuple(row[2], row[4], row[5], row[6]));
  tensor.dtype = described.dtype;
  tensor.sizes = described.sizes;
  tensor.strides = described.strides;
  tensor.offset = nb::cast<std::int64_t>(row[7]);
  return {nb::cast<std::string>(row[0]), std::move(tensor)};
}

std::size_t elements_of(const std::vector<std::int64_t>& sizes) {
  std::size_t count = 1;
  for (std::int64_t size : sizes) count *= static_cast<std::size_t>(size);
  return count;
}

// Dense ones, whose owner Python keeps in `owner`.
OwnedTensor owned_by(nb::handle owner, nb::handle described) {
  const InputTensor tensor = lent(described);
  return {tensor.dtype, tensor.sizes,
          Bytes(keep(owner), tensor.data, elements_of(tensor.sizes) * storage_size(tensor.dtype))};
}

auto read_held(nb::str json, nb::list tensors, nb::list samples, const std::string& name) {
  HeldProgram held;
  held.json = json.c_str();
  for (nb::handle row : tensors) held.tensors.push_back(held_tensor(row));
  for (nb::handle set : samples) {
    auto& sample = held.samples.emplace_back();
    for (nb::handle pair : set) sample.push_back(owned_by(pair[0], pair[1]));
  }
  return heard([&](const Messages& hear) { return Program::read(std::move(held), name, hear); });
}

nb::dict method_of(const MethodInfo& method) {
  nb::dict row;
  row["name"] = method.name;
  row["inputs"] = method.inputs;
  row["outputs"] = method.outputs;
  row["buffers"] = method.buffers;
  row["written_inputs"] = method.written_inputs;
  row["nodes"] = method.nodes;
  row["sample_sets"] = method.sample_sets;
  return row;
}

}  // namespace

void bind_program(nb::module_& m) {
  nb::class_<Program>(m, "Program", "A program that PyTorch exported.")
      .def_static(
          "open",
          [](const std::string& path) {
            return heard([&](const Messages& hear) { return Program::open(path, hear); });
          },
          nb::arg("path"), "Of a file, and what was said while reading.")
      .def_static(
          "from_bytes",
          [](nb::bytes file, const std::string& name) {
            Bytes content(keep(file), file.data(), file.size());
            return heard([&](const Messages& hear) { return Program::read(std::move(content), name, hear); });
          },
          nb::arg("file"), nb::arg("name"), "Of a file's bytes, which are kept.")
      .def_static(
          "held", &read_held, nb::arg("json"), nb::arg("tensors"), nb::arg("samples"), nb::arg("name"),
          nb::sig("def held(json: str, tensors: list[tuple[str, object, int, int, str, tuple[int, ...], "
                  "tuple[int, ...], int]], samples: list[list[tuple[object, tuple[int, str, tuple[int, ...], None]]]], "
                  "name: str) -> tuple[Program, list[Diagnostic]]"),
          "Of PyTorch's own objects: tensors as (name, owner, address, bytes, dtype, sizes, strides, offset).")
      .def_static(
          "together",
          [](const nb::dict& methods, const std::string& name) {
            std::vector<std::pair<std::string, Program>> parts;
            for (auto [method, program] : methods)
              parts.emplace_back(nb::cast<std::string>(method), nb::cast<Program>(program));
            return value_of(Program::together(parts, name));
          },
          nb::arg("methods"), nb::arg("name"),
          nb::sig("def together(methods: dict[str, Program], name: str) -> Program"), "As the methods of one program.")
      .def_prop_ro("name", &Program::name, "The file's or module's.")
      .def_prop_ro("torch_version", &Program::torch_version, "Of the PyTorch that exported it; empty: graph text.")
      .def_prop_ro("input_tree", &Program::input_tree, "PyTorch's pytree of the call, as JSON; empty: none.")
      .def_prop_ro("output_tree", &Program::output_tree, "PyTorch's pytree of the result, as JSON; empty: none.")
      .def_prop_ro(
          "methods",
          [](const Program& p) {
            nb::list rows;
            for (const MethodInfo& method : p.methods()) rows.append(method_of(method));
            return rows;
          },
          nb::sig("def methods(self) -> list[dict[str, typing.Any]]"),
          "One dict per method: name, inputs, outputs, buffers, written_inputs, nodes, sample_sets.")
      .def(
          "with_input_layout",
          [](const Program& p, const std::vector<std::string>& choices) {
            return value_of(p.with_input_layout(choices));
          },
          nb::arg("choices"), nb::sig("def with_input_layout(self, choices: list[str]) -> Program"),
          "With images as batch, height, width, channels.")
      .def(
          "sample_inputs",
          [](const Program& p, std::size_t set, const std::string& method) {
            nb::list list;
            for (const OwnedTensor& t : value_of(p.sample_inputs(set, method)))
              list.append(nb::make_tuple(given(t), std::string(name_of(t.dtype))));
            return list;
          },
          nb::arg("set") = 0, nb::arg("method") = "forward",
          nb::sig("def sample_inputs(self, set: int = 0, method: str = 'forward') -> list[tuple[typing.Any, str]]"),
          "The example inputs that the file holds, as (an object that speaks DLPack, dtype).");
}

}  // namespace tosaic::python
