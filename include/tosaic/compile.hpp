// SPDX-License-Identifier: Apache-2.0
// Program to Artifact: compilation in memory. Nothing is printed, no exception leaves, no file is touched but those
// that an option names.
//
//   auto program = tosaic::Program::open("digits.pt2");
//   auto artifact = tosaic::compile(*program, "tosa-int", tosaic::Options().set("quantize", "int8"));
//   if (!artifact.ok()) std::cerr << tosaic::render(artifact.error(), true);
//   tosaic::Bytes pte = *artifact->piece("pte");
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tosaic/comparison.hpp"
#include "tosaic/estimate.hpp"
#include "tosaic/options.hpp"
#include "tosaic/program.hpp"
#include "tosaic/tuning.hpp"

namespace tosaic {

// ---- what there is

struct TargetInfo {
  std::string name;     // "ethos-u55-128"
  std::string summary;  // one sentence
  std::string family;   // "Ethos-U": whose options are told together
  std::string tosa_spec;
  std::vector<OptionInfo> options;  // its own; next to those of every compilation
  std::string emits;                // a piece of its own: "vgf", "vela"; empty: none
  std::string emits_sentence;       // for help: "vgf=PATH (target vgf)"
};
// All that this library compiles for, in the order of `tosaic targets`.
TOSAIC_API const std::vector<TargetInfo>& targets();
TOSAIC_API const std::vector<OptionInfo>& compile_options();  // of every target

// ---- what is given

// Calibration data: called until it gives false. Fills one complete sample, one tensor per tensor input in order; the
// memory has to stay until the next call. Errors travel as the Result's.
using SampleSource = std::function<Result<bool>(std::vector<InputTensor>& sample)>;
// Samples that are in memory already: samples[i] is one tensor per tensor input, in order.
TOSAIC_API SampleSource samples_of(std::vector<std::vector<OwnedTensor>> samples);
// From a .npz with one array per input (named after it, or input_N) with samples stacked along a new first axis, a .npy
// for a program with one input, or a folder of such files. For the method of that name; empty: the only one.
TOSAIC_API Result<SampleSource> read_samples(const std::string& path, const Program& program,
                                             const std::string& method = "");
// What a program is measured on. Labels: which element along the last axis of the first output should be the largest;
// one for each sample, or for each row of each.
struct Evaluation {
  Evaluation() = default;
  Evaluation(SampleSource measured_on, std::vector<std::int64_t> classes = {})  // NOLINT(google-explicit-constructor)
      : samples(std::move(measured_on)), labels(std::move(classes)) {}

