// SPDX-License-Identifier: Apache-2.0
// A target: what it accepts (a TOSA specification) and what it emits. One file per target defines one function
// `std::vector<Target> target_<file>()`; CMake lists them.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "ir/graph.h"
#include "ops/tosa_op.h"
#include "targets/vela.h"
#include "targets/vgf_converter.h"

namespace tosaic {

struct EmitOptions {
  VelaOptions vela;
  VgfOptions vgf;
  std::string external_commands, external_weights;  // .ptd files that take these instead of the payload
};

// A piece of a payload that lies in a .ptd file under a key.
struct ExternalData {
  std::string file, key;
  Bytes data;
};

struct Emitted {
  Bytes payload;
  std::optional<NpuEstimate> estimate;
  double peer_seconds = 0;  // spent in a compiler that is not ours
  std::vector<ExternalData> external = {};
};

struct Target {
  std::string name;  // as the user writes it: "tosa-int"
  std::string summary;
  tosa::Spec spec;
  std::string delegate_id;  // who runs the payload: "TOSABackend"
  // Last rewrites, for what the device does cheaply; the same results bit for bit. nullptr: none.
  void (*shape)(Graph& tosa) = nullptr;
  // The payload of one lowered and tidied region.
  Result<Emitted> (*emit)(const Graph& tosa, const Target& target, const EmitOptions& options) = nullptr;
  // The payload is another compiler's work, and our runtime says what it computes: the finished program is tried.
  bool self_check = false;
  bool integer() const { return spec.has(tosa::Feature::pro_int) && !spec.has(tosa::Feature::pro_fp); }
};

const std::vector<Target>& all_targets();
// By name, with the specification replaced when `spec` is not empty. An unknown name lists the nearest ones.
Result<Target> find_target(const std::string& name, const std::string& spec);

}  // namespace tosaic
