// SPDX-License-Identifier: Apache-2.0
// Targets, what runs outside them, and Ethos-U.
#include "api/errors/families.h"

namespace tosaic {
namespace {

constexpr std::string_view payload_again = "compile the model again, with tosaic or a current ExecuTorch and Vela";

ErrorFamily target() {
  return {"target",
          "the target does not take a node, or there is no such target",
          "choose a target that takes it, or let it run outside: without --require-full-delegation",
          ">>> tosaic.compile(model, (x,), target=\"ethos-u99\")\n"
          "error[target.unknown]: there is no target 'ethos-u99'",
          {
              {"control-flow", "a branch or loop belongs to the host program; delegates run its subgraphs"},
              {"conversion", "a conversion of types at the boundary of a delegate runs on the CPU"},
              {"data-dependent", "a size depends on values"},
              {"empty-tensor", "a tensor has no elements, which TOSA does not have"},
              {"extension", "the program needs an extension of TOSA, and is compiled for it", "nothing"},
              {"float-by-plan", "the plan keeps the node in floats", "change the plan or override"},
              {"int64", "a value needs more than 32 bits", "convert it to int32 or float"},
              {"nothing-delegated", "no node runs on the target: all stay on the CPU",
               "`tosaic explain` says of each node why"},
              {"set-aside", "the node was taken out of its delegate"},
              {"state", "the target keeps no buffers"},
              {"unknown", "there is no such target"},
              {"unsupported", "the target does not take the operator with these types"},
          }};
}

ErrorFamily c() {
  return {"c",
          "a node cannot become C for a microcontroller",
          "`tosaic explain --target cortex-m55` says which nodes have C",
          "$ tosaic compile half.pt2 --target cortex-m55 --quantize none --emit firmware=fw\n"
          "model.py:7: error[c.unsupported]: there is no C for tosa.add of (4xf16, 4xf16)",
          {{"unsupported", "there is no C for the operator with these types", "change the model there, or its dtype"}}};
}

ErrorFamily firmware() {
  return {"firmware",
          "a program cannot become sources for a microcontroller",
          "docs/boards.md says what can",
          "$ tosaic compile digits.pt2 --target tosa-int --emit firmware=fw\n"
          "digits.pt2: error[firmware.target]: firmware is not made for the target tosa-int",
          {
              {"control-flow", "a body of a branch or loop calls a delegate", "compile it to a .pte"},
              {"external", "a delegate's weights are in a file of their own", "leave --external out"},
              {"name", "the name of the files is no name in C", "choose letters, digits and _"},
              {"sizes", "an input's size varies, and firmware has memory for one", "choose it: --sizes NAME=SIZE"},
              {"target", "the target is none that runs next to a Cortex-M",
               "use --target cortex-m55, or an Ethos-U: --target ethos-u55-128"},
          }};
}

ErrorFamily pack() {
  return {"pack",
          "a node outside the delegates cannot be written to a .pte, or runs in one runtime only",
          "change the model there, or choose a target that takes the operator: `tosaic explain`",
          "$ tosaic compile unknown_operator.pt2 --target tosa-fp -o m.pte\n"
          "make_models.py:31: warning[pack.unknown-kernel]: operator acme.secret.default is not known to tosaic: the "
          "program calls the kernel acme::secret.out",
          {
              {"argument", "a call has other arguments than ExecuTorch's operator"},
              {"dtype", "ExecuTorch has no tensors of this type"},
              {"executorch-only", "ExecuTorch can run the program, `tosaic run` cannot", "nothing, on a device"},
              {"no-kernel", "neither ExecuTorch nor tosaic has a kernel for the call"},
              {"output", "an output is of a kind that ExecuTorch cannot return",
               "return tensors, scalars and None from forward()"},
              {"size", "a tensor is too large for ExecuTorch"},
              {"symbolic-argument", "an argument is known only at run time", "export with fixed sizes"},
              {"tosaic-only", "tosaic can run the program, ExecuTorch has no kernel", "nothing, on this PC"},
              {"unbounded-size", "a size has no upper bound", "export with torch.export.Dim(..., max=...)"},
              {"unknown-kernel", "an operator of your own: the program calls a kernel of its name",
               "link that kernel into the runtime, or define it: tosaic.lowering"},
              {"unknown-operator", "no kernel is known for the operator",
               "write it in other operators, or define its lowering in Python: tosaic.lowering"},
          }};
}

ErrorFamily board() {
  return {"board",
          "the program needs more memory than the board has",
          "a smaller model or smaller inputs, or another memory mode: --memory-mode",
          "$ tosaic compile digits.pt2 --target ethos-u55-128 --calibrate digits_samples.npz -o digits.pte --sram 2K\n"
          "make_digits.py:39: error[board.sram]: the program needs 3.8 KiB of SRAM, and the board has 2.0 KiB (--sram)",
          {
              {"flash", "the program and its data files, or the weights of firmware, are larger than --flash"},
              {"scratch", "a delegate needs more than --scratch"},
              {"sram",
               "the host program's tensors and the largest delegate, or the arena and the states of firmware, need "
               "more than "
               "--sram"},
          }};
}

ErrorFamily self_check() {
  return {"self-check",
          "the compiled delegate was run in the simulator and differs from its graph",
          "--no-self-check writes the program all the same; --emit vela=DIR keeps what shows it",
          "$ tosaic compile net.pt2 --target ethos-u55-128 -o net.pte\n"
          "model.py:9: warning[self-check.set-aside]: aten.mul.Tensor runs on the CPU: what Vela makes of it for "
          "ethos-u55-128 is wrong",
          {
              {"differs", "a delegate gives other results than its TOSA graph"},
              {"set-aside", "nodes that Vela compiles wrongly were taken out of the delegate",
               "write them in another form to keep them in it, and please report the model"},
              {"undecided", "the simulator cannot decide what a delegate computes", "nothing; test it on the device"},
          }};
}

ErrorFamily vela() {
  return {"vela",
          "Arm's Vela is missing or failed, or an Ethos-U payload is damaged",
          payload_again,
          "$ tosaic compile digits.pt2 --target ethos-u55-128 --calibrate digits_samples.npz -o digits.pte --vela "
          "/bin/false\n"
          "digits.pt2: error[vela.failed]: Vela ended with exit code 1",
          {
              {"block", "the Ethos-U payload is damaged, or was made by another version", "", true},
              {"config", "Vela's configuration lacks a section, or is another NPU's",
               "name a section of --vela-config with --system-config and --memory-mode"},
              {"crashed", "Vela crashed", "please report it with the files of --emit vela=DIR"},
              {"deadline", "Vela took too long", "--vela-timeout SECONDS gives it more time, 0 all that it wants"},
              {"external", "weights or commands are in a data file that is not given", "--data FILE.ptd"},
              {"failed", "Vela ended with an error", "read what it printed; --emit vela=DIR keeps its files"},
              {"hangs", "Vela does nothing", "compile where there is more memory"},
              {"interface", "Vela's command stream does not fit its graph"},
              {"killed", "Vela was killed from outside", "compile where there is more memory"},
              {"memory", "Vela ran out of memory", "compile where there is more memory"},
              {"missing", "Vela is not installed", "pip install ethos-u-vela==5.1.0, or --vela FILE"},
              {"not-a-stream", "the payload is none of Vela's"},
              {"old-layout", "the payload has the layout of an older ExecuTorch"},
              {"raw-output", "a .npz that Vela wrote lacks something"},
              {"region", "the commands need memory that the payload does not have"},
              {"tensor", "the Ethos-U payload is damaged, or was made by another version", "", true},
              {"truncated", "the Ethos-U payload is cut short", "", true},
              {"untested", "nobody tried this version of Vela with tosaic",
               "nothing where the self-check passes; pip install ethos-u-vela==5.1.0 installs one that was tried"},
          }};
}

ErrorFamily ethosu() {
  return {"ethosu",
          "the NPU's simulator refuses a command stream",
          payload_again,
          "$ tosaic run net_u55.pte\n"
          "net_u55.pte: error[ethosu.no-stop]: the command stream has no OP_STOP",
          {
              {"accumulators", "an operation continues sums that are not there"},
              {"argument", "a function of the C API is called wrongly"},
              {"branch", "a branch goes to no command"},
              {"chain", "a chaining buffer is read that does not hold what is expected"},
              {"clip", "a clip's bounds are in the wrong order"},
              {"command", "a command is not known"},
              {"container", "the container of the commands is damaged"},
              {"dma", "a DMA has impossible sizes"},
              {"driver-action", "the stream asks for something that drivers refuse"},
              {"kernel", "a kernel is larger than the NPU takes"},
              {"micro-block", "a micro-block does not exist on this NPU"},
              {"no-stop", "the commands do not end"},
              {"out-of-region", "an address is outside its memory region"},
              {"overflow", "a sum or result does not fit; what the hardware does then is not known"},
              {"read-only", "constants would be overwritten"},
              {"reserved", "a reserved value is used"},
              {"reset-value", "a register is read that no command wrote"},
              {"scales", "the scales do not fit the channels"},
              {"shape", "a feature map has an impossible shape"},
              {"table", "a lookup table is outside internal memory"},
              {"tiles", "the tiles of a feature map are impossible"},
              {"too-large", "an operand is larger than the simulator takes"},
              {"too-much-work", "the commands take longer than the simulator allows"},
              {"undecidable", "the NPU's simulator cannot decide from public facts what the hardware would do here",
               "compile the model again with another Vela or for another product, and please report it", true},
              {"undefined", "the result is undefined"},
              {"unknown-product", "the stream is for an NPU that is not known"},
              {"weights", "the encoded weights are damaged"},
          }};
}

ErrorFamily npu() {
  return {"npu",
          "firmware uses the registers of the simulated NPU as the chip does not allow",
          "read STATUS, which has the fault, and the message, which has the address",
          "$ qemu-system-arm -M mps3-an547 -kernel firmware.elf -plugin tosaic_npu.so\n"
          "tosaic_npu: error[npu.bus]: the 336 bytes of commands at 0x20000000 cannot be read",
          {
              {"after-stop", "words follow OP_STOP; they are not run"},
              {"alignment", "commands or a region do not begin at a multiple of 16 bytes"},
              {"bus", "there is no memory, or none that can be written"},
              {"end-reached", "a run is started although the end of the commands is reached",
               "write QBASE and QSIZE before CMD"},
              {"fault", "a run is started although STATUS has a fault", "reset the NPU"},
              {"memory", "the process has no more memory"},
              {"queue-size", "QSIZE is no whole number of words"},
              {"resetting", "a register is written during the reset", "wait until STATUS says that the reset is over"},
              {"running", "a register is written during a run", "wait for the interrupt"},
          }};
}

ErrorFamily ethos_u() {
  return {"ethos-u",
          "a TOSA operator is beyond what the NPU or Vela takes: ethos-u.OPERATOR.RULE",
          "choose a target that takes it, or let it run outside: without --require-full-delegation",
          "$ tosaic explain net.pt2 --target ethos-u55-128 -v\n"
          "aten.convolution.default  CPU  ethos-u.conv2d.stride: a stride of 4; 3 is the most",
          {{"*.*", "a limit of the NPU; the message names the value and the limit"}}};
}

ErrorFamily spec() {
  return {"spec",
          "a compile spec of tosaic.executorch is used wrongly",
          "give what ArmCompileSpecBuilder().build() gives",
          ">>> ArmCompileSpecBuilder().build()\n"
          "error[spec.target]: the builder has no target",
          {
              {"kind", "the object is no compile spec"},
              {"target", "the builder has no target",
               "call ethosu_compile_spec, vgf_compile_spec or tosa_compile_spec before build()"},
          }};
}

}  // namespace

std::vector<ErrorFamily> errors_of_targets() {
  return {c(), firmware(), target(), pack(), board(), self_check(), vela(), ethosu(), npu(), ethos_u(), spec()};
}

}  // namespace tosaic
