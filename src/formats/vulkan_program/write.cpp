// SPDX-License-Identifier: Apache-2.0
#include <flatbuffers/flatbuffers.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "formats/flat_rope.h"
#include "formats/spirv/packed_module.h"
#include "formats/vulkan_program/vulkan_program.h"
#include "ir/extent.h"
#include "vulkan_program_generated.h"

namespace tosaic::vulkan_program {
namespace {

namespace fbs = tosaic::vulkan_schema;
using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

Offset<fbs::Dispatch> put(FlatBufferBuilder& b, const Dispatch& d) {
  std::vector<fbs::Range> ranges;
  for (const Range& r : d.ranges)
    ranges.emplace_back(r.offset, r.bytes, static_cast<fbs::Arena>(r.arena), r.written, static_cast<fbs::View>(r.view));
  const auto pushes = b.CreateVector(d.pushes);
  const auto list = b.CreateVectorOfStructs(ranges);
  const auto kernel = b.CreateSharedString(d.kernel), value = b.CreateSharedString(d.value);
  const auto place = b.CreateSharedString(d.place);
  const fbs::Groups groups(d.groups[0], d.groups[1], d.groups[2]);
  std::vector<fbs::SizedPush> sized;
  for (const SizedPush& p : d.sizes) sized.emplace_back(p.push, p.expression, p.reciprocal);
  const auto sizes = sized.empty() ? 0 : b.CreateVectorOfStructs(sized);
  return fbs::CreateDispatch(b, d.module, pushes, list, &groups, kernel, value, sizes, d.group_count, place);
}

Offset<fbs::Module> put_module(FlatBufferBuilder& b, std::span<const spirv::Word> words) {
  if (const auto packed = spirv::pack(words))
    return fbs::CreateModule(b, 0,
                             b.CreateVector(reinterpret_cast<const std::uint8_t*>(packed->data()), packed->size()));
  return fbs::CreateModule(b, b.CreateVector(words.data(), words.size()));
}

// Modules of several tiers stand there once.
class Modules {
 public:
  explicit Modules(FlatBufferBuilder& b) : b_(b) {}
  Offset<fbs::Module> put(const Bytes& m) {
    const auto [found, added] = made_.try_emplace(hash_of(m));
    if (added) found->second = put_module(b_, m.as<std::uint32_t>());
    return found->second;
  }

