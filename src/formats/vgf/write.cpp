// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "formats/vgf/layout.h"
#include "formats/vgf/vgf.h"
#include "vgf_generated.h"

namespace tosaic::vgf {
namespace {

namespace fb = flatbuffers;
template <class T>
using Rows = std::vector<fb::Offset<T>>;
using Slots = fb::Offset<fb::Vector<fb::Offset<vgf_schema::BindingSlot>>>;

// Every field is written, also where it equals a default: other readers may assume other ones.
fb::FlatBufferBuilder make_builder() {
  fb::FlatBufferBuilder builder;
  builder.ForceDefaults(true);
  return builder;
}

Slots slots(fb::FlatBufferBuilder& builder, const std::vector<Slot>& list) {
  Rows<vgf_schema::BindingSlot> rows;
  for (const Slot& s : list) rows.push_back(vgf_schema::CreateBindingSlot(builder, s.binding, s.resource));
  return builder.CreateVector(rows);
}

std::string modules_section(const File& file) {
  fb::FlatBufferBuilder builder = make_builder();
  Rows<vgf_schema::Module> rows;
  for (const Module& m : file.modules) {
    fb::Offset<void> code;
    auto type = vgf_schema::Code::NONE;
    const std::string text(m.code.text());
    switch (m.language) {
      case Language::absent: break;
      case Language::spirv: {
        const auto words = m.code.as<std::uint32_t>();
        type = vgf_schema::Code::Spirv;
        code = vgf_schema::CreateSpirv(builder, builder.CreateVector(words.data(), words.size())).Union();
        break;
      }
      case Language::glsl:
        type = vgf_schema::Code::Glsl;
        code = vgf_schema::CreateGlsl(builder, builder.CreateString(text)).Union();
        break;
      case Language::hlsl:
        type = vgf_schema::Code::Hlsl;
        code = vgf_schema::CreateHlsl(builder, builder.CreateString(text)).Union();
        break;
    }
    const auto name = builder.CreateString(m.name), entry = builder.CreateString(m.entry_point);
    rows.push_back(vgf_schema::CreateModule(builder, static_cast<std::uint8_t>(m.kind), name, entry, type, code));
  }
  builder.Finish(vgf_schema::CreateModuleTable(builder, builder.CreateVector(rows)));
  return {reinterpret_cast<const char*>(builder.GetBufferPointer()), builder.GetSize()};
}

fb::Offset<vgf_schema::SegmentInfo> segment_row(fb::FlatBufferBuilder& builder, const Segment& s) {
  Rows<vgf_schema::DescriptorSetInfo> sets;
  for (const DescriptorSet& set : s.sets)
    sets.push_back(vgf_schema::CreateDescriptorSetInfo(builder, slots(builder, set.slots), set.index));
  Rows<vgf_schema::PushConstantRange> ranges;
  for (const PushRange& r : s.push_ranges)
    ranges.push_back(vgf_schema::CreatePushConstantRange(builder, r.stages, r.offset, r.size));
  Rows<vgf_schema::GraphConstantBinding> bindings;
  std::vector<std::uint32_t> indices;
  for (const GraphConstant& c : s.constants) {
    bindings.push_back(vgf_schema::CreateGraphConstantBinding(builder, c.id, c.constant));
    indices.push_back(c.constant);
  }
  const auto name = builder.CreateString(s.name);
  const auto set_rows = builder.CreateVector(sets);
  const auto inputs = slots(builder, s.inputs), outputs = slots(builder, s.outputs);
  const auto constants = builder.CreateVector(indices);
  const auto dispatch = s.dispatch.empty() ? 0 : builder.CreateVector(s.dispatch);
  const auto range_rows = builder.CreateVector(ranges);
  const auto binding_rows = builder.CreateVector(bindings);
  return vgf_schema::CreateSegmentInfo(builder, static_cast<std::uint8_t>(s.kind), name, s.module, set_rows, inputs,
                                       outputs, constants, dispatch, range_rows, binding_rows);
}

std::string sequence_section(const File& file) {
  fb::FlatBufferBuilder builder = make_builder();
  Rows<vgf_schema::SegmentInfo> rows;
  for (const Segment& s : file.segments) rows.push_back(segment_row(builder, s));
  const auto segments = builder.CreateVector(rows);
  const auto inputs = slots(builder, file.inputs), outputs = slots(builder, file.outputs);
  const auto input_names = builder.CreateVectorOfStrings(file.input_names);
  const auto output_names = builder.CreateVectorOfStrings(file.output_names);
  builder.Finish(vgf_schema::CreateModelSequenceTable(builder, segments, inputs, outputs, input_names, output_names));
  return {reinterpret_cast<const char*>(builder.GetBufferPointer()), builder.GetSize()};
}

std::string resources_section(const File& file) {
  fb::FlatBufferBuilder builder = make_builder();
  Rows<vgf_schema::ModelResourceTableEntry> rows;
  for (const Resource& r : file.resources) {
    const auto shape = builder.CreateVector(r.shape), strides = builder.CreateVector(r.strides);
    const auto description = vgf_schema::CreateDescription(builder, shape, strides);
    auto extra_type = vgf_schema::ExtraConfig::NONE;
    fb::Offset<void> extra;
    if (!r.sampler.empty()) {
      const auto& v = r.sampler[0].values;
      extra_type = vgf_schema::ExtraConfig::SamplerConfig;
      extra = vgf_schema::CreateSamplerConfig(builder, v[0], v[1], v[2], v[3], v[4]).Union();
    }
    rows.push_back(vgf_schema::CreateModelResourceTableEntry(builder, r.descriptor_type, r.format,
                                                             static_cast<std::uint8_t>(r.category), description,
                                                             extra_type, extra, r.alias_group));
  }
  builder.Finish(vgf_schema::CreateModelResourceTable(builder, builder.CreateVector(rows)));
  return {reinterpret_cast<const char*>(builder.GetBufferPointer()), builder.GetSize()};
}

class Output {
 public:
  explicit Output(std::size_t reserved) { bytes_.reserve(reserved); }
  void append(const void* data, std::size_t size) {
    const auto* p = static_cast<const std::byte*>(data);
    bytes_.insert(bytes_.end(), p, p + size);
  }
  template <class T>
  void number(T value) {
    append(&value, sizeof(value));
  }
  void pad() { bytes_.resize(aligned(bytes_.size())); }
  void zeros(std::size_t count) { bytes_.resize(bytes_.size() + count); }
  std::size_t size() const { return bytes_.size(); }
  template <class T>
  void patch(std::size_t at, T value) {
    std::memcpy(bytes_.data() + at, &value, sizeof(value));
  }
  Bytes take() { return Bytes::of(std::move(bytes_)); }

