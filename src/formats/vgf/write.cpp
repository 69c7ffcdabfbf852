// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <map>

#include "formats/vgf/layout.h"
#include "formats/vgf/vgf.h"
#include "vgf_generated.h"

namespace tosaic::vgf {
namespace {

namespace fb = flatbuffers;
template <class T>
using Rows = std::vector<fb::Offset<T>>;
using Slots = fb::Offset<fb::Vector<fb::Offset<vgf_schema::BindingSlot>>>;

// Equal tables and vectors lie in a section once, and everything that needs one points at it: a network has hundreds of
// constants of a few shapes.
template <class Key, class T>
class Shared {
 public:
  template <class Make>
  fb::Offset<T> at(const Key& key, const Make& make) {
    const auto found = made_.find(key);
    return found != made_.end() ? found->second : made_.emplace(key, make()).first->second;
  }

 private:
  std::map<Key, fb::Offset<T>> made_;
};

class SlotRows {
 public:
  explicit SlotRows(fb::FlatBufferBuilder& builder) : builder_(builder) {}
  Slots of(const std::vector<Slot>& list) {
    std::vector<std::uint32_t> key;
    for (const Slot& s : list) key.insert(key.end(), {s.binding, s.resource});
    return lists_.at(key, [&] {
      Rows<vgf_schema::BindingSlot> rows;
      for (const Slot& s : list)
        rows.push_back(rows_.at({s.binding, s.resource},
                                [&] { return vgf_schema::CreateBindingSlot(builder_, s.binding, s.resource); }));
      return builder_.CreateVector(rows);
    });
  }

