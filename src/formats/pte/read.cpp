// SPDX-License-Identifier: Apache-2.0
// Reading a .pte: header, flatbuffers verifier, then every index, size and number, so that nothing after this trusts
// the file.
#include <fmt/format.h>
#include <cstring>
#include <set>

#include "formats/pte/layout.h"
#include "formats/pte/pte_file.h"

namespace tosaic::pte {
namespace {

namespace s = pte_schema;

// Memory that a program may ask for: far above any device, far below overflow.
constexpr std::uint64_t max_arena_bytes = std::uint64_t{1} << 46;
const char* const producer_help =
    "look for a newer tosaic, or write the program again with a current ExecuTorch or with tosaic";

template <class T>
std::uint32_t size_of(const T* list) {
  return list ? list->size() : 0;
}
// The flatbuffers verifier leaves the alignment of eight-byte elements unchecked.
template <class T>
T element(const flatbuffers::Vector<T>* list, std::uint32_t i) {
  T value;
  std::memcpy(&value, list->Data() + i * sizeof(T), sizeof(T));
  return flatbuffers::EndianScalar(value);
}
std::string text_of(const flatbuffers::String* text) { return text ? text->str() : std::string(); }
template <class T>
T little_endian(const Bytes& file, std::size_t at) {
  T value;
  std::memcpy(&value, file.data() + at, sizeof value);
  return flatbuffers::EndianScalar(value);
}
Diagnostic corrupt(std::string message) { return error("pte.corrupt", std::move(message)); }

class Reader {
 public:
  Reader(const Bytes& file, const std::string& name) : file_(file), name_(name) {}

  Result<Program> read() {
    auto program = checked();
    if (!program.ok() && program.error().place.file.empty()) program.error().place.file = name_;
    return program;
  }

 private:
  Result<Program> checked() {
    TOSAIC_CHECK(open());
    Program program;
    program.version = root_->version();
    if (program.version != 0)
      return error("pte.version",
                   fmt::format("the program has schema version {}, this reads version 0", program.version))
          .hint(producer_help);
    if (size_of(root_->execution_plan()) == 0) return corrupt("the program has no method");
    std::set<std::string> names;
    for (const auto* plan : *root_->execution_plan()) {
      auto read = execution_plan(*plan);
      if (!read.ok()) {
        read.error().notes.push_back(fmt::format("in method '{}'", text_of(plan->name())));
        return std::move(read.error());
      }
      if (!names.insert(read->name).second) return corrupt(fmt::format("two methods are named '{}'", read->name));
      program.plans.push_back(std::move(*read));
    }
    names.clear();
    for (std::uint32_t i = 0; i < size_of(root_->named_data()); ++i) {
      const auto* data = root_->named_data()->Get(i);
      const std::string key = text_of(data->key());
      TOSAIC_TRY(Bytes bytes, segment(data->segment_index(), fmt::format("named data '{}'", key)));
      if (!names.insert(key).second) return corrupt(fmt::format("two named data entries have the key '{}'", key));
      // The file does not state the alignment that was asked for; what the offset in the file grants is kept.
      std::uint32_t alignment = 16;
      const auto offset = static_cast<std::uint64_t>(bytes.data() - file_.data());
      while (alignment < 4096 && offset % (2 * alignment) == 0) alignment *= 2;
      program.named_data.push_back({key, std::move(bytes), alignment});
    }
    return program;
  }

