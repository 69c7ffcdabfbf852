# SPDX-License-Identifier: Apache-2.0
"""The ways of computing a model that are compared: functions from a model to its results on all test calls."""
import copy
import dataclasses
import warnings

import torch

from model import decibels

TOSAIC = {"int8": {"quantize": "int8"}, "int16x8": {"quantize": "int16x8"},
          "int8, weights int4": {"quantize": "int8", "weights": "int4"},
          "float, weights int4": {"target": "tosa-fp", "weights": "int4"}}
HALF = {"fp16": torch.float16, "bf16": torch.bfloat16}  # the program in these; "PyTorch fp16": as PyTorch computes it
# Of models that say how to train: with quantisation, and as long without it before they are quantised.
QAT = {"QAT int8": {}, "QAT int8, weights int4": {"weight_qmin": -7, "weight_qmax": 7}}
LONGER = {"longer float": None, "longer int8": TOSAIC["int8"], "longer int8, weights int4": TOSAIC["int8, weights int4"]}
TRAINED = [*LONGER, *QAT]
COLUMNS = ["float", *TOSAIC, "PT2E int8", *HALF, *(f"PyTorch {name}" for name in HALF)]


def arrays(results):
    results = results if isinstance(results, (tuple, list)) else (results,)
    return tuple(r.detach().numpy().copy() for r in results)


def played(model, call):
    """The results on the test calls, one after the other."""
    if model.play:
        return [arrays(r) for stream in model.test for r in model.play(call, stream)]
    return [arrays(call(*inputs)) for inputs in model.test]


def in_float(model):
    with torch.no_grad():
        return played(model, model.module)


def in_tosaic(model, **options):
    """As the artifact runs, on the CPU: its integers, or its floats."""
    import tosaic
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        artifact = tosaic.compile(model.module, model.calibration[0], calibration=model.calibration,
                                  **{"target": "tosa-int", **options})
    return played(model, artifact.run)


def in_half_precision(model, column):
    """Weights, inputs and arithmetic in 16 bits; the results as floats, which dB are taken of."""
    dtype = HALF[column.removeprefix("PyTorch ")]
    module = copy.deepcopy(model.module).to(dtype)
    half = lambda inputs: tuple(x.to(dtype) if x.is_floating_point() else x for x in map(torch.as_tensor, inputs))
    call = module
    if column in HALF:
        import tosaic
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call = tosaic.compile(module, half(model.calibration[0]), target="tosa-fp").run

    def floats(*inputs):
        with torch.no_grad():
            results = call(*half(inputs))
        return tuple(r.float() for r in (results if isinstance(results, (tuple, list)) else (results,)))
    return played(model, floats)


def in_pt2e(model):
    """As ExecuTorch's Arm quantizer leaves it, in PyTorch."""
    from executorch.backends.arm.quantizer import TOSAQuantizer, get_symmetric_quantization_config
    from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
    quantizer = TOSAQuantizer(TosaCompileSpec("TOSA-1.0+INT")).set_global(get_symmetric_quantization_config(is_per_channel=True))
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.export.export(model.module, model.calibration[0])
        prepared = prepare_pt2e(program.module(check_guards=False), quantizer)
        for inputs in model.calibration:
            prepared(*inputs)
        return played(model, convert_pt2e(prepared))


def trained_longer(model):
    """The model after what `in_training` trains, in floats."""
    module = copy.deepcopy(model.module).train()
    torch.manual_seed(1)
    model.train(module, tuning=True)
    return dataclasses.replace(model, module=module.eval())


def in_training(model, **config):
    """As the artifact runs after training with rounding, by tosaic's quantizer."""
    import tosaic
    from torchao.quantization.pt2e import move_exported_model_to_eval
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_qat_pt2e
    from tosaic.executorch import TOSAQuantizer, get_symmetric_quantization_config
    quantizer = TOSAQuantizer("tosa-int").set_global(get_symmetric_quantization_config(is_qat=True, **config))
    some = tuple(torch.cat(calls) for calls in zip(*model.calibration[:7]))  # a number that no other size has
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.export.export(copy.deepcopy(model.module).train(), some,
                                      dynamic_shapes=tuple({0: torch.export.Dim.DYNAMIC} for _ in some))
        prepared = prepare_qat_pt2e(program.module(check_guards=False), quantizer)
        torch.manual_seed(1)
        model.train(prepared, tuning=True)
        move_exported_model_to_eval(prepared)
        program = torch.export.export(convert_pt2e(prepared), model.calibration[0])
        return played(model, tosaic.compile(program, target="tosa-int").run)


class Measured:
    """The figures of one draw of a model; what they are compared with is computed once."""

    def __init__(self, model, options=()):
        self.model, self.options, self.expected, self.found = model, dict(options), in_float(model), {}

    def figure(self, column):
        """{"metric": ..., "dB": ...}, or {"refused": why}."""
        if column not in self.found:
            self.found[column] = self.measure(column)
        return self.found[column]

    def measure(self, column):
        if column == "float":
            return {"metric": self.model.score(self.expected)}
        try:
            if column in TRAINED and self.model.train is None:
                return {"refused": "its weights were not trained here"}
            if column in QAT:
                results = in_training(self.model, **QAT[column])
            elif column in LONGER:
                model, options = trained_longer(self.model), LONGER[column]
                results = in_float(model) if options is None else in_tosaic(model, **options)
            elif column in TOSAIC:
                results = in_tosaic(self.model, **{**TOSAIC[column], **self.options})
            else:
                results = in_pt2e(self.model) if column == "PT2E int8" else in_half_precision(self.model, column)
        except ImportError:
            raise
        except Exception as why:  # a refusal of either tool is a result
            return {"refused": f"{type(why).__name__}: {why}"[:300]}
        of = lambda rows: [row[self.model.output] for row in rows]
        return {"metric": self.model.score(results), "dB": decibels(of(self.expected), of(results))}
