# SPDX-License-Identifier: Apache-2.0
"""As `ours`, with tosaic's quantizers in place of ExecuTorch's as well: the suite's programs are annotated by the
core's plan, lowered by tosaic's partitioners and run by tosaic's backends.

    make test-executorch-suite PLUGIN=ours_quantized SAMPLE=200

`quantized_left.txt` says which tests may fail in addition to those of `left.txt`, and why.
"""
import importlib
import pathlib

import ours
from chosen import choose

LEFT = [ours.LEFT, pathlib.Path(__file__).with_name("quantized_left.txt")]
WITH_QUANTIZERS = ("executorch.backends.arm.quantizer", "executorch.backends.arm.quantizer.arm_quantizer")


def _put_in_quantizers() -> None:
    """Before the suite's modules import them by name."""
    from executorch.backends.arm.tosa.specification import TosaSpecification

    import tosaic.executorch as tosaic
    from tosaic.executorch import quantizer

    def spec_of(given):
        if isinstance(given, TosaSpecification):
            return str(given)
        if hasattr(given, "target"):
            return tosaic.EthosUCompileSpec(given.target)
        kind = tosaic.VgfCompileSpec if given._get_output_format() == "vgf" else tosaic.TosaCompileSpec
        return kind(str(given.tosa_spec))

    class TOSAQuantizer(quantizer.TOSAQuantizer):
        def __init__(self, compile_spec, use_composable_quantizer=True):
            super().__init__(spec_of(compile_spec), use_composable_quantizer)

    names = {"TOSAQuantizer": TOSAQuantizer}
    for name in ("EthosUQuantizer", "VgfQuantizer"):
        names[name] = type(name, (TOSAQuantizer,), {})
    for path in WITH_QUANTIZERS:
        module = importlib.import_module(path)
        for name, kind in names.items():
            setattr(module, name, kind)


def pytest_configure(config):
    _put_in_quantizers()
    ours.pytest_configure(config)


def pytest_collection_modifyitems(config, items):
    choose(config, items, "arm/test/", *LEFT)


pytest_make_collect_report = ours.pytest_make_collect_report
