// SPDX-License-Identifier: Apache-2.0
// "EthosUBackend": the payload is an Ethos-U command stream, run by the simulator in src/ethosu as the NPU's driver
// would run it: inputs are copied into scratch memory, outputs out of it.
#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cstring>

#include "base/delegate_ids.h"
#include "base/zero_again.h"
#include "contract/serve.h"
#include "delegates/ethos_u/regions.h"
#include "formats/vela/vela.h"
#include "tosaic/ethosu.h"

namespace tosaic::delegates {
namespace {

struct CloseStream {
  void operator()(tosaic_ethosu_stream* stream) const { tosaic_ethosu_close(stream); }
};

std::size_t bytes_of(const vela::Tensor& t) { return static_cast<std::size_t>(t.bytes()); }

class StreamPayload : public contract::Payload {
 public:
  Status open(const contract::Opening& opening, int& status) {
    TOSAIC_TRY(payload_, vela::read(opening.payload));
    std::map<std::string, Bytes> external;
    for (const vela::Blob* blob : {&payload_.commands, &payload_.weights})
      if (blob->external())
        if (Bytes data = opening.data(blob->external_key); !data.null()) external.emplace(blob->external_key, data);
    TOSAIC_TRY(const Bytes commands, vela::resolve(payload_.commands, "commands", &external));
    TOSAIC_TRY(const Bytes weights, vela::resolve(payload_.weights, "weights", &external));
    TOSAIC_CHECK(check_offsets());
    tosaic_ethosu_options options{};
    options.struct_bytes = sizeof options;
    options.threads = static_cast<std::uint32_t>(opening.threads);
    options.plain_loops = opening.reference ? 1 : 0;
    tosaic_ethosu_error why{};
    tosaic_ethosu_stream* stream = nullptr;
    if (const int said = tosaic_ethosu_open(commands.data(), commands.size(), weights.data(), weights.size(), &options,
                                            &stream, &why))
      return refused(said, why, status);
    stream_.reset(stream);
    trace_ = opening.trace;
    tosaic_ethosu_info info{};
    if (tosaic_ethosu_describe(stream, &info, 0, nullptr, nullptr))
      return internal_error("a stream that opened cannot be described");
    product_ = "ethos-u" + std::to_string(info.product) + "-" + std::to_string(info.macs);
    TOSAIC_CHECK(check_product(opening, status));
    return reserve(info, opening.memory);
  }

  // The stream knows bytes, not types, and pads shapes to six dims.
  contract::Description describe() const override {
    const auto infos = [](const std::vector<vela::Tensor>& tensors) {
      std::vector<contract::TensorInfo> list;
      for (const vela::Tensor& t : tensors) {
        const std::vector<std::int64_t> dims(t.shape.begin(), t.shape.end());
        list.push_back({"", TOSAIC_DTYPE_OPAQUE, static_cast<std::uint32_t>(t.element_bytes),
                        TOSAIC_TENSOR_ANY_DTYPE | TOSAIC_TENSOR_ANY_SHAPE, dims, dims});
      }
      return list;
    };
    return {infos(payload_.inputs), infos(payload_.outputs), product_ + " (simulated)"};
  }

  Status execute(std::span<const void* const> inputs, std::span<void* const> outputs, int& status) override {
    for (std::size_t i = 0; i < inputs.size(); ++i)
      std::memcpy(memory_of(payload_.inputs[i]), inputs[i], bytes_of(payload_.inputs[i]));
    tosaic_ethosu_error why{};
    const auto say = [](void* user, const char* line) { static_cast<StreamPayload*>(user)->trace_(line); };
    if (const int said =
            tosaic_ethosu_run(stream_.get(), regions_.data(), regions_.size(), trace_ ? +say : nullptr, this, &why))
      return refused(said, why, status);
    for (std::size_t i = 0; i < outputs.size(); ++i)
      std::memcpy(outputs[i], memory_of(payload_.outputs[i]), bytes_of(payload_.outputs[i]));
    return {};
  }

  // Scratch memory that the commands read before they write it.
  void reset() override {
    for (std::size_t r = 1; r < regions_.size(); ++r)
      if (memory_[r]) zero_again(memory_[r], static_cast<std::size_t>(regions_[r].bytes));
  }

