// SPDX-License-Identifier: Apache-2.0
#include "read/program_arguments.h"

#include <fmt/format.h>

#include "read/pt2_enums.h"
#include "read/read_error.h"

namespace tosaic {
namespace {

Attr symbolic(const Json& value, const SymbolResolver& resolve) {
  auto [tag, content] = value.tagged();
  if (tag == "as_int") return content.integer();
  if (tag == "as_float") return content.number();
  if (tag == "as_bool") return content.flag();
  if (tag != "as_name") fail("pt2.bad-json", fmt::format("'{}' holds the unknown alternative '{}'", value.key(), tag));
  const std::optional<Dim> size = resolve(content.text());
  if (size && size->is_number()) return size->value();
  return SymbolicArgument{std::string(content.text()), size};
}

// Numbers where all are known.
Attr symbolic_list(const Json& value, const SymbolResolver& resolve) {
  std::vector<std::int64_t> integers;
  std::vector<double> reals;
  std::vector<SymbolicArgument> all;
  for (const Json& item : value.items()) {
    const Attr attr = symbolic(item, resolve);
    if (const auto* i = std::get_if<std::int64_t>(&attr))
      integers.push_back(*i), all.push_back({"", Dim(*i)});
    else if (const auto* b = std::get_if<bool>(&attr))
      integers.push_back(*b), all.push_back({"", Dim(*b)});
    else if (const auto* d = std::get_if<double>(&attr))
      reals.push_back(*d), all.push_back({fmt::format("{}", *d)});
    else
      all.push_back(std::get<SymbolicArgument>(attr));
  }
  if (integers.size() == all.size()) return integers;
  if (reals.size() == all.size()) return reals;
  return all;
}

std::string device(const Json& value) {
  std::string text(value.at("type").text());
  if (auto index = value.find("index")) text += fmt::format(":{}", index->integer());
  return text;
}

}  // namespace

std::optional<std::vector<std::string_view>> tensor_names(std::string_view tag, const Json& value) {
  auto optional_name = [](const Json& item) {
    auto [kind, content] = item.tagged();
    return kind == "as_tensor" ? content.at("name").text() : std::string_view();
  };
  std::vector<std::string_view> names;
  if (tag == "as_tensor")
    names = {value.at("name").text()};
  else if (tag == "as_optional_tensor")
    names = {optional_name(value)};
  else if (tag == "as_tensors")
    for (const Json& item : value.items()) names.push_back(item.at("name").text());
  else if (tag == "as_optional_tensors")
    for (const Json& item : value.items()) names.push_back(optional_name(item));
  else if (tag == "as_nested_tensors")
    for (const Json& list : value.items())
      for (const Json& item : list.items()) names.push_back(item.at("name").text());
  else
    return std::nullopt;
  return names;
}

std::optional<std::string_view> symbol_name(std::string_view tag, const Json& value) {
  if (tag != "as_sym_int" && tag != "as_sym_bool" && tag != "as_sym_float") return std::nullopt;
  auto [kind, content] = value.tagged();
  return kind == "as_name" ? std::optional(content.text()) : std::nullopt;
}

Attr read_attribute(std::string_view tag, const Json& value, const SymbolResolver& resolve) {
  if (tag == "as_none") return std::monostate{};
  if (tag == "as_int") return value.integer();
  if (tag == "as_float") return value.number();
  if (tag == "as_bool") return value.flag();
  if (tag == "as_string" || tag == "as_operator") return std::string(value.text());
  if (tag == "as_ints") {
    std::vector<std::int64_t> list;
    for (const Json& item : value.items()) list.push_back(item.integer());
    return list;
  }
  if (tag == "as_bools") {
    std::vector<std::int64_t> list;
    for (const Json& item : value.items()) list.push_back(item.flag());
    return list;
  }
  if (tag == "as_floats") {
    std::vector<double> list;
    for (const Json& item : value.items()) list.push_back(item.number());
    return list;
  }
  if (tag == "as_strings") {
    std::vector<std::string> list;
    for (const Json& item : value.items()) list.emplace_back(item.text());
    return list;
  }
  if (tag == "as_complex") return std::vector<double>{value.at("real").number(), value.at("imag").number()};
  if (tag == "as_sym_int" || tag == "as_sym_float" || tag == "as_sym_bool") return symbolic(value, resolve);
  if (tag == "as_sym_ints" || tag == "as_sym_floats" || tag == "as_sym_bools") return symbolic_list(value, resolve);
  if (tag == "as_scalar_type") {
    const Pt2DType dtype = pt2_dtype(value.integer());
    if (dtype.type) return *dtype.type;
    return dtype.name.empty() ? fmt::format("dtype {}", value.integer()) : std::string(dtype.name);
  }
  if (tag == "as_memory_format") return pt2_memory_format(value.integer());
  if (tag == "as_layout") return pt2_layout(value.integer());
  if (tag == "as_device") return device(value);
  if (tag == "as_int_lists" || tag == "as_float_lists" || tag == "as_string_to_argument") return value.source();
  if (tag == "as_custom_obj")
    fail(error("pt2.unsupported-construct", "an argument is a custom class object, which is not supported yet"));
  fail("pt2.bad-json", fmt::format("an argument has the unknown kind '{}'", tag));
}

}  // namespace tosaic
