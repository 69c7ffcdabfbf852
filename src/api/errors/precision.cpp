// SPDX-License-Identifier: Apache-2.0
// Quantisation: calibration, plans, and operators in integers.
#include "api/errors/families.h"

namespace tosaic {
namespace {

ErrorFamily calibrate() {
  return {"calibrate",
          "the calibration samples do not fit the program, or show that a range is poor",
          "give arrays with the names, types and shapes that `tosaic inspect` shows for the inputs",
          "$ tosaic compile digits.pt2 --target tosa-int --calibrate digits_test.npz -o digits.pte\n"
          "digits_test.npz: error[calibrate.unknown-input]: array 'label' belongs to no input of the model",
          {
              {"chosen", "--effort best found that other options give better results"},
              {"constant", "an input has one value in all samples: ranges hold little else",
               "give typical inputs as samples"},
              {"methods", "it is not clear to which method samples belong", "name it: --calibrate METHOD=FILE"},
              {"missing-input", "an input has no samples"},
              {"no-samples", "an integer target needs samples, and there are none",
               "give some: --calibrate FILE, in Python calibration=[...]"},
              {"normalisation", "the first batch norm sees other means or variances than in training",
               "give samples that are normalised as the inputs in training were"},
              {"not-a-number", "NaN or infinities in a sample make results that are no numbers",
               "leave such samples out, or look at how they were made"},
              {"not-finite", "NaN or infinities came up in the calibration; ranges leave them out",
               "check the samples, or apply masks after the model"},
              {"not-taken", "no sample takes this branch or loop; its scales follow from its operands",
               "add samples that take it"},
              {"same-samples", "all samples are the same", "give samples that differ as the inputs will"},
              {"sample", "a sample cannot be read"},
              {"sample-count", "inputs have different numbers of samples"},
              {"sample-type", "a sample has another type or shape than the input"},
              {"saturated", "values far below the others saturate", "nothing, if they stand for masked elements"},
              {"sizes", "the program is another one at these sizes, or has no calibration there"},
              {"state-range", "a buffer grew during the calibration", "add longer sequences of samples"},
              {"stored-samples", "the sample inputs in the file serve as calibration",
               "give typical inputs for better results: --calibrate FILE"},
              {"structure", "a sample does not have the form of a call", "give samples as the module is called"},
              {"unknown-input", "an array belongs to no input"},
              {"unresolved", "neighbouring quantised values lead to very different results: the operator stays float",
               "reduce its argument first, or use --quantize int16x8"},
              {"unused", "the samples are not used", "leave --calibrate out"},
          }};
}

ErrorFamily compare() {
  return {
      "compare",
      "a program cannot be held against its floats",
      "give a float program, a target with integers or narrower floats, and samples of the inputs' types",
      "$ tosaic compare digits.pt2 --target tosa-fp\n"
      "digits.pt2: error[compare.floats]: tosa-fp computes the program's floats as they are: nothing is narrower",
      {
          {"already-quantised", "the program was quantised before: its floats are not in it", "give the float program"},
          {"calibration", "the artifact's calibration was an iterator, which is used up",
           "call tosaic.compare with the samples, or give compile a list"},
          {"control-flow", "parts of the program run on the device inside of branches or loops",
           "compare the module that is in them by itself"},
          {"device", "the program does not run on a device that computes floats its own way", "leave --on-device out"},
          {"floats", "the target computes the program's floats as they are", "choose integers, or narrower floats"},
          {"labels", "labels do not belong to the samples or to the first output",
           "give one integer to each sample, or to each row of its first output"},
          {"methods", "there are several methods or sizes", "compare one at a time"},
          {"no-samples", "no sample has the sizes that the program is compiled for", "give --samples"},
          {"not-a-number", "a sample has NaN", "give samples as the model will see them"},
          {"nothing-quantised", "no tensor of the program becomes integers", "see `tosaic explain`"},
          {"sizes", "the program's sizes vary on this target", "choose them: --sizes"},
          {"states", "what the program keeps from run to run cannot be computed"},
      }};
}

ErrorFamily evaluate() {
  return {
      "evaluate",
      "a program cannot be run on a data set",
      "the data are arrays as the program takes them, the labels whole numbers that count its classes from 0",
      "$ tosaic evaluate digits.pte --data digits_test.npz --labels digit.npy\n"
      "digit.npy: error[evaluate.labels]: the labels are no integers",
      {
          {"alone", "neither labels nor floats say what is right", "give --labels, or --float with the model's .pt2"},
          {"data", "the data do not fit the program's inputs",
           "name the arrays after the inputs, with the samples along a first axis"},
          {"labels", "labels do not belong to the samples, or to the first output",
           "give one integer to each sample, or to each row of its first output, counted from 0"},
          {"metric", "the metric gives no number", "return a float for one sample"},
          {"nothing", "the data set holds no sample", "give one at least"},
          {"outputs", "the program and its floats give unlike results",
           "hold a program against the .pt2 that it was compiled from"},
          {"skipped", "a file or sample of the data set cannot be read; the others count",
           "repair it, or take it away"},
      }};
}

ErrorFamily sweep() {
  return {"sweep",
          "a model is not compiled for what is asked for",
          "name targets and precisions that there are",
          "$ tosaic sweep digits.pt2 --targets vgf --precision fp16\n"
          "error[sweep.nothing]: no target that is asked for has a precision that is asked for",
          {
              {"nothing", "the targets have none of the precisions", "leave --precision or --targets out"},
              {"precision", "there is no such precision", "int8, int16x8, int4, float or fp16"},
              {"program", "a program that was read before cannot be sent to other processes",
               "give the path, the bytes or the module that it was made of"},
          }};
}

ErrorFamily tune() {
  return {"tune",
          "no mixed precision can be chosen",
          "give a budget, 'snr>=30' or 'cycles<=1.15x', and an integer target with 16-bit activations",
          "$ tosaic tune digits.pt2 --budget quick -o digits.plan\n"
          "error[tune.budget]: 'quick' is no budget",
          {
              {"budget", "the budget cannot be read", "say 'snr>=30', 'top1>=float-0.5' or 'cycles<=1.15x'"},
              {"chosen", "which calls have 16 bits so that the budget is met"},
              {"labels", "the budget counts right answers, and there are no labels", "give --evaluate FILE.npz"},
              {"missed", "the budget cannot be met: the plan that comes nearest is written", "ask for less"},
              {"no-int16", "the target has no 16-bit activations", "choose another target"},
              {"scheme", "all activations have 16 bits already", "leave out --quantize int16x8"},
              {"unit", "nobody estimates this cost for the target", "say 'bytes<=1.1x'"},
          }};
}

ErrorFamily plan() {
  return {"plan",
          "a quantisation plan or override cannot be read, or does not fit the program",
          "`tosaic explain --plan` prints a plan of the program",
          "$ tosaic compile digits.pt2 --calibrate digits_samples.npz -o digits.pte --plan other.pt2\n"
          "other.pt2: error[plan.not-text]: this is no text file",
          {
              {"already-quantised", "the program was quantised by PT2E and keeps its scales", "leave the plan out"},
              {"empty", "the plan file is empty"},
              {"floats", "the target computes floats: there is nothing to plan", "choose an integer target"},
              {"impossible", "the plan asks for something that an operator cannot do"},
              {"incomplete", "the plan leaves a call or tensor out"},
              {"names-nothing", "an override names nothing of the program"},
              {"not-text", "the file is no text"},
              {"not-this-program", "the plan is of another program", "make one of this program"},
              {"refused", "the target does not have the form that the plan asks for"},
              {"scheme", "the plan and --quantize ask for different schemes", "leave --quantize out"},
              {"syntax", "a line of the plan has a syntax error"},
              {"unknown-tensor", "the plan names a tensor that the program does not have"},
              {"without-effect", "a line of the plan changes nothing", "leave the line out"},
          }};
}

ErrorFamily quantise() {
  return {
      "quantise",
      "an operator has no integer form with these scales and types, or loses precision in it",
      "change the model there, or leave the quantisation to samples: --calibrate",
      "$ tosaic compile digits.pt2 --target tosa-fp --weights int4 -o m.pte\n"
      "note[quantise.small-weights]: 'p_classifier_weight' (10x32) stays float: quantising fewer than 16384 weights "
      "would save little",
      {
          {"bias-range", "the bias does not fit the accumulator of two computed tensors"},
          {"bias-type", "the bias is neither constant nor quantised"},
          {"cast-to-integer", "a quantised tensor is cast to an integer type"},
          {"composite", "tensors inside a composite operator have no scales"},
          {"division", "a quotient of these types has no integer form"},
          {"float-states", "states of a program of floats are not written by rows: they stay float", "nothing"},
          {"factor", "a quantised tensor is multiplied by 0, NaN or infinity"},
          {"float-only", "the operator has no integer form: it runs in floats"},
          {"float-operand", "an operand is float where the others are quantised"},
          {"group-size", "rows of a weight do not divide into groups", "choose another --group-size"},
          {"masked-output", "an output mixes a mask's large negative values with others",
           "apply the mask after the model, or return the tensor without the mask"},
          {"overflow", "the integer form of the operator may exceed its accumulator"},
          {"pointwise-operand", "a pointwise function takes a second computed tensor"},
          {"power", "a base that may be below zero, to a power that is computed, has no integer form"},
          {"product-form", "a product of these types has no integer form"},
          {"rescale-axis", "scales run along an axis that RESCALE does not have"},
          {"rescale-types", "RESCALE does not convert between these types"},
          {"scale-mismatch", "operands that need one scale have different ones, or none"},
          {"scale-range", "a scale factor is outside what RESCALE can express"},
          {"small-weights", "weights are so few that quantising them would save little: they stay float", "nothing"},
          {"table-resolution", "a lookup table is too coarse for the function", "use --quantize int16x8"},
          {"table-types", "a lookup table does not convert between these types"},
          {"unlike-ranges", "tensors of very different ranges are combined under one scale",
           "use --quantize int16x8, or scale the smaller one first"},
          {"unlike-rows", "normalised rows differ much in size: small ones lose precision", "use --quantize int16x8"},
          {"unobserved", "the operator cannot run in the calibration: it stays float",
           "define its lowering in Python: tosaic.lowering"},
          {"weight-type", "a weight has no scale for its bias"},
      }};
}

ErrorFamily quantizer() {
  return {"quantizer",
          "a PT2E quantizer of tosaic.executorch is used wrongly",
          "see docs/executorch.md",
          ">>> quantizer.annotate(model)\n"
          "error[quantizer.program]: a Net is no exported graph",
          {
              {"config", "the quantization config is not taken"},
              {"devices", "the graph's tensors are on several devices", "move them to the CPU"},
              {"finder", "the node finder is not taken"},
              {"names-nothing", "a name is that of no module or node"},
              {"program", "the object is no exported graph", "give torch.export.export(model, inputs).module()"},
              {"spec", "the quantization spec is not taken"},
              {"write", "the graph writes to a tensor that is read later", "work on a copy: x = x.clone()"},
          }};
}

}  // namespace

std::vector<ErrorFamily> errors_of_precision() {
  return {calibrate(), compare(), evaluate(), plan(), quantise(), quantizer(), sweep(), tune()};
}

}  // namespace tosaic
