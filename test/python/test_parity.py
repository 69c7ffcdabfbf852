# SPDX-License-Identifier: Apache-2.0
"""docs/parity.md: ExecuTorch's public names for Arm and Vulkan compared with ours, found by looking at both packages.

A name is here when tosaic.executorch has it with the same arguments, with the same defaults. What is absent has a reason in
`ABSENT`, what is more than the same, or different, a sentence in `BETTER` or `OTHER`; a sentence about nothing is an error. `make pages` writes the
page again."""
import ast
import dataclasses
import enum
import fnmatch
import functools
import importlib
import importlib.util
import inspect
import os
import pathlib

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "parity.md"
OURS = ["tosaic.executorch", "tosaic.executorch.compile_specs", "tosaic.executorch.quantizer", "tosaic.executorch.recipes",
        "tosaic.executorch._scripts"]

# Which modules' names count, and under which heading. Their own manifest is made of the names in LAZY_IMPORTS.
SECTIONS = {
    "Arm: what ExecuTorch calls its public API": ["executorch.backends.arm"],
    "Arm: what scripts and tests import in addition to it": [
        "executorch.backends.arm.ethosu", "executorch.backends.arm.vgf", "executorch.backends.arm.tosa",
        "executorch.backends.arm.quantizer", "executorch.backends.arm.quantizer.arm_quantizer",
        "executorch.backends.arm.quantizer.quantization_config", "executorch.backends.arm.tosa.compile_spec",
        "executorch.backends.arm.tosa.partitioner", "executorch.backends.arm.tosa.backend",
        "executorch.backends.arm.common.arm_compile_spec", "executorch.backends.arm.common.pipeline_config",
        "executorch.backends.arm.recipes", "executorch.backends.arm.vgf.check_env", "executorch.backends.arm.util._factory"],
    "Vulkan": ["executorch.backends.vulkan", "executorch.backends.vulkan.partitioner.vulkan_partitioner",
               "executorch.backends.vulkan.quantizer.vulkan_quantizer"],
}

# Names of earlier versions that scripts still have, with the arguments that those documented.
OLDER = {
    "executorch.backends.arm.arm_backend.ArmCompileSpecBuilder": [],
    "executorch.backends.arm.arm_backend.ArmCompileSpecBuilder.ethosu_compile_spec": [
        "target", "system_config", "memory_mode", "extra_flags", "config_ini"],
    "executorch.backends.arm.arm_backend.ArmCompileSpecBuilder.vgf_compile_spec": ["tosa_spec", "compiler_flags"],
    "executorch.backends.arm.arm_backend.ArmCompileSpecBuilder.tosa_compile_spec": ["tosa_spec"],
    "executorch.backends.arm.arm_backend.ArmCompileSpecBuilder.dump_intermediate_artifacts_to": ["output_path"],
    "executorch.backends.arm.arm_backend.ArmCompileSpecBuilder.build": [],
    "executorch.backends.arm.arm_partitioner.ArmPartitioner": ["compile_spec"],
    "executorch.backends.arm.vgf.VgfCompileSpec.get_intermediate_path": [],
    "executorch.backends.arm.vgf.VgfCompileSpec.get_output_format": [],
    "executorch.backends.arm._passes.InsertCastForOpsWithInt64InputPass": [],
    "executorch.backends.arm.arm_backend.is_tosa": ["compile_spec"],
    "executorch.backends.arm.arm_backend.is_ethosu": ["compile_spec"],
    "executorch.backends.arm.arm_backend.is_vgf": ["compile_spec"],
    "executorch.backends.arm.arm_backend.get_tosa_spec": ["compile_spec"],
    "executorch.backends.arm.arm_backend.get_intermediate_path": ["compile_spec"],
}

# What ExecuTorch's documents of these backends name, by any path: each has to be in the page.
DOCUMENTED = """
    VgfCompileSpec VgfCompileSpec.tosa_spec VgfCompileSpec.compiler_flags VgfCompileSpec.dump_debug_info
    VgfCompileSpec.dump_debug_info.debug_mode VgfCompileSpec.DebugMode VgfCompileSpec.dump_intermediate_artifacts_to
    VgfCompileSpec.dump_intermediate_artifacts_to.output_path VgfCompileSpec.get_intermediate_path
    VgfCompileSpec.get_output_format TosaSpecification ArmCompileSpec ArmCompileSpec.DebugMode
    EthosUBackend VgfBackend TOSABackend EthosUQuantizer TOSAQuantizer VgfQuantizer TOSAPartitioner VgfPartitioner
    InsertCastForOpsWithInt64InputPass ArmPartitioner ArmCompileSpecBuilder ArmCompileSpecBuilder.build
    ArmCompileSpecBuilder.ethosu_compile_spec ArmCompileSpecBuilder.ethosu_compile_spec.system_config
    ArmCompileSpecBuilder.ethosu_compile_spec.memory_mode ArmCompileSpecBuilder.ethosu_compile_spec.extra_flags
    EthosUPartitioner EthosUPartitioner.additional_checks EthosUQuantizer.set_global EthosUQuantizer.compile_spec
    get_symmetric_quantization_config get_symmetric_quantization_config.is_per_channel VulkanPartitioner
""".split()

