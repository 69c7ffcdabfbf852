// SPDX-License-Identifier: Apache-2.0
// What holds of every program, one that was read and one that is about to be written: ranges lie in their arenas,
// modules are ones that check_shader passes, and dispatches fit them.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "formats/spirv/compute/check_shader.h"
#include "formats/vulkan_program/module_checks.h"
#include "formats/vulkan_program/tiers.h"
#include "formats/vulkan_program/vulkan_program.h"
#include "ir/extent.h"

namespace tosaic::vulkan_program {
namespace {

template <class... Args>
Diagnostic bad(fmt::format_string<Args...> format, Args&&... args) {
  return error("vulkan-program.format", fmt::format(format, std::forward<Args>(args)...));
}

Status check_inside(std::uint64_t offset, std::uint64_t bytes, std::uint64_t arena, const std::string& what) {
  if (offset % alignment != 0) return bad("{} begins at {}, which is no multiple of {}", what, offset, alignment);
  if (offset > arena || bytes > arena - offset)
    return bad("{} has {} bytes from {} on, its memory has {}", what, bytes, offset, arena);
  return {};
}

// As the module's binding sees it?
bool is_seen_as(View view, spirv::ShaderBinding::Kind kind) {
  using Kind = spirv::ShaderBinding::Kind;
  if (view == View::buffer) return kind == Kind::buffer;
  return kind == (has_reals(view) ? Kind::texels_of_reals : Kind::texels_of_words);
}

struct Arenas {
  std::uint64_t bytes[3];
  std::size_t expressions;  // of sizes
};

Status check_dispatch(const Dispatch& d, const spirv::ShaderInterface& interface, const Arenas& arenas,
                      const std::string& what) {
  if (d.pushes.size() > most_pushes) return bad("{} has {} push constants", what, d.pushes.size());
  for (const SizedPush& p : d.sizes)
    if (p.push >= d.pushes.size() || p.expression >= arenas.expressions)
      return bad("{} has a size {} of {} in push constant {} of {}", what, p.expression, arenas.expressions, p.push,
                 d.pushes.size());
  if (d.group_count != no_expression && d.group_count >= arenas.expressions)
    return bad("{} has a group count {} of {}", what, d.group_count, arenas.expressions);
  for (std::uint32_t n : d.groups)
    if (n < 1 || n > most_groups) return bad("{} has {} groups along an axis", what, n);
  if (d.ranges.size() != interface.bindings.size() || d.ranges.size() > most_ranges)
    return bad("{} has {} ranges for a module of {} bindings", what, d.ranges.size(), interface.bindings.size());
  for (std::size_t i = 0; i < d.ranges.size(); ++i) {
    const Range& r = d.ranges[i];
    const spirv::ShaderBinding& binding = interface.bindings[i];
    if (!is_seen_as(r.view, binding.kind)) return bad("{}: range {} and its module disagree on what is seen", what, i);
    if (binding.written && r.arena == Arena::constants) return bad("{} writes to constants", what);
    if (r.written != binding.written) return bad("{}: range {} and its module disagree on writing", what, i);
    if (r.bytes < 1 || r.bytes > most_range_bytes || r.bytes % 4 != 0)
      return bad("{} has a range of {} bytes", what, r.bytes);
    if (r.bytes % texel_bytes(r.view) != 0)
      return bad("{} has a range of {} bytes, which are no whole texels", what, r.bytes);
    TOSAIC_CHECK(check_inside(r.offset, r.bytes, arenas.bytes[static_cast<std::size_t>(r.arena)], what));
  }
  return {};
}

// Of all tiers that somebody runs, which share many.
class Modules {
 public:
  explicit Modules(const std::vector<Tier>& tiers) {
    std::vector<Bytes> each;
    for (const Tier& tier : tiers)
      for (const Bytes& module : tier.modules)
        if (find_tier(tier.name) && places_.try_emplace(hash_of(module), each.size()).second) each.push_back(module);
    checked_ = check_modules(each);
  }
  const Result<spirv::ShaderInterface>& interface_of(const Bytes& module) const {
    return checked_[places_.at(hash_of(module))];
  }

 private:
  std::map<std::uint64_t, std::size_t> places_;  // by hash
  std::vector<Result<spirv::ShaderInterface>> checked_;
};

Status check_tier(const Tier& tier, const Modules& modules, Arenas arenas) {
  if (tier.activation_bytes > most_arena_bytes) return bad("activations of {} bytes", tier.activation_bytes);
  arenas.bytes[static_cast<std::size_t>(Arena::activations)] = tier.activation_bytes;
  std::vector<const spirv::ShaderInterface*> interfaces;
  for (std::size_t i = 0; i < tier.modules.size(); ++i) {
    const auto& interface = modules.interface_of(tier.modules[i]);
    if (!interface.ok()) {
      Diagnostic why = interface.error();
      why.notes.push_back(fmt::format("in module {}", i));
      const auto user = std::ranges::find(tier.dispatches, i, &Dispatch::module);
      if (user != tier.dispatches.end() && !user->kernel.empty())
        why.notes.push_back(fmt::format("of '{}' ({}), tier '{}'", user->value, user->kernel, tier.name));
      return why;
    }
    interfaces.push_back(&*interface);
  }
  for (std::size_t i = 0; i < tier.dispatches.size(); ++i) {
    const Dispatch& d = tier.dispatches[i];
    const std::string what = fmt::format("dispatch {}", i);
    if (d.module >= interfaces.size()) return bad("{} has module {} of {}", what, d.module, interfaces.size());
    TOSAIC_CHECK(check_dispatch(d, *interfaces[d.module], arenas, what));
  }
  return {};
}

// Every symbol must be told by an input.
Status check_symbols(const Program& program) {
  Graph graph;
  for (const Tensor& t : program.inputs) graph.inputs.push_back(graph.add_value(t.name, t.type));
  const std::vector<Symbol> known = input_symbols(graph);
  const auto told = [&](const Dim& dim) {
    return std::ranges::all_of(dim.symbols(),
                               [&](const Symbol& s) { return std::ranges::find(known, s) != known.end(); });
  };
  for (const Dim& dim : program.expressions)
    if (!told(dim)) return bad("no input has the size {}", to_string(dim));
  return {};
}

}  // namespace

Status check(const Program& program) {
  if (program.io_bytes > most_arena_bytes) return bad("inputs and outputs of {} bytes", program.io_bytes);
  for (const auto* tensors : {&program.inputs, &program.outputs})
    for (const Tensor& t : *tensors) {
      if (t.narrow && t.type.dtype != DType::f32) return bad("tensor '{}' is narrow, and no f32", t.name);
      TOSAIC_CHECK(check_inside(t.offset, bytes_in_io(t), program.io_bytes, "tensor '" + t.name + "'"));
    }
  if (program.tiers.empty()) return bad("there is no tier");
  const Modules modules(program.tiers);
  for (std::size_t i = 0; i < program.tiers.size(); ++i) {
    const Tier& tier = program.tiers[i];
    if (find_tier(tier.name))  // nobody runs others
      TOSAIC_CHECK(
          check_tier(tier, modules, {{program.constants.size(), 0, program.io_bytes}, program.expressions.size()}));
    for (std::size_t k = 0; k < i; ++k)
      if (program.tiers[k].name == tier.name) return bad("tier '{}' is there twice", tier.name);
  }
  return check_symbols(program);
}

}  // namespace tosaic::vulkan_program
