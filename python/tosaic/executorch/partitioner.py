# SPDX-License-Identifier: Apache-2.0
"""Partitioners: which nodes a delegate takes. The core decides, by lowering each node; here they are grouped and tagged."""

from __future__ import annotations

import logging
import operator
import os
import re
import warnings
from collections.abc import Sequence
from typing import Any

import torch
from executorch.exir.backend.partitioner import DelegationSpec, Partitioner, PartitionResult
from executorch.exir.backend.utils import WhyNoPartitionReporter, tag_constant_data
from executorch.exir.dialects._ops import ops as exir_ops
from executorch.exir.tracer import _default_decomposition_table
from torch.export.exported_program import ExportedProgram
from torch.export.graph_signature import OutputKind
from torch.fx.passes.operator_support import OperatorSupportBase

from .. import _core
from .._artifact import _write
from .._compile import _find_tools
from .._errors import CompileWarning, Error
from . import _edge, backend
from ._grouping import Grouping, Reasons, components
from .compile_specs import ArmCompileSpec, EthosUCompileSpec, TosaCompileSpec, VgfCompileSpec, VulkanCompileSpec

logger = logging.getLogger(__name__)

_OF_SIZES = ("model.dynamic-shape", "model.size", "lower.sizes")  # why sizes that vary stand in the way


def _edge_operator(op: Any) -> Any:
    """The edge dialect's form of an ATen operator, which users' checks are written for."""
    try:
        namespace, name = op._schema.name.split("::")
        return getattr(getattr(getattr(exir_ops.edge, namespace), name), op._overloadname)
    except (AttributeError, RuntimeError):
        return op


def _like(node: torch.fx.Node, target: Any) -> torch.fx.Node:
    """The node with another target, alone."""
    copy = torch.fx.Graph().create_node("call_function", target, name=node.name)
    copy.meta = node.meta
    return copy


def _origins(node: torch.fx.Node) -> set[str]:
    """The names of the nodes that it was made from, through all passes."""
    names, sources = set(), list(node.meta.get("from_node", ()))
    while sources:
        source = sources.pop()
        names.add(source.name)
        sources += source.from_node
    return names


def _dtypes_around(node: torch.fx.Node) -> list[torch.dtype]:
    """Of the tensors that a node reads and gives, lists of them aside."""
    values = [n.meta.get("val") for n in (node, *node.all_input_nodes)]
    return [v.dtype for v in values if isinstance(v, torch.Tensor)]


