// SPDX-License-Identifier: Apache-2.0
#include "api/inspect_ethos_u.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <memory>
#include <optional>

#include "tosaic/ethosu.h"

namespace tosaic {
namespace {

struct Listing {
  tosaic_ethosu_info info{};
  std::vector<std::string> lines;
  std::map<std::string, int> operations;  // how many of each
};

// A line is "0x0001a4 NAME             TEXT", the name in a column of 16; waits and stops have no text.
std::optional<NpuOperation> operation_in(const std::string& line) {
  constexpr std::size_t name_at = 9, name_width = 16, text_at = name_at + name_width + 1;
  if (line.size() <= text_at) return {};
  const std::string name = line.substr(name_at, name_width);
  return NpuOperation{line.substr(0, name_at - 1), name.substr(0, name.find_last_not_of(' ') + 1),
                      line.substr(text_at)};
}

Result<Listing> listing_of(const vela::Payload& payload, const std::map<std::string, Bytes>& data,
                           const InspectOptions& options) {
  TOSAIC_TRY(const Bytes commands, vela::resolve(payload.commands, "commands", &data));
  tosaic_ethosu_stream* opened = nullptr;
  tosaic_ethosu_error why{};
  if (tosaic_ethosu_open(commands.data(), commands.size(), nullptr, 0, nullptr, &opened, &why))
    return error(why.code, why.message);
  const std::unique_ptr<tosaic_ethosu_stream, void (*)(tosaic_ethosu_stream*)> stream(opened, tosaic_ethosu_close);
  Listing listing;
  const auto add = [](void* to, const char* line) { static_cast<std::vector<std::string>*>(to)->emplace_back(line); };
  if (tosaic_ethosu_describe(opened, &listing.info, 0, add, &listing.lines))
    return internal_error("a stream that opened cannot be described");
  for (const std::string& line : listing.lines)
    if (const auto operation = operation_in(line)) ++listing.operations[operation->name];
  if (options.registers) {
    listing.lines.clear();
    tosaic_ethosu_describe(opened, &listing.info, 1, add, &listing.lines);
  }
  return listing;
}

// What memory regions are for, by the numbers that Vela gives them.
std::string purpose(std::size_t region, const vela::Payload& payload) {
  if (region == 0) return "constants";
  if (region == vela::scratch_region) return "scratch";
  const auto lies = [&](const std::vector<vela::Tensor>& tensors) {
    return std::any_of(tensors.begin(), tensors.end(),
                       [&](const vela::Tensor& t) { return t.region == static_cast<std::int32_t>(region); });
  };
  return lies(payload.inputs) ? "inputs" : lies(payload.outputs) ? "outputs" : region == 2 ? "fast scratch" : "other";
}

// Bytes of each region: what the payload states, what its tensors need, what the commands reach.
std::vector<std::uint64_t> region_sizes(const vela::Payload& payload, const Listing* listing) {
  std::vector<std::uint64_t> sizes(TOSAIC_ETHOSU_REGIONS);
  if (listing) sizes.assign(std::begin(listing->info.region_bytes), std::end(listing->info.region_bytes));
  if (!payload.weights.external()) sizes[0] = payload.weights.data.size();
  sizes[vela::scratch_region] = payload.scratch_bytes;
  for (const auto* tensors : {&payload.inputs, &payload.outputs})
    for (const vela::Tensor& t : *tensors)
      sizes[static_cast<std::size_t>(t.region)] =
          std::max(sizes[static_cast<std::size_t>(t.region)], static_cast<std::uint64_t>(t.offset + t.bytes()));
  return sizes;
}

std::string blob_text(const vela::Blob& blob) {
  return blob.external() ? "outside, key " + blob.external_key : fmt::format("{} bytes", blob.data.size());
}
std::string blob_json(const vela::Blob& blob) {
  return blob.external() ? fmt::format("{{\"external\": \"{}\"}}", blob.external_key)
                         : fmt::format("{{\"bytes\": {}}}", blob.data.size());
}

class Description {
 public:
  Description(const vela::Payload& payload, const std::vector<ProgramTensor>& program, const std::string& indent)
      : payload_(payload), program_(program), indent_(indent) {}

  void line(const std::string& what, const std::string& text) {
    text_ += fmt::format("{}{:<12}{}\n", indent_, what, text);
  }
  void field(const std::string& name, const std::string& json) {
    json_ += fmt::format("{}\"{}\": {}", json_.empty() ? "" : ", ", name, json);
  }