  SampleSource samples;
  std::vector<std::int64_t> labels;
  bool on_device = false;  // of programs that stay floats: run on this machine's device, too (compare)
};
// From a .npz as read_samples takes it, with an array of integers called "labels". Errors: those of read_samples,
// compare.labels.
TOSAIC_API Result<Evaluation> read_evaluation(const std::string& path, const Program& program);
// Of a program of several methods, by their names. Those that are left out are calibrated with the example inputs
// stored in the program.
using MethodSamples = std::vector<std::pair<std::string, SampleSource>>;

struct Callbacks {
  Messages message;  // notes and warnings as they come up; all are kept in the Artifact besides
  std::function<void(std::string_view stage, std::size_t done, std::size_t total)> progress;  // "calibrate": samples
  std::function<bool()> cancelled;  // asked between stages and between samples; true: compile.cancelled
};

// ---- what comes back

// Where one node of the program went.
struct NodePlacement {
  std::string name, op;               // in the exported graph: "relu", "aten.relu.default"
  std::string place;                  // "model.py:6"; empty: not known
  std::string module;                 // "features.3.conv"
  std::vector<std::string> exported;  // the nodes of the exported graph that it stands for
  int delegate = -1;                  // -1: runs outside any delegate, because of
  std::optional<Diagnostic> reason;   // this
  // Between float and integer, or int64 and int32, at the boundary of integer tensors: no node of the user's.
  bool conversion = false;
};
TOSAIC_API std::string one_line(const Diagnostic& reason);  // for tables

// What became of one node of the exported graph, by the name that it has in `ep.graph`.
struct NodeVerdict {
  std::string name, op;              // "conv2d_4", "aten.conv2d.default"
  std::string module, place;         // "features.3.conv", "model.py:6"; empty: not known
  bool taken = true;                 // all that it became runs in delegates; so does what left nothing to run
  std::size_t pieces = 0;            // the nodes that it became, conversions at a delegate's boundary not counted
  std::vector<int> delegates;        // where, ascending; of `supports` none
  std::optional<Diagnostic> reason;  // why the first piece stays outside
};

struct Summary {
  std::string target, tosa_spec;
  std::vector<NodePlacement> nodes;                           // of the graph that was partitioned
  std::vector<NodeVerdict> exported;                          // of the program as it was exported
  std::size_t delegated = 0, delegates = 0;                   // nodes, regions
  std::size_t conversions = 0;                                // of `nodes`
  std::vector<std::pair<std::string, double>> stage_seconds;  // in order
  std::size_t model_bytes = 0, program_bytes = 0, payload_bytes = 0, tosa_operators = 0;
  double peer_seconds = 0;             // of the stage `emit`, in a compiler that is not ours (Vela, model-converter)
  std::vector<NpuEstimate> estimates;  // Ethos-U: one per delegate
  std::size_t samples = 0;             // used for calibration
  std::optional<double> self_check_seconds;  // Ethos-U: it was done for every delegate, and all were equal
  std::vector<std::string> methods;          // of several sizes: "forward (x.0=1)", "forward_4 (x.0=4)"; else empty
  std::string printed;                       // text that the options print-after and trace-node ask for
  std::vector<Diagnostic> messages;          // notes and warnings
};

// Copies share what was compiled; any number of threads may use one. One that was moved from is as it was.
class TOSAIC_API Artifact {
 public:
  Artifact(const Artifact&) = default;
  Artifact& operator=(const Artifact&) = default;
  const Summary& summary() const;
  // Its pieces, each made when asked for:
  //   pte           the ExecuTorch program (not of `explain`)
  //   header        the same as a C array, aligned to 16 bytes
  //   payload       what a delegate is given in the program; of several payload/0, payload/1, ...
  //   tosa, vgf     a delegate's graph; of several delegates tosa/0, tosa/1, ...
  //   vela/FILE     what Vela was given and wrote; of several delegates vela/0/FILE, ...
  //   ptd/FILE      what the option `external` keeps outside the program, named as it was there
  std::vector<std::string> pieces() const;
  // Errors: artifact.no-piece, which names those that there are.
  Result<Bytes> piece(std::string_view name) const;
  // C sources for a Cortex-M, alone or next to an Ethos-U, by file name: what `--emit firmware=DIR` writes. `name`
  // begins the files and functions; empty: the model's. Errors: firmware.*, board.flash, board.sram, c.unsupported.
  Result<std::map<std::string, std::string>> firmware(const std::string& name = {}) const;
  // JSON: versions, options, hashes of model, program and payloads, estimates, the location of every node.
  Result<std::string> manifest() const;

  struct Impl;
  explicit Artifact(std::shared_ptr<const Impl> impl);  // null: an artifact without pieces
  const Impl& impl() const { return *impl_; }

