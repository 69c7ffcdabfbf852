// SPDX-License-Identifier: Apache-2.0
// "EthosUBackend": the payload is an Ethos-U command stream, run by the simulator in src/ethosu as the NPU's driver
// would run it: inputs are copied into scratch memory, outputs out of it.
#include <fmt/format.h>

#include "formats/vela/vela.h"
#include "runtime/delegate.h"
#include "tosaic/ethosu.h"

namespace tosaic::runtime {
namespace {

Diagnostic from_simulator(const tosaic_ethosu_error& why) { return error(why.code, why.message); }

class EthosUDelegate : public Delegate {
 public:
  EthosUDelegate() = default;
  EthosUDelegate(const EthosUDelegate&) = delete;
  EthosUDelegate& operator=(const EthosUDelegate&) = delete;
  ~EthosUDelegate() override { tosaic_ethosu_close(stream_); }

  Status init(const Bytes& payload, std::span<const pte::CompileSpec>, std::span<const TensorType> arguments,
              const DelegateContext& context) override {
    TOSAIC_TRY(places_, vela::read(payload));
    trace_ = context.trace;
    for (const vela::Blob* blob : {&places_.commands, &places_.weights})
      if (blob->external())
        return error("vela.external",
                     fmt::format("the NPU's {} lie outside the program, under the key {}",
                                 blob == &places_.commands ? "commands" : "weights", blob->external_key))
            .hint("export the program with everything inside the .pte");
    TOSAIC_CHECK(check(arguments));
    tosaic_ethosu_options options{};
    options.struct_bytes = sizeof options;
    options.threads = static_cast<std::uint32_t>(context.threads);
    options.plain_loops = context.interpret ? 1 : 0;
    tosaic_ethosu_error why{};
    const Bytes &commands = places_.commands.data, &weights = places_.weights.data;
    if (tosaic_ethosu_open(commands.data(), commands.size(), weights.data(), weights.size(), &options, &stream_, &why))
      return from_simulator(why);
    return reserve();
  }

  std::size_t inputs() const override { return places_.inputs.size(); }

  Status execute(std::span<void* const> arguments) override {
    auto* scratch = static_cast<std::byte*>(regions_[scratch_region].base);
    std::size_t i = 0;
    for (const vela::Tensor& t : places_.inputs) copy(scratch + t.offset, arguments[i++], t);
    tosaic_ethosu_error why{};
    const auto say = [](void* user, const char* line) { static_cast<EthosUDelegate*>(user)->trace_(line); };
    if (tosaic_ethosu_run(stream_, regions_.data(), regions_.size(), trace_ ? +say : nullptr, this, &why))
      return from_simulator(why);
    for (const vela::Tensor& t : places_.outputs) copy(arguments[i++], scratch + t.offset, t);
    return {};
  }

 private:
  static constexpr std::size_t scratch_region = 1;

  static void copy(void* to, const void* from, const vela::Tensor& t) {
    std::memcpy(to, from, static_cast<std::size_t>(t.bytes()));
  }

  // The stream knows bytes, not types; sizes are what can be compared.
  Status check(std::span<const TensorType> arguments) const {
    const std::size_t inputs = places_.inputs.size(), outputs = places_.outputs.size();
    if (inputs + outputs != arguments.size())
      return error("delegate.arguments",
                   fmt::format("the command stream takes {} inputs and gives {} outputs, the program passes {} tensors",
                               inputs, outputs, arguments.size()));
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const vela::Tensor& t = i < inputs ? places_.inputs[i] : places_.outputs[i - inputs];
      if (static_cast<std::int64_t>(arguments[i].storage_bytes()) != t.bytes())
        return error("delegate.arguments",
                     fmt::format("tensor {} is {} ({} bytes) in the program and {} bytes in the command stream", i,
                                 to_string(arguments[i]), arguments[i].storage_bytes(), t.bytes()));
      if (t.region != static_cast<std::int32_t>(scratch_region))
        return error("delegate.arguments", fmt::format("tensor {} lies in region {}, which only streams made with "
                                                       "--separate-io-regions have",
                                                       i, t.region))
            .hint("compile without that option, as ExecuTorch does");
    }
    return {};
  }

  // Scratch memory as large as the payload says; what else the commands reach (fast scratch) as large as they need.
  Status reserve() {
    tosaic_ethosu_info info{};
    if (tosaic_ethosu_describe(stream_, &info, 0, nullptr, nullptr))
      return internal_error("a stream that opened cannot be described");
    constexpr std::uint64_t most = std::uint64_t{1} << 32;
    regions_.resize(TOSAIC_ETHOSU_REGIONS);
    memory_.resize(regions_.size());
    for (std::size_t r = scratch_region; r < regions_.size(); ++r) {
      const std::uint64_t bytes = r == scratch_region ? places_.scratch_bytes : info.region_bytes[r];
      if (bytes > most)
        return error("delegate.memory", fmt::format("the commands want {} bytes in memory region {}", bytes, r));
      memory_[r].resize(static_cast<std::size_t>((bytes + sizeof(Line) - 1) / sizeof(Line)));
      regions_[r] = {memory_[r].data(), bytes};
    }
    return {};
  }

  struct alignas(16) Line {
    std::array<std::byte, 16> bytes;
  };
  vela::Payload places_;
  tosaic_ethosu_stream* stream_ = nullptr;
  std::vector<tosaic_ethosu_region> regions_;  // region 0 stays null: the constants given at opening
  std::vector<std::vector<Line>> memory_;
  std::function<void(const std::string&)> trace_;
};

}  // namespace

std::unique_ptr<Delegate> ethos_u_delegate() { return std::make_unique<EthosUDelegate>(); }

}  // namespace tosaic::runtime
