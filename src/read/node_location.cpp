// SPDX-License-Identifier: Apache-2.0
#include "read/node_location.h"

#include <charconv>

namespace tosaic {
namespace {

std::string_view trimmed(std::string_view s) {
  while (!s.empty() && (s.front() == ' ' || s.front() == '\t')) s.remove_prefix(1);
  while (!s.empty() && (s.back() == ' ' || s.back() == '\r')) s.remove_suffix(1);
  return s;
}

// Frames of PyTorch itself and of code that it generated ("<eval_with_key>.5") say nothing about the user's model.
bool is_users_file(std::string_view file) {
  if (file.empty() || file.front() == '<' || file.starts_with("torch/")) return false;
  for (std::string_view library :
       {"-packages/torch/", "-packages/torchao/", "/torch/nn/modules/", "/torch/export/", "/torch/_"})
    if (file.find(library) != std::string_view::npos) return false;
  return true;
}

// Lines  File "model.py", line 6, in forward  each followed by the source line; the innermost call stands last.
Place innermost_frame(std::string_view trace) {
  Place place;
  bool take_text = false;
  while (!trace.empty()) {
    const auto end = trace.find('\n');
    const std::string_view line = trimmed(trace.substr(0, end));
    trace.remove_prefix(end == std::string_view::npos ? trace.size() : end + 1);
    if (!line.starts_with("File \"")) {
      if (take_text) place.text = line;
      take_text = false;
      continue;
    }
    const auto close = line.find("\", line ", 6);
    take_text = false;
    if (close == std::string_view::npos || !is_users_file(line.substr(6, close - 6))) continue;
    std::int64_t number = 0;
    const std::string_view digits = line.substr(close + 8);
    if (std::from_chars(digits.data(), digits.data() + digits.size(), number).ec != std::errc() || number < 1) continue;
    place = {std::string(line.substr(6, close - 6)), number, ""};
    take_text = true;
  }
  return place;
}

}  // namespace

LocRef read_location(const std::optional<Json>& metadata, std::string op, std::string name) {
  auto loc = std::make_shared<Loc>();
  loc->op = std::move(op);
  loc->name = std::move(name);
  if (!metadata) return loc;
  if (auto trace = metadata->find("stack_trace")) loc->place = innermost_frame(trace->text());
  // key,path,type;key,path,type;...  outermost first
  if (auto stack = metadata->find("nn_module_stack")) {
    std::string_view entry = stack->text();
    if (auto last = entry.rfind(';'); last != std::string_view::npos) entry.remove_prefix(last + 1);
    const auto first = entry.find(','), second = first == std::string_view::npos ? first : entry.find(',', first + 1);
    // The root has no path. What torch.export wraps around it, or makes up, is no module of the user's.
    if (second != std::string_view::npos && !entry.substr(second + 1).starts_with("torch.export.") &&
        !entry.starts_with("_empty_nn_module_stack")) {
      loc->module_path = entry.substr(first + 1, second - first - 1);
      loc->module_type = entry.substr(second + 1);
    }
  }
  // A node of a decomposed call that the Python package said in other operators stands for the call.
  if (auto node = metadata->find("exported_node")) {
    loc->name = node->text();
    loc->op = metadata->at("exported_op").text();
  }
  if (auto function = metadata->find("torch_fn")) {
    const std::string_view text = function->text();
    loc->torch_function = text.substr(0, text.find(';'));
  }
  return loc;
}

}  // namespace tosaic
