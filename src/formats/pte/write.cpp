// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <algorithm>
#include <cstring>
#include <numeric>
#include <unordered_map>

#include "formats/pte/layout.h"
#include "formats/pte/pte_file.h"

namespace tosaic::pte {
namespace {

namespace s = pte_schema;
using flatbuffers::Offset;

std::uint64_t aligned(std::uint64_t offset, std::uint64_t alignment) {
  return (offset + alignment - 1) / alignment * alignment;
}

// FlatBuffers' offsets have 31 usable bits.
constexpr std::uint64_t largest_flatbuffer = 0x7fff0000;

// Data that are distinguished by content: equal ones are stored once.
class Pool {
 public:
  std::uint32_t add(const Rope& data) {
    auto& same = by_glance_[glance_at(data)];
    for (std::uint32_t i : same)
      if (list_[i] == data) return i;
    same.push_back(static_cast<std::uint32_t>(list_.size()));
    list_.push_back(data);
    return same.back();
  }
  const std::vector<Rope>& list() const { return list_; }

 private:
  std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> by_glance_;
  std::vector<Rope> list_;
};

// A segment: data at offsets within it.
struct Segment {
  std::vector<std::pair<std::uint64_t, Rope>> parts;
  std::uint64_t size = 0;
  std::uint64_t alignment = 1;
  std::uint64_t offset = 0;  // from the segment base

  std::uint64_t append(const Rope& data, std::uint64_t align) {
    const std::uint64_t at = aligned(size, align);
    parts.emplace_back(at, data);
    size = at + data.size();
    return at;
  }
};

class Writer {
 public:
  Writer(const Program& program, const WriteOptions& options) : program_(program), options_(options) {}

  Result<Rope> write() {
    if (options_.segment_alignment == 0 || options_.segment_alignment % constant_alignment != 0)
      return error("pte.options", fmt::format("a segment alignment of {} is not a multiple of {}",
                                              options_.segment_alignment, constant_alignment));
    std::vector<Offset<s::ExecutionPlan>> plans;
    for (const Plan& plan : program_.plans) {
      TOSAIC_TRY(auto written, execution_plan(plan));
      plans.push_back(written);
    }
    Offset<s::SubsegmentOffsets> constant_segment = tensor_segment(constants_);
    std::vector<Offset<s::SubsegmentOffsets>> mutable_segments;
    if (!initials_.list().empty()) mutable_segments.push_back(tensor_segment(initials_));
    std::vector<Offset<s::BackendDelegateInlineData>> inline_data;
    std::uint64_t inline_bytes = 0;
    for (std::size_t i = 0; i < payloads_.list().size(); ++i) {
      const Rope& payload = payloads_.list()[i];
      if (options_.delegates_in_segments) {
        segments_[payload_segments_[i]].append(payload, 1);
      } else {
        inline_bytes += payload.size();
        if (inline_bytes > largest_flatbuffer)
          return error("pte.too-large", "the delegates' data does not fit the flatbuffer, which holds 2 GB")
              .hint("store delegates in segments");
        builder_.ForceVectorAlignment(payload.size(), 1, constant_alignment);
        const Bytes joined = payload.joined();
        auto bytes = builder_.CreateVector(reinterpret_cast<const std::uint8_t*>(joined.data()), joined.size());
        inline_data.push_back(s::CreateBackendDelegateInlineData(builder_, bytes));
      }
    }
    std::vector<Offset<s::NamedData>> named;
    Pool pool;
    std::vector<std::uint32_t> named_segments;  // by content
    for (const NamedData& data : program_.named_data) {
      const std::uint32_t content = pool.add(data.data), alignment = std::max<std::uint32_t>(1, data.alignment);
      if (content == named_segments.size()) {
        named_segments.push_back(new_segment(alignment));
        segments_[named_segments.back()].append(data.data, 1);
      }
      Segment& segment = segments_[named_segments[content]];
      segment.alignment = std::lcm<std::uint64_t>(segment.alignment, alignment);
      named.push_back(s::CreateNamedDataDirect(builder_, data.key.c_str(), named_segments[content]));
    }
    std::uint64_t segment_bytes = 0;
    std::vector<Offset<s::DataSegment>> segments;
    for (Segment& segment : segments_) {
      segment.offset = aligned(segment_bytes, std::lcm<std::uint64_t>(options_.segment_alignment, segment.alignment));
      segment_bytes = segment.offset + segment.size;
      segments.push_back(s::CreateDataSegment(builder_, segment.offset, segment.size));
    }
    const auto plan_list = builder_.CreateVector(plans);
    const auto constant_list = builder_.CreateVector(std::vector<Offset<s::Buffer>>());
    const auto inline_list = builder_.CreateVector(inline_data);
    const auto segment_list = builder_.CreateVector(segments);
    const auto mutable_list = builder_.CreateVector(mutable_segments);
    const auto named_list = builder_.CreateVector(named);
    auto root = s::CreateProgram(builder_, program_.version, plan_list, constant_list, inline_list, segment_list,
                                 constant_segment, mutable_list, named_list);
    builder_.Finish(root, s::ProgramIdentifier());
    return assemble(segment_bytes);
  }