  // Identifier, extended header, flatbuffers verifier.
  Status open() {
    if (file_.size() < header_offset || file_.text().substr(4, 2) != "ET")
      return error("pte.not-pte", "this is not an ExecuTorch program (bytes 4 to 7 must be 'ET12')");
    if (file_.text().substr(4, 4) != s::ProgramIdentifier())
      return error("pte.version", fmt::format("the program has the format '{}', this reads '{}'",
                                              file_.text().substr(4, 4), s::ProgramIdentifier()))
          .hint(producer_help);
    if (reinterpret_cast<std::uintptr_t>(file_.data()) % 16 != 0) file_ = Bytes::copy(file_.data(), file_.size());
    std::uint64_t program_bytes = file_.size();
    const bool has_header = file_.size() >= header_offset + 8 && file_.text().substr(header_offset, 4) == header_magic;
    if (has_header) {
      const auto length = little_endian<std::uint32_t>(file_, 12);
      if (length < 24 || length > file_.size() - header_offset)
        return corrupt(fmt::format("the extended header is {} bytes long", length));
      program_bytes = little_endian<std::uint64_t>(file_, 16);
      const auto base = little_endian<std::uint64_t>(file_, 24);
      const auto size = length >= 32 ? little_endian<std::uint64_t>(file_, 32) : 0;
      if (program_bytes > file_.size() || program_bytes < header_offset + length)
        return corrupt(fmt::format("the header says that the program is {} bytes long, the file is {}", program_bytes,
                                   file_.size()));
      if (base != 0 && (base < program_bytes || base > file_.size() || size > file_.size() - base))
        return corrupt(fmt::format("the header gives the segments {} bytes from {} on, the file is {} bytes long", size,
                                   base, file_.size()));
      if (base == 0 && size != 0) return corrupt("the header states the segments' size but not their offset");
      segments_ = base == 0 ? Bytes() : file_.slice(base, (size != 0 ? size : file_.size() - base));
    }
    const auto buffer_size =
        static_cast<std::size_t>(std::min<std::uint64_t>(program_bytes, FLATBUFFERS_MAX_BUFFER_SIZE - 1));
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(file_.data());
    // A table takes at least four bytes: more tables than that are the same ones, repeated to waste time.
    flatbuffers::Verifier verifier(bytes, buffer_size, 64, static_cast<flatbuffers::uoffset_t>(buffer_size / 4 + 16));
    if (!s::VerifyProgramBuffer(verifier)) return corrupt("an offset or a length points outside the program");
    root_ = s::GetProgram(bytes);
    return {};
  }

  Result<Bytes> segment(std::uint64_t index, const std::string& of) const {
    if (index >= size_of(root_->segments()))
      return corrupt(fmt::format("{} is in segment {}, the file has {}", of, index, size_of(root_->segments())));
    const auto* s = root_->segments()->Get(static_cast<flatbuffers::uoffset_t>(index));
    if (s->offset() > segments_.size() || s->size() > segments_.size() - s->offset())
      return corrupt(fmt::format("segment {} ({} bytes at {}) lies outside the segments' {} bytes", index, s->size(),
                                 s->offset(), segments_.size()));
    return segments_.null() ? Bytes::copy("", 0) : segments_.slice(s->offset(), s->size());
  }

  Bytes inline_bytes(const flatbuffers::Vector<std::uint8_t>* bytes) const {
    if (size_of(bytes) == 0) return Bytes::copy("", 0);
    return file_.slice(static_cast<std::size_t>(reinterpret_cast<const std::byte*>(bytes->data()) - file_.data()),
                       bytes->size());
  }