 private:
  FlatBufferBuilder& b_;
  std::map<std::uint64_t, Offset<fbs::Module>> made_;
};

Offset<fbs::Tier> put(FlatBufferBuilder& b, Modules& all, const Tier& t) {
  std::vector<Offset<fbs::Module>> modules;
  for (const Bytes& m : t.modules) modules.push_back(all.put(m));
  std::vector<Offset<fbs::Dispatch>> dispatches;
  for (const Dispatch& d : t.dispatches) dispatches.push_back(put(b, d));
  const auto name = b.CreateString(t.name);
  const auto module_list = b.CreateVector(modules);
  const auto dispatch_list = b.CreateVector(dispatches);
  return fbs::CreateTier(b, name, t.activation_bytes, module_list, dispatch_list);
}

Offset<flatbuffers::Vector<Offset<fbs::Tensor>>> put(FlatBufferBuilder& b, Program& program,
                                                     const std::vector<Tensor>& tensors) {
  std::vector<Offset<fbs::Tensor>> list;
  for (const Tensor& t : tensors) {
    const auto name = b.CreateString(t.name);
    const auto dtype = b.CreateSharedString(std::string(name_of(t.type.dtype)));
    const auto shape = b.CreateVector(largest(t.type).shape.sizes());
    std::vector<std::uint32_t> positions;
    if (!t.type.shape.is_static())
      for (const Dim& dim : t.type.shape.dims())
        positions.push_back(dim.is_number() ? no_expression : expression(program, dim));
    const auto dims = positions.empty() ? 0 : b.CreateVector(positions);
    const bool number = t.rows && t.rows->is_number();
    list.push_back(fbs::CreateTensor(b, name, dtype, shape, t.offset, dims, number ? t.rows->value() : 0,
                                     t.rows && !number ? expression(program, *t.rows) : no_expression, t.first_row,
                                     t.narrow));
  }
  return b.CreateVector(list);
}

// Counted generously: what is not written costs nothing.
std::size_t room_for(const Program& program) {
  std::size_t room = 4096 + static_cast<std::size_t>(program.constants.size());
  for (const std::vector<Tensor>* tensors : {&program.inputs, &program.outputs})
    for (const Tensor& t : *tensors)
      room += 256 + 2 * t.name.size() + 16 * static_cast<std::size_t>(t.type.shape.rank());
  for (const Tier& t : program.tiers) {
    for (const Bytes& m : t.modules) room += 64 + m.size();
    for (const Dispatch& d : t.dispatches)
      room += 256 + 4 * d.pushes.size() + sizeof(fbs::Range) * d.ranges.size() + d.kernel.size() + d.value.size() +
              d.place.size() + sizeof(fbs::SizedPush) * d.sizes.size();
  }
  for (const Dim& dim : program.expressions) room += 64 + ranged_text(dim).size();
  for (const Guard& guard : program.guards) room += 128 + guard.text.size() + ranged_text(guard.violation).size();
  return room;
}

struct Part {
  std::uint64_t bytes;
  std::string key;  // empty: inside
};

// The oldest one that says it.
std::uint32_t version_of(const Program& program, bool has_parts) {
  for (const auto* tensors : {&program.inputs, &program.outputs})
    if (std::ranges::any_of(*tensors, &Tensor::narrow)) return version;
  if (!program.guards.empty()) return version_without_narrow;
  return has_parts ? version_without_guards : version_without_parts;
}

// `program.constants` are those inside.
Rope written(Program program, const std::vector<Part>& parts) {
  FlatBufferBuilder b(room_for(program) + 128 * parts.size());
  formats::FlatRope file(b);
  const auto inputs = put(b, program, program.inputs), outputs = put(b, program, program.outputs);
  const auto constants = file.bytes(program.constants, 16);
  std::vector<Offset<fbs::Part>> listed;
  for (const Part& part : parts)
    listed.push_back(fbs::CreatePart(b, part.bytes, part.key.empty() ? 0 : b.CreateString(part.key)));
  const auto part_list = listed.empty() ? 0 : b.CreateVector(listed);
  std::vector<Offset<fbs::Tier>> tiers;
  Modules modules(b);
  for (const Tier& t : program.tiers) tiers.push_back(put(b, modules, t));
  const auto tier_list = b.CreateVector(tiers);
  std::vector<Offset<fbs::Guard>> guards;
  for (const Guard& guard : program.guards) {
    const auto text = b.CreateString(guard.text);
    guards.push_back(fbs::CreateGuard(b, text, expression(program, guard.violation)));
  }
  const auto guard_list = guards.empty() ? 0 : b.CreateVector(guards);
  std::vector<Offset<flatbuffers::String>> texts;
  for (const Dim& dim : program.expressions) {
    const std::string text = ranged_text(dim);
    texts.push_back(b.CreateString(text.substr(1, text.size() - 2)));  // without its parentheses
  }
  const auto expressions = texts.empty() ? 0 : b.CreateVector(texts);
  b.Finish(fbs::CreateProgram(b, version_of(program, !parts.empty()), inputs, outputs, program.io_bytes, constants,
                              tier_list, expressions, part_list, guard_list),
           fbs::ProgramIdentifier());
  return file.finished();
}

}  // namespace

Rope write(const Program& program) { return written(program, {}); }

Parts write_parts(const Program& program, std::uint64_t least_bytes) {
  Parts made;
  Program inside = program;
  inside.constants = {};
  std::vector<Part> parts;
  for (const Bytes& chunk : program.constants.chunks()) {
    if (chunk.size() < least_bytes) {
      inside.constants.append(chunk);
      if (parts.empty() || !parts.back().key.empty()) parts.push_back({0, ""});
      parts.back().bytes += chunk.size();
      continue;
    }
    parts.push_back({chunk.size(), fmt::format("vulkan-{:016x}-{}", hash_of(chunk), chunk.size())});
    if (std::ranges::find(made.outside, parts.back().key, &std::pair<std::string, Bytes>::first) == made.outside.end())
      made.outside.emplace_back(parts.back().key, chunk);
  }
  if (made.outside.empty()) parts.clear();
  made.file = written(std::move(inside), parts);
  return made;
}

}  // namespace tosaic::vulkan_program