 private:
  static Diagnostic refused(int said, const tosaic_ethosu_error& why, int& status) {
    status = said == TOSAIC_ETHOSU_UNSUPPORTED ? TOSAIC_DELEGATE_UNSUPPORTED
             : said == TOSAIC_ETHOSU_MEMORY    ? TOSAIC_DELEGATE_MEMORY
                                               : TOSAIC_DELEGATE_INVALID;
    return error(why.code, why.message);
  }

  std::byte* memory_of(const vela::Tensor& t) const {
    return static_cast<std::byte*>(regions_[static_cast<std::size_t>(t.region)].base) + t.offset;
  }

  // The stream states its product; what the user asked for and what the program says (ExecuTorch's compile spec
  // "target") must be the same: a driver refuses the stream otherwise.
  Status check_product(const contract::Opening& opening, int& status) const {
    const auto wrong = [&](std::string_view who, std::string_view product) {
      status = TOSAIC_DELEGATE_INCOMPATIBLE;
      return error("delegate.product", fmt::format("the command stream is made for {}, {} {}", product_, who, product))
          .hint(fmt::format("compile the model again with --target {}", product));
    };
    if (!opening.device.empty() && opening.device != product_) return wrong("the device is", opening.device);
    for (const contract::Spec& spec : opening.specs)
      if (spec.key == "target" && spec.value != product_) return wrong("the program says", spec.value);
    return {};
  }

  Status check_offsets() const {
    for (const auto* tensors : {&payload_.inputs, &payload_.outputs})
      for (std::size_t i = 0; i < tensors->size(); ++i)
        if ((*tensors)[i].region == 0)
          return error("delegate.arguments", fmt::format("{} {} lies in region 0, which holds the constants",
                                                         tensors == &payload_.inputs ? "input" : "output", i));
    return {};
  }

  static Diagnostic too_large(std::size_t region, std::uint64_t bytes) {
    Diagnostic why = error("vela.region", fmt::format("the commands want {} bytes in memory region {}", bytes, region));
    why.notes.emplace_back("an Ethos-U addresses 4 GB in a region");
    return why;
  }

  Status reserve(const tosaic_ethosu_info& info, const MemorySource& source) {
    constexpr std::uint64_t most = std::uint64_t{1} << 32;
    const auto wanted = region_bytes(payload_, info);
    std::uint64_t all = 0;
    for (std::size_t r = 1; r < regions_.size(); ++r) {
      const std::uint64_t bytes = wanted[r];
      if (bytes > most) return too_large(r, bytes);
      TOSAIC_CHECK(check_memory(all += bytes, "the NPU's scratch memory"));
      if (bytes == 0) continue;
      memory_[r] = source ? source(static_cast<std::size_t>(bytes)) : zeroed_memory(static_cast<std::size_t>(bytes));
      if (!memory_[r]) return error("delegate.memory", fmt::format("there are no {} bytes of memory", bytes));
      if (source) std::memset(memory_[r].get(), 0, static_cast<std::size_t>(bytes));
      regions_[r] = {memory_[r].get(), bytes};
    }
    return {};
  }

  vela::Payload payload_;
  std::unique_ptr<tosaic_ethosu_stream, CloseStream> stream_;
  std::array<tosaic_ethosu_region, TOSAIC_ETHOSU_REGIONS> regions_{};  // 0 stays null: the constants given at opening
  std::array<std::shared_ptr<std::byte>, TOSAIC_ETHOSU_REGIONS> memory_;
  std::function<void(const std::string&)> trace_;
  std::string product_;
};

constexpr contract::Server server{
    [](const contract::Opening& opening, const void*, int& status) -> Result<std::unique_ptr<contract::Payload>> {
      auto payload = std::make_unique<StreamPayload>();
      TOSAIC_CHECK(payload->open(opening, status));
      return std::unique_ptr<contract::Payload>(std::move(payload));
    }};

}  // namespace
}  // namespace tosaic::delegates

const tosaic_delegate_api* tosaic_ethos_u_delegate(void) {
  static const tosaic_delegate_api api =
      tosaic::contract::table(tosaic::delegate_ids::ethos_u, tosaic::delegates::server);
  return &api;
}