 private:
  // The flatbuffer with the extended header spliced in behind its identifier, then the segments.
  Result<Rope> assemble(std::uint64_t segment_bytes) {
    const std::uint64_t program_bytes = builder_.GetSize() + header_bytes;
    std::uint64_t alignment = options_.segment_alignment;
    for (const Segment& segment : segments_) alignment = std::lcm(alignment, segment.alignment);
    const std::uint64_t base = segments_.empty() ? 0 : aligned(program_bytes, alignment);
    const std::uint64_t size = segments_.empty() ? program_bytes : base + segment_bytes;
    const std::uint8_t* flat = builder_.GetBufferPointer();
    std::vector<std::byte> head(program_bytes);
    std::memcpy(head.data(), flat, header_offset);
    std::memcpy(head.data() + header_offset + header_bytes, flat + header_offset, builder_.GetSize() - header_offset);
    auto put = [&](std::size_t at, auto value) { std::memcpy(head.data() + at, &value, sizeof value); };
    put(0, flatbuffers::ReadScalar<std::uint32_t>(flat) + static_cast<std::uint32_t>(header_bytes));
    std::memcpy(head.data() + header_offset, header_magic.data(), header_magic.size());
    put(12, static_cast<std::uint32_t>(header_bytes));
    put(16, program_bytes);
    put(24, base);
    put(32, segment_bytes);
    Rope file(Bytes::of(std::move(head)));
    for (const Segment& segment : segments_)
      for (const auto& [at, data] : segment.parts) {
        file.zeros(base + segment.offset + at - file.size());
        file.append(data);
      }
    file.zeros(size - file.size());
    return file;
  }

  std::uint32_t new_segment(std::uint64_t alignment) {
    segments_.emplace_back().alignment = alignment;
    return static_cast<std::uint32_t>(segments_.size() - 1);
  }

  // offsets[0] belongs to nobody: a tensor's index 0 means that it has no data.
  Offset<s::SubsegmentOffsets> tensor_segment(const Pool& data) {
    if (data.list().empty())
      return s::CreateSubsegmentOffsets(builder_, 0, builder_.CreateVector(std::vector<std::uint64_t>{0}));
    const std::uint32_t index = new_segment(constant_alignment);
    std::vector<std::uint64_t> offsets{0};
    for (const Rope& one : data.list()) offsets.push_back(segments_[index].append(one, constant_alignment));
    return s::CreateSubsegmentOffsets(builder_, index, builder_.CreateVector(offsets));
  }

