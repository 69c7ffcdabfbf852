// SPDX-License-Identifier: Apache-2.0
// What the command line does, over files: compile, run, inspect, extract and convert. Files are written whole or not at
// all, and never over one that is read.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tosaic/bundle.hpp"
#include "tosaic/compile.hpp"
#include "tosaic/session.hpp"

namespace tosaic {

// ---- compile

struct CompileRequest {
  std::string model;  // .pt2
  // Or several, as the methods of one program (Program::together): name and .pt2.
  std::vector<std::pair<std::string, std::string>> methods;
  std::string target = "tosa-int";  // a name of `targets()`
  std::string calibrate;            // as read_samples takes it; empty: the sample inputs stored in the model
  // Or by the methods' names; those that are left out take the sample inputs stored in their .pt2.
  std::vector<std::pair<std::string, std::string>> calibrate_methods;
  // To write, empty: nothing. The ending says which piece (piece_in_file), that of a graph as `emit` writes it.
  std::string output;
  // What else to write, kind -> path: "tosa" (the delegates' TOSA), "vgf" (target vgf), "vela" (Ethos-U: a folder that
  // keeps what Vela was given and wrote), "header" (the .pte as a C array, aligned to 16 bytes). Several delegates make
  // several files: net.vgf becomes net_0.vgf, net_1.vgf.
  std::map<std::string, std::string> emit;
  std::string report;  // JSON manifest to write
  Options options;     // the paths of `external` are written, too
};
// Reads the model and its samples, compiles, and writes what is asked for. Errors: file.missing, file.write, those of
// read_program and of compiling.
TOSAIC_API Result<Artifact> compile(const CompileRequest& request, const Callbacks& callbacks = {});

// ---- inspect

struct InspectOptions {
  bool disassemble = false;       // Ethos-U: one line per operation
  bool registers = false;         // and one per command
  std::vector<std::string> data;  // .ptd files with what the program keeps outside itself
};
struct Inspection {
  std::string text;  // for people
  std::string json;
};
// .pt2, .tosa, .vgf, .pte, .bpte, .ptd, .npy, .npz, an Ethos-U payload or command stream, what Vela wrote (.npz), or
// our own graph text; distinguished by content.
TOSAIC_API Result<Inspection> inspect(const std::string& file, const InspectOptions& options = {});

// ---- extract

struct ExtractRequest {
  std::string program;            // .pte or .bpte
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
// What every delegate of a program runs, one file each.
TOSAIC_API Result<std::vector<Extracted>> extract(const ExtractRequest& request);

// ---- convert

struct ConvertRequest {
  std::string input;   // .tosa, .vgf or graph text
  std::string output;  // its ending says what is made: .vgf or .tosa
  Options options;     // of the target that the output is for: vgf-converter, vgf-flags
  int repeat = 1;
};
struct Converted {
  std::vector<double> seconds;  // of each repetition, from the input's bytes to the output's
  double peer_seconds = 0;      // of the last one, in Arm's converter
  std::size_t bytes = 0, operators = 0;
};
// A TOSA graph from one format to another. Errors: file.missing, file.write, convert.*, those of the formats.
TOSAIC_API Result<Converted> convert(const ConvertRequest& request, const Messages& messages = {});

// ---- run

struct RunRequest {
  std::string program;  // as Session::open takes it
  std::vector<std::string>
      inputs;  // .npy, in order; empty: the stored samples of a .pt2, the cases of a .bpte, zeros for others
  // In place of inputs: a data set, as open_data_set takes it. One run for each sample, on one thread; as many at once
  // as the session's `threads`. The outputs of all are stacked along a new first axis. States begin anew with each.
  std::string samples;
  std::string output_dir;         // output_N.npy go here, numbers as arrays of rank 0; empty: none written
  std::vector<std::string> data;  // .ptd files with what the program keeps outside itself
  std::string states;             // folder with NAME.npy for states: read where they exist, all written behind the run
  SessionOptions session;         // its own `data` is not read
  int repeat = 1;                 // runs, after one that warms up when more than one
  bool profile = false;           // measure the operations, see Session::measure
  std::function<void(std::size_t done, std::size_t expected)> progress = {};  // of the samples
};
struct MeasuredOperation : OperationTime {  // `seconds` is the median of the runs
  double least_seconds = 0;
};
struct RunOutcome {
  std::vector<std::string> input_types, output_types;  // "1x8x8x1xf32"; of outputs also "int", "None", ...
  std::vector<std::string> output_values;  // as JSON: what an output that is no tensor holds; empty for tensors
  std::vector<std::string> written;        // files, one per output; empty for None and texts
  std::vector<std::string> states;         // "k_cache: 1x2x16x4xf32", what the program keeps from run to run
  std::string device;  // what it ran on: "cpu", "interp", "vulkan: ...", "ethos-u55-128 (simulated)"
  double load_seconds = 0;
  std::vector<double> run_seconds;
  std::vector<double> device_seconds;      // the same by the device's own clock; empty: it has none
  std::vector<MeasuredOperation> profile;  // when asked for
  std::vector<CaseOutcome> cases;          // of a .bpte that is given no inputs: its own were run, and nothing else
  std::size_t samples = 0;                 // of `RunRequest::samples`; run_seconds has one entry for each
  int workers = 1;                         // samples at once
  double seconds = 0;                      // of all samples
};
// Loads the program, runs it `repeat` times on the inputs and writes its outputs. Errors: file.missing, file.write,
// run.*, evaluate.* (of samples), those of loading it.
TOSAIC_API Result<RunOutcome> run(const RunRequest& request, const Messages& messages = {});
// All that ran with one kernel, the most time first; of a delegate that tells its parts, these.
struct KindTime {
  std::string operation;
  std::size_t count = 0;
  double seconds = 0;
};
TOSAIC_API std::vector<KindTime> time_by_kind(const std::vector<MeasuredOperation>& profile);

// ---- device

struct FirmwareRequest {
  std::string program;            // .pte, .bpte; empty: the firmware reads one when it is run
  std::string board;              // "mps3-an547"
  std::string output;             // the ELF file
  std::string npu;                // that the board has: "ethos-u55-128"; empty: the program's
  std::string map;                // also written: the linker's map; empty: no
  std::string libraries;          // folder of `make device`; empty: where they usually are
  std::uint64_t arena_bytes = 0;  // 0: what the program needs at most
  bool registers = false;         // drives the board's NPU; else a simulator stands in
};
struct Firmware {
  std::string npu;
  std::uint64_t arena_bytes = 0;
  std::string memory;  // a table for people: what each memory of the board holds
};
// A program for a board around the .pte. Errors: device.*, those of loading it.
TOSAIC_API Result<Firmware> build_firmware(const FirmwareRequest& request);

struct FirmwareRunRequest {
  std::string firmware;             // the ELF file
  std::string program;              // .pte, .bpte, for a firmware without one
  std::vector<std::string> inputs;  // .npy, in order
  std::string output_dir;           // output_N.npy go here; empty: none written
  std::string cases;                // a .bpte whose cases are run instead, and compared
  std::string plugin;               // of QEMU, such as an NPU: "tosaic_npu.so,target=ethos-u55-128" (device/qemu)
};
struct FirmwareRun {
  std::vector<std::string> output_types, written;
  std::vector<CaseOutcome> cases;
  std::string said;  // by the firmware: memory, cycles
};
// In QEMU. Errors: device.run, device.tool.
TOSAIC_API Result<FirmwareRun> run_firmware(const FirmwareRunRequest& request);

}  // namespace tosaic
