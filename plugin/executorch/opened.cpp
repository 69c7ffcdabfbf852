// SPDX-License-Identifier: Apache-2.0
#include "opened.h"

#include <executorch/runtime/core/event_tracer_hooks_delegate.h>
#include <executorch/runtime/core/exec_aten/util/tensor_util.h>
#include <executorch/runtime/platform/platform.h>

#include <algorithm>
#include <cstring>

#include "log.h"

namespace tosaic::plugin {

using namespace executorch::runtime;
using executorch::aten::ScalarType;
using executorch::aten::SizesType;
using executorch::aten::Tensor;

namespace {

Error error_of(int status) {
  switch (status) {
    case TOSAIC_DELEGATE_OK: return Error::Ok;
    case TOSAIC_DELEGATE_INVALID: return Error::InvalidProgram;
    case TOSAIC_DELEGATE_UNSUPPORTED: return Error::NotSupported;
    case TOSAIC_DELEGATE_ARGUMENT: return Error::InvalidArgument;
    case TOSAIC_DELEGATE_MEMORY: return Error::MemoryAllocationFailed;
    case TOSAIC_DELEGATE_INCOMPATIBLE: return Error::DelegateInvalidCompatibility;
    default: return Error::Internal;
  }
}

// False: no delegate has tensors of that kind.
bool dtype_of(ScalarType type, std::uint32_t& dtype) {
  switch (type) {
    case ScalarType::Bool: dtype = TOSAIC_DTYPE_BOOL; return true;
    case ScalarType::Byte: dtype = TOSAIC_DTYPE_U8; return true;
    case ScalarType::Char: dtype = TOSAIC_DTYPE_I8; return true;
    case ScalarType::Short: dtype = TOSAIC_DTYPE_I16; return true;
    case ScalarType::Int: dtype = TOSAIC_DTYPE_I32; return true;
    case ScalarType::Long: dtype = TOSAIC_DTYPE_I64; return true;
    case ScalarType::Half: dtype = TOSAIC_DTYPE_F16; return true;
    case ScalarType::BFloat16: dtype = TOSAIC_DTYPE_BF16; return true;
    case ScalarType::Float: dtype = TOSAIC_DTYPE_F32; return true;
    case ScalarType::Double: dtype = TOSAIC_DTYPE_F64; return true;
    case ScalarType::Float8_e4m3fn: dtype = TOSAIC_DTYPE_F8E4M3; return true;
    case ScalarType::Float8_e5m2: dtype = TOSAIC_DTYPE_F8E5M2; return true;
    default: return false;
  }
}

// Sizes of one say nothing of where elements lie, and PyTorch's dim orders put them anywhere.
std::vector<std::int64_t> without_ones(const std::int64_t* dims, std::size_t rank) {
  std::vector<std::int64_t> kept;
  std::copy_if(dims, dims + rank, std::back_inserter(kept), [](std::int64_t n) { return n != 1; });
  return kept;
}

// The sizes of a tensor as it lies in memory, outermost first: what ExecuTorch's Arm flow compiles payloads for.
void sizes_in_memory(const Tensor& tensor, const tosaic_delegate_tensor_info& info, std::int64_t* dims) {
  const auto order = tensor.dim_order();
  for (std::size_t k = 0; k < order.size(); ++k) dims[k] = tensor.sizes()[order[k]];
  if (std::is_sorted(order.begin(), order.end()) || info.rank != order.size()) return;
  if (without_ones(dims, order.size()) == without_ones(info.most, info.rank))
    std::copy(info.most, info.most + info.rank, dims);
}

// And the other way.
Error resize_in_memory(Tensor& tensor, const std::int64_t* wanted) {
  std::array<SizesType, kTensorDimensionLimit> sizes{};
  const auto order = tensor.dim_order();
  for (std::size_t k = 0; k < order.size(); ++k) sizes[order[k]] = static_cast<SizesType>(wanted[k]);
  return resize_tensor(tensor, {sizes.data(), order.size()});
}

void* allocate(void* user, std::size_t bytes, std::size_t alignment) {
  return static_cast<MemoryAllocator*>(user)->allocate(bytes, alignment);
}

void log_line(void*, int, const char* line) { say(LogLevel::Info, line); }

std::string lines(const char* heading, const char* text) {
  std::string all;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t end = rest.find('\n');
    all += std::string("\n  ") + heading + ": " + std::string(rest.substr(0, end));
    rest.remove_prefix(end == rest.npos ? rest.size() : end + 1);
  }
  return all;
}

tosaic_delegate_error no_error() {
  tosaic_delegate_error why{};
  why.struct_bytes = sizeof why;
  return why;
}

}  // namespace

