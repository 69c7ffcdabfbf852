// SPDX-License-Identifier: Apache-2.0
#include "delegates/vulkan_backend/operators.h"

#include <algorithm>

namespace tosaic::vulkan_backend {

bool only_moves_memory(const std::string& op) {
  return op == prepack || op == "aten.clone.default" || op == "dim_order_ops._clone_dim_order.default";
}

FoundOp operator_of(const std::string& name) {
  std::string op = name == "dim_order_ops._to_dim_order_copy.default" ? "aten._to_copy.default" : name;
  if (std::count(op.begin(), op.end(), '.') == 1) op = "aten." + op;
  if (const FoundOp found = find_aten(Operator(op)); found.op) return found;
  const std::size_t end = op.rfind('.');
  if (end == op.npos || end < 5 || op.compare(end - 5, 5, "_copy") != 0) return {};
  return find_aten(Operator(op.erase(end - 5, 5)));
}

bool gives_size(const std::string& op) {
  return op == "sym_size.int" || op == "aten.sym_size.int" || op == "add" || op == "sub" || op == "mul" ||
         op == "floordiv";
}

const CacheOperator* cache_operator(const std::string& op) {
  static const CacheOperator list[] = {
      {"sdpa_with_kv_cache.default", 11, {3, 4}}, {"update_cache.default", 3, {1}}, {"custom_sdpa.default", 8, {}}};
  const std::string_view name = op.starts_with("llama.") ? std::string_view(op).substr(6) : std::string_view(op);
  for (const CacheOperator& known : list)
    if (known.name == name) return &known;
  return nullptr;
}

bool knows(const std::string& op) {
  return only_moves_memory(op) || gives_size(op) || op == number_of_tensor || cache_operator(op) ||
         operator_of(op).op != nullptr;
}

}  // namespace tosaic::vulkan_backend
