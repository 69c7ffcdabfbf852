// SPDX-License-Identifier: Apache-2.0
// Reading the payload: every offset inside the file, and then what check.cpp asks of any program, so that nothing after
// this trusts the file.
#include <flatbuffers/flatbuffers.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "formats/spirv/packed_module.h"
#include "formats/vulkan_program/tiers.h"
#include "formats/vulkan_program/vulkan_program.h"
#include "ir/extent.h"
#include "vulkan_program_generated.h"

namespace tosaic::vulkan_program {
namespace {

namespace fbs = tosaic::vulkan_schema;

template <class... Args>
Diagnostic bad(fmt::format_string<Args...> format, Args&&... args) {
  return error("vulkan-program.format", fmt::format(format, std::forward<Args>(args)...));
}

std::string text(const flatbuffers::String* s) { return s ? s->str() : std::string(); }
template <class T>
std::uint32_t count(const T* list) {
  return list ? list->size() : 0;
}
// Of numbers and structs of eight bytes, whose alignment the flatbuffers verifier leaves unchecked.
template <class Element, class List>
Element element(const List* list, std::uint32_t i) {
  static_assert(std::is_trivially_copyable_v<Element>);
  Element value;
  std::memcpy(&value, list->Data() + i * sizeof value, sizeof value);
  return value;
}

// Symbols with bounds, as many numbers as there can be.
Result<std::vector<Dim>> expressions_of(const fbs::Program& p) {
  std::vector<Dim> expressions;
  for (std::uint32_t i = 0; i < count(p.expressions()); ++i) {
    const std::string what = text(p.expressions()->Get(i));
    std::string why;
    const auto dim = parse_ranged(what, why);
    if (!dim) return bad("the size '{}' cannot be read: {}", what, why);
    for (const Symbol& s : dim->symbols())
      if (s.range.lowest.value_or(0) < 1 || s.range.highest.value_or(most_arena_bytes) > INT32_MAX)
        return bad("the size '{}' has no bounds that a tensor could have", s.name);
    expressions.push_back(*dim);
  }
  return expressions;
}

// Dims that vary: within what is stored as their bounds.
Result<Shape> symbolic(const fbs::Tensor& t, const Tensor& tensor, const std::vector<Dim>& expressions) {
  std::vector<Dim> dims = tensor.type.shape.dims();
  if (count(t.dims()) != dims.size()) return bad("tensor '{}' has other sizes than dims", tensor.name);
  for (std::uint32_t i = 0; i < dims.size(); ++i) {
    const std::uint32_t place = t.dims()->Get(i);
    if (place == no_expression) continue;
    if (place >= expressions.size())
      return bad("tensor '{}' has size {} of {}", tensor.name, place, expressions.size());
    const Bounds bounds = expressions[place].bounds();
    if (bounds.lowest.value_or(-1) < 0 || !bounds.highest || *bounds.highest > dims[i].value())
      return bad("a dim of tensor '{}' is {}, with memory for {}", tensor.name, ranged_text(expressions[place]),
                 dims[i].value());
    dims[i] = expressions[place];
  }
  return Shape(std::move(dims));
}

Result<Tensor> tensor_of(const fbs::Tensor& t, const std::vector<Dim>& expressions) {
  Tensor tensor;
  tensor.name = text(t.name());
  const auto dtype = dtype_named(text(t.dtype()));
  if (!dtype || *dtype == DType::shape) return bad("tensor '{}' has no dtype", tensor.name);
  std::vector<std::int64_t> dims;
  std::uint64_t elements = 1, strides = 1;  // of what is empty they do not overflow either
  for (std::uint32_t i = 0; i < count(t.shape()); ++i) {
    dims.push_back(flatbuffers::EndianScalar(element<std::int64_t>(t.shape(), i)));
    if (dims.back() < 0 || dims.back() > INT32_MAX) return bad("tensor '{}' has a dim of {}", tensor.name, dims.back());
    elements *= static_cast<std::uint64_t>(dims.back());
    strides *= static_cast<std::uint64_t>(std::max<std::int64_t>(dims.back(), 1));
    if (strides > most_arena_bytes) return bad("tensor '{}' fits no memory", tensor.name);
  }
  if (dims.size() > 32) return bad("tensor '{}' has {} dims", tensor.name, dims.size());
  tensor.type = {*dtype, Shape(std::move(dims)), std::nullopt};
  tensor.offset = t.offset();
  if (t.dims()) { TOSAIC_TRY(tensor.type.shape, symbolic(t, tensor, expressions)); }
  if (t.rows() < 0 || (t.rows_size() != no_expression && t.rows_size() >= expressions.size()))
    return bad("tensor '{}' has indices into {} rows, or into size {}", tensor.name, t.rows(), t.rows_size());
  if (t.rows() > 0) tensor.rows = t.rows();
  if (t.rows_size() != no_expression) tensor.rows = expressions[t.rows_size()];
  tensor.first_row = t.first_row();
  if (tensor.rows && *dtype != DType::i32) return bad("tensor '{}' has indices that are no i32", tensor.name);
  tensor.narrow = t.narrow();
  return tensor;
}

Result<Dispatch> dispatch_of(const fbs::Dispatch& d, std::uint32_t number) {
  Dispatch made;
  const std::string what = fmt::format("dispatch {}", number);
  made.module = d.module_();
  if (d.pushes()) made.pushes.assign(d.pushes()->begin(), d.pushes()->end());
  for (std::uint32_t i = 0; i < count(d.sizes()); ++i) {
    const fbs::SizedPush& p = *d.sizes()->Get(i);
    made.sizes.push_back({p.push(), p.expression(), p.reciprocal()});
  }
  made.group_count = d.group_count();
  if (!d.groups()) return bad("{} has no group counts", what);
  made.groups = {d.groups()->x(), d.groups()->y(), d.groups()->z()};
  for (std::uint32_t i = 0; i < count(d.ranges()); ++i) {
    const auto r = element<fbs::Range>(d.ranges(), i);
    const auto arena = static_cast<std::uint32_t>(r.arena());
    if (arena > 2) return bad("{} has an arena {}", what, arena);
    const auto view = static_cast<View>(r.view());
    if (view > last_view) return bad("{}: range {} and its module disagree on what is seen", what, i);
    made.ranges.push_back({static_cast<Arena>(arena), r.written(), view, r.offset(), r.bytes()});
  }
  made.kernel = text(d.kernel());
  made.value = text(d.value());
  made.place = text(d.place());
  return made;
}

Result<Bytes> words_of(const fbs::Module& module, std::uint32_t number) {
  // Copies: the file's words may lie at any byte.
  if (count(module.packed()) == 0) {
    if (count(module.words()) == 0) return bad("module {} is empty", number);
    return Bytes::copy(module.words()->data(), std::size_t{module.words()->size()} * 4);
  }
  auto words = spirv::unpack(std::as_bytes(std::span(module.packed()->data(), module.packed()->size())));
  if (!words) return bad("module {} ends inside an instruction", number);
  return Bytes::of(*std::move(words));
}

Result<Tier> tier_of(const fbs::Tier& t) {
  Tier tier;
  tier.name = text(t.name());
  if (!find_tier(tier.name)) return tier;  // nobody runs it
  tier.activation_bytes = t.activation_bytes();
  for (std::uint32_t i = 0; i < count(t.modules()); ++i) {
    const fbs::Module& module = *t.modules()->Get(i);
    TOSAIC_TRY(Bytes words, words_of(module, i));
    tier.modules.push_back(std::move(words));
    tier.stored_bytes += count(module.packed()) + std::uint64_t{4} * count(module.words());
  }
  for (std::uint32_t i = 0; i < count(t.dispatches()); ++i) {
    TOSAIC_TRY(Dispatch dispatch, dispatch_of(*t.dispatches()->Get(i), i));
    tier.dispatches.push_back(std::move(dispatch));
  }
  return tier;
}

// The memory of constants. What lies outside is as large as the file says, or it is something else.
Result<Rope> constants_of(const fbs::Program& p, const Bytes& file, const FindOutside& outside) {
  Bytes inside;
  if (p.constants())
    inside =
        file.slice(static_cast<std::size_t>(reinterpret_cast<const std::byte*>(p.constants()->data()) - file.data()),
                   p.constants()->size());
  if (count(p.parts()) == 0) return Rope(inside);
  Rope all;
  std::size_t used = 0;
  for (std::uint32_t i = 0; i < count(p.parts()); ++i) {
    const fbs::Part& part = *p.parts()->Get(i);
    const std::uint64_t bytes = part.bytes();
    if (!part.key()) {
      if (bytes > inside.size() - used)
        return bad("constants of {} bytes, of which {} are there", bytes, inside.size() - used);
      all.append(inside.slice(used, static_cast<std::size_t>(bytes)));
      used += static_cast<std::size_t>(bytes);
      continue;
    }
    const Bytes found = outside ? outside(part.key()->str()) : Bytes();
    if (found.null() || found.size() != bytes)
      return error(
                 "vulkan-program.constant-outside",
                 fmt::format("{} bytes of constants lie outside the payload as '{}', and {}", bytes, part.key()->str(),
                             found.null() ? "nobody gives them" : fmt::format("{} are given", found.size())))
          .hint("run the .pte that holds them; `tosaic extract` writes payloads that are whole");
    all.append(found);
  }
  if (used != inside.size()) return bad("{} bytes of constants belong to no part", inside.size() - used);
  return all;
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

Result<Program> read(const Bytes& given, const FindOutside& outside) {
  if (!is_program(given)) return bad("this is no program for TosaicVulkan");
  // Flatbuffers are read in place, where their words must be aligned.
  const bool aligned = reinterpret_cast<std::uintptr_t>(given.data()) % 16 == 0;
  const Bytes file = aligned ? given : Bytes::copy(given.data(), given.size());
  flatbuffers::Verifier verifier(reinterpret_cast<const std::uint8_t*>(file.data()), file.size(), 16, 10000000);
  if (!fbs::VerifyProgramBuffer(verifier)) return bad("the flatbuffer is damaged");
  const fbs::Program& p = *fbs::GetProgram(file.data());
  if (p.version() < oldest_version || p.version() > version)
    return error("vulkan-program.version", fmt::format("the program has version {}, this runtime knows {} to {}",
                                                       p.version(), oldest_version, version))
        .hint("compile the model with this version of tosaic, or run it with the one that made it");
  Program program;
  program.io_bytes = p.io_bytes();
  TOSAIC_TRY(program.constants, constants_of(p, file, outside));
  try {
    TOSAIC_TRY(program.expressions, expressions_of(p));
  } catch (const std::exception& e) { return bad("a size cannot be computed: {}", e.what()); }
  for (auto [from, to] : {std::pair{p.inputs(), &program.inputs}, {p.outputs(), &program.outputs}})
    for (std::uint32_t i = 0; i < count(from); ++i) {
      TOSAIC_TRY(Tensor tensor, tensor_of(*from->Get(i), program.expressions));
      to->push_back(std::move(tensor));
    }
  for (std::uint32_t i = 0; i < count(p.tiers()); ++i) {
    TOSAIC_TRY(Tier tier, tier_of(*p.tiers()->Get(i)));
    program.tiers.push_back(std::move(tier));
  }
  for (std::uint32_t i = 0; i < count(p.guards()); ++i) {
    const fbs::Guard& guard = *p.guards()->Get(i);
    if (guard.violation() >= program.expressions.size())
      return bad("a guard is size {} of {}", guard.violation(), program.expressions.size());
    program.guards.push_back({text(guard.text()), program.expressions[guard.violation()]});
  }
  TOSAIC_CHECK(check(program));
  return program;
}

}  // namespace tosaic::vulkan_program
