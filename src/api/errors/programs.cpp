// SPDX-License-Identifier: Apache-2.0
// Compiled programs: .pte files and what belongs to them.
#include "api/errors/families.h"

namespace tosaic {
namespace {

constexpr std::string_view make_again =
    "make it again: `tosaic compile` from the .pt2, or the export of a current ExecuTorch";
constexpr std::string_view bundle_again = "bundle the program again, with ExecuTorch 1.5 or tosaic's Python package";
constexpr std::string_view more_memory = "run it where there is more memory, or export the model for smaller inputs";

ErrorFamily pte() {
  return {"pte",
          "a .pte file is damaged, is of another version, or has what tosaic does not run",
          make_again,
          "$ tosaic extract digits.pt2 -o parts\n"
          "digits.pt2: error[pte.not-pte]: this is not an ExecuTorch program (bytes 4 to 7 must be 'ET12')",
          {
              {"chains", "a method has several chains of instructions"},
              {"corrupt", "the program is damaged, or was made by another version", "", true},
              {"device", "a tensor is planned for the memory of a device other than the CPU"},
              {"dtype", "a tensor has a type that ExecuTorch or tosaic does not have"},
              {"dynamic", "a tensor's sizes have no upper bound", "export with torch.export.Dim(..., max=...)"},
              {"not-pte", "the file is no ExecuTorch program"},
              {"options", "an option of the writer has a wrong value"},
              {"rank", "a tensor has more dims than ExecuTorch takes"},
              {"too-large", "the program is larger than a .pte file may be",
               "keep weights in a data file: --external weights=FILE.ptd"},
              {"version", "the program has a format or schema that tosaic does not read"},
          }};
}

ErrorFamily bpte() {
  return {"bpte",
          "a .bpte file (a program with test cases) is damaged or cannot be written",
          bundle_again,
          "$ tosaic run net.bpte\n"
          "net.bpte: error[bpte.version]: the bundled program has a format that this does not read; BP08 is read",
          {
              {"corrupt", "the bundled program is damaged, or was made by another version", "", true},
              {"dtype", "a case has a tensor of a type that ExecuTorch does not have"},
              {"size", "the bundled program is larger than 2 GB", "give fewer or smaller cases"},
              {"value", "a case has a value that is neither a tensor nor a scalar"},
              {"version", "the file has a format that tosaic does not read"},
          }};
}

ErrorFamily ptd() {
  return {"ptd",
          "a .ptd data file is damaged or of another version",
          "make it again, together with its program",
          "$ tosaic run net.pte --data net.bin\n"
          "net.bin: error[ptd.not-ptd]: this is not an ExecuTorch data file (bytes 4 to 7 must be 'FT01')",
          {
              {"corrupt", "the data file is damaged, or was made by another version", "", true},
              {"not-ptd", "the file is no ExecuTorch data file"},
              {"version", "the data file has a version that tosaic does not read"},
          }};
}

ErrorFamily data() {
  return {"data",
          "the data files that are given do not fit together",
          "give each .ptd file once, and those of one program only",
          "$ tosaic run net.pte --data a.ptd b.ptd\n"
          "b.ptd: error[data.twice]: 'weights' is in another data file as well, with other content",
          {{"twice", "two data files have different content under one key"}}};
}

ErrorFamily method() {
  return {"method",
          "a method of a .pte cannot be loaded or run",
          make_again,
          "$ tosaic run m.pte --method encode\n"
          "m.pte: error[method.missing]: the program has no method 'encode'",
          {
              {"condition", "a jump's condition is no boolean"},
              {"external-data", "data of the program are in another file, or do not fit it",
               "give the data file: --data FILE.ptd"},
              {"input", "an input of the method is a constant"},
              {"memory", "there is not enough memory for the method's tensors, or they are planned outside it",
               more_memory},
              {"missing", "there is no method of this name", "`tosaic inspect` lists the methods"},
              {"move", "a value moves to one of another type"},
              {"sizes-vary", "sizes of the program vary, and the device takes fixed ones",
               "export the model with fixed sizes"},
              {"not-whole", "the program refers to something that it does not have"},
              {"output", "an output is of a kind that cannot be returned"},
          }};
}

ErrorFamily delegate() {
  return {"delegate",
          "a delegate cannot be opened or run",
          "the program and what its delegate runs do not belong together: compile the model again",
          "$ tosaic run xnnpack.pte\n"
          "xnnpack.pte: error[delegate.unknown]: the program needs the delegate 'XnnpackBackend', which is not here",
          {
              {"arguments", "the program passes other tensors than the payload takes"},
              {"busy", "the delegate is executing another call", "use one session for each thread"},
              {"clone", "the payload cannot be shared by sessions", "load the program once more"},
              {"memory", "there is not enough memory for the delegate", more_memory},
              {"product", "the command stream is for another NPU than the one that is asked for",
               "run it on that NPU, or compile for this one"},
              {"unknown", "the program needs a delegate that tosaic does not have",
               "run it with ExecuTorch, or compile the model from its .pt2 with tosaic"},
              {"version", "the delegate's library is of another version", "use libraries of one version of tosaic"},
          }};
}

ErrorFamily tensor() {
  return {"tensor",
          "a tensor in memory cannot be used",
          "make the tensor with one of tosaic's constructors, and give its bytes whole",
          ">>> artifact.run(x.cuda())\n"
          "error[tensor.device]: a tensor is on the device 'cuda:0'; tosaic reads the CPU's memory",
          {
              {"device", "the tensor is not in the CPU's memory", "give tensor.cpu()"},
              {"dlpack", "the object's DLPack tensor cannot be read", "give a tensor in the CPU's memory"},
              {"dtype", "tosaic has no tensors of this dtype", "convert it"},
              {"fake", "a fake tensor has no values", "give a real one"},
              {"kind", "the object is no tensor", "give a torch.Tensor, a NumPy array or one that speaks DLPack"},
              {"masked", "the tensor has masked elements", "fill them: array.filled(value)"},
              {"wrong", "the tensor's bytes do not fit its type and sizes"},
          }};
}

ErrorFamily session() {
  return {"session",
          "a session is used wrongly",
          "use a session in one thread at a time",
          ">>> session.run(x)  # while another thread runs it\n"
          "error[session.busy]: the session is running already",
          {
              {"busy", "another thread is running the session"},
              {"empty", "the session was moved to another object", "use the one that it was moved to"},
          }};
}

ErrorFamily npy() {
  return {"npy",
          "a .npy or .npz file cannot be read",
          "save the array again with numpy.save or numpy.savez",
          "$ tosaic run net.pte --input x.txt\n"
          "x.txt: error[npy.not-npy]: this is not a NumPy array file",
          {
              {"corrupt", "the array file is damaged"},
              {"dtype", "the array has a dtype that tosaic does not have", "convert it with .astype(numpy.float32)"},
              {"not-npy", "the file is no NumPy array"},
          }};
}

}  // namespace

std::vector<ErrorFamily> errors_of_programs() {
  return {pte(), bpte(), ptd(), data(), method(), delegate(), tensor(), session(), npy()};
}

}  // namespace tosaic