  Result<Plan> execution_plan(const s::ExecutionPlan& from) {
    Plan plan;
    plan.name = text_of(from.name());
    if (from.container_meta_type()) {
      plan.input_spec = text_of(from.container_meta_type()->encoded_inp_str());
      plan.output_spec = text_of(from.container_meta_type()->encoded_out_str());
    }
    for (std::uint32_t i = 1; i < size_of(from.non_const_buffer_sizes()); ++i) {
      const std::int64_t size = element(from.non_const_buffer_sizes(), i);
      if (size < 0 || static_cast<std::uint64_t>(size) > max_arena_bytes)
        return corrupt(fmt::format("the memory with id {} has an impossible size of {} bytes", i, size));
      plan.arena_sizes.push_back(size);
    }
    for (std::uint32_t i = 0; i < size_of(from.non_const_buffer_device()); ++i)
      if (const auto* device = from.non_const_buffer_device()->Get(i); device->device_type() != s::DeviceType::CPU)
        return error("pte.device",
                     fmt::format("the memory with id {} belongs to device type {}, this runs on the CPU only",
                                 device->buffer_idx(), static_cast<int>(device->device_type())));
    plan.values.reserve(size_of(from.values()));
    for (std::uint32_t i = 0; i < size_of(from.values()); ++i) {
      auto read = value(*from.values()->Get(i), plan);
      if (!read.ok()) {
        read.error().notes.push_back(fmt::format("in value {}", i));
        return std::move(read.error());
      }
      plan.values.push_back(std::move(*read));
    }
    TOSAIC_CHECK(list_items(plan));
    TOSAIC_TRY(plan.inputs, indices(from.inputs(), plan, "the inputs"));
    TOSAIC_TRY(plan.outputs, indices(from.outputs(), plan, "the outputs"));
    plan.operators.reserve(size_of(from.operators()));
    for (std::uint32_t i = 0; i < size_of(from.operators()); ++i)
      plan.operators.push_back(
          {text_of(from.operators()->Get(i)->name()), text_of(from.operators()->Get(i)->overload())});
    plan.delegates.reserve(size_of(from.delegates()));
    for (std::uint32_t i = 0; i < size_of(from.delegates()); ++i) {
      TOSAIC_TRY(Delegate d, delegate(*from.delegates()->Get(i), i));
      plan.delegates.push_back(std::move(d));
    }
    if (size_of(from.chains()) != 1)
      return error("pte.chains", fmt::format("the method has {} chains of instructions, only one can be run",
                                             size_of(from.chains())));
    const auto* list = from.chains()->Get(0)->instructions();
    plan.instructions.reserve(size_of(list));
    for (std::uint32_t i = 0; i < size_of(list); ++i) {
      auto read = instruction(*list->Get(i), plan, size_of(list));
      if (!read.ok()) {
        read.error().notes.push_back(fmt::format("in instruction {}", i));
        return std::move(read.error());
      }
      plan.instructions.push_back(std::move(*read));
    }
    return plan;
  }

  // Lists hold indices of values: integers, or tensors, or (-1) nothing.
  static Status list_items(const Plan& plan) {
    for (const Value& v : plan.values) {
      if (const auto* ints = std::get_if<IntList>(&v))
        for (std::int32_t i : ints->items)
          if (i < 0 || static_cast<std::size_t>(i) >= plan.values.size() ||
              !std::holds_alternative<std::int64_t>(plan.values[static_cast<std::size_t>(i)]))
            return corrupt(fmt::format("a list of integers refers to value {}, which is no integer", i));
      if (const auto* tensors = std::get_if<TensorList>(&v))
        for (std::int32_t i : tensors->items) {
          if (i == -1 && tensors->optional) continue;
          const Value* item = i >= 0 && static_cast<std::size_t>(i) < plan.values.size()
                                  ? &plan.values[static_cast<std::size_t>(i)]
                                  : nullptr;
          if (!item || !(std::holds_alternative<TensorValue>(*item) ||
                         (tensors->optional && std::holds_alternative<None>(*item))))
            return corrupt(fmt::format("a list of tensors refers to value {}, which is no tensor", i));
        }
    }
    return {};
  }

  static Result<std::vector<std::int32_t>> indices(const flatbuffers::Vector<std::int32_t>* list, const Plan& plan,
                                                   std::string_view where) {
    std::vector<std::int32_t> result;
    for (std::uint32_t i = 0; i < size_of(list); ++i) {
      TOSAIC_TRY(std::int32_t v, index(list->Get(i), plan.values.size(), where, "values"));
      result.push_back(v);
    }
    return result;
  }
  static Result<std::int32_t> index(std::int32_t i, std::size_t count, std::string_view where, std::string_view what) {
    if (i < 0 || static_cast<std::size_t>(i) >= count)
      return corrupt(fmt::format("{} refer to number {} of {} {}", where, i, count, what));
    return i;
  }