int Opened::look_up(void* user, const char* key, const void** data, std::size_t* bytes) {
  auto& opened = *static_cast<Opened*>(user);
  if (!opened.named_) return 1;
  Result<FreeableBuffer> found = opened.named_->get_data(key);
  if (!found.ok()) return 1;
  opened.data_.push_back(std::move(*found));
  *data = opened.data_.back().data();
  *bytes = opened.data_.back().size();
  return 0;
}

// What ExecuTorch leaves out of a call are buffers' new contents, which the delegate is to keep.
const char* const forgotten =
    "a program that changes its buffers needs VulkanPartitioner({\"alias_buffer_mutations\": True}): export it again";

Error Opened::refused(int status, const tosaic_delegate_error& why) const {
  const bool small = status == TOSAIC_DELEGATE_MEMORY && bounded_;
  refuse(name_ + ": error[" + why.code + "]: " + why.message + lines("note", why.notes) +
         lines("help", small ? "give the method's allocator more memory, or set the backend's option heap" : why.help));
  return std::strcmp(why.code, "delegate.busy") == 0 ? Error::InvalidState : error_of(status);
}

Error Opened::refused(const std::string& message) const {
  refuse(name_ + ": error[delegate.arguments]: " + message);
  return Error::InvalidArgument;
}

std::unique_ptr<Opened> Opened::open(const tosaic_delegate_api* api, const Options& options,
                                     BackendInitContext& context, const FreeableBuffer& payload,
                                     ArrayRef<CompileSpec> specs, Error& error) {
  std::unique_ptr<Opened> opened(new Opened(api));
  opened->name_ = std::string(context.get_method_name() ? context.get_method_name() : "method") + " (" + api->id + ")";
  opened->named_ = context.get_named_data_map();
  std::vector<tosaic_delegate_spec> list;
  for (const CompileSpec& spec : specs) list.push_back({spec.key, spec.value.buffer, spec.value.nbytes});
  const tosaic_delegate_program program{sizeof program, opened->name_.c_str(), payload.data() ? payload.data() : "",
                                        payload.size(), list.data(),           list.size(),
                                        &look_up,       opened.get()};
  MemoryAllocator* memory = options.heap ? nullptr : context.get_runtime_allocator();
  opened->bounded_ = memory != nullptr;
  const tosaic_delegate_host host{
      sizeof host, static_cast<std::uint32_t>(options.log), memory ? &allocate : nullptr, nullptr, memory, log_line,
      nullptr};
  const tosaic_delegate_options how{sizeof how, static_cast<std::uint32_t>(options.threads), options.reference, 0,
                                    options.device.c_str()};
  tosaic_delegate_error why = no_error();
  const int status = api->open(api->user, &program, &host, &how, &opened->delegate_, &why);
  error = status ? opened->refused(status, why) : opened->describe();
  return error == Error::Ok ? std::move(opened) : nullptr;
}

Opened::~Opened() { api_->close(delegate_); }

Error Opened::describe() {
  info_.struct_bytes = sizeof info_;
  tosaic_delegate_error why = no_error();
  if (const int status = api_->describe(delegate_, &info_, &why)) return refused(status, why);
  const std::size_t count = info_.input_count + info_.output_count;
  tensors_.resize(count);
  for (std::size_t i = 0; i < count; ++i) dims_.emplace_back(kTensorDimensionLimit);
  for (std::size_t i = 0; i < count; ++i) {
    const tosaic_delegate_tensor_info& info = info_.tensors[i];
    if (i < info_.input_count)
      varies_ = varies_ || !std::equal(info.least, info.least + info.rank, info.most);
    else
      sizes_.emplace_back(info.most, info.most + info.rank);
  }
  return Error::Ok;
}

// The sizes of the outputs, where they depend on those of the inputs.
Error Opened::ask_sizes() {
  std::vector<std::int64_t*> dims;
  for (std::vector<std::int64_t>& sizes : sizes_) dims.push_back(sizes.data());
  tosaic_delegate_error why = no_error();
  if (const int status = api_->sizes(delegate_, tensors_.data(), info_.input_count, dims.data(), &why))
    return refused(status, why);
  return Error::Ok;
}