class _Partitioner(Partitioner):
    _spec_class: type[ArmCompileSpec] = ArmCompileSpec
    _compiles_elsewhere = False  # the payload is another compiler's work
    _most_faults = 12  # of that compiler, before a group stays outside whole
    _backend: type = object
    _without_inputs = True  # may a delegate compute what depends on weights alone?

    def __init__(self, compile_spec: ArmCompileSpec,
                 additional_checks: Sequence[OperatorSupportBase] | None = None) -> None:
        """
        Args:
            compile_spec: for what, and how.
            additional_checks: `is_node_supported` of each is asked about every node that would be taken.
        """
        super().__init__()
        if not isinstance(compile_spec, self._spec_class):
            raise TypeError(f"{type(self).__name__} takes a {self._spec_class.__name__}, not a "
                            f"{type(compile_spec).__name__}")
        self.compile_spec = compile_spec
        self.delegation_spec = DelegationSpec(self._backend.__name__, compile_spec._to_list())
        self.additional_checks = list(additional_checks or ())
        self.refused: Reasons = {}
        self._faults = 0
        self._weights: dict[str, torch.Tensor] = {}  # until the program is partitioned: there they are fake
        self._unwanted: Reasons = {}  # by name of the ATen node
        self._asked: tuple[torch.fx.Graph, list[Any]] | None = None
        self._kept: set[Any] = set()  # what any program was told not to decompose

    def register_custom_partition_op(self, op: torch._ops.OpOverload) -> None:
        """Taken for ExecuTorch's scripts: every operator that the core knows is kept whole without being registered, and
        what others mean is said by `tosaic.lowering`."""

    def _verdicts(self, program: ExportedProgram, core: _core.Program) -> Reasons:
        """Why not, for the nodes that stay outside."""
        reasons: Reasons = {}
        for target, options in self.compile_spec.questions():
            try:
                verdicts = _core.supports(core, target, options)
            except Error as error:
                if error.code not in _OF_SIZES:
                    raise
                # Of a program whose sizes vary, the target takes none of the nodes.
                verdicts = []
                for node in program.graph.nodes:
                    if node.op == "call_function":
                        reasons.setdefault(node.name, _reason(error))
            for verdict in verdicts:
                if not verdict.taken:
                    at = f" ({verdict.place})" if verdict.place else ""
                    reasons.setdefault(verdict.name, verdict.reason.reason + at)
        calls = [n for n in program.graph.nodes if n.op == "call_function"]
        quantised = any("quantized_decomposed" in str(n.target) for n in calls)
        for node in calls:
            if why := _edge.untold(node):
                reasons[node.name] = why
            elif dtype := _edge.foreign_dtype(node):
                reasons[node.name] = f"tosaic has no tensors of {dtype}"
            elif not _gives_tensors(node):
                reasons[node.name] = "it gives no tensor"
            elif not quantised and not self._takes_floats and any(d.is_floating_point for d in _dtypes_around(node)):
                reasons.setdefault(node.name, "it computes floats on an integer target, and the program is not quantised: "
                                              "prepare_pt2e and convert_pt2e come first")
        return reasons

    @property
    def _takes_floats(self) -> bool:
        return "FP" in self.compile_spec.tosa_spec.split("+")

    def _check(self, program: ExportedProgram, reasons: Reasons) -> None:
        """Puts outside what the user's checks do not want. They are written for the edge dialect, so an ATen node is shown
        to them in its form there; what they refuse as ATen stays outside decomposed, too."""
        if not self.additional_checks:
            return
        modules = dict(program.graph_module.named_modules())
        for node in program.graph.nodes:
            if node.op != "call_function" or node.name in reasons or node.target is operator.getitem:
                continue
            if unwanted := next((why for n, why in self._unwanted.items() if n in _origins(node)), None):
                reasons[node.name] = unwanted
                continue
            aten = isinstance(node.target, torch._ops.OpOverload)
            asked = _like(node, _edge_operator(node.target)) if aten else node
            for check in self.additional_checks:
                if not check.is_node_supported(modules, asked):
                    reasons[node.name] = f"Rejected by {type(check).__name__}"
                    if aten:
                        self._unwanted[node.name] = reasons[node.name]
                    break

    # ---- what ExecuTorch calls

    def ops_to_not_decompose(self, ep: ExportedProgram) -> tuple[list[Any], None]:
        """The operators of the program that the delegate takes whole wherever they stand. No filter: nothing is preserved
        that might stay outside."""
        if self._asked is not None and self._asked[0] is ep.graph:  # ExecuTorch asks several times
            return self._asked[1], None
        if _edge.is_edge(ep):  # and whether any is left, when all is done
            return list(self._kept), None
        self._weights = {**ep.state_dict, **{k: v for k, v in ep.constants.items() if isinstance(v, torch.Tensor)}}
        reasons, _ = self._decided(ep, places=False)
        taken, outside = set(), set()
        for node in ep.graph.nodes:
            (outside if node.name in reasons else taken).update(_operators(node))
        kept = [op for op in _decomposed(taken - outside) if not _aliases(op)]
        self._asked = (ep.graph, kept)
        self._kept.update(kept)
        return kept, None

    def partition(self, exported_program: ExportedProgram) -> PartitionResult:
        """Tags the nodes that the target takes, in as few convex groups as possible. `refused` has the others' reasons,
        which are logged, and written to `partition_report.txt` where intermediates are kept."""
        backend.take_over_from_namesakes(self._backend)
        reasons, groups = self._decided(exported_program, places=True)
        tags = {level: f"tag{i}" for i, level in enumerate(sorted(set(groups.values())))}
        for node, level in groups.items():
            for member in (node, *_edge.bodies_of(node)):
                member.meta["delegation_tag"] = tags[level]
        tag_constant_data(exported_program)
        self.refused = reasons
        self._report(exported_program)
        self._weights, self._unwanted, self._asked = {}, {}, None
        return PartitionResult(tagged_exported_program=exported_program,
                               partition_tags={tag: self.delegation_spec for tag in tags.values()})

    def _decided(self, program: ExportedProgram, places: bool) -> tuple[Reasons, dict[torch.fx.Node, int]]:
        """Why nodes stay outside, and groups of the others that compile as they stand: each is tried, as far as its TOSA
        graph."""
        core = _edge.held(program, "program", self._weights, places=places)
        reasons = self._verdicts(program, core)
        self._check(program, reasons)
        constants, tried, compiled = _constants(program), set(), set()
        while True:
            groups = Grouping(program.graph, reasons, constants, self._without_inputs).run()
            for level in sorted(set(groups.values())):
                members = frozenset(n for n, group in groups.items() if group == level)
                if members in tried:
                    continue
                if why := self._refused(program, members, core if _is_whole(program, members) else None):
                    reasons.update(why)
                    break
                tried.add(members)
            else:
                why = self._miscompiled(program, groups, compiled) if places and self._compiles_elsewhere else {}
                if not why:
                    return reasons, groups
                reasons.update(why)

    def _miscompiled(self, program: ExportedProgram, groups: dict[torch.fx.Node, int], compiled: set[frozenset]) -> Reasons:
        """Where another compiler makes the payload: the node of a group that it gets wrong, found by compiling the group
        now, as long as the node can still stay outside. `compiled`: groups that are right. The payload is not compiled
        again for the program."""
        for level in sorted(set(groups.values())):
            members = frozenset(n for n, group in groups.items() if group == level)
            if members in compiled:
                continue
            error = self._error(program, members, None, fully=True)
            if not error:
                compiled.add(members)
                continue
            if not (error.diagnostic and _is_miscompiled(error)):
                raise error
            self._faults += 1
            named = {n.name for n in members if n.name in _named_nodes(error.diagnostic.context)}
            if not named:
                raise error
            if self._faults > self._most_faults:
                named = {n.name for n in members}
            text = f"what Vela makes of it for {self.compile_spec.target} is wrong ({error.code}: {error.diagnostic.message})"
            at = f"{error.diagnostic.file}:{error.diagnostic.line}: " if error.diagnostic.file else ""
            warnings.warn(CompileWarning(f"{at}warning[self-check.set-aside]: {', '.join(sorted(named))} stays outside the "
                                         f"delegate: {text}", error.diagnostic), stacklevel=5)
            return dict.fromkeys(named, text)
        return {}

    def _refused(self, program: ExportedProgram, members: frozenset, core: _core.Program | None) -> Reasons:
        """Of members that cannot be one delegate: the node that the error names, those that only pass on what they are
        given, or all. `core`: they alone, if there is such a program already."""
        error = self._error(program, members, core)
        if not error:
            return {}
        text = _reason(error)
        named = {n.name for n in members if error.diagnostic and error.diagnostic.context == f"node {n.name}"}
        if not named and len(parts := components(members)) > 1:  # they only happen to be one group
            each = [self._refused(program, part, None) for part in parts]
            if any(each):
                return {name: why for refused in each for name, why in refused.items()}
        if not named:  # nothing is left of a dropout that could be named
            named = {n.name for n in members if _may_pass_on(n, members)
                     and (alone := self._error(program, frozenset({n}), None)) and _reason(alone) == text}
        return dict.fromkeys(named or {n.name for n in members}, text)

    def _error(self, program: ExportedProgram, members: frozenset, core: _core.Program | None,
               fully: bool = False) -> Error | None:
        """Why members cannot be one delegate; `fully`: the payload is made, too."""
        options = {**self.compile_spec.options(), "single-delegate": ["true"]}
        try:
            core = core or _edge.held(program, "partition", self._weights, set(members), places=fully)
            if fully:
                _find_tools()
                _core.compile(core, self.compile_spec.target, options, None, {})
            else:
                _core.explain(core, self.compile_spec.target, options)
        except Error as error:
            return error
        return None

    def _report(self, program: ExportedProgram) -> None:
        path = self.compile_spec.path_for_intermediates
        if not path and not logger.isEnabledFor(logging.INFO):
            return
        reporter = WhyNoPartitionReporter()
        for node in program.graph.nodes:
            if node.name in self.refused:
                reporter.report_reject(node, self.refused[node.name])
        table = reporter.get_table_report()
        logger.info("Rejected for %s:\n%s", self.compile_spec.target, table)
        if path:
            os.makedirs(path, exist_ok=True)
            _write(os.path.join(path, "partition_report.txt"), table.encode())