  Result<Offset<s::ExecutionPlan>> execution_plan(const Plan& plan) {
    std::vector<Offset<s::EValue>> values;
    for (std::size_t i = 0; i < plan.values.size(); ++i) {
      auto value = evalue(plan.values[i]);
      if (!value.ok()) {
        value.error().notes.push_back(fmt::format("in value {} of '{}'", i, plan.name));
        return std::move(value.error());
      }
      values.push_back(*value);
    }
    std::vector<Offset<s::Instruction>> instructions;
    for (const Instruction& i : plan.instructions)
      instructions.push_back(std::visit([&](const auto& x) { return instruction(x); }, i));
    std::vector<Offset<s::Operator>> operators;
    for (const OperatorName& op : plan.operators)
      operators.push_back(s::CreateOperatorDirect(builder_, op.name.c_str(), op.overload.c_str()));
    std::vector<Offset<s::BackendDelegate>> delegates;
    for (const Delegate& d : plan.delegates) delegates.push_back(delegate(d));
    const std::vector<std::int32_t> none;
    std::vector<Offset<s::Chain>> chains{s::CreateChainDirect(builder_, &none, &none, &instructions)};
    std::vector<std::int64_t> arenas{0};
    arenas.insert(arenas.end(), plan.arena_sizes.begin(), plan.arena_sizes.end());
    auto metadata = s::CreateContainerMetadataDirect(builder_, plan.input_spec.c_str(), plan.output_spec.c_str());
    return s::CreateExecutionPlanDirect(builder_, plan.name.c_str(), metadata, &values, &plan.inputs, &plan.outputs,
                                        &chains, &operators, &delegates, &arenas);
  }

  Offset<s::BackendDelegate> delegate(const Delegate& d) {
    std::vector<Offset<s::CompileSpec>> specs;
    for (const CompileSpec& spec : d.specs) specs.push_back(compile_spec(spec));
    const std::uint32_t index = payloads_.add(d.payload);
    if (options_.delegates_in_segments && index == payload_segments_.size())
      payload_segments_.push_back(new_segment(constant_alignment));
    auto data =
        options_.delegates_in_segments
            ? s::CreateBackendDelegateDataReference(builder_, s::DataLocation::SEGMENT, payload_segments_[index])
            : s::CreateBackendDelegateDataReference(builder_, s::DataLocation::INLINE, index);
    return s::CreateBackendDelegateDirect(builder_, d.id.c_str(), data, &specs);
  }
  Offset<s::CompileSpec> compile_spec(const CompileSpec& spec) {
    const auto key = builder_.CreateString(spec.key);
    const auto* value = reinterpret_cast<const std::uint8_t*>(spec.value.data());
    return s::CreateCompileSpec(builder_, key, builder_.CreateVector(value, spec.value.size()));
  }

  template <s::InstructionArguments tag, class T>
  Offset<s::Instruction> tagged(Offset<T> arguments) {
    return s::CreateInstruction(builder_, tag, arguments.Union());
  }
  Offset<s::Instruction> instruction(const KernelCall& c) {
    return tagged<s::InstructionArguments::KernelCall>(s::CreateKernelCallDirect(builder_, c.op, &c.args));
  }
  Offset<s::Instruction> instruction(const DelegateCall& c) {
    return tagged<s::InstructionArguments::DelegateCall>(s::CreateDelegateCallDirect(builder_, c.delegate, &c.args));
  }
  Offset<s::Instruction> instruction(const MoveCall& c) {
    return tagged<s::InstructionArguments::MoveCall>(s::CreateMoveCall(builder_, c.from, c.to));
  }
  Offset<s::Instruction> instruction(const JumpFalseCall& c) {
    return tagged<s::InstructionArguments::JumpFalseCall>(s::CreateJumpFalseCall(builder_, c.condition, c.destination));
  }
  Offset<s::Instruction> instruction(const FreeCall& c) {
    return tagged<s::InstructionArguments::FreeCall>(s::CreateFreeCall(builder_, c.value));
  }

