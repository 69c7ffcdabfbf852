// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <cstring>

#include <algorithm>
#include <map>

#include "formats/vgf/layout.h"
#include "formats/vgf/vgf.h"
#include "vgf_generated.h"

namespace tosaic::vgf {
namespace {

constexpr std::int64_t most_elements = std::int64_t{1} << 40;

template <class T>
T number_at(const Bytes& bytes, std::size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof(value));
  return value;
}

template <class... T>
Diagnostic corrupt(fmt::format_string<T...> text, T&&... values) {
  return error("vgf.corrupt", fmt::format(text, std::forward<T>(values)...));
}

std::string text_of(const flatbuffers::String* s) { return s ? s->str() : std::string(); }
template <class T>
std::size_t count_of(const T* vector) {
  return vector ? vector->size() : 0;
}

// FlatBuffers' verifier lets 64-bit elements lie at any multiple of four.
std::vector<std::int64_t> numbers_of(const flatbuffers::Vector<std::int64_t>* vector) {
  std::vector<std::int64_t> list(count_of(vector));
  if (!list.empty()) std::memcpy(list.data(), vector->Data(), list.size() * sizeof(std::int64_t));
  return list;
}

// A section as an aligned FlatBuffer that has passed the verifier.
template <class Table>
Result<Bytes> verified(const Bytes& section, const char* name) {
  Bytes bytes = section;
  if (reinterpret_cast<std::uintptr_t>(bytes.data()) % alignment) bytes = Bytes::copy(bytes.data(), bytes.size());
  flatbuffers::Verifier verifier(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  if (bytes.empty() || !verifier.VerifyBuffer<Table>(nullptr))
    return corrupt("the {} section does not agree with its tables", name);
  return bytes;
}
template <class Table>
const Table* root(const Bytes& section) {
  return flatbuffers::GetRoot<Table>(section.data());
}

class Reader {
 public:
  explicit Reader(const Bytes& bytes) : bytes_(bytes) {}

  Result<File> read() {
    TOSAIC_CHECK(header());
    TOSAIC_CHECK(modules());
    TOSAIC_CHECK(resources());
    TOSAIC_CHECK(constants());
    TOSAIC_CHECK(sequence());
    return std::move(file_);
  }

 private:
  Status header() {
    if (!is_vgf(bytes_)) return error("vgf.not-a-vgf", "the file does not begin with 'VGF1'");
    if (bytes_.size() < header_bytes)
      return error("vgf.truncated", fmt::format("{} bytes are less than the header's {}", bytes_.size(), header_bytes));
    for (std::size_t i = 0; i < 3; ++i) file_.version[i] = number_at<std::uint8_t>(bytes_, version_at + i);
    const auto [major, minor, patch] = file_.version;
    if (major != 0 || minor > 5)
      return error("vgf.version", fmt::format("the file has format {}.{}.{}", major, minor, patch))
          .note("tosaic reads up to 0.5")
          .hint("update tosaic, or write the file in format 0.5");
    for (std::size_t i = 0; i < sections_.size(); ++i) {
      const auto at = number_at<std::uint64_t>(bytes_, first_section_entry + 16 * i);
      const auto size = number_at<std::uint64_t>(bytes_, first_section_entry + 16 * i + 8);
      if (at > bytes_.size() || size > bytes_.size() - at)
        return error("vgf.truncated", fmt::format("section {} spans bytes {} to {}+{}, the file has {}", i, at, at,
                                                  size, bytes_.size()));
      sections_[i] = bytes_.slice(at, size);
    }
    return {};
  }

  Status modules() {
    TOSAIC_TRY(section_keeper_[0], verified<vgf_schema::ModuleTable>(sections_[0], "module"));
    const auto* table = root<vgf_schema::ModuleTable>(section_keeper_[0]);
    for (std::size_t i = 0; i < count_of(table->modules()); ++i) {
      const auto* row = table->modules()->Get(static_cast<flatbuffers::uoffset_t>(i));
      Module m;
      if (row->type() > 1) return corrupt("module {} has type {}", i, row->type());
      m.kind = static_cast<Kind>(row->type());
      m.name = text_of(row->name());
      m.entry_point = text_of(row->entry_point());
      if (const auto* code = row->code_as_Spirv(); code && code->words()) {
        m.language = Language::spirv;
        m.code = inside(code->words()->Data(), std::size_t{4} * code->words()->size());
      } else if (const auto* glsl = row->code_as_Glsl(); glsl && glsl->code()) {
        m.language = Language::glsl;
        m.code = inside(glsl->code()->Data(), glsl->code()->size());
      } else if (const auto* hlsl = row->code_as_Hlsl(); hlsl && hlsl->code()) {
        m.language = Language::hlsl;
        m.code = inside(hlsl->code()->Data(), hlsl->code()->size());
      }
      file_.modules.push_back(std::move(m));
    }
    return {};
  }
  // A part of the module section, which stays alive with it.
  Bytes inside(const void* data, std::size_t size) const {
    const auto at = static_cast<const std::byte*>(data) - section_keeper_[0].data();
    return section_keeper_[0].slice(static_cast<std::size_t>(at), size);
  }

  Status resources() {
    TOSAIC_TRY(section_keeper_[2], verified<vgf_schema::ModelResourceTable>(sections_[2], "resource"));
    const auto* table = root<vgf_schema::ModelResourceTable>(section_keeper_[2]);
    for (std::size_t i = 0; i < count_of(table->mrt_entry()); ++i) {
      const auto* row = table->mrt_entry()->Get(static_cast<flatbuffers::uoffset_t>(i));
      if (row->category() > 3) return corrupt("resource {} has category {}", i, row->category());
      Resource r{row->vk_descriptor_type(),
                 row->vk_format(),
                 static_cast<Category>(row->category()),
                 {},
                 {},
                 row->alias_group_id(),
                 {}};
      if (const auto* d = row->description()) {
        r.shape = numbers_of(d->shape());
        r.strides = numbers_of(d->strides());
      }
      std::int64_t elements = 1;
      for (std::int64_t d : r.shape) {
        if (d < -1 || d > most_elements / elements) return corrupt("resource {} has a dim of {}", i, d);
        elements *= std::max<std::int64_t>(d, 1);
      }
      if (const auto* s = row->extra_config_as_SamplerConfig())
        r.sampler.push_back(
            {{s->min_filter(), s->mag_filter(), s->address_mode_u(), s->address_mode_v(), s->border_color()}});
      file_.resources.push_back(std::move(r));
    }
    return {};
  }

  Status constants() {
    const Bytes& section = sections_[3];
    if (section.size() < sizeof(constants_magic) ||
        std::memcmp(section.data(), constants_magic, sizeof(constants_magic)) != 0)
      return old_constants();
    if (section.size() < constants_header_bytes) return corrupt("the constant section has {} bytes", section.size());
    const auto count = number_at<std::uint64_t>(section, 8);
    if (count > (section.size() - constants_header_bytes) / constant_record_bytes)
      return corrupt("{} constants do not fit a section of {} bytes", count, section.size());
    const std::size_t payload = constants_header_bytes + count * constant_record_bytes;
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t at = constants_header_bytes + i * constant_record_bytes;
      const auto size = number_at<std::uint64_t>(section, at + 8), offset = number_at<std::uint64_t>(section, at + 16);
      if (offset > section.size() - payload || size > section.size() - payload - offset)
        return corrupt("constant {} spans {}+{} of a payload of {} bytes", i, offset, size, section.size() - payload);
      TOSAIC_CHECK(constant(number_at<std::uint32_t>(section, at), number_at<std::int32_t>(section, at + 4),
                            section.slice(payload + offset, size)));
    }
    return {};
  }
  // Until 0.3 the constants were a FlatBuffer.
  Status old_constants() {
    TOSAIC_TRY(section_keeper_[3], verified<vgf_schema::ConstantSection>(sections_[3], "constant"));
    const auto* table = root<vgf_schema::ConstantSection>(section_keeper_[3]);
    for (std::size_t i = 0; i < count_of(table->data()); ++i) {
      const auto* row = table->data()->Get(static_cast<flatbuffers::uoffset_t>(i));
      Bytes data;
      if (row->raw()) {
        const auto at = reinterpret_cast<const std::byte*>(row->raw()->Data()) - section_keeper_[3].data();
        data = section_keeper_[3].slice(static_cast<std::size_t>(at), row->raw()->size());
      }
      TOSAIC_CHECK(constant(row->mrt_index(), static_cast<std::int32_t>(row->sparsity_dimension()), std::move(data)));
    }
    return {};
  }
  Status constant(std::uint32_t resource, std::int32_t sparsity, Bytes data) {
    const std::size_t i = file_.constants.size();
    TOSAIC_CHECK(in_range(resource, file_.resources.size(), "constant", i, "resource"));
    const Resource& r = file_.resources[resource];
    if (r.category != Category::constant)
      return error("vgf.index", fmt::format("constant {} is resource {}, which is no constant", i, resource));
    if (sparsity < -1 || sparsity >= static_cast<std::int64_t>(r.shape.size()))
      return corrupt("constant {} is sparse along dim {} of {}", i, sparsity, r.shape.size());
    file_.constants.push_back({resource, sparsity, std::move(data)});
    return {};
  }

  Status sequence() {
    TOSAIC_TRY(section_keeper_[1], verified<vgf_schema::ModelSequenceTable>(sections_[1], "sequence"));
    const auto* table = root<vgf_schema::ModelSequenceTable>(section_keeper_[1]);
    for (std::size_t i = 0; i < count_of(table->segments()); ++i)
      TOSAIC_CHECK(segment(*table->segments()->Get(static_cast<flatbuffers::uoffset_t>(i))));
    TOSAIC_CHECK(slots(table->inputs(), file_.inputs, "model inputs", 0));
    TOSAIC_CHECK(slots(table->outputs(), file_.outputs, "model outputs", 0));
    for (std::size_t i = 0; i < count_of(table->input_names()); ++i)
      file_.input_names.push_back(table->input_names()->Get(static_cast<flatbuffers::uoffset_t>(i))->str());
    for (std::size_t i = 0; i < count_of(table->output_names()); ++i)
      file_.output_names.push_back(table->output_names()->Get(static_cast<flatbuffers::uoffset_t>(i))->str());
    return {};
  }

  Status segment(const vgf_schema::SegmentInfo& row) {
    const std::size_t i = file_.segments.size();
    Segment s;
    if (row.type() > 1) return corrupt("segment {} has type {}", i, row.type());
    s.kind = static_cast<Kind>(row.type());
    s.name = text_of(row.name());
    s.module = row.module_index();
    TOSAIC_CHECK(in_range(s.module, file_.modules.size(), "segment", i, "module"));
    if (file_.modules[s.module].kind != s.kind)
      return corrupt("segment {} and its module {} are of different kinds", i, s.module);
    for (std::size_t k = 0; k < count_of(row.set_infos()); ++k) {
      const auto* info = row.set_infos()->Get(static_cast<flatbuffers::uoffset_t>(k));
      DescriptorSet set{info->set_index(), {}};
      TOSAIC_CHECK(slots(info->bindings(), set.slots, "segment", i));
      s.sets.push_back(std::move(set));
    }
    TOSAIC_CHECK(slots(row.inputs(), s.inputs, "segment", i));
    TOSAIC_CHECK(slots(row.outputs(), s.outputs, "segment", i));
    // Before 0.5 a constant's place in the file was its GraphConstantID.
    if (row.constant_bindings())
      for (const auto* b : *row.constant_bindings())
        s.constants.push_back({b->graph_constant_id(), b->constant_index()});
    else if (row.constants())
      for (std::uint32_t c : *row.constants()) s.constants.push_back({c, c});
    for (const GraphConstant& c : s.constants)
      TOSAIC_CHECK(in_range(c.constant, file_.constants.size(), "segment", i, "constant"));
    if (row.dispatch_shape()) {
      s.dispatch.assign(row.dispatch_shape()->begin(), row.dispatch_shape()->end());
      if (!s.dispatch.empty() && s.dispatch.size() != 3)
        return corrupt("segment {} has {} work group counts, not 3", i, s.dispatch.size());
    }
    for (std::size_t k = 0; k < count_of(row.push_constant_ranges()); ++k) {
      const auto* r = row.push_constant_ranges()->Get(static_cast<flatbuffers::uoffset_t>(k));
      s.push_ranges.push_back({r->stage_flags(), r->offset(), r->size()});
    }
    file_.segments.push_back(std::move(s));
    return {};
  }

  template <class Rows>
  Status slots(const Rows* rows, std::vector<Slot>& list, const char* owner, std::size_t index) {
    for (std::size_t i = 0; i < count_of(rows); ++i) {
      const auto* row = rows->Get(static_cast<flatbuffers::uoffset_t>(i));
      TOSAIC_CHECK(in_range(row->mrt_index(), file_.resources.size(), owner, index, "resource"));
      list.push_back({row->binding(), row->mrt_index()});
    }
    return {};
  }

  static Status in_range(std::uint32_t index, std::size_t count, const char* owner, std::size_t owner_index,
                         const char* what) {
    if (index < count) return {};
    return error("vgf.index", fmt::format("{} {} names {} {}, there are {}", owner, owner_index, what, index, count));
  }

  const Bytes& bytes_;
  File file_;
  std::array<Bytes, 4> sections_, section_keeper_;
};

}  // namespace

std::vector<std::uint32_t> first_of_memory(const File& file) {
  std::vector<std::uint32_t> first;
  std::map<std::uint32_t, std::uint32_t> of_group;
  for (std::uint32_t r = 0; r < file.resources.size(); ++r) {
    const std::uint32_t group = file.resources[r].alias_group;
    first.push_back(group == none ? r : of_group.try_emplace(group, r).first->second);
  }
  return first;
}

bool is_vgf(const Bytes& bytes) {
  return bytes.size() >= sizeof(file_magic) && std::memcmp(bytes.data(), file_magic, sizeof(file_magic)) == 0;
}

Result<File> read(const Bytes& bytes) { return Reader(bytes).read(); }

}  // namespace tosaic::vgf