def _operators(node: torch.fx.Node) -> set[torch._ops.OpOverload]:
    """What a node calls, in the graphs of control flow as well."""
    if node.op == "call_function" and isinstance(node.target, torch._ops.OpOverload):
        return {node.target}
    return {op for body in _edge.bodies_of(node) for n in _edge.body_of(body).graph.nodes for op in _operators(n)}


def _gives_tensors(node: torch.fx.Node) -> bool:
    value = node.meta.get("val")
    values = value if isinstance(value, (tuple, list)) else [value]
    return bool(values) and all(isinstance(v, torch.Tensor) for v in values)


def _reason(error: Error) -> str:
    return error.diagnostic.reason if error.diagnostic else str(error)


def _is_miscompiled(error: Error) -> bool:
    """The other compiler is at fault, with this very graph."""
    return error.code.startswith(("self-check.", "ethosu.")) or error.code in ("vela.failed", "vela.crashed", "vela.interface")


def _named_nodes(context: str) -> set[str]:
    """Of a diagnostic's "in module head (Linear), nodes linear, relu"."""
    found = re.search(r"\bnodes? (.*)$", context)
    return {name.strip() for name in found[1].split(",")} if found else set()


def _may_pass_on(node: torch.fx.Node, members: frozenset) -> bool:
    """It gives a tensor like one that it reads from outside."""
    def type_of(n):
        value = n.meta.get("val")
        return (value.shape, value.dtype) if isinstance(value, torch.Tensor) else None

    return any(i not in members and type_of(i) == type_of(node) for i in node.all_input_nodes)