# ExecuTorch's command line tools: what does here what each of their options does.
SCRIPTS = {
    "aot_arm_compiler": {
        "model_name": "`tosaic compile MODEL.pt2`; of a module in Python `tosaic.compile(module, example_inputs, ...)`",
        "model_input": "`example_inputs`; of a `.pt2` those that are stored in it",
        "delegate": "always; what the target does not take stays outside",
        "bundleio": "`artifact.save(\"model.bpte\", cases=[...])`",
        "etrecord": "`to_edge_transform_and_lower(..., generate_etrecord=True)` with tosaic's partitioners",
        "target": "`--target`",
        "cortex-m-explicit-layout": "none: tosaic has no backend of Cortex-M's own kernels",
        "evaluate": "`artifact.run(x)` here, on the simulated device, compared with `model(x)`",
        "evaluate_config": "as of `evaluate`",
        "quantize": "integer targets do; `--quantize int8`, `int16x8` elsewhere",
        "calibration_data": "`--calibrate` (`.npz`, `.npy`, a folder); in Python `calibration=` takes a loader",
        "so_library": "`tosaic.lowering(OPERATOR)` says what a custom operator means",
        "debug": "`--verbose`, `--print-after STAGE`",
        "intermediates": "`--emit tosa=PATH`, `vgf=PATH`, `vela=DIR`",
        "output": "`-o`",
        "system_config": "`--system-config`",
        "memory_mode": "`--memory-mode`",
        "config": "`--vela-config`",
        "non_strict_export": "exports are non-strict; for a strict one give `torch.export.export(..., strict=True)`",
        "enable_qdq_fusion_pass": "without effect there",
        "enable_debug_mode": "`--report FILE` is the manifest; tensors of `--emit tosa=PATH` have the nodes' names",
        "direct_drive": "none: a payload is what ExecuTorch's driver takes; Vela's own options are `--vela-flags`",
    },
    "evaluate_model": {
        "model_name": "as above",
        "target": "`--target`, `--tosa-spec`",
        "quant_mode": "`--quantize int8`, `int16x8`; `weights=\"int4\"`",
        "calibration_data": "`--calibrate`",
        "no_delegate": "`tosaic.Program.of(converted).session()` runs a quantised program outside delegates",
        "evaluators": "`artifact.run` over your samples: numbers are those of the device; `tosaic.check` compares cases",
        "evaluation_dataset": "a loop over your loader",
        "batch_size": "the loader's; calibration splits its batches",
        "max_samples": "`itertools.islice(loader, n)`",
        "so_library": "`tosaic.lowering(OPERATOR)`",
        "debug": "`--verbose`",
        "dtype": "`model.half()` before it is given: f16 is taken where the target has them",
        "intermediates": "`--emit`",
        "output": "`--report FILE`; what is measured is Python's",
    },
}

BETTER = {
    "EthosUCompileSpec": "`extra_flags` may be one text; an unknown target is refused with the list of those that there are",
    "*CompileSpec.dump_debug_info": "`JSON` is the manifest: where every node went, with its source line",
    "*Partitioner.partition": "`refused` has a reason, with the source line, for every node that stays outside; a group is "
                              "lowered before it is tagged",
    "*Partitioner.ops_to_not_decompose": "what the delegate takes is asked of the core: nothing is left \"not decomposed or "
                                         "delegated\"",
    "VgfBackend.preprocess": "in memory; needs no model converter",
    "EthosUBackend.preprocess": "in memory, but for Vela's files",
    "TOSABackend.preprocess": "in memory",
    "VgfCompileSpec.validate_environment": "nothing can be missing: tosaic writes VGF itself",
    "*Quantizer": "also takes the name of a target",
    "*Quantizer.annotate": "annotates [the plan](plan.md): composites and all, no list of operators",
    "*Quantizer.[im]*_config": "can be read, too (ExecuTorch's composable quantizer refuses that)",
}

OTHER = {
    "*.set_pass_pipeline_config": "taken, and without effect: each operator has one lowering",
    "*Quantizer.tosa_spec": "its text",
}

