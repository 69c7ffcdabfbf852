// SPDX-License-Identifier: Apache-2.0
// PyTorch's operators, and how they become TOSA.
#include "api/errors/families.h"

namespace tosaic {
namespace {

ErrorFamily aten() {
  return {
      "aten",
      "a call of a PyTorch operator has no form in TOSA: aten.OPERATOR.RULE, or aten.RULE of any operator",
      "change the model at this line, or choose a target that takes it",
      "$ tosaic compile unknown_operator.pt2 --target tosa-fp -o m.pte --require-full-delegation\n"
      "make_models.py:31: error[aten.unknown-operator]: operator acme.secret.default is not known to tosaic",
      {
          {"arange-step", "the step leads away from the end"},
          {"argument-length", "a list argument has the wrong number of elements"},
          {"argument-range", "a scalar argument is outside what its dtype holds"},
          {"argument-type", "an argument has the wrong type"},
          {"bitwise-float", "a bitwise operator is called with floats"},
          {"broadcast", "the operands' shapes do not broadcast"},
          {"celu-alpha", "celu is undefined for alpha 0"},
          {"concat-shape", "the shapes of concatenated tensors do not fit"},
          {"dim-range", "a dim is outside the tensor's rank"},
          {"empty-tensor", "a tensor has no elements, which TOSA does not have"},
          {"expand-rank", "a tensor expands to a smaller rank"},
          {"expand-size", "a size other than 1 expands"},
          {"glu-odd", "glu splits a dim of odd size"},
          {"glu-rank", "glu is called with a scalar"},
          {"integer-power", "an integer power that TOSA does not have"},
          {"kernel-size", "a window does not fit its padded input"},
          {"linspace-steps", "the number of steps is negative or unknown"},
          {"missing-argument", "an argument is missing"},
          {"missing-tensor", "a tensor argument is missing or None"},
          {"mixed-dtypes", "the operands have different dtypes", "convert one of them: x.to(y.dtype)"},
          {"nan-bound", "a bound is NaN"},
          {"negative-size", "a size is negative"},
          {"no-lowering", "tosaic does not lower the operator"},
          {"packed-weight", "packed weights are computed at run time, or their sizes do not fit",
           "make weights and scales constants"},
          {"mxfp.block-size", "block-scaled weights have another block size than 32"},
          {"mxfp.shape", "block-scaled weights, their scales and the input have shapes that do not fit"},
          {"mxfp.type", "block-scaled weights are of a type that TOSA 1.1 does not have"},
          {"mxfp.weight", "block-scaled weights are computed at run time", "make weights and scales constants"},
          {"permute-rank", "a permutation has another length than the tensor's rank"},
          {"random", "the operator draws random numbers", "draw them outside the model, and give them as an input"},
          {"reshape-size", "a new shape has another number of elements"},
          {"resized", "a tensor is resized in place, and its new elements are undefined"},
          {"symbolic-argument", "an argument is known only at run time", "export the model with fixed sizes"},
          {"symbolic-shape", "a size is known only at run time, and this operator needs it",
           "export the model with fixed input sizes"},
          {"too-large", "the result or a constant has too many elements"},
          {"training", "the operator is random in training mode", "export the model after model.eval()"},
          {"unknown-operator", "the operator is not known to tosaic",
           "of PyTorch's operators: save `ep.run_decompositions()` instead, it may be made of those that `tosaic ops` "
           "lists; of your own: define in Python what it means, tosaic.lowering(OPERATOR)"},
          {"*.add-dtype", "values of this dtype cannot be added at indices that may repeat"},
          {"*.align_corners", "antialiasing with aligned corners is not taken"},
          {"*.align_to_window", "align_to_window is not taken"},
          {"*.arguments", "an argument list has the wrong length or values out of range"},
          {"*.bias", "the bias does not fit the outputs"},
          {"*.broadcast", "the operands' batches do not broadcast"},
          {"*.channels", "the channels of input and weight do not agree"},
          {"*.complex", "the operator is given complex numbers, or real ones where it takes complex"},
          {"*.dim", "a dim is outside the tensor, or given twice"},
          {"*.dims", "dims are outside the tensor, repeated, or do not agree"},
          {"*.dropout", "dropout is for training", "export the model after model.eval()"},
          {"*.dtype", "an operand has a dtype that the operator does not take"},
          {"*.empty", "the result would have no elements"},
          {"*.groups", "the groups do not divide the channels"},
          {"*.index", "an index is outside the dim"},
          {"*.length", "a length does not fit"},
          {"*.mask", "a boolean mask gives a size that is known only at run time", "use torch.where"},
          {"*.mode", "the mode is not taken"},
          {"*.range", "a value or position is out of range"},
          {"*.rank", "a tensor has a rank that the operator does not take"},
          {"*.scale", "the scale of a resampling is not taken"},
          {"*.self", "the first operand has a shape or dtype that does not fit"},
          {"*.shape", "the operands' shapes do not fit"},
          {"*.size", "a size does not fit, or is too large"},
          {"*.sizes", "sizes do not add up"},
          {"*.training", "the operator is random in training mode", "export the model after model.eval()"},
          {"*.window", "a window is too large, or has a type that does not fit"},
          {"*.*", "an argument of the operator has no form in TOSA; the message names it"},
      }};
}

ErrorFamily lower() {
  return {
      "lower",
      "the lowering of an operator to TOSA does not give what the program states",
      "choose another target, and please report the model",
      "$ tosaic explain net.pt2 --target vulkan\n"
      "model.py:12: error[lower.sizes]: aten.view.default depends on the sizes in a way that is not known",
      {
          {"missing-result", "a result of the operator has no form in TOSA", "do not use that result"},
          {"result-type", "TOSA gives a result of another type than the program states"},
          {"sizes", "how the lowering depends on dynamic sizes is not known", "choose the sizes: --sizes NAME=SIZE"},
      }};
}

ErrorFamily lowering() {
  return {
      "lowering",
      "a lowering in Python (tosaic.lowering) is wrong",
      "correct the function",
      ">>> @tosaic.lowering(\"aten::relu\")\n"
      "error[lowering.known]: relu6 (model.py:3) is a lowering of aten::relu, which tosaic lowers itself",
      {
          {"failed", "the function raised an exception"},
          {"known", "tosaic lowers the operator itself",
           "give lowerings of operators that `tosaic.operators()` does not list"},
          {"operator", "there is no such operator", "define it first: torch.library.custom_op, or load its library"},
          {"result", "the function gives other types than the operator"},
          {"signature", "the function does not take the operator's arguments"},
          {"twice", "the operator has a lowering already", "leave one of them out, or say replace=True"},
      }};
}

ErrorFamily tosa_rules() {
  return {"tosa",
          "a call breaks a rule of the TOSA specification: tosa.OPERATOR.RULE",
          "the graph breaks a rule of the TOSA specification: correct it where it was made",
          "$ tosaic run net.tosa\n"
          "net.tosa: error[tosa.concat.rank-mismatch]: concat: tensor 1 has rank 2, tensor 0 has rank 3",
          {
              {"dtype", "the result of a TOSA call in Python has a dtype that PyTorch does not have",
               "use operands of another dtype"},
              {"evaluate", "the TOSA call cannot be computed by itself in Python", "compile a program that calls it"},
              {"operator", "TOSA has no such operator", "tosaic.tosa lists them"},
              {"spec", "the text of a TOSA specification cannot be read", "write it like TOSA-1.0.0+INT+FP"},
              {"unpredictable", "the values lead to a result that TOSA leaves open, so none is made up",
               "look for indices outside their table and divisions by zero, in the inputs or in the model", true},
              {"graph.*", "the graph as a whole is not valid TOSA"},
              {"*.axis", "the axis is outside the operand"},
              {"*.bias-size", "the bias has another size than the channels"},
              {"*.broadcast", "the operands' shapes do not broadcast"},
              {"*.level-*", "a size exceeds the limits of the TOSA level", "use --level none, or smaller sizes"},
              {"*.output-shape", "the result's shape is not what TOSA computes"},
              {"*.output-size", "the result's size is not what TOSA computes"},
              {"*.rank", "an operand has a rank that the operator does not take"},
              {"*.type", "an operand has a type that the operator, or the target's profile, does not take"},
              {"*.*", "an ERROR_IF condition of the specification holds; the message names the values"},
          }};
}

ErrorFamily domain() {
  return {"domain",
          "a call in an operator's source file (its `domain`) cannot be read",
          "correct the call in the operator's file: test/ops/README.md tells its language",
          "$ tosaic ops --markdown\n"
          "error[domain.bad-call]: src/ops/aten/add.cpp: \"x(2,3\": ')' is missing",
          {
              {"bad-call", "the call has a syntax error"},
              {"bad-exception", "a word after # is no exception"},
              {"no-reason", "an exception gives no reason"},
          }};
}

ErrorFamily call() {
  return {"call",
          "a TOSA call in C++ or Python does not fit the operator's schema",
          "`tosaic::tosa_operators()` gives the schema of each call",
          ">>> tosaic.tosa.add(x, y, mode=\"fast\")\n"
          "error[call.argument]: tosa.add: it has no argument 'mode'",
          {{"argument", "an argument is missing, unknown, or of another type"}}};
}

}  // namespace

std::vector<ErrorFamily> errors_of_operators() { return {aten(), lower(), lowering(), tosa_rules(), domain(), call()}; }

}  // namespace tosaic