def _is_whole(program: ExportedProgram, members: frozenset) -> bool:
    """The program does nothing that the members do not."""
    return (len(members) == sum(n.op == "call_function" for n in program.graph.nodes)
            and all(s.kind is OutputKind.USER_OUTPUT for s in program.graph_signature.output_specs))


def _constants(program: ExportedProgram) -> set[str]:
    signature = program.graph_signature
    mutated = set(signature.buffers_to_mutate.values())
    return {*signature.inputs_to_parameters, *signature.inputs_to_lifted_tensor_constants,
            *(n for n, target in signature.inputs_to_buffers.items() if target not in mutated)}


def _decomposed(ops: set[torch._ops.OpOverload]) -> set[torch._ops.OpOverload]:
    """Those that ExecuTorch would take apart. Of others there is nothing to ask for, and they may stay outside."""
    table = _default_decomposition_table()
    return {op for op in ops if op._can_decompose() or op in table}


def _aliases(op: torch._ops.OpOverload) -> bool:
    """The edge dialect has no operators that write or return views: those are always decomposed."""
    return op._schema.is_mutable or any(r.alias_info is not None for r in op._schema.returns)


class TOSAPartitioner(_Partitioner):
    """For the TOSA graphs themselves."""

    _spec_class, _backend = TosaCompileSpec, backend.TOSABackend


class VgfPartitioner(_Partitioner):
    """For the ML extensions for Vulkan."""

    _spec_class, _backend = VgfCompileSpec, backend.VgfBackend


class EthosUPartitioner(_Partitioner):
    """For Ethos-U NPUs."""

    _spec_class, _backend = EthosUCompileSpec, backend.EthosUBackend
    _without_inputs = False  # Vela takes no graph without them
    _compiles_elsewhere = True


class _Lists(OperatorSupportBase):
    """ExecuTorch's lists for Vulkan: operators of the edge dialect, and parts of modules' class names."""

    def __init__(self, blocked: Sequence[Any] | None, allowed: Sequence[Any] | None,
                 blocked_modules: Sequence[str] | None, allowed_modules: Sequence[str] | None, skip_bool: bool):
        self.blocked, self.allowed = list(blocked or ()), allowed
        self.blocked_modules, self.allowed_modules = list(blocked_modules or ()), allowed_modules
        self.skip_bool = skip_bool

    def is_node_supported(self, submodules: Any, node: torch.fx.Node) -> bool:
        """Do the lists let a delegate have this node?"""
        classes = [str(kind) for _, kind in (node.meta.get("nn_module_stack") or {}).values()]
        inside = lambda names: any(name in kind for name in names for kind in classes)
        if node.target in self.blocked or (self.allowed is not None and node.target not in self.allowed):
            return False
        if inside(self.blocked_modules) or (self.allowed_modules is not None and not inside(self.allowed_modules)):
            return False
        return not (self.skip_bool and torch.bool in _dtypes_around(node))


class VulkanPartitioner(_Partitioner):
    """For any device with Vulkan, by compute shaders; the delegate's id is `TosaicVulkan`."""

    _spec_class, _backend = VulkanCompileSpec, backend.TosaicVulkan

    def __init__(self, compile_options: dict[str, Any] | None = None, operator_blocklist: list[Any] | None = None,
                 operator_allowlist: list[Any] | None = None, nn_module_blocklist: list[str] | None = None,
                 nn_module_allowlist: list[str] | None = None) -> None:
        """
        Args:
            compile_options: as of VulkanCompileSpec; `skip_bool_tensors` keeps booleans outside.
            operator_blocklist, operator_allowlist: operators of the edge dialect, `exir_ops.edge.aten.add.Tensor`.
            nn_module_blocklist, nn_module_allowlist: parts of the names of modules' classes.
        """
        options = dict(compile_options or {})
        lists = _Lists(operator_blocklist, operator_allowlist, nn_module_blocklist, nn_module_allowlist,
                       bool(options.get("skip_bool_tensors")))
        super().__init__(VulkanCompileSpec(options), [lists])


def ArmPartitioner(compile_spec: ArmCompileSpec,
                   additional_checks: Sequence[OperatorSupportBase] | None = None) -> _Partitioner:
    """The older name of all three: the partitioner that the compile spec is for."""
    for kind in (EthosUPartitioner, VgfPartitioner, TOSAPartitioner):
        if isinstance(compile_spec, kind._spec_class):
            return kind(compile_spec, additional_checks)
    raise TypeError(f"a {type(compile_spec).__name__} is no compile spec of tosaic's")
