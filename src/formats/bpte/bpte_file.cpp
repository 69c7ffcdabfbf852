// SPDX-License-Identifier: Apache-2.0
#include "formats/bpte/bpte_file.h"

#include <fmt/format.h>
#include <algorithm>
#include <cstring>

#include "bundled_program_generated.h"
#include "formats/pte/layout.h"

namespace tosaic::bpte {
namespace {

namespace s = bpte_schema;

constexpr std::uint32_t schema_version = 2;  // as ExecuTorch 1.5 writes it; it looks at the identifier alone

Diagnostic corrupt(std::string message) { return error("bpte.corrupt", std::move(message)); }

template <class T>
std::uint32_t size_of(const T* list) {
  return list ? list->size() : 0;
}

// The same elements, outermost dim first. `order` says which dim is outermost in `data`, and so on.
Bytes row_major(const TensorType& type, const Bytes& data, const flatbuffers::Vector<std::uint8_t>& order) {
  const std::size_t size = storage_size(type.dtype), rank = order.size();
  std::vector<std::size_t> stride(rank), index(rank, 0);
  std::size_t run = size;
  for (std::size_t k = rank; k-- > 0;
       run *= static_cast<std::size_t>(type.shape.size(order.Get(static_cast<flatbuffers::uoffset_t>(k)))))
    stride[order.Get(static_cast<flatbuffers::uoffset_t>(k))] = run;
  std::vector<std::byte> result(data.size());
  for (std::size_t to = 0; to < result.size(); to += size) {
    std::size_t from = 0;
    for (std::size_t d = 0; d < rank; ++d) from += index[d] * stride[d];
    std::memcpy(result.data() + to, data.data() + from, size);
    for (std::size_t d = rank; d-- > 0;) {
      if (++index[d] < static_cast<std::size_t>(type.shape.size(static_cast<int>(d)))) break;
      index[d] = 0;
    }
  }
  return Bytes::of(std::move(result));
}

Result<Tensor> tensor_of(const s::Tensor& from, const Bytes& file) {
  const auto dtype = pte::dtype_of(static_cast<pte_schema::ScalarType>(from.scalar_type()));
  if (!dtype) return corrupt(fmt::format("a tensor has the element type {}, which is none", from.scalar_type()));
  std::vector<std::int64_t> sizes;
  std::size_t bytes = storage_size(*dtype);
  for (std::uint32_t d = 0; d < size_of(from.sizes()); ++d) {
    sizes.push_back(from.sizes()->Get(d));
    if (sizes.back() < 0 || __builtin_mul_overflow(bytes, static_cast<std::size_t>(sizes.back()), &bytes))
      return corrupt(fmt::format("a tensor has a dimension of {}", sizes.back()));
  }
  if (sizes.size() > static_cast<std::size_t>(pte::max_rank))
    return corrupt(fmt::format("a tensor has {} dimensions", sizes.size()));
  Bytes none = Bytes::of(std::vector<std::byte>());
  Tensor tensor{{*dtype, Shape(sizes), {}}, std::move(none)};
  if (size_of(from.data()) != bytes)
    return corrupt(fmt::format("a tensor {} has {} bytes of data", to_string(tensor.type), size_of(from.data())));
  if (bytes == 0) return tensor;
  tensor.data = file.slice(
      static_cast<std::size_t>(reinterpret_cast<const std::byte*>(from.data()->data()) - file.data()), bytes);
  const auto* order = from.dim_order();
  if (size_of(order) == 0) return tensor;
  std::vector<std::uint8_t> dims(order->begin(), order->end());
  const bool rows = std::is_sorted(dims.begin(), dims.end());
  std::sort(dims.begin(), dims.end());
  for (std::size_t d = 0; d < dims.size(); ++d)
    if (dims[d] != d || dims.size() != sizes.size()) return corrupt("a tensor's order of dims is no order of its dims");
  if (!rows) tensor.data = row_major(tensor.type, tensor.data, *order);
  return tensor;
}

Result<std::vector<Value>> values_of(const flatbuffers::Vector<flatbuffers::Offset<s::Value>>* list,
                                     const Bytes& file) {
  std::vector<Value> values;
  for (std::uint32_t i = 0; i < size_of(list); ++i) {
    const s::Value* from = list->Get(i);
    if (const auto* tensor = from->value_as_Tensor()) {
      TOSAIC_TRY(Tensor read, tensor_of(*tensor, file));
      values.emplace_back(std::move(read));
    } else if (const auto* number = from->value_as_Int()) {
      values.emplace_back(number->value());
    } else if (const auto* boolean = from->value_as_Bool()) {
      values.emplace_back(boolean->value());
    } else if (const auto* real = from->value_as_Double()) {
      values.emplace_back(real->value());
    } else {
      return corrupt("a case has a value that is neither a tensor nor a scalar");
    }
  }
  return values;
}

Result<File> checked(Bytes file) {
  if (!is_bpte(file) || file.text().substr(4, 4) != s::BundledProgramIdentifier())
    return error("bpte.version", "the bundled program has a format that this does not read; BP08 is read");
  if (reinterpret_cast<std::uintptr_t>(file.data()) % 16 != 0) file = Bytes::copy(file.data(), file.size());
  const std::size_t buffer = std::min<std::size_t>(file.size(), FLATBUFFERS_MAX_BUFFER_SIZE - 1);
  const auto* data = reinterpret_cast<const std::uint8_t*>(file.data());
  flatbuffers::Verifier verifier(data, buffer, 64, static_cast<flatbuffers::uoffset_t>(buffer / 4 + 16));
  if (!s::VerifyBundledProgramBuffer(verifier)) return corrupt("an offset or a length points outside the file");
  const s::BundledProgram* root = s::GetBundledProgram(data);
  if (size_of(root->program()) == 0) return corrupt("there is no program in it");
  File found;
  found.program = file.slice(static_cast<std::size_t>(root->program()->data() - data), root->program()->size());
  for (std::uint32_t i = 0; i < size_of(root->suites()); ++i) {
    const s::Suite* suite = root->suites()->Get(i);
    for (std::uint32_t k = 0; k < size_of(suite->cases()); ++k) {
      Case one;
      one.method = suite->method() ? suite->method()->str() : "";
      TOSAIC_TRY(one.inputs, values_of(suite->cases()->Get(k)->inputs(), file));
      TOSAIC_TRY(one.outputs, values_of(suite->cases()->Get(k)->outputs(), file));
      found.cases.push_back(std::move(one));
    }
  }
  return found;
}

using Builder = flatbuffers::FlatBufferBuilder;
using Offsets = std::vector<flatbuffers::Offset<s::Value>>;

flatbuffers::Offset<s::Value> written(Builder& builder, const Value& value) {
  if (const auto* i = std::get_if<std::int64_t>(&value))
    return s::CreateValue(builder, s::AnyValue::Int, s::CreateInt(builder, *i).Union());
  if (const auto* b = std::get_if<bool>(&value))
    return s::CreateValue(builder, s::AnyValue::Bool, s::CreateBool(builder, *b).Union());
  if (const auto* d = std::get_if<double>(&value))
    return s::CreateValue(builder, s::AnyValue::Double, s::CreateDouble(builder, *d).Union());
  const Tensor& tensor = std::get<Tensor>(value);
  std::vector<std::int32_t> sizes;
  std::vector<std::uint8_t> order;
  for (std::int64_t size : tensor.type.shape.sizes()) {
    order.push_back(static_cast<std::uint8_t>(sizes.size()));
    sizes.push_back(static_cast<std::int32_t>(size));
  }
  builder.ForceVectorAlignment(tensor.data.size(), 1, 16);
  const auto data = builder.CreateVector(reinterpret_cast<const std::uint8_t*>(tensor.data.data()), tensor.data.size());
  const auto scalar = static_cast<std::int8_t>(*pte::scalar_type(tensor.type.dtype));
  const auto size_list = builder.CreateVector(sizes);
  const auto order_list = builder.CreateVector(order);
  const auto made = s::CreateTensor(builder, scalar, size_list, data, order_list);
  return s::CreateValue(builder, s::AnyValue::Tensor, made.Union());
}

Offsets written(Builder& builder, const std::vector<Value>& values) {
  Offsets offsets;
  for (const Value& value : values) offsets.push_back(written(builder, value));
  return offsets;
}

Status check(const File& file) {
  std::size_t bytes = file.program.size();
  for (const Case& one : file.cases)
    for (const auto* values : {&one.inputs, &one.outputs})
      for (const Value& value : *values)
        if (const auto* tensor = std::get_if<Tensor>(&value)) {
          bytes += tensor->data.size();
          if (!pte::scalar_type(tensor->type.dtype))
            return error("bpte.dtype", fmt::format("ExecuTorch has no tensors of {}", name_of(tensor->type.dtype)))
                .hint("bundle cases of a method that takes and gives other types");
        }
  if (bytes > std::size_t{1900} << 20)
    return error("bpte.size", fmt::format("a bundled program holds 2 GB, and this one has {} bytes", bytes))
        .hint("bundle fewer cases");
  return {};
}

}  // namespace

bool is_bpte(const Bytes& file) { return file.size() >= 8 && file.text().substr(4, 2) == "BP"; }

Result<Bytes> program_in(const Bytes& file, const std::string& name) {
  if (!is_bpte(file)) return file;
  TOSAIC_TRY(const File bundle, read(file, name));
  return bundle.program;
}

Result<File> read(const Bytes& file, const std::string& name) {
  auto found = checked(file);
  if (!found.ok() && found.error().place.file.empty()) found.error().place.file = name;
  return found;
}

Result<Bytes> write(const File& file) {
  TOSAIC_CHECK(check(file));
  Builder builder;
  std::vector<std::string> methods;  // ExecuTorch wants each once, in alphabetical order
  for (const Case& one : file.cases) methods.push_back(one.method);
  std::sort(methods.begin(), methods.end());
  methods.erase(std::unique(methods.begin(), methods.end()), methods.end());
  std::vector<flatbuffers::Offset<s::Suite>> suites;
  for (const std::string& method : methods) {
    std::vector<flatbuffers::Offset<s::Case>> cases;
    for (const Case& one : file.cases)
      if (one.method == method) {
        const Offsets inputs = written(builder, one.inputs), outputs = written(builder, one.outputs);
        cases.push_back(s::CreateCaseDirect(builder, &inputs, &outputs));
      }
    suites.push_back(s::CreateSuiteDirect(builder, method.c_str(), &cases));
  }
  builder.ForceVectorAlignment(file.program.size(), 1, 32);
  const auto program =
      builder.CreateVector(reinterpret_cast<const std::uint8_t*>(file.program.data()), file.program.size());
  builder.Finish(s::CreateBundledProgram(builder, schema_version, builder.CreateVector(suites), program),
                 s::BundledProgramIdentifier());
  return Bytes::copy(builder.GetBufferPointer(), builder.GetSize());
}

}  // namespace tosaic::bpte