  Result<Offset<s::EValue>> evalue(const Value& value) {
    if (const auto* tensor = std::get_if<TensorValue>(&value)) {
      TOSAIC_TRY(auto written, tensor_value(*tensor));
      return s::CreateEValue(builder_, s::KernelTypes::Tensor, written.Union());
    }
    struct Visitor {
      flatbuffers::FlatBufferBuilder& b;
      Offset<s::EValue> make(s::KernelTypes type, Offset<void> o) { return s::CreateEValue(b, type, o); }
      Offset<s::EValue> operator()(const None&) { return make(s::KernelTypes::Null, s::CreateNull(b).Union()); }
      Offset<s::EValue> operator()(std::int64_t v) { return make(s::KernelTypes::Int, s::CreateInt(b, v).Union()); }
      Offset<s::EValue> operator()(bool v) { return make(s::KernelTypes::Bool, s::CreateBool(b, v).Union()); }
      Offset<s::EValue> operator()(double v) { return make(s::KernelTypes::Double, s::CreateDouble(b, v).Union()); }
      Offset<s::EValue> operator()(const std::string& v) {
        return make(s::KernelTypes::String, s::CreateString(b, b.CreateString(v)).Union());
      }
      Offset<s::EValue> operator()(const TensorValue&) { return {}; }
      Offset<s::EValue> operator()(const IntList& v) {
        std::vector<std::int64_t> items(v.items.begin(), v.items.end());
        return make(s::KernelTypes::IntList, s::CreateIntListDirect(b, &items).Union());
      }
      Offset<s::EValue> operator()(const std::vector<double>& v) {
        return make(s::KernelTypes::DoubleList, s::CreateDoubleListDirect(b, &v).Union());
      }
      Offset<s::EValue> operator()(const std::vector<bool>& v) {
        return make(s::KernelTypes::BoolList, s::CreateBoolList(b, b.CreateVector(v)).Union());
      }
      Offset<s::EValue> operator()(const TensorList& v) {
        return v.optional
                   ? make(s::KernelTypes::OptionalTensorList, s::CreateOptionalTensorListDirect(b, &v.items).Union())
                   : make(s::KernelTypes::TensorList, s::CreateTensorListDirect(b, &v.items).Union());
      }
    };
    return std::visit(Visitor{builder_}, value);
  }

  Result<Offset<s::Tensor>> tensor_value(const TensorValue& t) {
    const auto type = scalar_type(t.dtype);
    if (!type) return error("pte.dtype", fmt::format("ExecuTorch has no tensors of type {}", name_of(t.dtype)));
    if (t.sizes.size() > max_rank)
      return error("pte.rank",
                   fmt::format("ExecuTorch's tensors have at most {} dimensions, not {}", max_rank, t.sizes.size()));
    std::vector<std::uint8_t> order = t.dim_order;
    if (order.empty()) {
      order.resize(t.sizes.size());
      std::iota(order.begin(), order.end(), std::uint8_t{0});
    }
    std::uint32_t data = 0;
    if (!t.constant.null()) data = 1 + (t.is_planned ? initials_ : constants_).add(t.constant);
    Offset<s::AllocationDetails> allocation;
    if (t.is_planned)
      allocation =
          s::CreateAllocationDetails(builder_, t.planned.memory_id, static_cast<std::uint32_t>(t.planned.offset),
                                     static_cast<std::uint32_t>(t.planned.offset >> 32));
    Offset<s::ExtraTensorInfo> extra;
    if (!t.external_name.empty())
      extra = s::CreateExtraTensorInfoDirect(builder_, 0, t.external_name.c_str(), s::TensorDataLocation::EXTERNAL);
    else if (!t.state_name.empty())
      extra = s::CreateExtraTensorInfoDirect(builder_, 0, t.state_name.c_str(), s::TensorDataLocation::SEGMENT);
    auto sizes = builder_.CreateVector(t.sizes);
    auto dim_order = builder_.CreateVector(order);
    return s::CreateTensor(builder_, *type, 0, sizes, dim_order, false, data, allocation, 0,
                           static_cast<s::TensorShapeDynamism>(t.shape_dynamism), extra);
  }

  const Program& program_;
  const WriteOptions& options_;
  flatbuffers::FlatBufferBuilder builder_{1 << 16};
  std::vector<Segment> segments_;
  Pool constants_, initials_, payloads_;
  std::vector<std::uint32_t> payload_segments_;  // by payload
};

}  // namespace

Result<Rope> write(const Program& program, const WriteOptions& options) { return Writer(program, options).write(); }

}  // namespace tosaic::pte
