// SPDX-License-Identifier: Apache-2.0
#include "report/mlia_performance.h"

#include <fmt/format.h>
#include <algorithm>

namespace tosaic::reporting {
namespace {

using Element = simdjson::dom::element;

constexpr std::string_view layer_kind = "vela_performance_layer";  // MLIA's own name for a row of Vela's table

auto asked(const Element& of, std::string_view member) { return of.at_pointer(fmt::format("/{}", member)); }

double sum(const std::vector<Element>& rows, std::string_view member) {
  double total = 0;
  for (const Element& row : rows) total += number(row, member);
  return total;
}

// Of exported names in a layer, separated by blanks, those that are entities.
std::vector<std::string> parents(const std::string& names, const std::set<std::string>& exported) {
  std::vector<std::string> found;
  for (std::size_t at = 0; at < names.size();) {
    const std::size_t end = std::min(names.find(' ', at), names.size());
    const std::string name = names.substr(at, end - at);
    if (exported.contains(name) && std::ranges::find(found, name) == found.end()) found.push_back(name);
    at = end + 1;
  }
  for (std::string& name : found) name = "source_operator/" + name;
  return found;
}

void write_unavailable(JsonWriter& out, std::string_view name, std::string_view unit, std::string_view reason) {
  out.object([&] {
    out.member("name", name);
    out.member("unit", unit);
    out.member("availability", "unavailable");
    out.member("reason", reason);
  });
}

void write_layer_entity(JsonWriter& out, const std::string& id, const Element& layer, const Measured& of) {
  out.object([&] {
    out.member("id", id);
    out.member("kind", layer_kind);
    out.member("name", text(layer, "operation"));
    out.member_unless_empty("placement", text(layer, "processor"));
    out.member_unless_empty("parent_ids", parents(text(layer, "node"), of.exported));
    out.object("attributes", [&] {
      out.member("layer_name", text(layer, "name"));
      out.member_unless_empty("tosa", text(layer, "tosa"));
      out.member_unless_empty("aten", text(layer, "aten"));
      out.member_unless_empty("module", text(layer, "module"));
    });
    out.member_unless_empty("stack_trace", text(layer, "place"));
  });
}

void write_breakdown(JsonWriter& out, const std::string& id, const Element& layer) {
  out.object([&] {
    out.member("entity_id", id);
    out.array("metrics", [&] {
      write_metric(out, "op_cycles", number(layer, "cycles"), "cycles", "sum");
      write_metric(out, "npu_cycles", number(layer, "npu_cycles"), "cycles", "sum");
      write_metric(out, "sram_usage", number(layer, "staging_bytes"), "bytes", "max");
      write_metric(out, "mac_count", number(layer, "macs"), "count", "sum");
      write_metric(out, "util_mac_percentage", number(layer, "utilisation_percent"), "percent");
    });
  });
}

void write_metrics(JsonWriter& out, const std::vector<Element>& estimates, const std::vector<Element>& layers,
                   const Measured& of) {
  double seconds = 0, sram = 0, peak = 0, weighted = 0;
  bool timed = true;
  for (const Element& e : estimates) {
    const double rate = number(e, "inferences_per_second");
    timed = timed && rate > 0;
    seconds += rate > 0 ? 1 / rate : 0;
    sram = std::max(sram, number(e, "sram_bytes"));  // one delegate after another has it
  }
  for (const Element& layer : layers) {
    peak = std::max(peak, number(layer, "staging_bytes"));
    weighted += number(layer, "staging_bytes") * number(layer, "cycles");
  }
  const double cycles = sum(estimates, "cycles"), npu = sum(layers, "npu_cycles"), of_layers = sum(layers, "cycles");
  write_metric(out, "total_cycles", cycles, "cycles");
  write_metric(out, "npu_cycles", npu, "cycles");
  write_metric(out, "nn_macs", sum(estimates, "macs"), "operations");
  write_metric(out, "model_size", of.model_bytes, "bytes");
  write_metric(out, "sram_memory_area_size", sram, "bytes");
  write_metric(out, "dram_memory_area_size", sum(estimates, "dram_bytes"), "bytes");
  write_metric(out, "flash_memory_area_size", sum(estimates, "flash_bytes"), "bytes");
  for (const char* memory : {"sram", "dram", "flash"})
    write_metric(out, fmt::format("{}_total_bytes", memory), sum(estimates, fmt::format("{}_traffic_bytes", memory)),
                 "bytes");
  // Those that the schema's consumers look for, each as a number or with the reason for its absence.
  write_metric(out, "accelerator_operator_percentage", of.percentage, "%");
  if (timed) {
    write_metric(out, "inferences_per_second", 1 / seconds, "inferences/s");
    write_metric(out, "inference_time", 1e3 * seconds, "ms");
  } else {
    write_unavailable(out, "inferences_per_second", "inferences/s", "Vela did not estimate it for every delegate.");
    write_unavailable(out, "inference_time", "ms", "Vela did not estimate it for every delegate.");
  }
  if (cycles > 0)
    write_metric(out, "target_utilization", 100 * npu / cycles, "%");
  else
    write_unavailable(out, "target_utilization", "%", "Vela estimated no cycles.");
  if (of_layers > 0) {
    write_metric(out, "peak_activation_memory", peak, "bytes");
    write_metric(out, "average_memory", weighted / of_layers, "bytes");
  } else {
    write_unavailable(out, "peak_activation_memory", "bytes", "Vela listed no layers with cycles.");
    write_unavailable(out, "average_memory", "bytes", "Vela listed no layers with cycles.");
  }
  write_unavailable(out, "cpu_utilization", "%", "The time of kernels on the CPU is not estimated.");
  write_unavailable(out, "model_weight_memory", "bytes", "Weights are in flash_memory_area_size, with commands.");
}

}  // namespace

std::string text(const Element& of, std::string_view member) {
  std::string_view found;
  return asked(of, member).get(found) ? std::string() : std::string(found);
}

double number(const Element& of, std::string_view member) {
  double found = 0;
  return asked(of, member).get(found) ? 0 : found;
}

std::vector<Element> items(const Element& of, std::string_view member) {
  simdjson::dom::array found;
  if (asked(of, member).get(found)) return {};
  return {found.begin(), found.end()};
}

void write_metric(JsonWriter& out, std::string_view name, double value, std::string_view unit,
                  std::string_view aggregation) {
  out.object([&] {
    out.member("name", name);
    out.member("value", value);
    out.member("unit", unit);
    out.member_unless_empty("aggregation", aggregation);
  });
}

void write_performance(JsonWriter& out, const std::vector<Element>& estimates, const Measured& of,
                       const std::function<void()>& write_entities) {
  std::vector<Element> layers;
  for (const Element& e : estimates)
    for (const Element& layer : items(e, "layers")) layers.push_back(layer);
  const auto id = [](std::size_t i) { return fmt::format("{}/{}", layer_kind, i); };
  out.object([&] {
    out.member("kind", "performance");
    out.member("status", of.percentage < 100 ? "partial" : "ok");
    out.member("producer", "vela");
    out.member("mode", "predicted");
    if (of.percentage < 100)
      out.array("warnings", [&] { out.item("the figures are of the NPU alone, and some operators run on the CPU"); });
    out.array("metrics", [&] { write_metrics(out, estimates, layers, of); });
    out.array("breakdowns", [&] {
      for (std::size_t i = 0; i < layers.size(); ++i) write_breakdown(out, id(i), layers[i]);
    });
    out.array("entities", [&] {
      write_entities();
      for (std::size_t i = 0; i < layers.size(); ++i) write_layer_entity(out, id(i), layers[i], of);
    });
    out.array("entity_kinds", [&] {
      out.object([&] {
        out.member("id", layer_kind);
        out.array("parent_kinds", [&] { out.item("source_operator"); });
      });
    });
  });
}

}  // namespace tosaic::reporting
