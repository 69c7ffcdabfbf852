// SPDX-License-Identifier: Apache-2.0
#include "contract/serve.h"

#include <fmt/format.h>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <optional>

#include "base/exceptions.h"
#include "base/printable.h"
#include "base/system/clock.h"
#include "contract/errors.h"

struct tosaic_delegate {
  std::unique_ptr<tosaic::contract::Payload> payload;
  std::string name;  // for messages
  tosaic::contract::Description description;
  std::vector<tosaic_delegate_tensor_info> infos;  // views of the description: inputs, then outputs
  std::uint64_t memory_bytes = 0;
  bool keep_times = false;
  bool varies = false;  // an input's sizes are the caller's choice
  double seconds = 0;   // of the last execution, by the host's clock
  std::vector<tosaic::contract::OperationTime> times;
  std::vector<tosaic_delegate_time> time_views;
  std::vector<const void*> inputs;  // of the call
  std::vector<void*> outputs;
  std::vector<std::uint32_t> origins;  // likewise, by input: 0, or 1 + the number of the output that it is
  std::vector<char> stays;             // by output
  std::vector<std::optional<std::uint64_t>> stayed;  // by output: its bytes, if it stayed in the last execution
  std::vector<std::vector<std::byte>> narrow;        // by tensor of a call: what the caller has in twice the width
  std::atomic_flag busy = ATOMIC_FLAG_INIT;
};

