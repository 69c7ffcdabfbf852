// SPDX-License-Identifier: Apache-2.0
#include "api/program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <chrono>
#include <cstring>

#include "api/guard.h"
#include "api/strided.h"
#include "base/system/clock.h"
#include "pipeline/input_layout.h"
#include "read/program_file.h"

namespace tosaic {
namespace {

MethodInfo describe(const Method& method) {
  const Graph& graph = method.graph;
  const auto infos = [&](const std::vector<ValueId>& values) {
    std::vector<TensorInfo> list;
    for (ValueId v : values) list.push_back(tensor_info(graph[v].name, graph[v].type));
    return list;
  };
  MethodInfo info;
  info.name = method.name;
  info.inputs = arguments_of(infos(graph.inputs), method.fixed_inputs);
  info.outputs = arguments_of(infos(graph.outputs), method.fixed_outputs);
  for (const State& state : graph.states) info.buffers.push_back(tensor_info(state.name, graph[state.input].type));
  info.written_inputs = method.written_inputs;
  info.nodes = graph.nodes.size();
  info.sample_sets = method.sample_inputs.size();
  return info;
}

// Row-major strides of these sizes.
std::vector<std::int64_t> dense_strides(const std::vector<std::int64_t>& sizes) {
  std::vector<std::int64_t> strides(sizes.size(), 1);
  for (std::size_t i = sizes.size(); i-- > 1;) strides[i - 1] = strides[i] * sizes[i];
  return strides;
}

Program described(std::shared_ptr<Program::Impl> impl, SteadyClock::time_point begin) {
  if (impl->exported.methods.size() > 1) keep_together(impl->exported);
  for (const Method& method : impl->exported.methods) impl->methods.push_back(describe(method));
  impl->read_seconds = std::chrono::duration<double>(SteadyClock::now() - begin).count();
  return Program(std::move(impl));
}

}  // namespace

Result<Program> read_program(Bytes file, const std::string& name, const Sink& messages) {
  const auto begin = SteadyClock::now();
  auto impl = std::make_shared<Program::Impl>();
  impl->name = name;
  TOSAIC_TRY(impl->exported, read_program_file(file, name, messages));
  impl->file = std::move(file);
  return described(std::move(impl), begin);
}

TensorInfo tensor_info(std::string name, const TensorType& type) {
  TensorInfo info;
  info.name = std::move(name);
  info.dtype = type.dtype;
  for (int i = 0; i < type.rank(); ++i) {
    const Dim dim = type.shape[i];
    const Bounds bounds = dim.bounds();
    info.dims.push_back({bounds.highest.value_or(-1), std::max<std::int64_t>(bounds.lowest.value_or(0), 0),
                         dim.is_number() ? "" : to_string(dim)});
  }
  if (type.scales) {
    info.scale = type.scales->scale;
    info.zero_point = type.scales->zero_point;
    info.axis = type.scales->axis;
  }
  return info;
}

std::string to_string(const TensorInfo& info) {
  std::string text;
  for (const Dimension& d : info.dims) text += (d.dynamic() ? d.expression : std::to_string(d.size)) + "x";
  return text + std::string(name_of(info.dtype));
}

Literal literal_of(const Attr& value) {
  if (const auto* b = std::get_if<bool>(&value)) return *b;
  if (const auto* i = std::get_if<std::int64_t>(&value)) return *i;
  if (const auto* d = std::get_if<double>(&value)) return *d;
  if (const auto* s = std::get_if<std::string>(&value)) return *s;
  if (const auto* list = std::get_if<std::vector<std::int64_t>>(&value)) return *list;
  if (const auto* list = std::get_if<std::vector<double>>(&value)) return *list;
  return std::monostate();
}

std::vector<Argument> arguments_of(std::vector<TensorInfo> tensors, const FixedValues& others) {
  std::vector<Argument> list;
  for (TensorInfo& t : tensors) {
    std::string name = t.name;
    list.push_back({std::move(name), std::move(t), {}});
  }
  for (const FixedValue& f : others)
    list.insert(list.begin() + static_cast<std::ptrdiff_t>(std::min(f.position, list.size())),
                {"", std::nullopt, literal_of(f.value)});
  return list;
}

OwnedTensor owned(const Tensor& tensor) { return {tensor.type.dtype, tensor.type.shape.sizes(), tensor.data}; }

Status check_owned(const OwnedTensor& tensor, const std::string& what) {
  std::size_t bytes = storage_size(tensor.dtype);
  bool wrong = bytes == 0;
  for (std::int64_t size : tensor.sizes)
    wrong = wrong || size < 0 || __builtin_mul_overflow(bytes, static_cast<std::size_t>(size), &bytes);
  if (!wrong && bytes == tensor.data.size() && (bytes == 0 || tensor.data.data())) return {};
  return error("tensor.wrong",
               fmt::format("{} is {} in {} bytes", what, to_string(TensorType{tensor.dtype, Shape(tensor.sizes), {}}),
                           tensor.data.null() ? 0 : tensor.data.size()))
      .hint("give it a known dtype, and as many bytes as its sizes need");
}

// Could a tensor of these sizes be one of that shape? Relations between its symbols are looked at when it runs.
static bool within(const Shape& sizes, const Shape& wanted) {
  if (sizes.rank() != wanted.rank()) return false;
  for (int d = 0; d < sizes.rank(); ++d)
    if (sizes.size(d) < 0 || !wanted[d].bounds().contain(sizes.size(d))) return false;
  return true;
}

Result<Tensor> borrowed(const InputTensor& tensor, const TensorType& wanted, const std::string& what) {
  const Shape shape(tensor.sizes);
  const TensorType type = wanted.with(shape);
  if (tensor.dtype != wanted.dtype || !within(shape, wanted.shape))
    return error("run.input-type", fmt::format("{} is {}, {} is wanted", what,
                                               to_string(TensorType{tensor.dtype, Shape(tensor.sizes), {}}),
                                               to_string(wanted.with(std::optional<Scales>{}))));
  if (!tensor.strides.empty() && tensor.strides.size() != tensor.sizes.size())
    return error("run.input-type",
                 fmt::format("{} has {} strides for {} dims", what, tensor.strides.size(), tensor.sizes.size()));
  if (std::ranges::find(tensor.sizes, 0) != tensor.sizes.end()) return Tensor{type, Bytes::copy("", 0)};
  if (!tensor.data) return error("run.null", fmt::format("{} has no memory: its pointer is null", what));
  const auto extent = extent_of(tensor.data, tensor.dtype, tensor.sizes, tensor.strides);
  if (!extent) return too_far("run.input-type", what);
  const auto begin = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(tensor.data));
  if (tensor.bytes != InputTensor::not_said &&
      (extent->begin < begin || static_cast<std::uint64_t>(extent->end - begin) > tensor.bytes))
    return error("run.input-type",
                 fmt::format("{} is {} in memory of {} bytes: its elements lie outside", what,
                             to_string(wanted.with(shape).with(std::optional<Scales>{})), tensor.bytes));
  const std::size_t bytes = type.storage_bytes();
  if (tensor.strides.empty() || tensor.strides == dense_strides(tensor.sizes))
    return Tensor{type, Bytes(nullptr, tensor.data, bytes)};
  std::byte* dense = nullptr;
  Bytes copy = Bytes::fresh(bytes, dense);
  const std::size_t size = storage_size(wanted.dtype);
  const auto* from = static_cast<const std::byte*>(tensor.data);
  for_each_strided(tensor.sizes, tensor.strides, [&](std::size_t i, std::int64_t offset) {
    std::memcpy(dense + i * size, from + offset * static_cast<std::int64_t>(size), size);
  });
  return Tensor{type, std::move(copy)};
}

