// SPDX-License-Identifier: Apache-2.0
// The C++ API of tosaic: compile PyTorch programs, explain what a target takes, inspect artifacts, run them.
// The command-line tool is a thin user of this header. No function throws or prints; messages go to the sink.
//
//   tosaic::CompileRequest request;
//   request.model = "digits.pt2";
//   request.target = "tosa-int";
//   request.calibrate = "digits_samples.npz";
//   request.output = "digits.pte";
//   tosaic::CompileOutcome outcome = tosaic::compile(request, {});
//   if (outcome.error) std::cerr << outcome.error->text;
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tosaic {

// A diagnostic, ready to show.
struct Message {
  enum class Level : std::uint8_t { note, warning, error } level = Level::error;
  std::string code;       // stable: "pt2.not-a-zip"
  std::string text;       // several lines: place, message, quoted source, notes, help
  std::string coloured;   // the same with ANSI colours
  std::string json;       // the same as one JSON object
  bool internal = false;  // a defect of tosaic (exit code 3), not of the input
};
using MessageSink = std::function<void(const Message&)>;

// ---- compile

enum class Quantise : std::uint8_t { automatic, int8, int16x8 };  // automatic: int8 when the target takes integers only

struct CompileRequest {
  std::string model;                // .pt2
  std::string target = "tosa-int";  // a name of `targets()`
  std::string tosa_spec;            // replaces the target's: "TOSA-1.0+INT+int16"; empty: the target's own
  std::string calibrate;            // .npz, .npy or a folder of them; empty: the sample inputs stored in the model
  Quantise quantise = Quantise::automatic;
  bool minmax_observer = false;     // else the range with the least squared error
  bool per_tensor_weights = false;  // else one scale per output channel
  bool quantised_io = false;        // integer inputs and outputs, no quantise/dequantise around the delegate
  bool require_full_delegation = false;
  int threads = 0;     // of calibration; 0: all cores. Never changes the result
  std::string output;  // .pte to write; empty: none
  // What else to write, kind -> path: "tosa" (the delegates' TOSA), "vgf" (target vgf), "vela" (Ethos-U: a folder that
  // keeps what Vela was given and wrote), "header" (the .pte as a C array, aligned to 16 bytes). Several delegates make
  // several files: net.vgf becomes net_0.vgf, net_1.vgf.
  std::map<std::string, std::string> emit;
  // Ethos-U only: the vela executable (empty: found on PATH), its configuration (empty: the product's default) and
  // further options for it.
  std::string vela, system_config, memory_mode, vela_config;
  std::vector<std::string> vela_flags;
  // Target vgf: "sdk", or the path of Arm's model converter, instead of our own; and flags for it.
  std::string vgf_converter;
  std::vector<std::string> vgf_flags;
  // Ethos-U: .ptd files that take the commands or the weights instead of the .pte; both may name the same file.
  std::string external_commands, external_weights;
  // Ethos-U: run the finished program on one sample, its delegates simulated, and compare them with their TOSA graphs
  // bit for bit; a difference is an error (self-check.differs).
  bool self_check = true;
  std::string report;                    // JSON manifest to write
  std::vector<std::string> print_after;  // stages whose graph goes to CompileOutcome::printed
  bool dry_run = false;                  // stop after lowering; samples are made up where none are given
  std::function<void(std::size_t done, std::size_t total)> progress;  // of calibration
};

struct NodePlacement {
  std::string name, op, place;      // node in the exported graph, "aten.relu.default", "model.py:6"
  int delegate = -1;                // -1: runs outside any delegate
  std::string reason_code, reason;  // why it stays outside: one line, and the whole message
  std::string reason_text;
  // Between float and integer, or int64 and int32, at the border of integer tensors: no node of the user's.
  bool conversion = false;
};

// One NPU operator as Vela's estimator sees it.
struct NpuLayer {
  std::string name;                       // of the TOSA tensor that it writes
  std::string operation;                  // Vela's name of the operation: "Conv2D"
  std::string processor;                  // "NPU" or "CPU"
  std::string tosa, aten, module, place;  // "tosa.conv2d", "aten.conv2d.default", "features.3.conv", "model.py:6"
  double cycles = 0, npu_cycles = 0, macs = 0, utilisation_percent = 0, staging_bytes = 0;
};

// Vela's figures. It calls them estimates; they are not measurements.
struct NpuEstimate {
  std::string accelerator, system_config, memory_mode;
  double cycles = 0, inferences_per_second = 0, macs = 0;
  double sram_bytes = 0, dram_bytes = 0, flash_bytes = 0;                          // memory used
  double sram_traffic_bytes = 0, dram_traffic_bytes = 0, flash_traffic_bytes = 0;  // read and written per inference
  std::size_t npu_operators = 0, cpu_operators = 0;
  std::vector<NpuLayer> layers;
};

struct CompileOutcome {
  std::optional<Message> error;  // nothing was written
  std::vector<NodePlacement> nodes;
  std::size_t delegated = 0, delegates = 0;
  std::size_t conversions = 0;                                // of `nodes`
  std::vector<std::pair<std::string, double>> stage_seconds;  // in order
  std::size_t model_bytes = 0, output_bytes = 0, payload_bytes = 0, tosa_operators = 0;
  double peer_seconds = 0;             // of the stage `emit`, in a compiler that is not ours (Vela, model-converter)
  std::vector<NpuEstimate> estimates;  // Ethos-U: one per delegate
  std::size_t samples = 0;             // used for calibration
  std::optional<double> self_check_seconds;  // Ethos-U: it was done for every delegate, and all were equal
  std::string printed;                       // text of the stages in print_after
  std::string manifest;                      // the JSON that `report` holds
};

CompileOutcome compile(const CompileRequest& request, const MessageSink& sink);

struct TargetInfo {
  std::string name, summary, tosa_spec;
};
std::vector<TargetInfo> targets();

// ---- inspect

struct InspectOutcome {
  std::optional<Message> error;
  std::string text;  // for people
  std::string json;
};
struct InspectOptions {
  bool disassemble = false;       // Ethos-U: one line per operation
  bool registers = false;         // and one per command
  std::vector<std::string> data;  // .ptd files with what the program keeps outside itself
};
// .pt2, .tosa, .vgf, .pte, .ptd, .npy, .npz, an Ethos-U payload or command stream, what Vela wrote (.npz), or our own
// graph text; told apart by content.
InspectOutcome inspect(const std::string& file, const InspectOptions& options = {});

// ---- extract

struct ExtractRequest {
  std::string program;            // .pte
  std::string output_dir;         // made if missing
  std::vector<std::string> data;  // .ptd files with what the program keeps outside itself
  bool replace = false;           // files that hold something else
};
struct Extracted {
  std::string file, method;
  std::size_t delegate = 0;  // its number in the method
  std::string id, format;  // "VgfBackend"; "vgf", "tosa", "vela" (an Ethos-U payload, with all that it needs) or "bin"
  std::size_t bytes = 0;
};
struct ExtractOutcome {
  std::optional<Message> error;  // nothing was written, unless the disk failed half way
  std::vector<Extracted> files;
};
// What every delegate of a program runs, one file each.
ExtractOutcome extract(const ExtractRequest& request);

// ---- convert

struct ConvertRequest {
  std::string input;   // .tosa, .vgf or graph text
  std::string output;  // its ending says what is made: .vgf or .tosa
  std::string vgf_converter;
  std::vector<std::string> vgf_flags;  // both as in CompileRequest
  int repeat = 1;
};
struct ConvertOutcome {
  std::optional<Message> error;
  std::vector<double> seconds;  // of each repetition, from the input's bytes to the output's
  double peer_seconds = 0;      // of the last one, in Arm's converter
  std::size_t bytes = 0, operators = 0;
};
ConvertOutcome convert(const ConvertRequest& request);

// ---- run

struct RunRequest {
  std::string program;              // .pte, .tosa, .vgf or .pt2 (float, on the CPU executor)
  std::vector<std::string> inputs;  // .npy, in order; empty: zeros for a `.tosa`/.pte, stored samples for a .pt2
  std::string output_dir;           // output_N.npy go here, numbers as arrays of rank 0; empty: none written
  std::string executor = "cpu";     // "cpu" or "interp", the reference interpreter
  std::string method = "forward";   // of a .pte
  // "cpu" and "vulkan": where VGF files run, "auto" is the CPU; "ethos-u": insist on a program whose delegates run on
  // the simulated NPU; "ethos-u55-128": on that very NPU.
  std::string device = "auto";
  std::string vulkan_device;                      // an index or a part of a name; empty: the best one
  std::vector<std::string> data;                  // .ptd files with what the program keeps outside itself
  std::function<void(const std::string&)> trace;  // one line per NPU operation with its result's checksum
  bool level_8k = false;                          // hold a .tosa to the limits of TOSA's level 8K
  int threads = 0;
  int repeat = 1;  // runs, after one that warms up when more than one
};

struct RunOutcome {
  std::optional<Message> error;
  std::vector<std::string> input_types, output_types;  // "1x8x8x1xf32"; of outputs also "int", "None", ...
  std::vector<std::string> output_values;  // as JSON: what an output that is no tensor holds; empty for tensors
  std::vector<std::string> written;        // files, one per output; empty for None and texts
  std::string device;  // what it ran on: "cpu", "interp", "vulkan: ...", "ethos-u55-128 (simulated)"
  double load_seconds = 0;
  std::vector<double> run_seconds;
  std::vector<double> device_seconds;  // the same by the device's own clock; empty: it has none
};
RunOutcome run(const RunRequest& request, const MessageSink& sink);

// ---- operators

struct OperatorInfo {
  std::string name;                  // "relu"
  std::vector<std::string> schemas;  // PyTorch's, one per overload
  std::string summary;
  std::string rule;  // how its integer form follows: "pointwise", "transparent", ...
};
std::vector<OperatorInfo> operators();  // every PyTorch operator that tosaic lowers, sorted by name

std::string version();  // "0.1.0"

}  // namespace tosaic
