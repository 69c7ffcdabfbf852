// SPDX-License-Identifier: Apache-2.0
#include "read/torch_save.h"

#include <fmt/format.h>
#include <array>

#include "read/pt2_enums.h"
#include "read/read_error.h"

namespace tosaic {
namespace {
// torch.<name>Storage -> the dtype of its elements.
std::optional<DType> storage_dtype(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 10> names{{{"Float", "float32"},
                                                                                 {"Double", "float64"},
                                                                                 {"Half", "float16"},
                                                                                 {"BFloat16", "bfloat16"},
                                                                                 {"Long", "int64"},
                                                                                 {"Int", "int32"},
                                                                                 {"Short", "int16"},
                                                                                 {"Char", "int8"},
                                                                                 {"Byte", "uint8"},
                                                                                 {"Bool", "bool"}}};
  for (auto [storage, dtype] : names)
    if (name.size() == storage.size() + 13 && name.starts_with("torch.") && name.substr(6, storage.size()) == storage &&
        name.ends_with("Storage"))
      return torch_dtype_named(dtype);
  return std::nullopt;
}
}  // namespace

Result<TorchSave> TorchSave::open(Bytes file, const std::string& name) {
  TorchSave saved;
  saved.name_ = name;
  TOSAIC_TRY(saved.archive_, zip::Archive::open(std::move(file), name));
  const zip::Entry* program = nullptr;
  for (const zip::Entry& entry : saved.archive_.entries())
    if (entry.name.ends_with("/data.pkl")) {
      program = &entry;
      saved.root_ = entry.name.substr(0, entry.name.size() - 8);
      break;
    }
  if (!program) return error("pt2.bad-pickle", fmt::format("{} has no data.pkl", name));
  if (const zip::Entry* order = saved.archive_.find(saved.root_ + "byteorder")) {
    TOSAIC_TRY(Bytes text, saved.archive_.read(*order));
    if (text.text() != "little")
      return error("pt2.byte-order", fmt::format("{} was written by a big-endian machine", name));
  }
  TOSAIC_TRY(Bytes bytes, saved.archive_.read(*program));
  TOSAIC_TRY(saved.pickle_, read_pickle(bytes));
  return saved;
}

std::optional<std::vector<std::int64_t>> TorchSave::integers(PickleRef ref) const {
  const PickleValue* value = &pickle_[ref];
  // torch.Size([...]) is a call with one tuple.
  if (value->kind == PickleValue::call && pickle_[value->callable].text_value == "torch.Size" &&
      pickle_[value->arguments].items.size() == 1)
    value = &pickle_[pickle_[value->arguments].items[0]];
  if (value->kind != PickleValue::tuple) return std::nullopt;
  std::vector<std::int64_t> numbers;
  for (PickleRef item : value->items) {
    if (pickle_[item].kind != PickleValue::integer) return std::nullopt;
    numbers.push_back(pickle_[item].number);
  }
  return numbers;
}

std::optional<StoredTensor> TorchSave::tensor(PickleRef ref) const {
  const PickleValue* value = &pickle_[ref];
  auto called = [&](std::string_view function, std::size_t arguments) {
    return value->kind == PickleValue::call && pickle_[value->callable].kind == PickleValue::global &&
           pickle_[value->callable].text_value == function && pickle_[value->arguments].items.size() >= arguments;
  };
  if (called("torch._utils._rebuild_parameter", 1)) value = &pickle_[pickle_[value->arguments].items[0]];
  PickleValue unwrapped;
  // (function, type, arguments, state): a tensor on which someone set Python attributes, as torch.export does.
  if (called("torch._tensor._rebuild_from_type_v2", 3)) {
    const auto& parts = pickle_[value->arguments].items;
    if (pickle_[parts[1]].text_value != "torch.Tensor") return std::nullopt;
    unwrapped.kind = PickleValue::call;
    unwrapped.callable = parts[0];
    unwrapped.arguments = parts[2];
    value = &unwrapped;
  }
  const bool typed = called("torch._utils._rebuild_tensor_v3", 7);  // carries a dtype, its storage is untyped
  if (!typed && !called("torch._utils._rebuild_tensor_v2", 4)) return std::nullopt;

  // (storage, storage_offset, size, stride, requires_grad, backward_hooks[, dtype])
  const auto& a = pickle_[value->arguments].items;
  const PickleValue& storage = pickle_[a[0]];
  const auto sizes = integers(a[2]), strides = integers(a[3]);
  if (storage.kind != PickleValue::persistent || pickle_[a[1]].kind != PickleValue::integer || !sizes || !strides)
    return std::nullopt;
  // ('storage', type, key, device, number of elements)
  const auto& id = pickle_[storage.arguments].items;
  if (id.size() < 5 || pickle_[id[0]].text_value != "storage") return std::nullopt;
  const std::string& type_name = typed ? pickle_[a[6]].text_value : pickle_[id[1]].text_value;
  const auto dtype = !typed                            ? storage_dtype(type_name)
                     : type_name.starts_with("torch.") ? torch_dtype_named(type_name.substr(6))
                                                       : std::nullopt;
  if (!dtype)
    fail("pt2.unsupported-dtype", fmt::format("{} holds a tensor of '{}', which tosaic cannot hold", name_, type_name));
  const std::string record = root_ + "data/" + pickle_[id[2]].text_value;
  const zip::Entry* entry = archive_.find(record);
  if (!entry) fail("pt2.missing-weight", fmt::format("{} lacks its record '{}'", name_, record));
  return StoredTensor{value_or_fail(archive_.read(*entry)), *dtype, *sizes, *strides, pickle_[a[1]].number};
}

std::optional<PickleRef> TorchSave::member(PickleRef dict, std::string_view key) const {
  const PickleValue& value = pickle_[dict];
  if (value.kind != PickleValue::dict && value.kind != PickleValue::call) return std::nullopt;
  for (std::size_t i = 0; i + 1 < value.items.size(); i += 2)
    if (pickle_[value.items[i]].kind == PickleValue::text && pickle_[value.items[i]].text_value == key)
      return value.items[i + 1];
  return std::nullopt;
}

}  // namespace tosaic
