// SPDX-License-Identifier: Apache-2.0
// Reading the payload: every offset inside the file, every range inside its arena, every module checked, so that
// nothing after this trusts the file.
#include <flatbuffers/flatbuffers.h>
#include <fmt/format.h>

#include <algorithm>

#include "formats/spirv/check_shader.h"
#include "formats/vulkan_program/tiers.h"
#include "formats/vulkan_program/vulkan_program.h"
#include "vulkan_program_generated.h"

namespace tosaic::vulkan_program {
namespace {

namespace fbs = tosaic::vulkan_schema;

constexpr std::uint64_t most_arena_bytes = std::uint64_t{1} << 40;

template <class... Args>
Diagnostic bad(fmt::format_string<Args...> format, Args&&... args) {
  return error("vulkan-program.format", fmt::format(format, std::forward<Args>(args)...));
}

std::string text(const flatbuffers::String* s) { return s ? s->str() : std::string(); }
template <class T>
std::uint32_t count(const T* list) {
  return list ? list->size() : 0;
}

Status check_inside(std::uint64_t offset, std::uint64_t bytes, std::uint64_t arena, const std::string& what) {
  if (offset % alignment != 0) return bad("{} begins at {}, which is no multiple of {}", what, offset, alignment);
  if (offset > arena || bytes > arena - offset)
    return bad("{} has {} bytes from {} on, its memory has {}", what, bytes, offset, arena);
  return {};
}

Result<Tensor> tensor_of(const fbs::Tensor& t, std::uint64_t io_bytes) {
  Tensor tensor;
  tensor.name = text(t.name());
  const auto dtype = dtype_named(text(t.dtype()));
  if (!dtype || *dtype == DType::shape) return bad("tensor '{}' has no dtype", tensor.name);
  std::vector<std::int64_t> dims;
  std::uint64_t elements = 1;
  for (std::uint32_t i = 0; i < count(t.shape()); ++i) {
    dims.push_back(t.shape()->Get(i));
    if (dims.back() < 0 || dims.back() > INT32_MAX) return bad("tensor '{}' has a dim of {}", tensor.name, dims.back());
    elements *= static_cast<std::uint64_t>(dims.back());
    if (elements > most_arena_bytes) return bad("tensor '{}' fits no memory", tensor.name);
  }
  if (dims.size() > 32) return bad("tensor '{}' has {} dims", tensor.name, dims.size());
  tensor.type = {*dtype, Shape(std::move(dims)), std::nullopt};
  tensor.offset = t.offset();
  TOSAIC_CHECK(check_inside(tensor.offset, elements * storage_size(*dtype), io_bytes, "tensor '" + tensor.name + "'"));
  return tensor;
}

struct Arenas {
  std::uint64_t bytes[3];
};

// As the module's binding sees it?
bool is_seen_as(View view, spirv::ShaderBinding::Kind kind) {
  using Kind = spirv::ShaderBinding::Kind;
  if (view == View::buffer) return kind == Kind::buffer;
  return kind == (has_reals(view) ? Kind::texels_of_reals : Kind::texels_of_words);
}

Result<Dispatch> dispatch_of(const fbs::Dispatch& d, const std::vector<spirv::ShaderInterface>& modules,
                             const Arenas& arenas, std::uint32_t number) {
  Dispatch made;
  const std::string what = fmt::format("dispatch {}", number);
  made.module = d.module_();
  if (made.module >= modules.size()) return bad("{} has module {} of {}", what, made.module, modules.size());
  if (count(d.pushes()) > most_pushes) return bad("{} has {} push constants", what, count(d.pushes()));
  if (d.pushes()) made.pushes.assign(d.pushes()->begin(), d.pushes()->end());
  if (!d.groups()) return bad("{} has no group counts", what);
  made.groups = {d.groups()->x(), d.groups()->y(), d.groups()->z()};
  for (std::uint32_t n : made.groups)
    if (n < 1 || n > most_groups) return bad("{} has {} groups along an axis", what, n);
  const spirv::ShaderInterface& interface = modules[made.module];
  if (count(d.ranges()) != interface.bindings.size() || count(d.ranges()) > most_ranges)
    return bad("{} has {} ranges for a module of {} bindings", what, count(d.ranges()), interface.bindings.size());
  for (std::uint32_t i = 0; i < count(d.ranges()); ++i) {
    const fbs::Range& r = *d.ranges()->Get(i);
    const auto arena = static_cast<std::uint32_t>(r.arena());
    if (arena > 2) return bad("{} has an arena {}", what, arena);
    const bool written = interface.bindings[i].written;
    const auto view = static_cast<View>(r.view());
    if (view > last_view || !is_seen_as(view, interface.bindings[i].kind))
      return bad("{}: range {} and its module disagree on what is seen", what, i);
    made.ranges.push_back({static_cast<Arena>(arena), written, view, r.offset(), r.bytes()});
    if (written && made.ranges.back().arena == Arena::constants) return bad("{} writes to constants", what);
    if (r.written() != written) return bad("{}: range {} and its module disagree on writing", what, i);
    if (r.bytes() < 1 || r.bytes() > most_range_bytes || r.bytes() % 4 != 0)
      return bad("{} has a range of {} bytes", what, r.bytes());
    if (r.bytes() % texel_bytes(view) != 0)
      return bad("{} has a range of {} bytes, which are no whole texels", what, r.bytes());
    TOSAIC_CHECK(check_inside(r.offset(), r.bytes(), arenas.bytes[arena], what));
  }
  made.kernel = text(d.kernel());
  made.value = text(d.value());
  return made;
}

Result<Tier> tier_of(const fbs::Tier& t, Arenas arenas) {
  Tier tier;
  tier.name = text(t.name());
  if (!find_tier(tier.name)) return tier;  // nobody runs it
  tier.activation_bytes = t.activation_bytes();
  if (tier.activation_bytes > most_arena_bytes) return bad("activations of {} bytes", tier.activation_bytes);
  arenas.bytes[static_cast<std::size_t>(Arena::activations)] = tier.activation_bytes;
  std::vector<spirv::ShaderInterface> interfaces;
  for (std::uint32_t i = 0; i < count(t.modules()); ++i) {
    const auto* words = t.modules()->Get(i)->words();
    if (count(words) == 0) return bad("module {} is empty", i);
    // A copy: the file's words may lie at any byte.
    tier.modules.push_back(Bytes::copy(words->data(), std::size_t{words->size()} * 4));
    auto interface = spirv::check_shader(tier.modules.back().as<spirv::Word>());
    if (!interface.ok()) return std::move(interface.error()).note(fmt::format("in module {}", i));
    interfaces.push_back(*std::move(interface));
  }
  for (std::uint32_t i = 0; i < count(t.dispatches()); ++i) {
    TOSAIC_TRY(Dispatch dispatch, dispatch_of(*t.dispatches()->Get(i), interfaces, arenas, i));
    tier.dispatches.push_back(std::move(dispatch));
  }
  return tier;
}

}  // namespace

std::uint64_t texel_bytes(View view) {
  switch (view) {
    case View::buffer:
    case View::r8_uint: return 1;
    case View::r16_uint: return 2;
    case View::r32_uint:
    case View::r32_float: return 4;
    case View::rgba32_uint:
    case View::rgba32_float: return 16;
  }
  return 1;
}
bool has_reals(View view) { return view == View::r32_float || view == View::rgba32_float; }

bool is_program(const Bytes& file) { return file.size() >= 8 && fbs::ProgramBufferHasIdentifier(file.data()); }

Result<Program> read(const Bytes& given) {
  if (!is_program(given)) return bad("this is no program for TosaicVulkan");
  // Flatbuffers are read in place, where their words must be aligned.
  const bool aligned = reinterpret_cast<std::uintptr_t>(given.data()) % 16 == 0;
  const Bytes file = aligned ? given : Bytes::copy(given.data(), given.size());
  flatbuffers::Verifier verifier(reinterpret_cast<const std::uint8_t*>(file.data()), file.size(), 16, 10000000);
  if (!fbs::VerifyProgramBuffer(verifier)) return bad("the flatbuffer is damaged");
  const fbs::Program& p = *fbs::GetProgram(file.data());
  if (p.version() != version)
    return error("vulkan-program.version",
                 fmt::format("the program has version {}, this runtime knows {}", p.version(), version))
        .hint("compile the model with this version of tosaic");
  Program program;
  program.io_bytes = p.io_bytes();
  if (program.io_bytes > most_arena_bytes) return bad("inputs and outputs of {} bytes", program.io_bytes);
  if (p.constants())
    program.constants =
        file.slice(static_cast<std::size_t>(reinterpret_cast<const std::byte*>(p.constants()->data()) - file.data()),
                   p.constants()->size());
  for (auto [from, to] : {std::pair{p.inputs(), &program.inputs}, {p.outputs(), &program.outputs}})
    for (std::uint32_t i = 0; i < count(from); ++i) {
      TOSAIC_TRY(Tensor tensor, tensor_of(*from->Get(i), program.io_bytes));
      to->push_back(std::move(tensor));
    }
  if (count(p.tiers()) == 0) return bad("there is no tier");
  for (std::uint32_t i = 0; i < count(p.tiers()); ++i) {
    TOSAIC_TRY(Tier tier, tier_of(*p.tiers()->Get(i), {{program.constants.size(), 0, program.io_bytes}}));
    for (const Tier& other : program.tiers)
      if (other.name == tier.name) return bad("tier '{}' is there twice", tier.name);
    program.tiers.push_back(std::move(tier));
  }
  return program;
}

}  // namespace tosaic::vulkan_program
