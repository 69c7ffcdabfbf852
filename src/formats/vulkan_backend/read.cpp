// SPDX-License-Identifier: Apache-2.0
// What a payload holds around its flatbuffer. All integers are little-endian.
//   0  four zero bytes
//   4  "VH00"
//   8  u16  length of the header: 30
//  10  u32  where the flatbuffer begins; 14 u32 its bytes
//  18  u32  where the constants begin; 22 u64 their bytes
#include <flatbuffers/flatbuffers.h>
#include <fmt/format.h>

#include <array>
#include <cstring>

#include "base/printable.h"
#include "formats/vulkan_backend/vulkan_backend.h"
#include "vulkan_backend_generated.h"

namespace tosaic::vulkan_backend {
namespace {

namespace s = vulkan_backend_schema;

constexpr std::size_t header_bytes = 30;
constexpr std::uint64_t most_bytes = std::uint64_t{1} << 40;
constexpr std::size_t most_dims = 16;

template <class... Args>
Diagnostic bad(fmt::format_string<Args...> format, Args&&... args) {
  return error("vulkan-backend.format", fmt::format(format, std::forward<Args>(args)...));
}

template <class T>
std::uint32_t count(const T* list) {
  return list ? list->size() : 0;
}
// The flatbuffers verifier leaves the alignment of eight-byte elements unchecked.
template <class T, class Element>
std::vector<T> items(const flatbuffers::Vector<Element>* list) {
  std::vector<T> made;
  for (std::uint32_t i = 0; i < count(list); ++i) {
    Element value;
    std::memcpy(&value, list->Data() + i * sizeof value, sizeof value);
    made.push_back(static_cast<T>(flatbuffers::EndianScalar(value)));
  }
  return made;
}
template <class T>
T number_at(const Bytes& bytes, std::size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return flatbuffers::EndianScalar(value);
}

std::optional<DType> dtype_numbered(int number) {
  constexpr std::array types{DType::boolean, DType::u8,  DType::i8,  DType::i32,
                             DType::f16,     DType::f32, DType::f64, DType::i64};
  return number >= 0 && static_cast<std::size_t>(number) < types.size()
             ? std::optional(types[static_cast<std::size_t>(number)])
             : std::nullopt;
}

struct Reader {
  const s::Graph& graph;
  const Bytes raw;  // constants that lie here

  Result<Tensor> tensor(const s::Tensor& from, std::uint32_t id) const {
    Tensor made;
    const auto dtype = dtype_numbered(from.dtype());
    if (!dtype) return bad("value {} has a dtype numbered {}", id, from.dtype());
    made.dtype = *dtype;
    const auto staging = dtype_numbered(from.staging());
    if (!staging && from.staging() != 127) return bad("value {} has a dtype numbered {}", id, from.staging());
    made.staging = staging.value_or(*dtype);
    std::vector<std::int64_t> dims = items<std::int64_t>(from.dims());
    if (dims.size() > most_dims) return bad("value {} has {} dims", id, dims.size());
    std::uint64_t bytes = 8;
    for (std::int64_t d : dims) {
      if (d > INT32_MAX) return bad("value {} has a dim of {}", id, d);
      bytes *=
          static_cast<std::uint64_t>(std::max<std::int64_t>(d, 1));  // strides of what is empty do not overflow either
      if (bytes > most_bytes) return bad("value {} fits no memory", id);
    }
    made.shape = Shape(std::move(dims));
    if (from.constant() >= 0) {
      made.constant = static_cast<std::uint32_t>(from.constant());
      if (*made.constant >= count(graph.constants()))
        return bad("value {} is constant {} of {}", id, *made.constant, count(graph.constants()));
    }
    made.storage = from.storage();
    made.layout = from.layout();
    return made;
  }

  Result<std::uint32_t> id_of(std::int64_t number, const std::string& whose) const {
    if (number < 0 || number >= count(graph.values()))
      return bad("{} names value {} of {}", whose, number, count(graph.values()));
    return static_cast<std::uint32_t>(number);
  }
  template <class List>
  Result<std::vector<std::uint32_t>> ids(const List* list, const std::string& whose) const {
    std::vector<std::uint32_t> made;
    for (std::uint32_t i = 0; i < count(list); ++i) {
      TOSAIC_TRY(const std::uint32_t id, id_of(std::int64_t{list->Get(i)}, whose));
      made.push_back(id);
    }
    return made;
  }

  Result<Value> value(std::uint32_t id) const {
    const s::Value& from = *graph.values()->Get(id);
    if (!from.value()) return bad("value {} is empty", id);
    switch (from.value_type()) {
      case s::Any::Null: return Value();
      case s::Any::Int: return Value(from.value_as_Int()->value());
      case s::Any::Double: return Value(from.value_as_Double()->value());
      case s::Any::Bool: return Value(from.value_as_Bool()->value());
      case s::Any::IntList: return Value(items<std::int64_t>(from.value_as_IntList()->items()));
      case s::Any::DoubleList: return Value(items<double>(from.value_as_DoubleList()->items()));
      case s::Any::BoolList: return Value(items<bool>(from.value_as_BoolList()->items()));
      case s::Any::SymInt: return Value(SymbolicInt());
      case s::Any::String: {
        const auto* text = from.value_as_String()->text();
        return Value(text ? text->str() : std::string());
      }
      case s::Any::ValueList: {
        TOSAIC_TRY(auto list, ids(from.value_as_ValueList()->items(), fmt::format("the list that is value {}", id)));
        return Value(ValueList{std::move(list)});
      }
      case s::Any::Tensor: {
        TOSAIC_TRY(Tensor made, tensor(*from.value_as_Tensor(), id));
        return Value(std::move(made));
      }
      case s::Any::NONE: break;
    }
    return bad("value {} is of a kind that this does not know", id);
  }