ABSENT = {
    "MXFPOpConfig*": "ExecuTorch's own is taken: its layers [compile](numerics.md#quantised-weights-in-float-programs)",
    "to_mxfp": "as of MXFPOpConfig",
    "*CompileSpec.preserve_io_quantization": "what is at a delegate's boundary is decided node by node",
    "*CompileSpec.tosa_dev_mode": "no part of TOSA is experimental in tosaic",
    "TosaSpecification*": "ExecuTorch's own is taken, and so is its text",
    "*.filter_tosa_compile_specs": "a step inside ExecuTorch's VGF and Ethos-U backends",
    "TOSAQuantizationConfig*": "QuantizationConfig does: which tensors share a scale is in the plan",
    "VGFQuantizationConfig*": "as of TOSAQuantizationConfig",
    "*PipelineConfig*": "as of set_pass_pipeline_config",
    "SoftmaxDecompositionConfig*": "as of ArmPassPipelineConfig",
    "LeakyReLULoweringConfig*": "as of ArmPassPipelineConfig",
    "SDPASafeSoftmaxGuardPolicy*": "as of ArmPassPipelineConfig",
    "QuantizeInfConfig*": "as of ArmPassPipelineConfig",
    "VgfEnvironment*": "ExecuTorch's own is what `validate_environment` gives",
    "*vgf*available": "there is nothing to look for: tosaic writes VGF itself",
    "check_*environment": "there is nothing to look for: tosaic writes VGF itself",
    "main": "a command of ExecuTorch's; [its options](#its-command-line-tools)",
    "is_partitioned": "a step inside ExecuTorch's partitioner",
    "reject_partition": "a step inside ExecuTorch's partitioner",
    "Decomposable*": "a step inside ExecuTorch's partitioner",
    "arm_get_first_delegation_tag": "a step inside ExecuTorch's backend",
    "InsertCastForOpsWithInt64InputPass": "int64 inputs stay outside the delegate, and what would read more than 32 bits of them",
    "VulkanBackend*": "its programs run, in ExecuTorch's runtime with the plug-in and in tosaic's; what writes them is "
                      "ExecuTorch's own, or `TosaicVulkan` here",
    "VulkanSupportedOperators*": "a step inside ExecuTorch's partitioner",
    "VulkanQuantizer*": "the quantizers here are for Vulkan, too: `TOSAQuantizer(\"vulkan\")`",
    "vulkan_quantizer.*": "as of VulkanQuantizer",
    "parse_compile_options": "a step inside ExecuTorch's partitioner",
}


def parts_of(module):
    """(name, object) of a module's public classes and functions: those that it lists, or else those that it defines."""
    names = getattr(module, "__all__", None) or [*vars(module), *getattr(module, "LAZY_IMPORTS", ())]
    lists = hasattr(module, "__all__") or hasattr(module, "LAZY_IMPORTS") or module.__name__.endswith(".quantizer")
    for name in sorted(n for n in set(names) if not n.startswith("_")):
        thing = getattr(module, name)
        home = getattr(thing, "__module__", "")
        if (inspect.isclass(thing) or inspect.isfunction(inspect.unwrap(thing) if callable(thing) else thing)) and (
                home.startswith("executorch.backends.") if lists else home == module.__name__):
            yield name, thing


def members_of(kind):
    """(name, object) of what ExecuTorch's backends define in a class or its bases."""
    if issubclass(kind, enum.Enum):
        return
    seen = {}
    for base in kind.__mro__:
        if base.__module__.startswith("executorch.backends."):
            for name, value in vars(base).items():
                if not name.startswith("_"):
                    seen.setdefault(name, value)
    yield from sorted(seen.items())


def arguments_of(thing):
    """{name: default} of what a class or function is called with; None: it is not called."""
    thing = getattr(thing, "__func__", thing)
    if isinstance(thing, (property, functools.cached_property)) or not callable(thing):
        return None
    if inspect.isclass(thing) and (issubclass(thing, enum.Enum) or "__init__" not in {
            n for b in thing.__mro__ if b.__module__ not in ("builtins", "abc") for n in vars(b)}):
        return {}
    if dataclasses.is_dataclass(thing):  # a __new__ above it hides these before Python 3.13
        thing = thing.__init__
    parameters = inspect.signature(thing).parameters.values()
    return {p.name: p.default for p in parameters if p.name not in ("self", "cls")}


def ours_for(name):
    """Our object of the same name, "Class" or "Class.member"; None: there is none."""
    first, *rest = name.split(".")
    for module in map(importlib.import_module, OURS):
        if first in getattr(module, "__all__", ()) or getattr(getattr(module, first, None), "__module__", "").startswith("tosaic."):
            thing = getattr(module, first)
            for part in rest:
                if any(part in vars(b).get("__annotations__", {}) for b in thing.__mro__):
                    return property()  # an attribute of each object
                thing = getattr(thing, part, None)
            return thing
    return None


