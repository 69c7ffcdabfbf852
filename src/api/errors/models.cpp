// SPDX-License-Identifier: Apache-2.0
// Exported programs: their files, and what they compute.
#include "api/errors/families.h"

namespace tosaic {
namespace {

constexpr std::string_view save_again = "save the program again with torch.export.save, in torch 2.9 to 2.15";

ErrorFamily pt2() {
  return {"pt2",
          "the .pt2 file is damaged, is not an exported program, or holds what tosaic does not read",
          save_again,
          "$ tosaic compile net.onnx -o net.pte\n"
          "net.onnx: error[pt2.foreign]: net.onnx is an ONNX model",
          {
              {"bad-json", "the program's JSON lacks something, or holds something of another type"},
              {"bad-pickle", "a pickled part of the file cannot be read"},
              {"bad-shape", "a tensor's sizes, strides or range make no sense"},
              {"byte-order", "the file was written on a big-endian machine", "save it on a little-endian machine"},
              {"duplicate-name", "two values have the same name"},
              {"foreign", "the file is of another framework or kind",
               "save the program with torch.export.save(torch.export.export(model, inputs), FILE)"},
              {"input-mutation", "the program writes to one of its inputs; the new content is an additional output",
               "nothing, if that is wanted; otherwise work on a copy: x = x.clone()"},
              {"missing-weight", "a weight that the program uses is not in the file"},
              {"nesting", "branches or loops are nested too deep", "nest them less"},
              {"newer-schema", "the program was saved by a newer PyTorch than tosaic knows",
               "nothing, if it compiles; otherwise save it with an older torch"},
              {"no-program", "the file holds weights or TorchScript, but no exported program",
               "save the program with torch.export.save(torch.export.export(model, inputs), FILE)"},
              {"not-finite", "a weight holds NaN or infinities", "check the training: results will be NaN or infinite"},
              {"old-torch", "the program was saved in a layout that PyTorch soon replaced"},
              {"pickled-weight", "a weight is a Python object and not a plain tensor",
               "call torchao.utils.unwrap_tensor_subclass(model) before the export, or quantise by PT2E"},
              {"sample-inputs", "the sample inputs in the file cannot be read; they are ignored",
               "nothing, or give samples: --calibrate FILE"},
              {"schema-version", "the program was saved by a version of PyTorch that tosaic does not read"},
              {"tensor-beyond-record", "a weight needs more data than the file has for it"},
              {"tensor-too-large", "a weight expands few stored elements to very many"},
              {"unchecked-assumption", "the program equals the module under a condition that nothing checks",
               "express the branch by torch.where or torch.cond, or assert the condition with torch._check"},
              {"undefined-value", "a node reads a value that does not exist"},
              {"unknown-argument", "an operator has an argument that tosaic does not know"},
              {"unsupported-construct", "the program has a construct that tosaic does not read",
               "leave it out of the exported module"},
              {"unsupported-dtype", "a tensor has a dtype that tosaic does not have",
               "convert the tensor before the export, model.float() for instance"},
              {"unsupported-layout", "a tensor is sparse", "convert it with .to_dense() before the export"},
              {"use-before-definition", "the nodes form a cycle or are out of order"},
              {"weight-mismatch", "a stored weight has another type than the program says"},
          }};
}

ErrorFamily pickle() {
  return {"pickle",
          "a part of the file that Python's pickle wrote cannot be read",
          save_again,
          "$ tosaic inspect weights.pt2\n"
          "weights.pt2: error[pickle.truncated]: 4 bytes are wanted at offset 91 of a pickle of 93",
          {
              {"bad", "the pickle contradicts itself"},
              {"truncated", "the pickle ends too early"},
              {"unknown-opcode", "the pickle has an instruction that torch.save does not write"},
          }};
}

ErrorFamily zip() {
  return {"zip",
          "a zip archive (.pt2, .npz) is damaged",
          "copy or save the file again: it is damaged, or made by a tool that writes other archives",
          "$ tosaic compile model.pt2 --target tosa-fp -o model.pte\n"
          "model.pt2: error[zip.not-a-zip]: model.pt2 is not a zip archive",
          {
              {"bad-entry", "an entry of the archive contradicts its directory"},
              {"checksum", "the data of an entry do not have the checksum that the archive states"},
              {"not-a-zip", "the file is no zip archive"},
              {"truncated", "the file is cut short"},
          }};
}

ErrorFamily model() {
  return {"model",
          "the program computes something that cannot be compiled as it is",
          "change the model there and export it again",
          "$ tosaic compile dynamic_batch.pt2 --target tosa-fp --sizes x.0=999999999999 -o m.pte\n"
          "dynamic_batch.pt2: error[model.size]: --sizes x.0=999999999999: no dimension of a tensor is larger than "
          "2147483647",
          {
              {"complex", "an operator on complex numbers has no form with pairs of real numbers",
               "use torch.view_as_real(x) before it, and x.real and x.imag"},
              {"control-flow", "a branch or a loop cannot be compiled as it is"},
              {"decomposed", "an operator is not known to tosaic, but PyTorch decomposes it",
               "save ep.run_decompositions() instead"},
              {"dynamic-scales", "the program's dynamic quantisation is left out for this target",
               "nothing, or compile with --quantize dynamic-int8"},
              {"dynamic-shape", "a size is known only at run time, and a fixed one is needed",
               "choose the sizes: --sizes NAME=SIZE, in Python sizes=[...]; or export without dynamic_shapes"},
              {"effect", "an unknown operator writes to its operands or has side effects",
               "use an operator that returns its result"},
              {"inconsistent", "an operator gives another type than the exported program states"},
              {"int64-input", "an int64 input is computed as int32; values beyond 32 bits saturate",
               "nothing, if the values are small; otherwise use floats"},
              {"int64-narrowed", "int64 values are computed in 32 bits inside a delegate and may overflow",
               "nothing, if the values are small; otherwise use floats"},
              {"methods", "the programs do not form a file of several methods",
               "give each program a name of its own: NAME=FILE"},
              {"size", "a size is outside its range, or too large"},
              {"state", "methods disagree about a buffer that they share",
               "export all methods from one module with the same buffers"},
              {"state-type", "a buffer is written with another type than it has"},
              {"training", "the module was exported in training mode", "export it after model.eval()"},
              {"write-through-view", "a view is written, and a tensor that shares its memory is read later",
               "write to the tensor itself, or work on x.clone()"},
              {"write-to-overlap", "a view is written in which several elements share memory", "work on x.clone()"},
              {"write-under-view", "a tensor is written, and a view of it is read later",
               "read the view before, or work on x.clone()"},
          }};
}

ErrorFamily program() {
  return {"program",
          "what was given is no program, or has not what is asked for",
          "`tosaic inspect` shows what the program is made of",
          ">>> tosaic.compile(model, target=\"tosa-fp\")\n"
          "error[program.example-inputs]: Net is a module: how is it called?",
          {
              {"branch", "Python branches on the values of a tensor while the module is exported",
               "use torch.where for values and torch.cond for computations"},
              {"device", "a tensor of the program is not in the CPU's memory", "export model.cpu()"},
              {"draft", "torch.export.draft_export could not export the module soundly",
               "use torch.where or torch.cond for branches on values, and torch._check for what holds always"},
              {"empty", "the program has no methods"},
              {"example-inputs", "a module is given without inputs to export it with",
               "give example_inputs: tosaic.compile(model, (x,), target=...)"},
              {"kind", "the object is neither a module, nor an exported program, nor a file of one",
               "give a torch.nn.Module with example_inputs, an ExportedProgram, or the path of a .pt2"},
              {"method", "the program has no method of this name"},
              {"not-serialisable", "PyTorch cannot write the program",
               "make all values that a loop carries tensors, and what its body reads buffers"},
              {"sample", "the program has no sample inputs of this number"},
              {"state-dict", "weights are given without a program", "load them: model.load_state_dict(...)"},
              {"tensor-class", "a weight is an instance of a tensor subclass",
               "call torchao.utils.unwrap_tensor_subclass(model) before torch.export.export"},
              {"torch-version", "programs of this version of torch are not supported", "install torch 2.9 or later"},
          }};
}

}  // namespace

std::vector<ErrorFamily> errors_of_models() { return {pt2(), pickle(), zip(), model(), program()}; }

}  // namespace tosaic