 private:
  std::shared_ptr<const Impl> impl_;
};

// The piece that a file of this name holds, as its ending says: "pte" of net.pte, "header" of net.h, "tosa" of
// net.tosa; "manifest" of net.json. Error: artifact.ending, which names the endings that there are.
TOSAIC_API Result<std::string> piece_in_file(const std::string& path);

// Reads nothing but `program` and `samples`; without samples, an integer target is calibrated with the example inputs
// stored in the program. Errors: target.unknown, option.*, calibrate.*, quantise.*, target.*, pack.*, vela.*,
// self-check.*, compile.cancelled, memory.exhausted.
TOSAIC_API Result<Artifact> compile(const Program& program, const std::string& target, const Options& options = {},
                                    const Callbacks& callbacks = {}, const SampleSource& samples = {});
// The methods' samples are one sequence of runs, method by method: a state is found as the method before left it, and
// has one range in all of them. Also: calibrate.methods, for names that the program does not have.
TOSAIC_API Result<Artifact> compile(const Program& program, const std::string& target, const Options& options,
                                    const Callbacks& callbacks, const MethodSamples& samples);
// No samples: what `{}` says, which could be either of the two above.
inline Result<Artifact> compile(const Program& program, const std::string& target, const Options& options,
                                const Callbacks& callbacks, std::nullptr_t) {
  return compile(program, target, options, callbacks, SampleSource());
}

// Which nodes of the exported program the target takes, and why not the others: milliseconds, no samples, nothing is
// compiled. What only samples tell (operands of unlike ranges, waves that quantised values cannot follow) may still
// leave a node outside. The options `plan`, `override` and `weights` count. What the answers for several targets have
// in common is computed once per Program.
TOSAIC_API Result<std::vector<NodeVerdict>> supports(const Program& program, const std::string& target,
                                                     const Options& options = {});

// The quantisation plan: what becomes integers and of which width, who shares a scale, from the program and the options
// alone. The text is what the option `plan` reads back, edited or not; `json` is an object. Of several methods each
// stands after a line with its name, in `json` under it.
struct PrintedPlan {
  std::string text, json;
};
// Errors: plan.floats, where nothing is quantised; plan.*, for the options `plan` and `override`.
TOSAIC_API Result<PrintedPlan> plan(const Program& program, const std::string& target, const Options& options = {});
// The same for those who quantise the program themselves, as PT2E's quantizers do: a JSON object with each call's
// operands and results, and what rebuilds the calls that composites are decomposed into. Its form may change. Not
// `in_pieces`: composites stay whole, and float.
TOSAIC_API Result<std::string> annotation(const Program& program, const std::string& target,
                                          const Options& options = {}, bool in_pieces = true);
// And for them: the parameters with which channels of int8 tensors lie around zero, and small ones are larger, while
// what the program computes stays the same but for the last digits (docs/numerics.md). Only those that change, by their
// names in the exported graph ("p_conv_weight"); none become larger with fewer than 8 samples. Errors: calibrate.*,
// those of `annotation`.
TOSAIC_API Result<std::vector<std::pair<std::string, OwnedTensor>>> equalized_parameters(const Program& program,
                                                                                         const std::string& target,
                                                                                         const Options& options,
                                                                                         const Callbacks& callbacks,
                                                                                         const SampleSource& samples);

// Where the program loses accuracy in integers or in narrower floats, layer by layer: `compile` with the same
// arguments, held against the program in f32. What is compared is the TOSA that the target would be given, rounded
// where the device rounds, run on the CPU; what stays as it is is compared, too. `shown`: what to compare on; without
// samples the first 8 of those that it is calibrated with. Errors: those of `compile` before it emits, compare.*.
TOSAIC_API Result<Comparison> compare(const Program& program, const std::string& target, const Options& options = {},
                                      const Callbacks& callbacks = {}, const SampleSource& samples = {},
                                      const Evaluation& shown = {});

// Which calls get 16 bits in an int8 program, so that it is as accurate as asked for, or no more expensive: found by
// measuring, and the plan for the option `plan`. Samples as for `compare`, but 16 from all over the calibration (of a
// program with states the first). Errors: tune.*, those of `compare`.
TOSAIC_API Result<Tuning> tune(const Program& program, const std::string& target, const Options& options,
                               const std::optional<Budget>& budget, const Callbacks& callbacks = {},
                               const SampleSource& samples = {}, const Evaluation& shown = {});

// What `supports` says as far as the placements go, with the numbers of an Artifact: calibrated with the program's own
// examples or, where it has none, with made-up ones. It has no piece `pte`.
TOSAIC_API Result<Artifact> explain(const Program& program, const std::string& target, const Options& options = {},
                                    const Callbacks& callbacks = {});

}  // namespace tosaic