  Result<Call> call(std::uint32_t number) const {
    const s::Call& from = *graph.chain()->Get(number);
    Call made;
    made.node = from.node();
    made.op = from.name() ? from.name()->str() : "";
    if (made.op.empty()) return bad("call {} has no operator", number);
    TOSAIC_TRY(made.args, ids(from.args(), fmt::format("call {} ({})", number, made.op)));
    return made;
  }

  Result<Constant> constant(std::uint32_t number) const {
    const s::Data& from = *graph.constants()->Get(number);
    Constant made;
    if (from.key() && from.offset() == UINT64_MAX) {
      made.key = from.key()->str();
      return made;
    }
    if (from.offset() > raw.size() || from.length() > raw.size() - from.offset())
      return bad("constant {} ({} bytes at {}) lies outside the constants' {} bytes", number, from.length(),
                 from.offset(), raw.size());
    made.data = raw.slice(from.offset(), from.length());
    return made;
  }

  Result<File> file() const {
    File made;
    for (std::uint32_t i = 0; i < count(graph.values()); ++i) {
      TOSAIC_TRY(Value read, value(i));
      made.values.push_back(std::move(read));
    }
    for (std::uint32_t i = 0; i < count(graph.chain()); ++i) {
      TOSAIC_TRY(Call read, call(i));
      made.calls.push_back(std::move(read));
    }
    for (std::uint32_t i = 0; i < count(graph.constants()); ++i) {
      TOSAIC_TRY(Constant read, constant(i));
      made.constants.push_back(std::move(read));
    }
    TOSAIC_TRY(made.inputs, ids(graph.inputs(), "the list of inputs"));
    TOSAIC_TRY(made.outputs, ids(graph.outputs(), "the list of outputs"));
    return made;
  }
};

Result<File> read_checked(const Bytes& given) {
  if (!is_payload(given)) return bad("this is no payload of VulkanBackend (bytes 4 to 7 must be 'VH00')");
  if (given.size() < header_bytes || number_at<std::uint16_t>(given, 8) < header_bytes)
    return bad("the header is cut short");
  const std::uint64_t at = number_at<std::uint32_t>(given, 10), bytes = number_at<std::uint32_t>(given, 14);
  const std::uint64_t raw_at = number_at<std::uint32_t>(given, 18), raw_bytes = number_at<std::uint64_t>(given, 22);
  if (at < header_bytes || at > given.size() || bytes > given.size() - at || bytes < 8 || raw_at > given.size() ||
      raw_bytes > given.size() - raw_at)
    return bad("the header does not fit the payload's {} bytes", given.size());
  Bytes flat = given.slice(at, bytes);  // read in place, where its words must be aligned
  if (reinterpret_cast<std::uintptr_t>(flat.data()) % 16 != 0) flat = Bytes::copy(flat.data(), flat.size());
  if (!s::GraphBufferHasIdentifier(flat.data()))
    return error("vulkan-backend.version",
                 fmt::format("the graph has the format '{}', this reads VK00", printable(flat.text().substr(4, 4))))
        .hint("look for a newer tosaic, or write the program again with ExecuTorch 1.5");
  flatbuffers::Verifier verifier(reinterpret_cast<const std::uint8_t*>(flat.data()), flat.size(), 16,
                                 static_cast<flatbuffers::uoffset_t>(flat.size() / 4 + 16));
  if (!s::VerifyGraphBuffer(verifier)) return bad("an offset or a length points outside the flatbuffer");
  return Reader{*s::GetGraph(flat.data()), given.slice(raw_at, raw_bytes)}.file();
}

}  // namespace

bool is_payload(const Bytes& bytes) { return bytes.size() >= 8 && bytes.text().substr(4, 4) == "VH00"; }

Result<File> read(const Bytes& payload, const std::string& name) {
  auto file = read_checked(payload);
  if (!file.ok() && file.error().place.file.empty()) file.error().place.file = name;
  return file;
}

std::string layout_text(const Tensor& tensor) {
  constexpr std::array storages{"buffer", "texture 3d", "texture 2d"};
  constexpr std::array layouts{"width packed", "height packed", "channels packed", "int8 4w4c",
                               "int8 4h4w",    "int8 4w",       "int8 4c",         "",
                               "int8 4c1w",    "int8 conv2d"};
  if (tensor.storage >= storages.size()) return "";
  std::string text = storages[tensor.storage];
  if (tensor.layout < layouts.size()) text += fmt::format(", {}", layouts[tensor.layout]);
  return text;
}

}  // namespace tosaic::vulkan_backend