Result<Program> Program::open(const std::string& path, const Messages& messages) {
  return guarded(path, [&]() -> Result<Program> {
    TOSAIC_TRY(Bytes file, map_file(path));
    return read_program(std::move(file), path, messages);
  });
}

Result<Program> Program::read(Bytes file, const std::string& name, const Messages& messages) {
  return guarded(name, [&] { return read_program(std::move(file), name, messages); });
}

Result<Program> Program::read(HeldProgram held, const std::string& name, const Messages& messages) {
  return guarded(name, [&]() -> Result<Program> {
    const auto begin = SteadyClock::now();
    auto impl = std::make_shared<Program::Impl>();
    impl->name = name;
    for (const std::vector<OwnedTensor>& set : held.samples)
      for (const OwnedTensor& tensor : set) TOSAIC_CHECK(check_owned(tensor, "an example input"));
    for (const auto& [tensor, content] : held.tensors)
      if (storage_size(content.dtype) == 0)
        return error("tensor.wrong", fmt::format("'{}' is of a dtype that there is not", tensor));
    TOSAIC_TRY(impl->exported, read_held(std::move(held), name, messages));
    return described(std::move(impl), begin);
  });
}

namespace {

bool is_identifier(std::string_view name) {
  const auto letter = [](char c) { return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  return !name.empty() && letter(name[0]) &&
         std::ranges::all_of(name, [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

}  // namespace

Result<Program> Program::together(const std::vector<std::pair<std::string, Program>>& methods,
                                  const std::string& name) {
  return guarded(name, [&]() -> Result<Program> {
    const auto begin = SteadyClock::now();
    if (methods.empty()) return error("model.methods", "no programs are given");
    auto impl = std::make_shared<Program::Impl>();
    impl->name = name;
    impl->exported.torch_version = methods[0].second.torch_version();
    for (const auto& [method, program] : methods) {
      if (!is_identifier(method))
        return error("model.methods", fmt::format("'{}' is no name of a method", method))
            .hint("letters, digits and _: prefill=prefill.pt2");
      if (std::ranges::find(impl->exported.methods, method, &Method::name) != impl->exported.methods.end())
        return error("model.methods", fmt::format("two methods are called '{}'", method));
      TOSAIC_TRY(const Method* only, only_method(program.impl().exported));
      Method& made = impl->exported.methods.emplace_back(*only);
      made.name = method;
      impl->parts.push_back(program);
    }
    return described(std::move(impl), begin);
  });
}

namespace {

// What a Program of nothing looks like: no name, no methods. Whoever wants a method of it says what is missing.
const std::shared_ptr<const Program::Impl>& no_program() {
  static const auto none = std::make_shared<const Program::Impl>();
  return none;
}

const std::string& tree_of(const ExportedProgram& program, std::string Method::*tree) {
  static const std::string none;
  return program.methods.empty() ? none : program.methods[0].*tree;
}

}  // namespace

Program::Program(std::shared_ptr<const Impl> impl) : impl_(impl ? impl : no_program()) {}
const std::string& Program::name() const { return impl_->name; }
const std::string& Program::torch_version() const { return impl_->exported.torch_version; }
const std::vector<MethodInfo>& Program::methods() const { return impl_->methods; }
const std::string& Program::input_tree() const { return tree_of(impl_->exported, &Method::input_spec); }
const std::string& Program::output_tree() const { return tree_of(impl_->exported, &Method::output_spec); }

Result<Program> Program::with_input_layout(const std::vector<std::string>& choices) const {
  if (choices == impl_->input_layout || choices.empty()) return *this;
  return guarded(name(), [&]() -> Result<Program> {
    if (!impl_->input_layout.empty())
      return error("option.layout", fmt::format("the program has another input layout already: {}",
                                                fmt::join(impl_->input_layout, ", ")))
          .hint("give the program as it was exported, or leave the option out");
    const auto begin = SteadyClock::now();
    auto made = std::make_shared<Impl>();
    made->name = impl_->name;
    made->file = impl_->file;
    made->parts = impl_->parts;
    made->input_layout = choices;
    TOSAIC_TRY(made->exported, tosaic::with_input_layout(impl_->exported, choices));
    return described(std::move(made), begin);
  });
}

Result<std::vector<OwnedTensor>> Program::sample_inputs(std::size_t set, const std::string& method) const {
  return guarded(name(), [&]() -> Result<std::vector<OwnedTensor>> {
    for (const Method& m : impl_->exported.methods) {
      if (m.name != method) continue;
      if (set >= m.sample_inputs.size())
        return error("program.sample", fmt::format("there is no set {} of sample inputs: the program holds {}", set,
                                                   m.sample_inputs.size()));
      std::vector<OwnedTensor> tensors;
      for (const Tensor& t : m.sample_inputs[set]) tensors.push_back(owned(t));
      return tensors;
    }
    return error("program.method", fmt::format("the program has no method '{}'", method));
  });
}

}  // namespace tosaic
