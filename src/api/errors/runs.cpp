// SPDX-License-Identifier: Apache-2.0
// Programs as they run, on the CPU.
#include "api/errors/families.h"

namespace tosaic {
namespace {

constexpr std::string_view more_memory = "run it where there is more memory, or export the model for smaller inputs";

ErrorFamily run() {
  return {"run",
          "a program cannot be run as it is called",
          "`tosaic inspect` shows what the program is made of",
          "$ tosaic run digits.pte --input digit.npy --input digit.npy --output-dir out\n"
          "digits.pte: error[run.input-count]: 2 inputs are given, digits.pte takes 1",
          {
              {"assumption", "the inputs break a condition under which the program was exported",
               "express the branch by torch.where or torch.cond, and export it again"},
              {"bundled", "a .bpte runs its own cases", "run its .pte for --repeat or --profile"},
              {"cancelled", "the run was interrupted"},
              {"case-failed", "a test case of the .bpte gives another result than it expects"},
              {"constant-node", "a constant is a node of the graph"},
              {"custom-operator", "a custom TOSA operator has no reference implementation"},
              {"device", "there is no such device, or the program has no delegate for it",
               "--device takes cpu, vulkan, vulkan-ml, ethos-u or a product such as ethos-u55-128"},
              {"division", "a size is divided by zero", "look at the inputs' sizes"},
              {"executor", "there is no such executor", "use cpu or interp"},
              {"input-count", "the program takes another number of inputs",
               "`tosaic inspect` shows what the program takes; convert arrays with numpy's .astype (bf16: "
               "ml_dtypes.bfloat16)"},
              {"input-type", "an input has another type or shape than the program takes",
               "`tosaic inspect` shows what the program takes; convert arrays with numpy's .astype (bf16: "
               "ml_dtypes.bfloat16)"},
              {"literal", "an argument that is no tensor was fixed at the export, to another value",
               "export the program again with this value"},
              {"loop-limit", "a loop does not end", "check its condition, or raise TOSAIC_LOOP_LIMIT"},
              {"null", "a tensor has no memory"},
              {"out-of-memory", "there is not enough memory for intermediate tensors", more_memory},
              {"output-count", "memory is given for another number of outputs"},
              {"output-type", "the memory of an output has another type or shape"},
              {"overlap", "the memory of an output overlaps an input or another output"},
              {"read-only", "the program writes to an input that is read-only", "give a copy"},
              {"region", "a branch or loop body gave another result than declared"},
              {"row", "an index is outside the rows of a table"},
              {"rows", "the outputs of the samples make no array: they differ in size, or a file cannot be read",
               "give samples of one size, all readable"},
              {"samples", "an option for one call is given together with --samples", "leave one of them out"},
              {"simulated", "the NPU is simulated: times are not those of the device", "nothing"},
              {"sizes", "no method takes inputs of these sizes"},
              {"state", "the program has no state of this name"},
              {"state-type", "the content for a state has another type or shape",
               "`tosaic inspect` shows what it is; convert the content with numpy's .astype or .reshape"},
              {"threads", "the number of threads is negative or too large"},
              {"too-large", "a sum has more products than the executor takes"},
              {"trace", "a line of --trace: one NPU operation", "nothing"},
              {"tree", "the inputs have another form than the exported call", "call it as the module is called"},
              {"unknown-format", "the file is of no kind that can be run"},
              {"unknown-operator", "the interpreter runs TOSA operators only"},
          }};
}

ErrorFamily kernel() {
  return {"kernel",
          "the CPU has no kernel for a call outside the delegates, or the call does not fit it",
          "run the program with ExecuTorch, or compile the model from its .pt2 with tosaic",
          "$ tosaic run m.pte\n"
          "m.pte: error[kernel.unknown]: acme::secret.out with 4 arguments is not a kernel that tosaic knows",
          {
              {"arguments", "a call has arguments that its kernel does not take"},
              {"size", "a result has another size than the program allows"},
              {"types", "a call mixes types"},
              {"unknown", "tosaic has no such kernel"},
              {"unsupported", "tosaic cannot run the call"},
          }};
}

ErrorFamily cpu() {
  return {"cpu",
          "the fast CPU executor has no kernel for an operator",
          "run it on the reference interpreter: --executor interp",
          "$ tosaic run net.tosa\n"
          "net.tosa: error[cpu.unsupported]: no kernel runs tosa.custom",
          {{"unsupported", "no kernel runs the operator"}}};
}

ErrorFamily memory() {
  return {"memory",
          "there is not enough memory",
          "use a smaller model or fewer samples, or raise --memory-limit",
          "$ tosaic run net.pte --memory-limit 100M\n"
          "net.pte: error[memory.limit]: the arena would take 0.5 GB of memory, more than the limit of 0.1 GB",
          {
              {"exhausted", "an allocation failed"},
              {"limit", "something would take more memory than the limit"},
              {"none", "there is no memory left at all"},
          }};
}

ErrorFamily peer() {
  return {"peer",
          "another program (Vela, Arm's model converter) cannot be run",
          "check that the program is there, and that it runs by itself",
          "$ TMPDIR=/nowhere tosaic compile digits.pt2 --target ethos-u55-128 --calibrate digits_samples.npz -o "
          "digits.pte\n"
          "digits.pt2: error[peer.temporary]: cannot make a temporary folder like /nowhere/tosaic-m8jiDm: No such file "
          "or directory",
          {
              {"deadline", "the program took too long and was ended"},
              {"hangs", "the program did nothing for long and was ended"},
              {"start", "the program cannot be started"},
              {"temporary", "no temporary folder can be made", "set TMPDIR to a folder with room"},
          }};
}

ErrorFamily internal() {
  return {"internal",
          "a defect of tosaic; the exit code is 3",
          "this is a defect of tosaic; please report it with the model and the command",
          "$ tosaic compile net.pt2 --target tosa-fp -o net.pte\n"
          "net.pt2: error[internal]: a node has lost its result",
          {}};
}

}  // namespace

std::vector<ErrorFamily> errors_of_runs() { return {run(), kernel(), cpu(), memory(), peer(), internal()}; }

}  // namespace tosaic