  Result<Delegate> delegate(const s::BackendDelegate& from, std::uint32_t number) const {
    Delegate d;
    d.id = text_of(from.id());
    const std::string of = fmt::format("delegate {} ('{}')", number, d.id);
    const auto* data = from.processed();
    if (!data) return corrupt(of + " has no data");
    if (data->location() == s::DataLocation::SEGMENT) {
      TOSAIC_TRY(d.payload, segment(data->index(), of));
    } else if (data->location() == s::DataLocation::INLINE) {
      if (data->index() >= size_of(root_->backend_delegate_data()))
        return corrupt(fmt::format("{} is entry {} of the delegate data, the file has {}", of, data->index(),
                                   size_of(root_->backend_delegate_data())));
      d.payload = inline_bytes(root_->backend_delegate_data()->Get(data->index())->data());
    } else {
      return corrupt(
          fmt::format("{} has its data at location {}, which is not known", of, static_cast<int>(data->location())));
    }
    for (std::uint32_t i = 0; i < size_of(from.compile_specs()); ++i)
      d.specs.push_back(
          {text_of(from.compile_specs()->Get(i)->key()), inline_bytes(from.compile_specs()->Get(i)->value())});
    return d;
  }

  Result<Instruction> instruction(const s::Instruction& from, const Plan& plan, std::size_t count) const {
    const std::size_t values = plan.values.size();
    if (!from.instr_args()) return corrupt("the instruction is empty");
    switch (from.instr_args_type()) {
      case s::InstructionArguments::KernelCall: {
        const auto* call = from.instr_args_as_KernelCall();
        KernelCall result;
        TOSAIC_TRY(result.op, index(call->op_index(), plan.operators.size(), "kernel calls", "operators"));
        TOSAIC_TRY(result.args, indices(call->args(), plan, "arguments"));
        return Instruction(std::move(result));
      }
      case s::InstructionArguments::DelegateCall: {
        const auto* call = from.instr_args_as_DelegateCall();
        DelegateCall result;
        TOSAIC_TRY(result.delegate,
                   index(call->delegate_index(), plan.delegates.size(), "delegate calls", "delegates"));
        TOSAIC_TRY(result.args, indices(call->args(), plan, "arguments"));
        return Instruction(std::move(result));
      }
      case s::InstructionArguments::MoveCall: {
        const auto* call = from.instr_args_as_MoveCall();
        MoveCall result;
        TOSAIC_TRY(result.from, index(call->move_from(), values, "moves", "values"));
        TOSAIC_TRY(result.to, index(call->move_to(), values, "moves", "values"));
        return Instruction(result);
      }
      case s::InstructionArguments::JumpFalseCall: {
        const auto* call = from.instr_args_as_JumpFalseCall();
        JumpFalseCall result;
        TOSAIC_TRY(result.condition, index(call->cond_value_index(), values, "conditions", "values"));
        // One behind the last instruction ends the method.
        TOSAIC_TRY(result.destination, index(call->destination_instruction(), count + 1, "jumps", "instructions"));
        return Instruction(result);
      }
      case s::InstructionArguments::FreeCall: {
        FreeCall result;
        TOSAIC_TRY(result.value, index(from.instr_args_as_FreeCall()->value_index(), values, "frees", "values"));
        return Instruction(result);
      }
      case s::InstructionArguments::NONE: break;
    }
    return corrupt(fmt::format("there is no instruction of kind {}", static_cast<int>(from.instr_args_type())));
  }

  Result<Value> value(const s::EValue& from, const Plan& plan) const {
    if (!from.val() && from.val_type() != s::KernelTypes::Null) return corrupt("the value is empty");
    switch (from.val_type()) {
      case s::KernelTypes::Null: return Value(None{});
      case s::KernelTypes::Int: return Value(from.val_as_Int()->int_val());
      case s::KernelTypes::Bool: return Value(from.val_as_Bool()->bool_val());
      case s::KernelTypes::Double: return Value(from.val_as_Double()->double_val());
      case s::KernelTypes::String: return Value(text_of(from.val_as_String()->string_val()));
      case s::KernelTypes::Tensor: {
        TOSAIC_TRY(TensorValue tensor, tensor_value(*from.val_as_Tensor(), plan));
        return Value(std::move(tensor));
      }
      case s::KernelTypes::IntList: {
        IntList list;
        for (std::uint32_t i = 0; i < size_of(from.val_as_IntList()->items()); ++i) {
          const std::int64_t item = element(from.val_as_IntList()->items(), i);
          // Out of range for an index either way; -1 is refused with the other wrong ones.
          list.items.push_back(item == static_cast<std::int32_t>(item) ? static_cast<std::int32_t>(item) : -1);
        }
        return Value(std::move(list));
      }
      case s::KernelTypes::DoubleList: {
        std::vector<double> list;
        for (std::uint32_t i = 0; i < size_of(from.val_as_DoubleList()->items()); ++i)
          list.push_back(element(from.val_as_DoubleList()->items(), i));
        return Value(std::move(list));
      }
      case s::KernelTypes::BoolList: {
        std::vector<bool> list;
        for (std::uint32_t i = 0; i < size_of(from.val_as_BoolList()->items()); ++i)
          list.push_back(from.val_as_BoolList()->items()->Get(i) != 0);
        return Value(std::move(list));
      }
      case s::KernelTypes::TensorList: return Value(tensor_list(from.val_as_TensorList()->items(), false));
      case s::KernelTypes::OptionalTensorList:
        return Value(tensor_list(from.val_as_OptionalTensorList()->items(), true));
      case s::KernelTypes::NONE: break;
    }
    return corrupt(fmt::format("there is no value of kind {}", static_cast<int>(from.val_type())));
  }