 private:
  std::vector<std::byte> bytes_;
};

void constants_section(const File& file, Output& out) {
  out.append(constants_magic, sizeof(constants_magic));
  out.number<std::uint64_t>(file.constants.size());
  std::uint64_t offset = 0;
  for (const Constant& c : file.constants) {
    out.number<std::uint32_t>(c.resource);
    out.number<std::int32_t>(c.sparsity_dimension);
    out.number<std::uint64_t>(c.data.size());
    out.number<std::uint64_t>(offset);
    offset += aligned(c.data.size());
  }
  for (const Constant& c : file.constants) {
    out.append(c.data.data(), c.data.size());
    out.pad();
  }
}

}  // namespace

Result<Bytes> write(const File& file) {
  std::size_t payload = 0;
  for (const Constant& c : file.constants) payload += aligned(c.data.size()) + constant_record_bytes;
  const std::string sections[] = {modules_section(file), sequence_section(file), resources_section(file)};
  Output out(payload + sections[0].size() + sections[1].size() + sections[2].size() + 4 * header_bytes);
  out.append(file_magic, sizeof(file_magic));
  out.zeros(4);  // encoder's version of the Vulkan headers, reserved
  out.append(file.version.data(), file.version.size());
  out.zeros(header_bytes - out.size());
  std::size_t entry = first_section_entry;
  auto section = [&](auto&& body) {
    const std::uint64_t at = out.size();
    body();
    out.patch<std::uint64_t>(entry, at);
    out.patch<std::uint64_t>(entry + 8, out.size() - at);
    entry += 16;
    out.pad();
  };
  for (const std::string& s : sections) section([&] { out.append(s.data(), s.size()); });
  section([&] { constants_section(file, out); });
  return out.take();
}

}  // namespace tosaic::vgf
