// SPDX-License-Identifier: Apache-2.0
// A target: what it accepts (a TOSA specification) and what it emits. One file per target defines one function
// `std::vector<Target> target_<file>()`; CMake lists them.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "ir/graph.h"
#include "ops/tosa_op.h"
#include "tosaic/estimate.hpp"
#include "tosaic/options.hpp"

namespace tosaic {

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
  std::vector<std::pair<std::string, Bytes>> files = {};  // what that compiler was given and wrote
};

struct Target {
  std::string name;  // as the user writes it: "tosa-int"
  std::string summary;
  std::string family;  // what it is called together with its like: "Ethos-U"
  tosa::Spec spec;
  std::string delegate_id;  // who runs the payload: "TOSABackend"
  // Last rewrites, for what the device does cheaply; the same results bit for bit. nullptr: none.
  void (*shape)(Graph& tosa) = nullptr;
  // The payload of one lowered and tidied region. `options` have passed those below, their defaults filled in.
  Result<Emitted> (*emit)(const Graph& tosa, const Target& target, const Options& options) = nullptr;
  std::vector<OptionInfo> options = {};  // that this target alone, or its family, understands
  // The payload is another compiler's work, and our runtime says what it computes: the finished program is tried.
  bool self_check = false;
  bool integer() const { return spec.has(tosa::Feature::pro_int) && !spec.has(tosa::Feature::pro_fp); }
};

const std::vector<Target>& all_targets();
// By name, with the specification replaced when `spec` is not empty. An unknown name lists the nearest ones.
Result<Target> find_target(const std::string& name, const std::string& spec);

}  // namespace tosaic
