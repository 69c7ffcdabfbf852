// SPDX-License-Identifier: Apache-2.0
#include "runtime/delegate.h"

#include <fmt/format.h>

#include "contract/errors.h"
#include "contract/tensors.h"

namespace tosaic::runtime {
namespace {

int look_up(void* user, const char* key, const void** data, std::size_t* bytes) {
  const auto& named = *static_cast<const NamedData*>(user);
  const auto found = named.find(key);
  if (found == named.end()) return 1;
  *data = found->second.data();
  *bytes = found->second.size();
  return 0;
}

void log_line(void* user, int level, const char* line) {
  const auto& listeners = *static_cast<const Listeners*>(user);
  const auto& listener = level == TOSAIC_DELEGATE_LOG_TRACE ? listeners.trace : listeners.told;
  if (listener) listener(line);
}

tosaic_delegate_error empty_error() {
  tosaic_delegate_error why{};
  why.struct_bytes = sizeof why;
  return why;
}

tosaic_delegate_host host_with(const Trace& trace) {
  tosaic_delegate_host host{};
  host.struct_bytes = sizeof host;
  if (trace->trace || trace->told) {
    host.log_level = trace->trace ? TOSAIC_DELEGATE_LOG_TRACE : TOSAIC_DELEGATE_LOG_NOTE;
    host.log = log_line;
    host.log_user = const_cast<void*>(static_cast<const void*>(trace.get()));
  }
  return host;
}

}  // namespace

Result<OpenDelegate> OpenDelegate::open(const DelegateChoice& choice, const Bytes& payload,
                                        std::span<const pte::CompileSpec> specs, const DelegateOptions& options,
                                        int* status) {
  if (status) *status = TOSAIC_DELEGATE_INCOMPATIBLE;
  const tosaic_delegate_api& api = *choice.api;
  if (api.struct_bytes != sizeof api || api.version != TOSAIC_DELEGATE_VERSION)
    return error("delegate.version", fmt::format("the delegate '{}' speaks version {} of the contract, this runtime {}",
                                                 api.id, api.version, TOSAIC_DELEGATE_VERSION))
        .hint("build both with the same tosaic/delegate.h");
  std::vector<tosaic_delegate_spec> keys;
  for (const pte::CompileSpec& spec : specs) keys.push_back({spec.key.c_str(), spec.value.data(), spec.value.size()});
  const tosaic_delegate_program program{sizeof program,
                                        options.name.c_str(),
                                        payload.null() ? "" : static_cast<const void*>(payload.data()),
                                        payload.size(),
                                        keys.data(),
                                        keys.size(),
                                        options.data ? look_up : nullptr,
                                        const_cast<NamedData*>(options.data)};
  Trace trace = std::make_shared<Listeners>(Listeners{options.trace, options.told});
  const tosaic_delegate_host host = host_with(trace);
  const tosaic_delegate_options how{sizeof how, static_cast<std::uint32_t>(options.threads), options.reference,
                                    options.profile, choice.device.c_str()};
  tosaic_delegate_error why = empty_error();
  tosaic_delegate* made = nullptr;
  const int said = api.open(api.user, &program, &host, &how, &made, &why);
  if (status) *status = said;
  if (!said) return of({&api, choice.fewer_tensors_hint}, made, std::move(trace));
  Diagnostic refused = contract::diagnostic_of(said, why);
  if (refused.place.file.empty()) refused.place.file = options.name;
  return refused;
}

Result<OpenDelegate> OpenDelegate::of(const Close& close, tosaic_delegate* made, Trace trace) {
  OpenDelegate open(close, made);
  open.trace_ = std::move(trace);
  open.info_.struct_bytes = sizeof open.info_;
  tosaic_delegate_error why = empty_error();
  if (const int said = close.api->describe(made, &open.info_, &why)) return contract::diagnostic_of(said, why);
  return open;
}

Result<std::optional<OpenDelegate>> OpenDelegate::clone() const {
  const tosaic_delegate_api* api = delegate_.get_deleter().api;
  const tosaic_delegate_host host = host_with(trace_);
  tosaic_delegate_error why = empty_error();
  tosaic_delegate* made = nullptr;
  const int said = api->clone(delegate_.get(), &host, &made, &why);
  if (said == TOSAIC_DELEGATE_UNSUPPORTED) return std::optional<OpenDelegate>();
  if (said) return contract::diagnostic_of(said, why);
  TOSAIC_TRY(OpenDelegate open, of(delegate_.get_deleter(), made, trace_));
  return std::optional<OpenDelegate>(std::move(open));
}

Status OpenDelegate::reset() {
  tosaic_delegate_error why = empty_error();
  if (const int said = delegate_.get_deleter().api->reset(delegate_.get(), &why))
    return contract::diagnostic_of(said, why);
  return {};
}

Status OpenDelegate::measure(bool on) {
  tosaic_delegate_error why = empty_error();
  if (const int said = delegate_.get_deleter().api->measure(delegate_.get(), on ? 1 : 0, &why))
    return contract::diagnostic_of(said, why);
  return {};
}

Status OpenDelegate::check(std::span<const TensorType> types) const {
  const std::size_t slots = inputs().size() + outputs().size();
  if (types.size() != slots) {
    Diagnostic why =
        error("delegate.arguments",
              fmt::format("the payload takes {} inputs and gives {} outputs, the program passes {} tensors",
                          inputs().size(), outputs().size(), types.size()));
    const char* const hint = delegate_.get_deleter().fewer_tensors_hint;
    if (hint && types.size() < slots) return std::move(why).hint(hint);
    return why;
  }
  for (std::size_t i = 0; i < types.size(); ++i) {
    const std::string why = contract::disagreement(info_.tensors[i], contract::tensor_of(types[i], nullptr));
    if (!why.empty())
      return error("delegate.arguments", fmt::format("{}: {}", contract::place_in_call(i, inputs().size()), why));
  }
  return {};
}

Result<std::vector<Shape>> OpenDelegate::sizes(std::span<const tosaic_delegate_tensor> given) {
  std::vector<std::vector<std::int64_t>> dims;
  std::vector<std::int64_t*> slots;
  for (const tosaic_delegate_tensor_info& info : outputs()) dims.emplace_back(info.rank);
  for (auto& d : dims) slots.push_back(d.data());
  tosaic_delegate_error why = empty_error();
  if (const int said =
          delegate_.get_deleter().api->sizes(delegate_.get(), given.data(), given.size(), slots.data(), &why))
    return contract::diagnostic_of(said, why);
  return std::vector<Shape>(dims.begin(), dims.end());
}

Status OpenDelegate::execute(std::span<const tosaic_delegate_tensor> tensors, int* status) {
  tosaic_delegate_error why = empty_error();
  const int said = delegate_.get_deleter().api->execute(delegate_.get(), tensors.data(), tensors.size(), &why);
  if (status) *status = said;
  if (said) return contract::diagnostic_of(said, why);
  return {};
}

Status OpenDelegate::fetch(std::size_t output, std::span<std::byte> to) {
  tosaic_delegate_error why = empty_error();
  if (const int said = delegate_.get_deleter().api->fetch(delegate_.get(), static_cast<std::uint32_t>(output),
                                                          to.data(), to.size(), &why))
    return contract::diagnostic_of(said, why);
  return {};
}

tosaic_delegate_profile OpenDelegate::profile() const {
  tosaic_delegate_profile profile{};
  profile.struct_bytes = sizeof profile;
  if (delegate_.get_deleter().api->profile(delegate_.get(), &profile, nullptr)) return {};
  return profile;
}

}  // namespace tosaic::runtime
