// SPDX-License-Identifier: Apache-2.0
#include <flatbuffers/flatbuffers.h>

#include "formats/vulkan_program/vulkan_program.h"
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
  const fbs::Groups groups(d.groups[0], d.groups[1], d.groups[2]);
  return fbs::CreateDispatch(b, d.module, pushes, list, &groups, kernel, value);
}

Offset<fbs::Tier> put(FlatBufferBuilder& b, const Tier& t) {
  std::vector<Offset<fbs::Module>> modules;
  for (const Bytes& m : t.modules) {
    const auto words = m.as<std::uint32_t>();
    modules.push_back(fbs::CreateModule(b, b.CreateVector(words.data(), words.size())));
  }
  std::vector<Offset<fbs::Dispatch>> dispatches;
  for (const Dispatch& d : t.dispatches) dispatches.push_back(put(b, d));
  const auto name = b.CreateString(t.name);
  const auto module_list = b.CreateVector(modules);
  const auto dispatch_list = b.CreateVector(dispatches);
  return fbs::CreateTier(b, name, t.activation_bytes, module_list, dispatch_list);
}

Offset<flatbuffers::Vector<Offset<fbs::Tensor>>> put(FlatBufferBuilder& b, const std::vector<Tensor>& tensors) {
  std::vector<Offset<fbs::Tensor>> list;
  for (const Tensor& t : tensors) {
    const auto name = b.CreateString(t.name);
    const auto dtype = b.CreateSharedString(std::string(name_of(t.type.dtype)));
    const auto shape = b.CreateVector(t.type.shape.sizes());
    list.push_back(fbs::CreateTensor(b, name, dtype, shape, t.offset));
  }
  return b.CreateVector(list);
}

}  // namespace

Bytes write(const Program& program) {
  FlatBufferBuilder b(1024 + program.constants.size());
  const auto inputs = put(b, program.inputs), outputs = put(b, program.outputs);
  b.ForceVectorAlignment(program.constants.size(), 1, 16);
  const auto constants =
      b.CreateVector(reinterpret_cast<const std::uint8_t*>(program.constants.data()), program.constants.size());
  std::vector<Offset<fbs::Tier>> tiers;
  for (const Tier& t : program.tiers) tiers.push_back(put(b, t));
  const auto tier_list = b.CreateVector(tiers);
  b.Finish(fbs::CreateProgram(b, version, inputs, outputs, program.io_bytes, constants, tier_list),
           fbs::ProgramIdentifier());
  return Bytes::copy(b.GetBufferPointer(), b.GetSize());
}

}  // namespace tosaic::vulkan_program
