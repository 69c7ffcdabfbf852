# SPDX-License-Identifier: Apache-2.0
"""Quantizers for torchao's PT2E, with ExecuTorch's names. What they annotate is the plan of the core.

    quantizer = EthosUQuantizer(EthosUCompileSpec("ethos-u55-128"))
    quantizer.set_global(get_symmetric_quantization_config())
    prepared = prepare_pt2e(torch.export.export(model, inputs).module(), quantizer)
    prepared(*inputs)
    quantised = convert_pt2e(prepared)
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch.fx import GraphModule, Node
from torchao.quantization.pt2e.quantizer import QuantizationSpec, Quantizer

from .. import _core
from .._errors import CompileWarning, Error
from ._annotation import Annotator, is_annotated
from ._arm_passes import decompose_arm
from ._functional import make_functional, say_promotions
from ._linear_norms import drop_batch_counters, linears_as_convolutions
from ._node_finders import (GlobalNodeFinder, InputNodeFinder, ModuleNameNodeFinder, ModuleTypeNodeFinder, NodeFinder,
                            NodeNameNodeFinder, NodeTargetNodeFinder, OutputNodeFinder)
from ._plan import Plan, decompose_by_plan, give_places
from ._prepared_program import check_exported, example_sizes
from ._quantization_config import (QuantizationConfig, form_of, get_symmetric_a8w4_quantization_config,
                                   get_symmetric_a16w8_quantization_config, get_symmetric_quantization_config,
                                   get_uint8_io_quantization_config, get_vgf_snorm_quantization_config)
from .compile_specs import in_our_words, tosa_target

with contextlib.suppress(ImportError):  # what is left outside delegates is quantised by ExecuTorch's kernels
    import executorch.kernels.quantized  # noqa: F401

if TYPE_CHECKING:
    from typing_extensions import Self

__path__: list[str] = []  # ExecuTorch's is a package: `_mirror` has the modules in it
__all__ = ["EthosUQuantizer", "GlobalNodeFinder", "InputNodeFinder", "ModuleNameNodeFinder", "ModuleTypeNodeFinder",
           "NodeFinder", "NodeNameNodeFinder", "NodeTargetNodeFinder", "OutputNodeFinder", "QuantizationConfig",
           "QuantizationSpec", "TOSAQuantizer", "VgfQuantizer", "get_symmetric_a16w8_quantization_config",
           "get_symmetric_a8w4_quantization_config", "get_symmetric_quantization_config",
           "get_uint8_io_quantization_config", "get_vgf_snorm_quantization_config", "is_annotated"]


def _target_of(spec: Any) -> tuple[str, str]:
    """(target, TOSA specification) of a compile spec, of either one's text, or of ExecuTorch's TosaSpecification."""
    targets = {t.name: t.tosa_spec for t in _core.targets()}
    if isinstance(spec, str) and spec.lower() in targets:
        return spec.lower(), targets[spec.lower()]
    text = str(getattr(spec, "tosa_spec", spec))
    if not text.startswith("TOSA-"):
        raise Error(code="quantizer.spec", message=f"{spec!r} is no compile spec, TOSA specification or target",
                    help=f"give e.g. EthosUCompileSpec('ethos-u55-128'), 'TOSA-1.0+INT' or one of {', '.join(targets)}")
    named = "ethos-u55-128" if "u55" in text.split("+") else getattr(spec, "target", None)
    if named in targets and named.startswith("ethos-u"):
        return named, targets[named]  # an NPU takes what it takes
    return (named if named in targets else tosa_target(text)), in_our_words(text)


class TOSAQuantizer(Quantizer):
    """Annotates programs for any target of TOSA's integers.

    What is quantised, in which width and who shares a scale is the plan that `tosaic.plan` prints; the configurations say
    for which nodes, with which observers and ranges. Setters return the quantizer. Of several that are about a node, the
    last one decides; `set_global` is for the rest. A configuration None leaves float.

    Args:
        compile_spec_or_tosa_spec: a compile spec, a TOSA specification ("TOSA-1.0+INT+int16") or the name of a target.
            With one of ExecuTorch's own classes, the program is annotated for ExecuTorch's Arm backends: they take it to
            pieces of theirs first.
        use_composable_quantizer: taken for ExecuTorch's scripts; there is one implementation.

    Raises:
        Error: quantizer.*, plan.*, here, in the setters and when a program is annotated.
    """

    compile_spec: Any
    tosa_spec: str

    def __init__(self, compile_spec_or_tosa_spec: Any, use_composable_quantizer: bool = True) -> None:
        super().__init__()
        self.use_composable_quantizer = use_composable_quantizer
        self.compile_spec = compile_spec_or_tosa_spec
        self._target, self.tosa_spec = _target_of(compile_spec_or_tosa_spec)
        self._for_arm = type(compile_spec_or_tosa_spec).__module__.startswith("executorch.")
        self._key = f"tosaic_place_{id(self)}"  # in a node's meta, between transform_for_annotation and annotate
        self._global: Any = None
        self._rules: list[tuple[Any, Any]] = []  # (finder, configuration), later ones win
        self._others: list[Quantizer] = []

    # ---- configurations

    def set_global(self, quantization_config: Any) -> Self:
        """For all nodes that no other call is about."""
        self._global = self._checked(quantization_config)
        return self

    def set_module_type(self, module_type: Callable, quantization_config: Any) -> Self:
        """For the modules of a class, with all that is in them."""
        return self.set_node_finder(quantization_config, ModuleTypeNodeFinder(module_type))

    def set_module_name(self, module_name: str, quantization_config: Any) -> Self:
        """For a module by its name ("blocks.0.attention"), with all that is in it."""
        return self.set_node_finder(quantization_config, ModuleNameNodeFinder(module_name))

    def set_io(self, quantization_config: Any) -> Self:
        """For what the program takes and gives: quantised values in and out."""
        self.set_node_finder(quantization_config, InputNodeFinder())
        return self.set_node_finder(quantization_config, OutputNodeFinder())

    def set_node_finder(self, quantization_config: Any, node_finder: Any) -> Self:
        """For the nodes that `node_finder.find_nodes(gm)` gives."""
        if not hasattr(node_finder, "find_nodes"):
            raise Error(code="quantizer.finder", message=f"{type(node_finder).__qualname__} has no find_nodes",
                        help="the arguments are (quantization_config, node_finder)")
        self._rules.append((node_finder, self._checked(quantization_config)))
        return self

    def set_node_target(self, node_target: Any, quantization_config: Any) -> Self:
        """For the calls of an operator, torch.ops.aten.relu.default."""
        return self.set_node_finder(quantization_config, NodeTargetNodeFinder(node_target))

    def set_node_name(self, node_name: str, quantization_config: Any) -> Self:
        """For a node by its name in the exported graph."""
        return self.set_node_finder(quantization_config, NodeNameNodeFinder(node_name))

    def add_quantizer(self, quantizer: Quantizer) -> Self:
        """Another quantizer, before this one: what it annotates stays as it says."""
        self._others.insert(0, quantizer)
        return self

    @property
    def global_config(self) -> Any:
        """What `set_global` was given."""
        return self._global

    @global_config.setter
    def global_config(self, value: Any) -> None:
        self.set_global(value)

    @property
    def quantizers(self) -> list[Quantizer]:
        """Those of `add_quantizer`, the first to annotate first."""
        return list(self._others)

    # What setters were told, by their keys; assigning replaces it.

    @property
    def io_config(self) -> Any:
        """What `set_io` was given; None: nothing."""
        return next((config for finder, config in reversed(self._rules) if isinstance(finder, OutputNodeFinder)), None)

    @io_config.setter
    def io_config(self, value: Any) -> None:
        self._rules = [r for r in self._rules if not isinstance(r[0], (InputNodeFinder, OutputNodeFinder))]
        if value is not None:
            self.set_io(value)

    @property
    def module_type_config(self) -> dict[Callable, Any]:
        """What `set_module_type` was given, by class."""
        return {t: config for finder, config in self._rules if isinstance(finder, ModuleTypeNodeFinder) for t in finder.types}

    @module_type_config.setter
    def module_type_config(self, value: dict[Callable, Any]) -> None:
        self._rules = [r for r in self._rules if not isinstance(r[0], ModuleTypeNodeFinder)]
        for module_type, config in value.items():
            self.set_module_type(module_type, config)

    @property
    def module_name_config(self) -> dict[str, Any]:
        """What `set_module_name` was given, by name."""
        return {n: config for finder, config in self._rules if isinstance(finder, ModuleNameNodeFinder) for n in finder.names}

    @module_name_config.setter
    def module_name_config(self, value: dict[str, Any]) -> None:
        self._rules = [r for r in self._rules if not isinstance(r[0], ModuleNameNodeFinder)]
        for module_name, config in value.items():
            self.set_module_name(module_name, config)

    def _checked(self, config: Any) -> Any:
        if config is None:
            return None
        if not all(hasattr(config, part) for part in ("input_activation", "output_activation", "weight", "bias")):
            raise Error(code="quantizer.config", message=f"a {type(config).__qualname__} is no quantization config",
                        help="give get_symmetric_quantization_config(), another of these, or None for float")
        extensions = self.tosa_spec.split("+")[1:]
        if "INT" not in extensions:
            raise Error(code="quantizer.spec", message=f"{self.tosa_spec} has no integers to quantise to",
                        help="give a specification with the profile INT, or lower the float program")
        spec = config.output_activation or config.input_activation
        if spec is not None and spec.dtype == torch.int16 and "int16" not in extensions:
            raise Error(code="quantizer.spec", message=f"{self.tosa_spec} has no int16 for activations",
                        help=f"give {self.tosa_spec}+int16, or get_symmetric_quantization_config()")
        return config

    # ---- torchao's Quantizer

    def transform_for_annotation(self, model: GraphModule) -> GraphModule:
        """Replaces what the plan quantises in pieces (softmax, norms, attention) by these pieces."""
        check_exported(model)
        for quantizer in self._others:
            model = quantizer.transform_for_annotation(model)
        _tensors_by_position(model)
        make_functional(model)
        say_promotions(model)
        drop_batch_counters(model)
        if self._for_arm:
            return decompose_arm(model, self.compile_spec, [n for n, c in self._configs(model).items() if c is None])
        linears_as_convolutions(model, self._configs(model))
        self._plan(model, in_pieces=True)
        return model

    def annotate(self, model: GraphModule) -> GraphModule:
        """Annotates the nodes that no other quantizer has annotated."""
        check_exported(model)
        for quantizer in self._others:
            quantizer.annotate(model)
        if not any(self._key in n.meta for n in model.graph.nodes):
            self._plan(model, in_pieces=False)
        Annotator(model, self._key, self._for_arm).run()
        for node in model.graph.nodes:
            node.meta.pop(self._key, None)
        return model

    def validate(self, model: GraphModule) -> None:
        """Raises Error where a call's tensors are on several devices."""
        for node in model.graph.nodes:
            values = [n.meta.get("val") for n in node.all_input_nodes] if node.op == "call_function" else []
            devices = {str(v.device) for v in values if isinstance(v, torch.Tensor)}
            if len(devices) > 1:
                raise Error(code="quantizer.devices", message=f"'{node.name}' reads tensors on {', '.join(sorted(devices))}",
                            help="move the model and its inputs to one device before exporting them")
        for quantizer in self._others:
            quantizer.validate(model)

    def _quantize_with_submodules(self, model: GraphModule, calibration_samples: Any, is_qat: bool = False,
                                  fold_quantize: bool = True) -> GraphModule:
        """Prepares, runs the samples and converts, as ExecuTorch's tests do. Bodies of control flow stay float."""
        from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e, prepare_qat_pt2e

        prepared = (prepare_qat_pt2e if is_qat else prepare_pt2e)(model, self)
        for sample in calibration_samples:
            prepared(*sample)
        return convert_pt2e(prepared, fold_quantize=fold_quantize)

    # ---- the plan

    def _configs(self, model: GraphModule) -> dict[Node, Any]:
        configs = {n: self._global for n in model.graph.nodes if n.op == "call_function"}
        for finder, config in self._rules:
            found = list(finder.find_nodes(model))
            if not found and hasattr(finder, "found_none"):
                finder.found_none(model)
            configs.update((n, config) for n in found)
        return configs

    def _plan(self, model: GraphModule, in_pieces: bool) -> None:
        configs = self._configs(model)
        if all(c is None for c in configs.values()):
            return
        base = form_of(self._global)
        options = {"tosa-spec": [self.tosa_spec], "quantize": ["int16x8" if base == "int16x8" else "int8"]}
        lines = ["*: float"] if base == "float" else []
        for node, config in configs.items():
            if (node.op == "call_function" and isinstance(node.target, torch._ops.OpOverload) and form_of(config) != base
                    and isinstance(node.meta.get("val"), (torch.Tensor, tuple, list))):
                lines.append(f"{node.name}: {form_of(config)}")
        if lines:
            options["override"] = lines
        sizes = example_sizes(model)
        plan = Plan(model, self._target, options | _at(sizes), in_pieces, self._key)
        give_places(model, plan, configs)
        if in_pieces:
            varying = decompose_by_plan(model, plan, self._plans_elsewhere(model, options, sizes))
            if varying:
                warnings.warn(CompileWarning(
                    f"{', '.join(f'{n.name} ({n.target})' for n in varying)}: stays float, for the quantised form depends on "
                    "sizes that vary; export with fixed sizes to quantise it"), stacklevel=4)

    def _plans_elsewhere(self, model: GraphModule, options: dict[str, list[str]], sizes: dict[str, int]) -> list[Plan] | None:
        """Of the program at two other sizes, as near to twice and half of the example's as its bounds and relations allow."""
        plans: list[Plan] = []
        for there in (lambda n: 2 * n, lambda n: n // 2, lambda n: n + 1, lambda n: n - 1):
            if sizes and len(plans) < 2:
                with contextlib.suppress(Error):
                    plans.append(Plan(model, self._target, options | _at({s: there(n) for s, n in sizes.items()}), True, self._key))
        return plans if plans or not sizes else None


def _at(sizes: dict[str, int]) -> dict[str, list[str]]:
    """The core's option."""
    return {"sizes": [f"{symbol}={size}" for symbol, size in sizes.items()]} if sizes else {}


def _tensors_by_position(model: GraphModule) -> None:
    """PT2E annotates positional arguments only."""
    for node in model.graph.nodes:
        if node.op != "call_function" or not any(isinstance(x, Node) for x in node.kwargs.values()):
            continue
        args, kwargs = list(node.args), dict(node.kwargs)
        for argument in node.target._schema.arguments[len(args):]:
            if argument.kwarg_only or not kwargs:
                break
            args.append(kwargs.pop(argument.name) if argument.name in kwargs else argument.default_value)
        node.args, node.kwargs = tuple(args), kwargs
    model.recompile()


class EthosUQuantizer(TOSAQuantizer):
    """For Ethos-U NPUs; arguments as of TOSAQuantizer, e.g. EthosUCompileSpec("ethos-u55-128")."""

    def __init__(self, compile_spec: Any, use_composable_quantizer: bool = True) -> None:
        super().__init__(compile_spec, use_composable_quantizer)


class VgfQuantizer(TOSAQuantizer):
    """For VGF; arguments as of TOSAQuantizer, e.g. VgfCompileSpec()."""

    def __init__(self, compile_spec: Any, use_composable_quantizer: bool = True) -> None:
        super().__init__(compile_spec, use_composable_quantizer)