class Page:
    """The rows, and which of the sentences were used."""

    def __init__(self):
        self.rows, self.names, self.used, self.counts = [], set(), set(), {}
        self.seen, self.wrong = set(), []

    def sentence(self, sentences, name):
        for pattern, text in sentences.items():
            if fnmatch.fnmatchcase(name, pattern):
                self.used.add(pattern)
                return text
        return None

    def row(self, name, theirs):
        """`theirs`: {argument: default}, or None."""
        ours = ours_for(name)
        self.names |= {name, *(f"{name}.{a}" for a in theirs or ())}
        if ours is None:
            reason = self.sentence(ABSENT, name)
            if reason is None:
                self.wrong.append(f"{name} is absent, and no reason in ABSENT says why")
            verdict, note = "absent", reason
        else:
            better, other = self.sentence(BETTER, name), self.sentence(OTHER, name)
            verdict, note = ("other", other) if other else ("better", better) if better else ("same", "")
            given = arguments_of(ours)
            if theirs is not None and given is not None:
                self.compare(name, theirs, given)
        self.counts[verdict] = self.counts.get(verdict, 0) + 1
        text = f"({', '.join(theirs)})" if theirs else ""
        self.rows.append(f"| `{name}{text}` | {verdict} | {note} |")
        return ours

    def compare(self, name, theirs, given):
        plain = (bool, int, float, str, type(None))
        if [a for a in given if a in theirs] != list(theirs):
            self.wrong.append(f"{name} is called with {list(theirs)}, ours with {list(given)}")
            return
        self.wrong += [f"{name}: {argument} is {given[argument]!r}, not {default!r}"
                       for argument, default in theirs.items() if isinstance(default, plain) and given[argument] != default]

    def section(self, title, modules):
        self.rows += ["", f"## {title}", "", "| name | here | |", "|---|---|---|"]
        for module in map(importlib.import_module, modules):
            for name, thing in parts_of(module):
                if (name, thing) in self.seen:
                    continue
                self.seen.add((name, thing))
                if name in self.names:  # another thing of the same name
                    name = f"{module.__name__.rpartition('.')[2]}.{name}"
                members = dict(members_of(thing)) if inspect.isclass(thing) else {}
                if self.row(name, arguments_of(thing)) is None:
                    self.names |= {f"{name}.{member}" for member in members}
                    continue
                for member, value in members.items():
                    self.row(f"{name}.{member}", arguments_of(value))

    def text(self):
        counts = ", ".join(f"{self.counts[v]} {v}" for v in ("same", "better", "other", "absent"))
        return "\n".join([
            "<!-- SPDX-License-Identifier: Apache-2.0 -->",
            "<!-- Made by test/python/test_parity.py; `make pages` writes it again. -->",
            "# Next to ExecuTorch's names", "",
            f"ExecuTorch 1.5's Arm and Vulkan classes, functions, methods and arguments, and what `tosaic.executorch` has of "
            f"them: {counts}. `same`: the same arguments in the same order with the same defaults; `other`: there, and different; of an "
            "absent class the methods are not listed. How they are used: "
            "[executorch.md](executorch.md).", *self.rows, ""])


def options_of(script):
    """The long names of a script's options, which is read and not run."""
    origin = importlib.util.find_spec(f"executorch.backends.arm.scripts.{script}").origin
    for call in ast.walk(ast.parse(pathlib.Path(origin).read_text())):
        if isinstance(call, ast.Call) and getattr(call.func, "attr", "") == "add_argument":
            yield next(a.value[2:] for a in call.args if a.value.startswith("--"))


def scripts(page):
    page.rows += ["", "## Its command line tools", "", "| option | here |", "|---|---|"]
    for script, sentences in SCRIPTS.items():
        names = list(options_of(script))
        page.wrong += [f"SCRIPTS says nothing of {script}.py --{n}" for n in names if n not in sentences]
        page.wrong += [f"{script}.py has no --{n}" for n in sentences if n not in names]
        page.rows += [f"| `{script}.py --{n}` | {sentences.get(n)} |" for n in names]


def made():
    page = Page()
    for title, modules in SECTIONS.items():
        page.section(title, modules)
    page.rows += ["", "## Names of earlier versions", "", "| name | here | |", "|---|---|---|"]
    for path, arguments in OLDER.items():
        parts = path.split(".")
        first = next((i for i, p in enumerate(parts) if p[0].isupper()), -1)
        page.row(".".join(parts[first:]), dict.fromkeys(arguments, inspect.Parameter.empty))
    scripts(page)
    return page


def test_the_page_is_what_both_packages_say():
    page = made()
    assert not page.wrong, "\n".join(page.wrong)
    assert not (unused := {*BETTER, *OTHER, *ABSENT} - page.used), f"sentences about nothing: {sorted(unused)}"
    if os.environ.get("TOSAIC_BLESS"):
        PAGE.write_text(page.text())
    assert page.text() == PAGE.read_text(), "`make pages` writes it again"
    assert not (left := set(DOCUMENTED) - page.names), f"documented, and not in the page: {sorted(left)}"
