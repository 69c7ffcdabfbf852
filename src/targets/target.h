// SPDX-License-Identifier: Apache-2.0
// A target: what it accepts (a TOSA specification) and what it emits. One file per target defines one function
// `std::vector<Target> target_<file>()`; CMake lists them.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/rope.h"
#include "ir/graph.h"
#include "ir/rewrite_trace.h"
#include "ops/definitions/tosa_op.h"
#include "tosaic/estimate.hpp"
#include "tosaic/options.hpp"

namespace tosaic {

// A piece of a payload that lies outside it under a key: in that .ptd file, or in the .pte where `file` is empty.
struct ExternalData {
  std::string file, key;
  Bytes data;
};

struct Emitted {
  Rope payload;
  std::optional<NpuEstimate> estimate;
  double scratch_bytes = 0;  // that whoever runs it lends it
  double peer_seconds = 0;   // spent in a compiler that is not ours
  std::vector<ExternalData> external = {};
  std::vector<std::pair<std::string, std::string>> specs = {};  // what the delegate is told, by key
  std::vector<std::pair<std::string, Bytes>> files = {};        // what that compiler was given and wrote
  std::vector<Diagnostic> notes = {};                           // what was chosen, for the user
};

// Where a payload is going.
struct Destination {
  std::string number;            // "_1" of one region of several, for the names of files that stay
  bool several_methods = false;  // of one program: weights that lie outside payloads are stored once for all
};

// What can be written of a delegate in addition to its TOSA graph.
struct EmitKind {
  std::string name;      // "vgf": the word in --emit vgf=FILE
  std::string what;      // "VGF file"
  std::string sentence;  // for the command line's help
  // nullptr: the payload itself. Else a folder of Emitted::files, which have such names.
  bool (*is_file_in_folder)(std::string_view name) = nullptr;
  std::string option;  // of the target: the folder that keeps the files also when emitting fails
};

// How weights of floats that are quantised values of 4 or 8 bits, times scales, reach what runs the payload.
enum class QuantisedWeights {
  become_floats,
  stay,
  packed,  // they stay, and those of 4 bits are two in a byte, in the words of TOSA without int4
};

struct Target {
  std::string name;  // as the user writes it: "tosa-int"
  std::string summary;
  std::string family;  // what it is called together with its like: "Ethos-U"
  tosa::Spec spec;
  std::string delegate_id;  // who runs the payload: "TOSABackend"
  // Last rewrites, for what the device does cheaply; the same results bit for bit. nullptr: none.
  void (*shape)(Graph& tosa, const Rewrites& rewrite) = nullptr;
  // The payload of one lowered and tidied region. `options` have passed those below, their defaults filled in.
  Result<Emitted> (*emit)(const Graph& tosa, const Target& target, const Options& options,
                          const Destination& to) = nullptr;
  // A graph of the same values, each with the type in which the device keeps it, where that is narrower than the
  // graph's: constants have what is left of them. nullptr: all are kept as the graph has them.
  Result<Graph> (*kept)(const Graph& tosa, const Options& options) = nullptr;
  std::string narrowing = {};    // the option that makes floats narrower so
  std::string keep_option = {};  // that names what then stays as it is
  // Can it be made here, with these options? Asked before anything is computed. nullptr: always.
  Status (*ready)(const Target& target, const Options& options) = nullptr;
  std::vector<OptionInfo> options = {};  // that this target alone, or its family, understands
  std::optional<EmitKind> emits = {};
  std::string device = {};  // what runs the payload in addition to the CPU: "vulkan", "ethos-u"; empty: nothing
  bool simulated = false;   // that device is simulated here, and the target's name says which one it is
  QuantisedWeights quantised_weights = QuantisedWeights::become_floats;
  bool estimates = false;        // who makes its payloads says how many cycles they take
  bool payload_is_tosa = false;  // of another version than 1.0: what `--emit tosa=` gives, too
  bool tabled = true;            // has columns in docs/operators.md; older forms of a target that has them have none
  bool varies = false;           // its payloads run at any sizes within bounds
  bool in_place = false;         // who runs its payloads takes one memory for an input and an output
  bool keeps_variables = false;  // who runs its payloads keeps VARIABLEs from run to run
  bool becomes_c = false;        // on the device; the payload is for trying it here
  // The payload is another compiler's work, and our runtime says what it computes: the finished program is tried.
  bool self_check = false;
  bool keeps_quantised_weights() const { return quantised_weights != QuantisedWeights::become_floats; }
  bool integer() const { return spec.has(tosa::Feature::pro_int) && !spec.has(tosa::Feature::pro_fp); }
};

const std::vector<Target>& all_targets();
// By name, with the specification replaced when `spec` is not empty. An unknown name lists the nearest ones.
Result<Target> find_target(const std::string& name, const std::string& spec);

}  // namespace tosaic
