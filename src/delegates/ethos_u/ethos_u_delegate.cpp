// SPDX-License-Identifier: Apache-2.0
// "EthosUBackend": the payload is an Ethos-U command stream, run by the simulator in src/ethosu as the NPU's driver
// would run it: inputs are copied into scratch memory, outputs out of it.
#include <fmt/format.h>
#include <algorithm>

#include "base/memory.h"
#include "formats/vela/vela.h"
#include "runtime/delegate.h"
#include "tosaic/ethosu.h"

namespace tosaic::runtime {
namespace {

class EthosUDelegate : public Delegate {
 public:
  EthosUDelegate() = default;
  EthosUDelegate(const EthosUDelegate&) = delete;
  EthosUDelegate& operator=(const EthosUDelegate&) = delete;
  ~EthosUDelegate() override { tosaic_ethosu_close(stream_); }

  Status init(const Bytes& payload, std::span<const pte::CompileSpec> specs, std::span<const TensorType> arguments,
              const DelegateContext& context) override {
    TOSAIC_TRY(places_, vela::read(payload));
    trace_ = context.trace;
    TOSAIC_TRY(const Bytes commands, vela::resolve(places_.commands, "commands", context.data));
    TOSAIC_TRY(const Bytes weights, vela::resolve(places_.weights, "weights", context.data));
    TOSAIC_CHECK(check(arguments));
    tosaic_ethosu_options options{};
    options.struct_bytes = sizeof options;
    options.threads = static_cast<std::uint32_t>(context.threads);
    options.plain_loops = context.interpret ? 1 : 0;
    tosaic_ethosu_error why{};
    if (const int status = tosaic_ethosu_open(commands.data(), commands.size(), weights.data(), weights.size(),
                                              &options, &stream_, &why))
      return from_simulator(status, why);
    tosaic_ethosu_info info{};
    if (tosaic_ethosu_describe(stream_, &info, 0, nullptr, nullptr))
      return internal_error("a stream that opened cannot be described");
    product_ = fmt::format("ethos-u{}-{}", info.product, info.macs);
    TOSAIC_CHECK(check_product(product_, specs, context.product));
    return reserve(info);
  }

  std::size_t inputs() const override { return places_.inputs.size(); }
  std::string device() const override { return product_ + " (simulated)"; }
  bool undecided() const override { return undecided_; }

  Status execute(std::span<void* const> arguments) override {
    std::size_t i = 0;
    for (const vela::Tensor& t : places_.inputs) std::memcpy(memory_of(t), arguments[i++], bytes_of(t));
    tosaic_ethosu_error why{};
    const auto say = [](void* user, const char* line) { static_cast<EthosUDelegate*>(user)->trace_(line); };
    if (const int status =
            tosaic_ethosu_run(stream_, regions_.data(), regions_.size(), trace_ ? +say : nullptr, this, &why))
      return from_simulator(status, why);
    for (const vela::Tensor& t : places_.outputs) std::memcpy(arguments[i++], memory_of(t), bytes_of(t));
    return {};
  }

 private:
  Diagnostic from_simulator(int status, const tosaic_ethosu_error& why) {
    undecided_ = status == TOSAIC_ETHOSU_UNSUPPORTED;
    return error(why.code, why.message);
  }
  static std::size_t bytes_of(const vela::Tensor& t) { return static_cast<std::size_t>(t.bytes()); }
  std::byte* memory_of(const vela::Tensor& t) const {
    return static_cast<std::byte*>(regions_[static_cast<std::size_t>(t.region)].base) + t.offset;
  }

  // The stream states its product; what the user asked for and what the program says (ExecuTorch's compile spec
  // "target") must be the same: a driver refuses the stream otherwise.
  static Status check_product(const std::string& stream, std::span<const pte::CompileSpec> specs,
                              const std::string& asked) {
    const auto wrong = [&](const std::string& who, const std::string& product) {
      return error("delegate.product", fmt::format("the command stream is made for {}, {} {}", stream, who, product))
          .hint(fmt::format("compile the model again with --target {}", product));
    };
    if (!asked.empty() && asked != stream) return wrong("the device is", asked);
    for (const pte::CompileSpec& spec : specs)
      if (const std::string said(spec.value.text()); spec.key == "target" && said != stream)
        return wrong("the program says", said);
    return {};
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
      const auto element = static_cast<std::int64_t>(storage_size(arguments[i].dtype));
      if (static_cast<std::int64_t>(arguments[i].storage_bytes()) != t.bytes() || element != t.element_bytes)
        return error("delegate.arguments",
                     fmt::format("{} {} is {} ({} bytes) in the program and {} bytes, {} per element, in the command "
                                 "stream",
                                 i < inputs ? "input" : "output", i < inputs ? i : i - inputs, to_string(arguments[i]),
                                 arguments[i].storage_bytes(), t.bytes(), t.element_bytes));
      if (t.region == 0)
        return error("delegate.arguments", fmt::format("tensor {} lies in region 0, which holds the constants", i));
    }
    return {};
  }

  // Scratch memory as large as the payload says; the other regions (fast scratch, inputs and outputs of their own) as
  // large as the commands and the tensors need.
  Status reserve(const tosaic_ethosu_info& info) {
    constexpr std::uint64_t most = std::uint64_t{1} << 32;
    regions_.resize(TOSAIC_ETHOSU_REGIONS);
    memory_.resize(regions_.size());
    std::vector<std::uint64_t> wanted(std::begin(info.region_bytes), std::end(info.region_bytes));
    wanted[vela::scratch_region] = places_.scratch_bytes;
    for (const auto* tensors : {&places_.inputs, &places_.outputs})
      for (const vela::Tensor& t : *tensors)
        wanted[static_cast<std::size_t>(t.region)] =
            std::max(wanted[static_cast<std::size_t>(t.region)], static_cast<std::uint64_t>(t.offset) + bytes_of(t));
    std::uint64_t all = 0;
    for (std::size_t r = 1; r < regions_.size(); ++r) {
      const std::uint64_t bytes = wanted[r];
      if (bytes > most)
        return error("delegate.memory", fmt::format("the commands want {} bytes in memory region {}", bytes, r))
            .note("an Ethos-U addresses 4 GB in a region")
            .hint("the payload is damaged: compile the model again");
      TOSAIC_CHECK(check_memory(all += bytes, "the NPU's scratch memory"));
      memory_[r] = zeroed_memory(static_cast<std::size_t>(bytes));
      if (!memory_[r]) return error("delegate.memory", fmt::format("there are no {} bytes of memory", bytes));
      regions_[r] = {memory_[r].get(), bytes};
    }
    return {};
  }

  vela::Payload places_;
  tosaic_ethosu_stream* stream_ = nullptr;
  std::vector<tosaic_ethosu_region> regions_;  // region 0 stays null: the constants given at opening
  std::vector<std::shared_ptr<std::byte>> memory_;
  std::function<void(const std::string&)> trace_;
  std::string product_;
  bool undecided_ = false;
};

}  // namespace

std::unique_ptr<Delegate> ethos_u_delegate() { return std::make_unique<EthosUDelegate>(); }

}  // namespace tosaic::runtime
