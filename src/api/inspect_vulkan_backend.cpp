// SPDX-License-Identifier: Apache-2.0
#include "api/inspect_vulkan_backend.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>

#include "base/printable.h"
#include "delegates/vulkan_backend/operators.h"
#include "formats/vulkan_backend/vulkan_backend.h"

namespace tosaic {
namespace {

namespace vb = vulkan_backend;

std::string text_of(const vb::File& file, std::uint32_t id);

template <class List>
std::string list_text(const List& items) {
  return fmt::format("[{}]", fmt::join(items, ", "));
}

// What stands for a value among a call's arguments: its number where it is computed or large.
std::string text_of(const vb::File& file, std::uint32_t id) {
  return std::visit(
      [&]<class T>(const T& v) -> std::string {
        if constexpr (std::is_same_v<T, std::monostate>) {
          return "none";
        } else if constexpr (std::is_same_v<T, vb::Tensor>) {
          return v.constant ? fmt::format("constant {}", *v.constant) : fmt::format("v{}", id);
        } else if constexpr (std::is_same_v<T, vb::SymbolicInt>) {
          return fmt::format("v{}", id);
        } else if constexpr (std::is_same_v<T, vb::ValueList>) {
          std::string text;  // of tensors and numbers: a list of lists, which none writes, is only named
          for (std::uint32_t item : v.items)
            text += (text.empty() ? "" : ", ") + (std::holds_alternative<vb::ValueList>(file.values[item])
                                                      ? fmt::format("v{}", item)
                                                      : text_of(file, item));
          return "[" + text + "]";
        } else if constexpr (std::is_same_v<T, std::string>) {
          return json_quote(v);
        } else if constexpr (std::is_same_v<T, double>) {
          return to_string(v);
        } else if constexpr (std::is_same_v<T, std::vector<bool>>) {
          return list_text(std::vector<int>(v.begin(), v.end()));
        } else if constexpr (std::is_same_v<T, std::vector<std::int64_t>> || std::is_same_v<T, std::vector<double>>) {
          return list_text(v);
        } else {
          return fmt::format("{}", v);
        }
      },
      file.values[id]);
}

std::string tensor_text(const vb::File& file, std::uint32_t id, bool outside = false) {
  const auto* t = std::get_if<vb::Tensor>(&file.values[id]);
  if (!t) return "";
  std::string text = to_string(TensorType{t->dtype, t->shape, {}});
  if (outside && t->staging != t->dtype) text += fmt::format(" (outside {})", name_of(t->staging));
  const std::string layout = vb::layout_text(*t);
  return layout.empty() ? text : text + ", " + layout;
}

std::string result_text(const vb::File& file, std::uint32_t id) {
  const auto* list = std::get_if<vb::ValueList>(&file.values[id]);
  if (!list) return fmt::format("v{} {}", id, tensor_text(file, id));
  std::string text;
  for (std::uint32_t item : list->items)
    text += fmt::format("{}v{} {}", text.empty() ? "" : "; ", item, tensor_text(file, item));
  return text;
}

}  // namespace

Result<Inspection> inspect_vulkan_backend(const Bytes& payload, const std::string& name, const std::string& indent) {
  TOSAIC_TRY(const vb::File file, vb::read(payload, name));
  std::size_t constants = 0;
  for (const vb::Constant& constant : file.constants) constants += !constant.key.empty();
  Inspection out;
  out.text = fmt::format("{}{} operators, {} values, {} constants ({} in the named data)\n", indent, file.calls.size(),
                         file.values.size(), file.constants.size(), constants);
  std::map<std::string, int> counts;
  for (const vb::Call& call : file.calls) ++counts[call.op];
  std::string known, operators;
  for (const auto& [op, count] : counts) {
    operators += fmt::format("{}{}: {}", operators.empty() ? "" : ", ", json_quote(op), count);
    out.text +=
        fmt::format("{}  {:>5} {}{}\n", indent, count, printable(op), vb::knows(op) ? "" : " (unknown to tosaic)");
    if (!vb::knows(op)) known += (known.empty() ? "" : ", ") + json_quote(op);
  }
  std::string inputs, outputs;
  const auto ends = [&](const char* what, const std::vector<std::uint32_t>& ids, std::string& json) {
    for (std::uint32_t id : ids) {
      out.text += fmt::format("{}{:<7} v{} {}\n", indent, what, id, tensor_text(file, id, true));
      json += fmt::format("{}{}", json.empty() ? "" : ", ", json_quote(tensor_text(file, id, true)));
    }
  };
  ends("input", file.inputs, inputs);
  ends("output", file.outputs, outputs);
  for (const vb::Call& call : file.calls) {
    std::string arguments;
    for (std::size_t i = 0; i + 1 < call.args.size(); ++i)
      arguments += (i == 0 ? "" : ", ") + text_of(file, call.args[i]);
    out.text += fmt::format("{}  {} = {}({})\n", indent, call.args.empty() ? "" : result_text(file, call.args.back()),
                            printable(call.op), arguments);
  }
  out.json = fmt::format(
      "{{\"inputs\": [{}], \"outputs\": [{}], \"operators\": {{{}}}, \"unknown\": [{}], \"values\": {}, \"constants\": "
      "{}}}",
      inputs, outputs, operators, known, file.values.size(), file.constants.size());
  return out;
}

}  // namespace tosaic