  void tensors(const char* what, const std::vector<vela::Tensor>& list, std::size_t first) {
    std::vector<std::string> items;
    for (std::size_t i = 0; i < list.size(); ++i) {
      const vela::Tensor& t = list[i];
      const std::string shape = fmt::format("{}", fmt::join(t.shape, "x"));
      std::string text = fmt::format("{}, {} byte{} each, at {}:{:#x}", shape, t.element_bytes,
                                     t.element_bytes == 1 ? "" : "s", t.region, t.offset);
      std::string json =
          fmt::format("{{\"shape\": [{}], \"element_bytes\": {}, \"bytes\": {}, \"region\": {}, \"offset\": {}",
                      fmt::join(t.shape, ", "), t.element_bytes, t.bytes(), t.region, t.offset);
      if (first + i < program_.size()) {
        const ProgramTensor& p = program_[first + i];
        text += ": " + p.type;
        json += fmt::format(", \"type\": \"{}\"", p.type);
        if (p.has_scale) {
          text += fmt::format(", scale {:.6g}, zero point {}", p.scale, p.zero_point);
          json += fmt::format(", \"scale\": {}, \"zero_point\": {}", p.scale, p.zero_point);
        }
      }
      line(fmt::format("{} {}", what, i), text);
      items.push_back(json + "}");
    }
    field(fmt::format("{}s", what), fmt::format("[{}]", fmt::join(items, ", ")));
  }

  void memory(const Listing* listing) {
    const auto sizes = region_sizes(payload_, listing);
    std::vector<std::string> texts, items;
    for (std::size_t r = 0; r < sizes.size(); ++r) {
      if (sizes[r] == 0) continue;
      texts.push_back(fmt::format("{} {} {} bytes", r, purpose(r, payload_), sizes[r]));
      items.push_back(
          fmt::format("{{\"region\": {}, \"purpose\": \"{}\", \"bytes\": {}}}", r, purpose(r, payload_), sizes[r]));
    }
    line("regions", fmt::format("{}", fmt::join(texts, ", ")));
    field("regions", fmt::format("[{}]", fmt::join(items, ", ")));
  }

  void product(const tosaic_ethosu_info& info) {
    const std::string name = fmt::format("ethos-u{}-{}", info.product, info.macs);
    line("product", fmt::format("{} (COP{}, CONFIG {:#010x}, ID {:#010x})", name, info.container_version,
                                info.config_word, info.id_word));
    field("product", fmt::format("\"{}\"", name));
    field("container", fmt::format("\"COP{}\"", info.container_version));
    field("config_word", std::to_string(info.config_word));
    field("id_word", std::to_string(info.id_word));
  }

  void operations(const Listing& listing, const InspectOptions& options) {
    std::vector<std::string> texts, items;
    for (const auto& [name, n] : listing.operations) {
      texts.push_back(fmt::format("{} {}", n, name));
      items.push_back(fmt::format("{}: {}", json_quote(name), n));
    }
    line("operations",
         fmt::format("{} in {} commands: {}", listing.info.operations, listing.info.commands, fmt::join(texts, ", ")));
    field("commands", std::to_string(listing.info.commands));
    field("operations", fmt::format("{{{}}}", fmt::join(items, ", ")));
    if (!options.disassemble && !options.registers) return;
    std::vector<std::string> quoted;
    for (const std::string& l : listing.lines) {
      text_ += indent_ + l + "\n";
      quoted.push_back(json_quote(l));
    }
    field("listing", fmt::format("[{}]", fmt::join(quoted, ", ")));
  }

  Inspection done() { return {std::move(text_), "{" + json_ + "}"}; }

 private:
  const vela::Payload& payload_;
  const std::vector<ProgramTensor>& program_;
  const std::string& indent_;
  std::string text_, json_;
};

}  // namespace

Result<Inspection> inspect_ethos_u(const vela::Payload& payload, const std::vector<ProgramTensor>& tensors,
                                   const std::map<std::string, Bytes>& data, const InspectOptions& options,
                                   const std::string& indent) {
  auto listing = listing_of(payload, data, options);
  if (!listing.ok() && (options.disassemble || options.registers)) return listing.error();
  Description out(payload, tensors, indent);
  if (listing.ok()) out.product(listing->info);
  out.line("cmd_data", blob_text(payload.commands));
  out.line("weight_data", blob_text(payload.weights));
  out.field("cmd_data", blob_json(payload.commands));
  out.field("weight_data", blob_json(payload.weights));
  out.field("scratch_bytes", std::to_string(payload.scratch_bytes));
  out.tensors("input", payload.inputs, 0);
  out.tensors("output", payload.outputs, payload.inputs.size());
  out.memory(listing.ok() ? &*listing : nullptr);
  if (listing.ok()) {
    out.operations(*listing, options);
  } else {
    out.line("unreadable", listing.error().message);
    out.field("error", json_quote(listing.error().message));
  }
  return out.done();
}

Result<std::vector<NpuOperation>> npu_operations(const vela::Payload& payload,
                                                 const std::map<std::string, Bytes>& data) {
  TOSAIC_TRY(const Listing listing, listing_of(payload, data, {}));
  std::vector<NpuOperation> operations;
  for (const std::string& line : listing.lines)
    if (auto operation = operation_in(line)) operations.push_back(*std::move(operation));
  return operations;
}

}  // namespace tosaic