// The i-th tensor of a call, inputs first. An output gets its size now, where the payload knows it.
Error Opened::take(std::size_t i, EValue& value) {
  const bool input = i < info_.input_count;
  const auto wrong = [&](const std::string& what) {
    return refused((input ? "input " + std::to_string(i) : "output " + std::to_string(i - info_.input_count)) + what);
  };
  if (!value.isTensor()) return wrong(" is no tensor");
  Tensor& tensor = value.toTensor();
  const tosaic_delegate_tensor_info& info = info_.tensors[i];
  tosaic_delegate_tensor& to = tensors_[i];
  if (!dtype_of(tensor.scalar_type(), to.dtype))
    return wrong(std::string(" has dtype ") + toString(tensor.scalar_type()) + ", which no delegate has");
  const bool one_size =
      !(info.flags & TOSAIC_TENSOR_ANY_SHAPE) && (varies_ || std::equal(info.least, info.least + info.rank, info.most));
  to.rank = static_cast<std::uint32_t>(tensor.dim());
  std::int64_t* dims = dims_[i].data();
  sizes_in_memory(tensor, info, dims);
  const std::int64_t* wanted = input ? nullptr : sizes_[i - info_.input_count].data();
  if (!input && one_size && to.rank == info.rank && !std::equal(dims, dims + to.rank, wanted)) {
    if (resize_in_memory(tensor, wanted) != Error::Ok) return wrong(" cannot be resized to the payload's");
    sizes_in_memory(tensor, info, dims);
  }
  to.dims = dims;
  to.bytes = tensor.nbytes();
  to.data = tensor.mutable_data_ptr();
  return Error::Ok;
}

Error Opened::execute(BackendExecutionContext& context, Span<EValue*> values) {
  if (busy_.test_and_set(std::memory_order_acquire)) {
    refuse(name_ + ": error[delegate.busy]: the method is being executed by another thread");
    return Error::InvalidState;
  }
  struct Free {
    std::atomic_flag& flag;
    ~Free() { flag.clear(std::memory_order_release); }
  } free{busy_};
  return execute_alone(context, values);
}

Error Opened::execute_alone(BackendExecutionContext& context, Span<EValue*> values) {
  if (values.size() != tensors_.size())
    return refused(
        "the payload takes " + std::to_string(info_.input_count) + " inputs and gives " +
        std::to_string(info_.output_count) + " outputs, the program passes " + std::to_string(values.size()) +
        " values" +
        lines("help", values.size() < tensors_.size() && std::strcmp(api_->id, "VulkanBackend") == 0 ? forgotten : ""));
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i == info_.input_count && varies_)
      if (const Error error = ask_sizes(); error != Error::Ok) return error;
    if (const Error error = take(i, *values[i]); error != Error::Ok) return error;
  }
  EventTracer* tracer = context.event_tracer();
  if (tracer && tracer->event_tracer_profiling_level() == EventTracerProfilingLevel::kProfileMethodOnly)
    tracer = nullptr;
  tosaic_delegate_error why = no_error();
  if (measured_ != (tracer != nullptr)) {
    if (const int status = api_->measure(delegate_, tracer ? 1 : 0, &why)) return refused(status, why);
    measured_ = tracer != nullptr;
  }
  const std::uint64_t begin = tracer ? pal_current_ticks() : 0;
  if (const int status = api_->execute(delegate_, tensors_.data(), tensors_.size(), &why)) return refused(status, why);
  if (tracer) trace(*tracer, begin);
  return Error::Ok;
}

// One event per operation, called as the payload calls what it computes: that is unique, and known when the program is
// made. Kernel and operator are the event's metadata. The operations stand one behind the other: what passes between
// them is not told.
void Opened::trace(EventTracer& tracer, std::uint64_t begin) const {
  tosaic_delegate_profile profile{};
  profile.struct_bytes = sizeof profile;
  if (api_->profile(delegate_, &profile, nullptr)) return;
  const et_tick_ratio_t ratio = pal_ticks_to_ns_multiplier();
  const double ticks = 1e9 * static_cast<double>(ratio.denominator) / static_cast<double>(ratio.numerator);
  double seconds = 0;
  const auto log = [&](const char* name, double taken, const char* metadata) {
    const auto at = [&](double s) { return begin + static_cast<std::uint64_t>(s * ticks); };
    event_tracer_log_profiling_delegate(&tracer, name, static_cast<DebugHandle>(kUnsetDelegateDebugIntId), at(seconds),
                                        at(seconds + taken), metadata, std::strlen(metadata));
    seconds += taken;
  };
  for (std::size_t i = 0; i < profile.count; ++i) {
    const tosaic_delegate_time& time = profile.times[i];
    log(*time.value ? time.value : time.name, time.seconds, time.name);
  }
  if (profile.count == 0) log(info_.device, profile.seconds, info_.device);
}

}  // namespace tosaic::plugin