 private:
  fb::FlatBufferBuilder& builder_;
  Shared<std::pair<std::uint32_t, std::uint32_t>, vgf_schema::BindingSlot> rows_;
  Shared<std::vector<std::uint32_t>, fb::Vector<fb::Offset<vgf_schema::BindingSlot>>> lists_;
};

std::string modules_section(const File& file) {
  fb::FlatBufferBuilder builder;
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
    const auto name = builder.CreateSharedString(m.name), entry = builder.CreateSharedString(m.entry_point);
    rows.push_back(vgf_schema::CreateModule(builder, static_cast<std::uint8_t>(m.kind), name, entry, type, code));
  }
  builder.Finish(vgf_schema::CreateModuleTable(builder, builder.CreateVector(rows)));
  return {reinterpret_cast<const char*>(builder.GetBufferPointer()), builder.GetSize()};
}

fb::Offset<vgf_schema::SegmentInfo> segment_row(fb::FlatBufferBuilder& builder, SlotRows& slots, const Segment& s) {
  Rows<vgf_schema::DescriptorSetInfo> sets;
  for (const DescriptorSet& set : s.sets)
    sets.push_back(vgf_schema::CreateDescriptorSetInfo(builder, slots.of(set.slots), set.index));
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
  const auto inputs = slots.of(s.inputs), outputs = slots.of(s.outputs);
  const auto constants = builder.CreateVector(indices);
  const auto dispatch = s.dispatch.empty() ? 0 : builder.CreateVector(s.dispatch);
  const auto range_rows = builder.CreateVector(ranges);
  const auto binding_rows = builder.CreateVector(bindings);
  return vgf_schema::CreateSegmentInfo(builder, static_cast<std::uint8_t>(s.kind), name, s.module, set_rows, inputs,
                                       outputs, constants, dispatch, range_rows, binding_rows);
}

std::string sequence_section(const File& file) {
  fb::FlatBufferBuilder builder;
  SlotRows slots(builder);
  Rows<vgf_schema::SegmentInfo> rows;
  for (const Segment& s : file.segments) rows.push_back(segment_row(builder, slots, s));
  const auto segments = builder.CreateVector(rows);
  const auto inputs = slots.of(file.inputs), outputs = slots.of(file.outputs);
  const auto input_names = builder.CreateVectorOfStrings(file.input_names);
  const auto output_names = builder.CreateVectorOfStrings(file.output_names);
  builder.Finish(vgf_schema::CreateModelSequenceTable(builder, segments, inputs, outputs, input_names, output_names));
  return {reinterpret_cast<const char*>(builder.GetBufferPointer()), builder.GetSize()};
}

std::string resources_section(const File& file) {
  fb::FlatBufferBuilder builder;
  Shared<std::vector<std::int64_t>, fb::Vector<std::int64_t>> lists;
  Shared<std::pair<std::vector<std::int64_t>, std::vector<std::int64_t>>, vgf_schema::Description> descriptions;
  Shared<std::vector<std::int64_t>, vgf_schema::ModelResourceTableEntry> entries;
  auto list = [&](const std::vector<std::int64_t>& values) {
    return lists.at(values, [&] { return builder.CreateVector(values); });
  };
  auto entry = [&](const Resource& r) {
    const auto description = descriptions.at({r.shape, r.strides}, [&] {
      const auto shape = list(r.shape), strides = list(r.strides);
      return vgf_schema::CreateDescription(builder, shape, strides);
    });
    auto extra_type = vgf_schema::ExtraConfig::NONE;
    fb::Offset<void> extra;
    if (!r.sampler.empty()) {
      const auto& v = r.sampler[0].values;
      extra_type = vgf_schema::ExtraConfig::SamplerConfig;
      extra = vgf_schema::CreateSamplerConfig(builder, v[0], v[1], v[2], v[3], v[4]).Union();
    }
    return vgf_schema::CreateModelResourceTableEntry(builder, r.descriptor_type, r.format,
                                                     static_cast<std::uint8_t>(r.category), description, extra_type,
                                                     extra, r.alias_group);
  };
  Rows<vgf_schema::ModelResourceTableEntry> rows;
  for (const Resource& r : file.resources) {
    std::vector<std::int64_t> key{r.descriptor_type, r.format, static_cast<std::int64_t>(r.category), r.alias_group,
                                  static_cast<std::int64_t>(r.shape.size())};
    key.insert(key.end(), r.shape.begin(), r.shape.end());
    key.insert(key.end(), r.strides.begin(), r.strides.end());
    rows.push_back(r.sampler.empty() ? entries.at(key, [&] { return entry(r); }) : entry(r));
  }
  builder.Finish(vgf_schema::CreateModelResourceTable(builder, builder.CreateVector(rows)));
  return {reinterpret_cast<const char*>(builder.GetBufferPointer()), builder.GetSize()};
}

class Output {
 public:
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

// Constants of equal bytes, whatever their shapes and types, are one stretch of the payload, which is given: it ends
// the file.
Rope constants_section(const File& file, Output& out) {
  out.append(constants_magic, sizeof(constants_magic));
  out.number<std::uint64_t>(file.constants.size());
  std::multimap<std::uint64_t, std::pair<const Bytes*, std::uint64_t>> placed;  // by glance: the bytes, their offset
  Rope payload;
  auto offset_of = [&](const Bytes& data) {
    const std::uint64_t glance = glance_at(data);
    for (auto [it, last] = placed.equal_range(glance); it != last; ++it)
      if (*it->second.first == data) return it->second.second;
    const std::uint64_t offset = payload.size();
    placed.emplace(glance, std::pair(&data, offset));
    payload.append(data);
    payload.zeros(aligned(data.size()) - data.size());
    return offset;
  };
  for (const Constant& c : file.constants) {
    out.number<std::uint32_t>(c.resource);
    out.number<std::int32_t>(c.sparsity_dimension);
    out.number<std::uint64_t>(c.data.size());
    out.number<std::uint64_t>(offset_of(c.data));
  }
  return payload;
}

}  // namespace

Result<Rope> write(const File& file) {
  const std::string sections[] = {modules_section(file), sequence_section(file), resources_section(file)};
  Output out;
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
  const std::uint64_t at = out.size();
  const Rope payload = constants_section(file, out);
  out.patch<std::uint64_t>(entry, at);
  out.patch<std::uint64_t>(entry + 8, out.size() - at + payload.size());
  out.pad();
  Rope whole(out.take());
  whole.append(payload);
  return whole;
}

}  // namespace tosaic::vgf