  static TensorList tensor_list(const flatbuffers::Vector<std::int32_t>* items, bool optional) {
    return {items ? std::vector<std::int32_t>(items->begin(), items->end()) : std::vector<std::int32_t>(), optional};
  }

  Result<TensorValue> tensor_value(const s::Tensor& from, const Plan& plan) const {
    TensorValue t;
    const auto dtype = dtype_of(from.scalar_type());
    if (!dtype)
      return error("pte.dtype", fmt::format("tensors of ExecuTorch's type number {} cannot be read",
                                            static_cast<int>(from.scalar_type())));
    t.dtype = *dtype;
    if (from.storage_offset() != 0 || from.layout() != 0) return corrupt("a tensor has a storage offset or a layout");
    const auto dynamism = from.shape_dynamism();
    if (dynamism != s::TensorShapeDynamism::STATIC && dynamism != s::TensorShapeDynamism::DYNAMIC_BOUND)
      return error("pte.dynamic", "a tensor has sizes without an upper bound")
          .hint("export the model with bounded sizes");
    t.shape_dynamism = static_cast<std::uint8_t>(dynamism);
    std::uint64_t bytes = storage_size(*dtype);
    const std::uint32_t rank = size_of(from.sizes());
    if (rank > max_rank) return corrupt(fmt::format("a tensor has {} dimensions", rank));
    for (std::uint32_t i = 0; i < rank; ++i) {
      const std::int32_t size = from.sizes()->Get(i);
      if (size < 0) return corrupt(fmt::format("dimension {} of a tensor is {}", i, size));
      if (size > 0 && bytes > max_arena_bytes / static_cast<std::uint64_t>(size))
        return corrupt("a tensor's size overflows");
      bytes *= static_cast<std::uint64_t>(size);
      t.sizes.push_back(size);
    }
    if (size_of(from.dim_order()) != rank)
      return corrupt(fmt::format("a tensor of {} dimensions has {} in its dim order", rank, size_of(from.dim_order())));
    std::uint32_t seen = 0;
    bool contiguous = true;
    for (std::uint32_t i = 0; i < rank; ++i) {
      const std::uint8_t d = from.dim_order()->Get(i);
      if (d >= rank || (seen >> d & 1u)) return corrupt("a tensor's dim order is no permutation");
      seen |= 1u << d;
      contiguous = contiguous && d == i;
      t.dim_order.push_back(d);
    }
    if (contiguous) t.dim_order.clear();
    TOSAIC_CHECK(place(from, plan, bytes, t));
    return t;
  }

