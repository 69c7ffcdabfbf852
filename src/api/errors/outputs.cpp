// SPDX-License-Identifier: Apache-2.0
// The command line, options, and the files that are written.
#include "api/errors/families.h"

namespace tosaic {
namespace {

ErrorFamily usage() {
  return {"usage",
          "the command line is wrong; the exit code is 2",
          "`tosaic help COMMAND` shows a command's options and examples",
          "$ tosaic compile m.pt2 --target -o m.pte\n"
          "error[usage.missing]: --target needs a value before -o",
          {
              {"calibrate", "one of several samples names no method", "write METHOD=FILE for each"},
              {"ending", "the file's ending says nothing of its content", "use one of those that the error names"},
              {"extra", "there is an argument too many"},
              {"missing", "an argument or a value is missing"},
              {"models", "one of several programs names no method", "write METHOD=FILE for each"},
              {"no-command", "no command is given"},
              {"report", "a report of a program that is not compiled needs a target, and of one that is takes none"},
              {"unknown-command", "there is no such command"},
              {"unknown-option", "the command has no such option"},
              {"value", "an option has a wrong value"},
          }};
}

ErrorFamily option() {
  return {"option",
          "an option is unknown, has a wrong value, or does not go with the target",
          "`tosaic help compile` lists the options and what they take",
          "$ tosaic compile --target vgf --external weights=a.ptd commands=b.ptd digits.pt2 -o m.pte\n"
          "error[option.target]: the target vgf takes no option 'external'",
          {
              {"budget", "which calls a budget widens is found on samples, and a question has none",
               "let `tosaic tune -o FILE` find them, and give --plan FILE"},
              {"codes", "the target does not keep quantised weights in a float program",
               "use tosa-fp or vulkan, or leave --weights out"},
              {"kv", "the target keeps no caches in int8 in a program of floats",
               "use tosa-fp or vulkan, or leave --kv out"},
              {"dynamic", "the target does not take dynamic quantisation", "choose a float target such as tosa-fp"},
              {"weights", "weights of 16 bits go with activations of 16", "add --quantize int16x8"},
              {"layout", "no input can be taken in the layout that --input-layout names"},
              {"target", "the target does not take the option"},
              {"unknown", "there is no such option"},
              {"value", "the option does not take the value"},
          }};
}

ErrorFamily report() {
  return {
      "report",
      "a report cannot be made of what is given",
      "`tosaic report --help` shows what it takes",
      "$ tosaic report digits.npy -o digits.html\n"
      "digits.npy: error[report.unknown-format]: digits.npy is none of .pte, .bpte, .tosa, .vgf and .pt2, nor a "
      "report's JSON",
      {
          {"format", "there is no such format of a report"},
          {"json", "a file is not what the named command prints as JSON", "give what that command prints with --json"},
          {"no-manifest", "MLIA's JSON tells where each node runs, and a compiled file does not say it",
           "give --manifest FILE, which `tosaic compile --report FILE` wrote, or the .pt2 and --target"},
          {"other-manifest", "a manifest is of another compiled file",
           "give the one that `tosaic compile --report FILE` wrote with this file"},
          {"unknown-format", "the file is none that a report is made of",
           "give a .pte, .bpte, .tosa or .vgf, or a .pt2 and --target"},
      }};
}

ErrorFamily compile() {
  return {"compile",
          "what was asked for cannot be written",
          "`tosaic compile --help` shows what can be written, and for which targets",
          "$ tosaic compile digits.pt2 --target tosa-fp --emit vgf=digits.vgf\n"
          "digits.pt2: error[compile.emit]: the target tosa-fp makes no VGF file",
          {
              {"cancelled", "the compilation was cancelled", "start it again"},
              {"emit", "the target does not make such a file, or its ending is of another kind"},
              {"no-delegate", "no node was delegated, so there is no graph to write",
               "`tosaic explain` says what stays outside the delegate and why"},
              {"several-delegates", "there are several delegates, and a file for each", "nothing"},
          }};
}

ErrorFamily external() {
  return {"external",
          "a data file that was asked for is not written",
          "leave --external out",
          "$ tosaic compile net.pt2 --target tosa-int -o net.pte --external weights=net.ptd\n"
          "warning[external.none]: net.ptd is not written: no delegate has weights to keep in it",
          {{"none", "no delegate has data of this kind"}}};
}

ErrorFamily artifact() {
  return {"artifact",
          "an artifact does not have the file that is asked for",
          "Artifact::pieces() lists what there is",
          "$ tosaic compile digits.pt2 --target tosa-fp -o digits.onnx\n"
          "digits.pt2: error[artifact.ending]: what is to be written to 'digits.onnx'?",
          {
              {"cases", "test cases are stored in .bpte files only", "use save('model.bpte', cases=[...])"},
              {"ending", "the file's ending says nothing of its content", "use .pte, .tosa, .vgf, .h or .json"},
              {"no-piece", "there is no file of this name in the artifact"},
          }};
}

ErrorFamily etrecord() {
  return {"etrecord",
          "a program cannot have an ETRecord, ExecuTorch's notes for its Inspector",
          "give tosaic.compile the module or the ExportedProgram",
          ">>> etrecord(tosaic.compile(\"model.pt2\", target=\"tosa-fp\"))\n"
          "error[etrecord.program]: an ETRecord holds the exported program, and this one was read from a file",
          {
              {"program", "the program was read from a file, or has several methods", "torch.export.load(FILE)"},
          }};
}

ErrorFamily bundle() {
  return {"bundle",
          "the test cases of a .bpte file do not fit its program",
          "give one result for each case",
          ">>> artifact.save(\"net.bpte\", cases=[(x,), (y,)], expected=[z])\n"
          "error[bundle.expected]: there are more cases than the 1 results expected",
          {{"expected", "there are more cases than results, or results of another form"}}};
}

ErrorFamily output() {
  return {"output",
          "an output would overwrite an input or another output, or is no ordinary file",
          "give the output a name of its own",
          "$ tosaic compile digits.pt2 --target tosa-fp -o digits.pt2\n"
          "digits.pt2: error[output.is-input]: digits.pt2 is read and would be overwritten",
          {
              {"is-input", "an output is also an input"},
              {"not-a-file", "an output is a folder, a device, a pipe or '-'"},
              {"stdout", "standard output is full or closed", "redirect it to where there is room"},
              {"twice", "two outputs are the same file"},
          }};
}

ErrorFamily file() {
  return {"file",
          "a file cannot be read or written",
          "check the path and its permissions",
          "$ tosaic compile digits.pt2 --target tosa-int --calibrate none.npz -o digits.pte\n"
          "none.npz: error[file.missing]: cannot open none.npz: No such file or directory",
          {
              {"changed", "a file became shorter while it was read", "leave input files alone during the command"},
              {"disk-full", "the disk is full", "make room, or write to another disk"},
              {"missing", "the file is not there or cannot be opened"},
              {"unreadable", "the file cannot be read"},
              {"unwritable", "the file or folder cannot be written"},
              {"write", "Python cannot write the file"},
          }};
}

ErrorFamily convert() {
  return {"convert",
          "a file cannot be converted",
          "`tosaic convert --help` shows what can be made of what",
          "$ tosaic convert net.txt -o net.onnx\n"
          "net.txt: error[convert.output]: 'net.onnx' ends neither in .vgf nor in .tosa",
          {
              {"output", "the output's ending is neither .vgf nor .tosa"},
              {"unknown-format", "the input is neither a .tosa, nor a .vgf, nor graph text"},
          }};
}

ErrorFamily extract() {
  return {"extract",
          "the payloads of a program cannot be written",
          "`tosaic inspect` shows what the program is made of",
          "$ tosaic extract add_mul.pte -o parts\n"
          "add_mul.pte: error[extract.no-delegate]: the program has no delegates, all of it runs as kernels",
          {
              {"exists", "a file with other content has the name of an output",
               "--force replaces it; or choose another folder"},
              {"no-delegate", "the program has no delegates"},
          }};
}

ErrorFamily inspect() {
  return {"inspect",
          "the file is of no kind that `tosaic inspect` knows",
          "if the ending is right, the file is damaged: make or copy it again",
          "$ tosaic inspect notes.doc\n"
          "notes.doc: error[inspect.unknown-format]: notes.doc is none of .pt2, .tosa, .vgf, .pte, .bpte, .ptd, .npy, "
          ".npz, nor an Ethos-U command stream",
          {{"unknown-format", "the content is of no known format"}}};
}

}  // namespace

std::vector<ErrorFamily> errors_of_outputs() {
  return {usage(),  option(), compile(), external(), artifact(), bundle(), etrecord(),
          output(), file(),   convert(), extract(),  inspect(),  report()};
}

}  // namespace tosaic