namespace tosaic::contract {
namespace {

Diagnostic argument(std::string message) { return error("delegate.arguments", std::move(message)); }
Diagnostic other_version(const char* what) {
  return error("delegate.version", fmt::format("{} of another version of tosaic/delegate.h", what));
}

// Diagnostics that mean the same whoever gives them.
int status_of(const Diagnostic& why, int status) {
  if (why.internal) return TOSAIC_DELEGATE_INTERNAL;
  for (const char* code : {"memory.limit", "run.out-of-memory", "delegate.memory", "vulkan.memory"})
    if (why.code == code) return TOSAIC_DELEGATE_MEMORY;
  if (why.code == "vulkan.lost") return TOSAIC_DELEGATE_FAILED;
  return status;
}

// Without words of our own: there is no memory to say them in.
int out_of_memory(tosaic_delegate_error* error) noexcept {
  if (error && error->struct_bytes == sizeof *error) {
    const std::uint32_t bytes = error->struct_bytes;
    *error = {};
    error->struct_bytes = bytes;
    std::strcpy(error->code, "delegate.memory");
    std::strcpy(error->message, "out of memory");
  }
  return TOSAIC_DELEGATE_MEMORY;
}

template <class F>
int guarded(tosaic_delegate_error* error, F f) noexcept {
  const auto no_memory = [&] { return out_of_memory(error); };
  const auto defect = [&](const char* what) { return report(TOSAIC_DELEGATE_INTERNAL, internal_error(what), error); };
  return guarded_call([&] { return guarded_call(f, no_memory, defect); }, no_memory,
                      [&](const char*) { return out_of_memory(error); });
}

// ---- open

MemorySource memory_of(const tosaic_delegate_host& host, std::uint64_t& taken) {
  if (!host.allocate) return {};
  return [allocate = host.allocate, release = host.release, user = host.allocate_user,
          &taken](std::size_t bytes) -> std::shared_ptr<std::byte> {
    constexpr std::size_t alignment = 64;
    const std::size_t wanted = std::max<std::size_t>(bytes, 1);
    void* memory = allocate(user, wanted, alignment);
    if (!memory) return nullptr;
    std::shared_ptr<std::byte> owned(static_cast<std::byte*>(memory), [release, user, wanted](std::byte* p) {
      if (release) release(user, p, wanted);
    });
    if (reinterpret_cast<std::uintptr_t>(memory) % alignment != 0) return nullptr;
    taken += wanted;
    return owned;
  };
}

Lent lent_by(const tosaic_delegate_host* host, std::uint64_t& taken) {
  Lent lent;
  if (!host) return lent;
  lent.memory = memory_of(*host, taken);
  if (host->log && host->log_level >= TOSAIC_DELEGATE_LOG_NOTE)
    lent.told = [log = host->log, user = host->log_user](const std::string& line) {
      log(user, TOSAIC_DELEGATE_LOG_NOTE, printable(line).c_str());
    };
  if (host->log && host->log_level >= TOSAIC_DELEGATE_LOG_TRACE)
    lent.trace = [log = host->log, user = host->log_user](const std::string& line) {
      log(user, TOSAIC_DELEGATE_LOG_TRACE, printable(line).c_str());
    };
  return lent;
}

Status check_program(const tosaic_delegate_program* program) {
  if (!program) return argument("the program is null");
  if (program->struct_bytes != sizeof *program) return other_version("a program");
  if (!program->payload) return argument("the payload is null");
  if (program->spec_count > 0 && !program->specs) return argument("the compile specs are null");
  for (std::size_t i = 0; i < program->spec_count; ++i)
    if (!program->specs[i].key || (program->specs[i].bytes > 0 && !program->specs[i].value))
      return argument(fmt::format("compile spec {} is null", i));
  return {};
}

Result<Opening> opening_of(const tosaic_delegate_program* program, const tosaic_delegate_host* host,
                           const tosaic_delegate_options* options, std::uint64_t& taken) {
  TOSAIC_CHECK(check_program(program));
  if (host && host->struct_bytes != sizeof *host) return other_version("a host");
  if (options && options->struct_bytes != sizeof *options) return other_version("options");
  Opening opening;
  static_cast<Lent&>(opening) = lent_by(host, taken);
  opening.payload = Bytes(nullptr, program->payload, program->payload_bytes);
  if (program->name) opening.name = program->name;
  for (std::size_t i = 0; i < program->spec_count; ++i) {
    const tosaic_delegate_spec& spec = program->specs[i];
    opening.specs.push_back({spec.key, {static_cast<const char*>(spec.value), spec.bytes}});
  }
  opening.data = [lookup = program->lookup, user = program->lookup_user](const std::string& key) {
    const void* data = nullptr;
    std::size_t bytes = 0;
    if (!lookup || lookup(user, key.c_str(), &data, &bytes) != 0 || !data) return Bytes();
    return Bytes(nullptr, data, bytes);
  };
  if (options) {
    opening.threads = static_cast<int>(std::min<unsigned>(options->threads, 1024));
    opening.reference = options->reference != 0;
    opening.profile = options->profile != 0;
    if (options->device) opening.device = options->device;
  }
  return opening;
}

// Around a payload that has just been made.
int hand_over(std::unique_ptr<tosaic_delegate> made, const tosaic_delegate_host* host, bool told,
              tosaic_delegate** delegate) {
  made->description = made->payload->describe();
  made->description.device = printable(made->description.device);
  for (auto* tensors : {&made->description.inputs, &made->description.outputs})
    for (TensorInfo& info : *tensors) {
      info.name = printable(info.name);
      made->infos.push_back(info.view());
    }
  made->inputs.resize(made->description.inputs.size());
  made->outputs.resize(made->description.outputs.size());
  made->origins.resize(made->inputs.size());
  made->stays.resize(made->outputs.size());
  made->stayed.resize(made->outputs.size());
  made->narrow.resize(made->infos.size());
  for (const TensorInfo& info : made->description.inputs) made->varies |= info.least != info.most;
  if (!told && host && host->log && host->log_level >= TOSAIC_DELEGATE_LOG_NOTE) {
    const std::string line = fmt::format("{}{}runs on {}, {} bytes for tensors", made->name,
                                         made->name.empty() ? "" : " ", made->description.device, made->memory_bytes);
    host->log(host->log_user, TOSAIC_DELEGATE_LOG_NOTE, printable(line).c_str());
  }
  *delegate = made.release();
  return TOSAIC_DELEGATE_OK;
}

int open_payload(void* user, const tosaic_delegate_program* program, const tosaic_delegate_host* host,
                 const tosaic_delegate_options* options, tosaic_delegate** delegate, tosaic_delegate_error* error) {
  return guarded(error, [&]() -> int {
    if (!delegate) return report(TOSAIC_DELEGATE_ARGUMENT, argument("the pointer for the delegate is null"), error);
    *delegate = nullptr;
    auto made = std::make_unique<tosaic_delegate>();
    auto opening = opening_of(program, host, options, made->memory_bytes);
    if (!opening.ok()) return report(TOSAIC_DELEGATE_ARGUMENT, opening.error(), error);
    const auto told = std::make_shared<bool>(false);
    if (opening->told)
      opening->told = [say = std::move(opening->told), told](const std::string& line) {
        *told = true;
        say(line);
      };
    const auto& server = *static_cast<const Server*>(user);
    int status = TOSAIC_DELEGATE_INVALID;
    auto payload = server.open(*opening, server.user, status);
    if (!payload.ok()) return report(status_of(payload.error(), status), payload.error(), error);
    made->payload = *std::move(payload);
    made->name = opening->name;
    made->keep_times = opening->profile;
    return hand_over(std::move(made), host, *told, delegate);
  });
}

int clone_payload(const tosaic_delegate* from, const tosaic_delegate_host* host, tosaic_delegate** delegate,
                  tosaic_delegate_error* error) {
  return guarded(error, [&]() -> int {
    if (!delegate) return report(TOSAIC_DELEGATE_ARGUMENT, argument("the pointer for the delegate is null"), error);
    *delegate = nullptr;
    if (!from) return report(TOSAIC_DELEGATE_ARGUMENT, argument("the delegate is null"), error);
    if (host && host->struct_bytes != sizeof *host)
      return report(TOSAIC_DELEGATE_ARGUMENT, other_version("a host"), error);
    auto made = std::make_unique<tosaic_delegate>();
    auto payload = from->payload->clone(lent_by(host, made->memory_bytes));
    if (!payload.ok()) return report(status_of(payload.error(), TOSAIC_DELEGATE_INTERNAL), payload.error(), error);
    if (!*payload)
      return report(TOSAIC_DELEGATE_UNSUPPORTED,
                    tosaic::error("delegate.clone", "the payload has nothing to share: open it once more"), error);
    made->payload = *std::move(payload);
    made->name = from->name;
    made->keep_times = from->keep_times;
    return hand_over(std::move(made), host, false, delegate);
  });
}

// ---- describe, execute, profile, close

int describe_payload(const tosaic_delegate* delegate, tosaic_delegate_info* info, tosaic_delegate_error* error) {
  return guarded(error, [&]() -> int {
    if (!delegate || !info) return report(TOSAIC_DELEGATE_ARGUMENT, argument("null delegate or info"), error);
    if (info->struct_bytes != sizeof *info) return report(TOSAIC_DELEGATE_ARGUMENT, other_version("an info"), error);
    info->input_count = static_cast<std::uint32_t>(delegate->description.inputs.size());
    info->output_count = static_cast<std::uint32_t>(delegate->description.outputs.size());
    info->tensors = delegate->infos.data();
    info->device = delegate->description.device.c_str();
    info->memory_bytes = delegate->memory_bytes;
    return TOSAIC_DELEGATE_OK;
  });
}

std::string none_stayed(std::uint32_t output, std::uint64_t bytes) {
  return fmt::format("no output {} of {} bytes stayed in the last execution", output, bytes);
}

Status check_call(const tosaic_delegate& delegate, const tosaic_delegate_tensor* tensors, std::size_t count) {
  const std::size_t inputs = delegate.inputs.size(), outputs = delegate.outputs.size();
  if (count != inputs + outputs)
    return argument(fmt::format("the delegate takes {} inputs and gives {} outputs, {} tensors are passed", inputs,
                                outputs, count));
  if (count > 0 && !tensors) return argument("the tensors are null");
  for (std::size_t i = 0; i < count; ++i) {
    const auto wrong = [&](const std::string& what) {
      return argument(fmt::format("{}: {}", place_in_call(i, inputs), what));
    };
    if (const std::string why = disagreement(delegate.infos[i], tensors[i]); !why.empty()) return wrong(why);
    if (!tensors[i].data && tensors[i].bytes > 0) return wrong("its data are null");
    if (!tensors[i].stays) continue;
    if (is_wider(delegate.infos[i], tensors[i].dtype)) return wrong("what is converted stays nowhere");
    if (i >= inputs && !(delegate.infos[i].flags & TOSAIC_TENSOR_STAYS))
      return wrong("it cannot stay with the payload");
    if (i < inputs && (tensors[i].stays > outputs || delegate.stayed[tensors[i].stays - 1] != tensors[i].bytes))
      return wrong(none_stayed(tensors[i].stays - 1, tensors[i].bytes));
  }
  return {};
}

Shape shape_of(const tosaic_delegate_tensor& tensor) {
  return Shape(std::vector<std::int64_t>(tensor.dims, tensor.dims + tensor.rank));
}

// Into `sizes`, the outputs'.
int resize(tosaic_delegate& delegate, const tosaic_delegate_tensor* inputs, std::vector<Shape>& sizes,
           tosaic_delegate_error* error) {
  std::vector<Shape> given;
  for (std::size_t i = 0; i < delegate.inputs.size(); ++i) given.push_back(shape_of(inputs[i]));
  int status = TOSAIC_DELEGATE_UNSUPPORTED;
  auto made = delegate.payload->resize(given, status);
  if (!made.ok()) return report(status_of(made.error(), status), made.error(), error);
  sizes = *std::move(made);
  return TOSAIC_DELEGATE_OK;
}

int sizes_alone(tosaic_delegate& delegate, const tosaic_delegate_tensor* inputs, std::size_t count,
                std::int64_t* const* dims, tosaic_delegate_error* error) {
  const auto wrong = [&](const std::string& what) { return report(TOSAIC_DELEGATE_ARGUMENT, argument(what), error); };
  if (count != delegate.inputs.size())
    return wrong(fmt::format("the delegate takes {} inputs, {} are passed", delegate.inputs.size(), count));
  if ((count > 0 && !inputs) || (!delegate.outputs.empty() && !dims))
    return wrong("no inputs, or the pointer for sizes is null");
  for (std::size_t i = 0; i < count; ++i)
    if (const std::string why = disagreement(delegate.infos[i], inputs[i]); !why.empty())
      return wrong(fmt::format("{}: {}", place_in_call(i, count), why));
  std::vector<Shape> sizes;
  if (const int status = resize(delegate, inputs, sizes, error)) return status;
  for (std::size_t i = 0; i < sizes.size(); ++i) std::copy(sizes[i].sizes().begin(), sizes[i].sizes().end(), dims[i]);
  return TOSAIC_DELEGATE_OK;
}

template <class To, class From>
void convert_all(const void* from, void* to, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {  // at any alignment
    From value;
    std::memcpy(&value, static_cast<const std::byte*>(from) + i * sizeof value, sizeof value);
    if constexpr (std::is_same_v<To, std::int32_t>) value = std::clamp<From>(value, INT32_MIN, INT32_MAX);
    const auto made = static_cast<To>(value);
    std::memcpy(static_cast<std::byte*>(to) + i * sizeof made, &made, sizeof made);
  }
}

void narrow(std::uint32_t dtype, const void* from, void* to, std::size_t count) {
  dtype == TOSAIC_DTYPE_I32 ? convert_all<std::int32_t, std::int64_t>(from, to, count)
                            : convert_all<float, double>(from, to, count);
}
void widen(std::uint32_t dtype, const void* from, void* to, std::size_t count) {
  dtype == TOSAIC_DTYPE_I32 ? convert_all<std::int64_t, std::int32_t>(from, to, count)
                            : convert_all<double, float>(from, to, count);
}

int execute_alone(tosaic_delegate& delegate, const tosaic_delegate_tensor* tensors, std::size_t count,
                  tosaic_delegate_error* error) {
  if (Status fits = check_call(delegate, tensors, count); !fits.ok())
    return report(TOSAIC_DELEGATE_ARGUMENT, fits.error(), error);
  const std::size_t inputs = delegate.inputs.size();
  if (delegate.varies) {
    std::vector<Shape> sizes;
    if (const int status = resize(delegate, tensors, sizes, error)) return status;
    for (std::size_t i = inputs; i < count; ++i)
      if (shape_of(tensors[i]) != sizes[i - inputs])
        return report(
            TOSAIC_DELEGATE_ARGUMENT,
            argument(fmt::format("{}: a tensor of {} is passed, for these inputs it is {}", place_in_call(i, inputs),
                                 to_string(shape_of(tensors[i])), to_string(sizes[i - inputs]))),
            error);
  }
  alignas(64) static char nothing[64];  // tensors without bytes lie somewhere, too
  for (std::size_t i = 0; i < count; ++i) {
    void* data = tensors[i].data ? tensors[i].data : nothing;
    if (is_wider(delegate.infos[i], tensors[i].dtype)) {
      delegate.narrow[i].resize(tensors[i].bytes / 2 + 1);
      if (i < inputs) narrow(delegate.infos[i].dtype, data, delegate.narrow[i].data(), tensors[i].bytes / 8);
      data = delegate.narrow[i].data();
    }
    if (i < inputs) {
      delegate.inputs[i] = data;
      delegate.origins[i] = tensors[i].stays;
    } else {
      delegate.outputs[i - inputs] = data;
      delegate.stays[i - inputs] = tensors[i].stays != 0;
    }
  }
  const bool staying = std::any_of(tensors, tensors + count, [](const auto& tensor) { return tensor.stays != 0; });
  int status = TOSAIC_DELEGATE_FAILED;
  delegate.time_views.clear();
  const auto begin = SteadyClock::now();
  Status ran = staying ? delegate.payload->execute_staying(delegate.inputs, delegate.outputs, delegate.origins,
                                                           delegate.stays, status)
                       : delegate.payload->execute(delegate.inputs, delegate.outputs, status);
  delegate.seconds = std::chrono::duration<double>(SteadyClock::now() - begin).count();
  if (!ran.ok()) return report(status_of(ran.error(), status), ran.error(), error);
  for (std::size_t i = inputs; i < count; ++i) {
    delegate.stayed[i - inputs].reset();
    if (tensors[i].stays) delegate.stayed[i - inputs] = tensors[i].bytes;
  }
  for (std::size_t i = inputs; i < count; ++i)
    if (is_wider(delegate.infos[i], tensors[i].dtype))
      widen(delegate.infos[i].dtype, delegate.narrow[i].data(), tensors[i].data, tensors[i].bytes / 8);
  if (!delegate.keep_times) return TOSAIC_DELEGATE_OK;
  delegate.times = delegate.payload->times();
  for (OperationTime& time : delegate.times) {
    for (std::string* text : {&time.name, &time.value, &time.place}) *text = printable(*text);
    delegate.time_views.push_back({time.name.c_str(), time.value.c_str(), time.place.c_str(), time.seconds});
  }
  return TOSAIC_DELEGATE_OK;
}

// What changes the payload is done by one caller at a time.
template <class F>
int alone(tosaic_delegate* delegate, tosaic_delegate_error* error, F f) {
  return guarded(error, [&]() -> int {
    if (!delegate) return report(TOSAIC_DELEGATE_ARGUMENT, argument("the delegate is null"), error);
    if (delegate->busy.test_and_set(std::memory_order_acquire))
      return report(TOSAIC_DELEGATE_ARGUMENT, tosaic::error("delegate.busy", "the delegate is executing another call"),
                    error);
    struct Free {
      std::atomic_flag& flag;
      ~Free() { flag.clear(std::memory_order_release); }
    } free{delegate->busy};
    return f();
  });
}

int sizes_payload(tosaic_delegate* delegate, const tosaic_delegate_tensor* inputs, std::size_t count,
                  std::int64_t* const* dims, tosaic_delegate_error* error) {
  return alone(delegate, error, [&] { return sizes_alone(*delegate, inputs, count, dims, error); });
}

int execute_payload(tosaic_delegate* delegate, const tosaic_delegate_tensor* tensors, std::size_t count,
                    tosaic_delegate_error* error) {
  return alone(delegate, error, [&] { return execute_alone(*delegate, tensors, count, error); });
}

int fetch_output(tosaic_delegate* delegate, std::uint32_t output, void* data, std::uint64_t bytes,
                 tosaic_delegate_error* error) {
  return alone(delegate, error, [&]() -> int {
    if (output >= delegate->stayed.size() || delegate->stayed[output] != bytes)
      return report(TOSAIC_DELEGATE_ARGUMENT, argument(none_stayed(output, bytes)), error);
    if (bytes == 0) return TOSAIC_DELEGATE_OK;
    if (!data) return report(TOSAIC_DELEGATE_ARGUMENT, argument("the pointer for the output is null"), error);
    int status = TOSAIC_DELEGATE_FAILED;
    Status fetched =
        delegate->payload->fetch(output, {static_cast<std::byte*>(data), static_cast<std::size_t>(bytes)}, status);
    return fetched.ok() ? TOSAIC_DELEGATE_OK : report(status_of(fetched.error(), status), fetched.error(), error);
  });
}

int measure_payload(tosaic_delegate* delegate, std::uint32_t on, tosaic_delegate_error* error) {
  return alone(delegate, error, [&]() -> int {
    delegate->payload->measure(on != 0);
    delegate->keep_times = on != 0;
    delegate->time_views.clear();
    return TOSAIC_DELEGATE_OK;
  });
}

int reset_payload(tosaic_delegate* delegate, tosaic_delegate_error* error) {
  return alone(delegate, error, [&]() -> int {
    delegate->payload->reset();
    delegate->stayed.assign(delegate->stayed.size(), std::nullopt);
    return TOSAIC_DELEGATE_OK;
  });
}

int profile_payload(const tosaic_delegate* delegate, tosaic_delegate_profile* profile, tosaic_delegate_error* error) {
  return guarded(error, [&]() -> int {
    if (!delegate || !profile) return report(TOSAIC_DELEGATE_ARGUMENT, argument("null delegate or profile"), error);
    if (profile->struct_bytes != sizeof *profile)
      return report(TOSAIC_DELEGATE_ARGUMENT, other_version("a profile"), error);
    const double device = delegate->payload->device_seconds();
    profile->clock = device > 0 ? TOSAIC_DELEGATE_CLOCK_DEVICE : TOSAIC_DELEGATE_CLOCK_HOST;
    profile->seconds = device > 0 ? device : delegate->seconds;
    profile->times = delegate->time_views.data();
    profile->count = delegate->time_views.size();
    return TOSAIC_DELEGATE_OK;
  });
}

void close_payload(tosaic_delegate* delegate) { delete delegate; }

}  // namespace

Result<std::vector<Shape>> Payload::resize(const std::vector<Shape>&, int&) {
  std::vector<Shape> sizes;
  for (const TensorInfo& info : describe().outputs) sizes.emplace_back(info.most);
  return sizes;
}

Status Payload::execute_staying(std::span<const void* const>, std::span<void* const>, std::span<const std::uint32_t>,
                                std::span<const char>, int&) {
  return internal_error("the payload says that outputs stay, and cannot execute so");
}
Status Payload::fetch(std::size_t, std::span<std::byte>, int&) {
  return internal_error("the payload keeps no outputs");
}

tosaic_delegate_api table(const char* id, const Server& server) {
  return {sizeof(tosaic_delegate_api),
          TOSAIC_DELEGATE_VERSION,
          id,
          const_cast<Server*>(&server),
          open_payload,
          describe_payload,
          sizes_payload,
          execute_payload,
          fetch_output,
          profile_payload,
          measure_payload,
          reset_payload,
          clone_payload,
          close_payload};
}

}  // namespace tosaic::contract