  // Where the tensor's bytes are: planned memory, constant data, both (an initial value), a .ptd file, or nowhere yet.
  Status place(const s::Tensor& from, const Plan& plan, std::uint64_t bytes, TensorValue& t) const {
    if (const auto* allocation = from.allocation_info()) {
      t.is_planned = true;
      t.planned = {allocation->memory_id(),
                   allocation->memory_offset_low() | std::uint64_t{allocation->memory_offset_high()} << 32};
      if (t.planned.memory_id == 0 || t.planned.memory_id > plan.arena_sizes.size())
        return corrupt(fmt::format("a tensor is planned into memory {}, the method has {}", t.planned.memory_id,
                                   plan.arena_sizes.size()));
      const auto arena = static_cast<std::uint64_t>(plan.arena_sizes[t.planned.memory_id - 1]);
      if (t.planned.offset > arena || bytes > arena - t.planned.offset)
        return corrupt(fmt::format("a tensor of {} bytes at {} does not fit memory {} of {} bytes", bytes,
                                   t.planned.offset, t.planned.memory_id, arena));
      if (t.planned.offset % storage_size(t.dtype) != 0)
        return corrupt(
            fmt::format("a tensor of type {} is planned at the odd offset {}", name_of(t.dtype), t.planned.offset));
    }
    const auto* extra = from.extra_tensor_info();
    if (extra && extra->device_type() != s::DeviceType::CPU)
      return error("pte.device",
                   fmt::format("a tensor belongs to device type {}", static_cast<int>(extra->device_type())));
    if (extra && extra->location() == s::TensorDataLocation::EXTERNAL) {
      t.external_name = text_of(extra->fully_qualified_name());
      if (t.external_name.empty()) return corrupt("a tensor is in another file, but has no name");
      return {};
    }
    if (extra && t.is_planned) t.state_name = text_of(extra->fully_qualified_name());
    const std::uint32_t index = from.data_buffer_idx();
    if (index == 0) return {};
    if (t.is_planned) {
      const std::uint64_t number = extra ? extra->mutable_data_segments_idx() : 0;
      if (number >= size_of(root_->mutable_data_segments()))
        return corrupt(fmt::format("an initial value is in mutable segment {} of {}", number,
                                   size_of(root_->mutable_data_segments())));
      const auto* offsets = root_->mutable_data_segments()->Get(static_cast<flatbuffers::uoffset_t>(number));
      TOSAIC_TRY(t.constant, read_subsegment(*offsets, index, bytes, t.dtype));
    } else if (root_->constant_segment() && size_of(root_->constant_segment()->offsets()) > 0) {
      TOSAIC_TRY(t.constant, read_subsegment(*root_->constant_segment(), index, bytes, t.dtype));
    } else {  // before September 2024: inside the flatbuffer
      if (index >= size_of(root_->constant_buffer()))
        return corrupt(fmt::format("a constant is number {} of {}", index, size_of(root_->constant_buffer())));
      const Bytes whole = inline_bytes(root_->constant_buffer()->Get(index)->storage());
      if (whole.size() < bytes)
        return corrupt(fmt::format("a constant needs {} bytes and has {}", bytes, whole.size()));
      t.constant = fit(whole.slice(0, bytes), t.dtype);
    }
    return {};
  }

  Result<Bytes> read_subsegment(const s::SubsegmentOffsets& of, std::uint32_t index, std::uint64_t bytes,
                                DType dtype) const {
    if (index >= size_of(of.offsets()))
      return corrupt(fmt::format("a constant is number {} of {}", index, size_of(of.offsets())));
    TOSAIC_TRY(Bytes whole, segment(of.segment_index(), "constant data"));
    const std::uint64_t offset = element(of.offsets(), index);
    if (offset > whole.size() || bytes > whole.size() - offset)
      return corrupt(
          fmt::format("a constant of {} bytes at {} lies outside its segment of {}", bytes, offset, whole.size()));
    return fit(whole.slice(offset, bytes), dtype);
  }

  // Kernels read elements in place, so they must be aligned.
  static Bytes fit(const Bytes& data, DType dtype) {
    const bool aligned = reinterpret_cast<std::uintptr_t>(data.data()) % storage_size(dtype) == 0;
    return aligned && !data.null() ? data : Bytes::copy(data.data(), data.size());
  }

  Bytes file_, segments_;
  std::string name_;
  const s::Program* root_ = nullptr;
};

}  // namespace

Result<Program> read(const Bytes& file, const std::string& name) { return Reader(file, name).read(); }

std::map<std::string, Bytes> data_of(const Program& program) {
  std::map<std::string, Bytes> data;
  for (const NamedData& named : program.named_data) data.insert_or_assign(named.key, named.data.joined());
  return data;
}

}  // namespace tosaic::pte
