# SPDX-License-Identifier: Apache-2.0
"""A pytest plug-in that puts tosaic's partitioners, and its runtimes, under the tests that ExecuTorch's wheel carries for
its Arm backends. What needs Arm's closed simulator or a phone there runs here on tosaic's, in ExecuTorch's own runtime.

    make test-executorch-suite SAMPLE=20 SEED=3       # every twentieth test; SAMPLE=1: all

`left.txt` says which tests may fail, and why.
"""
import pathlib

import pytest
from chosen import choose, skip_if_incomplete

LEFT = pathlib.Path(__file__).with_name("left.txt")


def _stand_in() -> None:
    from executorch.backends.arm.test import runner_utils

    # Asked when the suite's modules are imported: before them.
    for tool in ("corstone300_installed", "corstone300_u65_installed", "corstone320_installed", "model_converter_installed",
                 "vkml_emulation_layer_installed"):
        setattr(runner_utils, tool, lambda: True)
    runner_utils.arm_executor_runner_exists = lambda *_, **__: True

    from executorch.backends.arm.ethosu import EthosUCompileSpec
    from executorch.backends.arm.test.tester import arm_tester, serialize
    from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec

    import tosaic.executorch as ours
    import tosaic.executorch.runtime as runtime

    def create_partitioner(spec, checks=None):
        if isinstance(spec, TosaCompileSpec):
            made = ours.TosaCompileSpec(spec.tosa_spec)
        elif isinstance(spec, EthosUCompileSpec):
            made = ours.EthosUCompileSpec(spec.target)
        else:
            made = ours.VgfCompileSpec(spec.tosa_spec)
        return ours.ArmPartitioner(made.dump_intermediate_artifacts_to(spec._get_intermediate_path()), checks)

    def run_target(manager, inputs, *_, **__):
        return tuple(runtime.load_program(manager.buffer).load_method("forward").execute(list(inputs)))

    arm_tester.create_partitioner = create_partitioner
    serialize.run_target = run_target
    serialize.get_elf_path = lambda *_, **__: str(runtime.plugin)


def _random_weights() -> None:
    """Models have those that they begin with: nothing is downloaded."""
    import torch

    downloaded, load = {}, torch.nn.Module.load_state_dict
    torch.hub.load_state_dict_from_url = lambda *_, **__: downloaded
    torch.nn.Module.load_state_dict = lambda self, state, *args, **kwargs: (
        None if state is downloaded else load(self, state, *args, **kwargs))


def pytest_configure(config):
    _stand_in()
    _random_weights()


def pytest_collection_modifyitems(config, items):
    choose(config, items, "arm/test/", LEFT)


@pytest.hookimpl(hookwrapper=True)
def pytest_make_collect_report(collector):
    report = (yield).get_result()
    skip_if_incomplete(report, report.call)
