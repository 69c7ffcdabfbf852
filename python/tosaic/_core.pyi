# SPDX-License-Identifier: Apache-2.0
"""
libtosaic for Python: what the package tosaic is made of. Private: names may change.
"""

from collections.abc import (
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence
)
from typing import Any, Final


class Diagnostic:
    """What went wrong, where, and what to do."""

    @property
    def severity(self) -> str:
        """"error", "warning" or "note"."""

    @property
    def code(self) -> str:
        """Stable and searchable: "target.unsupported"."""

    @property
    def message(self) -> str:
        """One sentence."""

    @property
    def file(self) -> str:
        """The user's source; empty: not known."""

    @property
    def line(self) -> int:
        """1-based; 0: none."""

    @property
    def text(self) -> str:
        """The source line itself."""

    @property
    def context(self) -> str:
        """"in module self.act (GELU)"."""

    @property
    def notes(self) -> list[str]:
        """Facts: what disagrees with what."""

    @property
    def help(self) -> str:
        """The hint: what to do."""

    @property
    def reason(self) -> str:
        """In one line, for tables."""

    def render(self, colour: bool = False) -> str:
        """As a compiler prints it."""

    def __str__(self) -> str: ...

    def __repr__(self) -> str: ...

class Dimension:
    """A number, or a size that is known when the program runs."""

    @property
    def size(self) -> int:
        """Of a dynamic one the upper bound; -1: it has none."""

    @property
    def lowest(self) -> int:
        """Equal to size: a plain number."""

    @property
    def expression(self) -> str:
        """"s77"; empty: a plain number."""

class TensorInfo:
    """A tensor's name, dtype and dims, and what its integers stand for."""

    @property
    def name(self) -> str:
        """Empty where the file has none."""

    @property
    def dtype(self) -> str:
        """"f32", "i8"."""

    @property
    def dims(self) -> list[Dimension]:
        """Outermost first; none: a scalar."""

    @property
    def sizes(self) -> list[int]:
        """Upper bounds of the dims."""

    @property
    def scale(self) -> list[float]:
        """real = scale * (code - zero_point); empty: the values themselves."""

    @property
    def zero_point(self) -> list[int]:
        """One per scale: the code of zero."""

    @property
    def axis(self) -> int:
        """Which dim has a scale each; -1: one scale for all."""

    def __repr__(self) -> str: ...

class Argument:
    """One input or output, in the order of the flattened pytree."""

    @property
    def name(self) -> str:
        """As in the exported signature."""

    @property
    def tensor(self) -> TensorInfo | None:
        """None: no tensor, but a value that was fixed when exporting."""

    @property
    def literal(self) -> int | float | bool | str | list[int] | list[float] | None:
        """The value where `tensor` is None."""

    def __repr__(self) -> str: ...

class NodeVerdict:
    """What became of one node of the exported graph."""

    @property
    def name(self) -> str:
        """As in ep.graph: "conv2d_4"."""

    @property
    def op(self) -> str:
        """"aten.conv2d.default"."""

    @property
    def module(self) -> str:
        """"features.3.conv"; empty: not known."""

    @property
    def place(self) -> str:
        """"model.py:6"; empty: not known."""

    @property
    def taken(self) -> bool:
        """All that it became runs in delegates."""

    @property
    def pieces(self) -> int:
        """The nodes that it became."""

    @property
    def delegates(self) -> list[int]:
        """In which, ascending; of supports none."""

    @property
    def reason(self) -> Diagnostic | None:
        """Why the first piece stays outside; None: taken."""

    def __repr__(self) -> str: ...

class NpuLayer:
    """One NPU operator as Vela's estimator sees it."""

    @property
    def name(self) -> str:
        """Of the TOSA tensor that it writes."""

    @property
    def operation(self) -> str:
        """Vela's kind: "Conv2D"."""

    @property
    def processor(self) -> str:
        """"NPU" or "CPU"."""

    @property
    def node(self) -> str:
        """In the exported graph: "conv2d_4"; several where they became one."""

    @property
    def module(self) -> str:
        """That node's module: "features.3.conv"."""

    @property
    def place(self) -> str:
        """That node's line: "model.py:6"."""

    @property
    def cycles(self) -> float:
        """NPU cycles of one inference."""

    @property
    def macs(self) -> float:
        """Multiplications with addition of one inference."""

    @property
    def utilisation_percent(self) -> float:
        """Of the multipliers, 0 to 100."""

class NpuEstimate:
    """Vela's figures: estimates, not measurements. Memory in bytes."""

    @property
    def accelerator(self) -> str:
        """"ethos-u55-128"."""

    @property
    def system_config(self) -> str:
        """The section of Vela's configuration with clocks and memories."""

    @property
    def memory_mode(self) -> str:
        """The section that says what lies where."""

    @property
    def cycles(self) -> float:
        """NPU cycles of one inference."""

    @property
    def inferences_per_second(self) -> float:
        """At the clock of `system_config`."""

    @property
    def macs(self) -> float:
        """Multiplications with addition of one inference."""

    @property
    def sram_bytes(self) -> float:
        """Peak use of on-chip memory."""

    @property
    def dram_bytes(self) -> float:
        """Peak use of DRAM."""

    @property
    def flash_bytes(self) -> float:
        """Commands and weights."""

    @property
    def layers(self) -> list[NpuLayer]:
        """One per NPU operator, in order of execution."""

class OptionInfo:
    """One option: what it takes and what it does."""

    @property
    def name(self) -> str:
        """As on the command line, without dashes: "memory-mode"."""

    @property
    def kind(self) -> str:
        """"flag", "text", "file", "number", "list" or "pairs"."""

    @property
    def default(self) -> str:
        """As text; empty: none."""

    @property
    def sentence(self) -> str:
        """What it does."""

    @property
    def allowed(self) -> list[str]:
        """The values that it takes; empty: any of its kind."""

    @property
    def alias(self) -> str:
        """Another name; empty: none."""

class TargetInfo:
    """A target and the options that it alone, or its family, understands."""

    @property
    def name(self) -> str:
        """What `compile` takes as target: "ethos-u55-128"."""

    @property
    def summary(self) -> str:
        """In one sentence."""

    @property
    def family(self) -> str:
        """Whose options are told together: "Ethos-U"."""

    @property
    def tosa_spec(self) -> str:
        """The TOSA that it takes: "TOSA-1.0+INT"."""

    @property
    def options(self) -> list[OptionInfo]:
        """Those beyond every target's."""

    @property
    def emits(self) -> str:
        """A piece of its own: "vgf", "vela"; empty: none."""

    def __repr__(self) -> str: ...

class OperatorInfo:
    """A PyTorch operator that tosaic lowers."""

    @property
    def name(self) -> str:
        """"conv2d"."""

    @property
    def schemas(self) -> list[str]:
        """As PyTorch prints them, one per overload."""

    @property
    def summary(self) -> str:
        """What it computes, in one sentence."""

    @property
    def rule(self) -> str:
        """How its integer form follows: "pointwise", "transparent", ..."""

def targets() -> list[TargetInfo]:
    """Every target that `compile` knows, with its options."""

def compile_options() -> list[OptionInfo]:
    """The options of every target."""

def operators() -> list[OperatorInfo]:
    """Every PyTorch operator that is lowered."""

def knows(overload: str) -> bool:
    """Is there a lowering of this overload, "aten.relu.default"?"""

def explain_error(code: str = '') -> str:
    """
    What an error code or a family of codes means, and what to do; without it: the list of families.
    """

class Program:
    """A program that PyTorch exported."""

    @staticmethod
    def open(path: str) -> tuple[Program, list[Diagnostic]]:
        """Of a file, and what was said while reading."""

    @staticmethod
    def from_bytes(file: bytes, name: str) -> tuple[Program, list[Diagnostic]]:
        """Of a file's bytes, which are kept."""

    @staticmethod
    def held(json: str, tensors: list[tuple[str, object, int, int, str, tuple[int, ...], tuple[int, ...], int]], samples: list[list[tuple[object, tuple[int, str, tuple[int, ...], None]]]], name: str) -> tuple[Program, list[Diagnostic]]:
        """
        Of PyTorch's own objects: tensors as (name, owner, address, bytes, dtype, sizes, strides, offset).
        """

    @staticmethod
    def together(methods: dict[str, Program], name: str) -> Program:
        """As the methods of one program."""

    @property
    def name(self) -> str:
        """The file's or module's."""

    @property
    def torch_version(self) -> str:
        """Of the PyTorch that exported it; empty: graph text."""

    @property
    def input_tree(self) -> str:
        """PyTorch's pytree of the call, as JSON; empty: none."""

    @property
    def output_tree(self) -> str:
        """PyTorch's pytree of the result, as JSON; empty: none."""

    @property
    def methods(self) -> list[dict[str, Any]]:
        """
        One dict per method: name, inputs, outputs, buffers, written_inputs, nodes, sample_sets.
        """

    def with_input_layout(self, choices: list[str]) -> Program:
        """With images as batch, height, width, channels."""

    def sample_inputs(self, set: int = 0, method: str = 'forward') -> list[tuple[Any, str]]:
        """
        The example inputs that the file holds, as (an object that speaks DLPack, dtype).
        """

class Artifact:
    """What a compilation leaves."""

    def summary(self) -> dict[str, Any]:
        """The attributes of tosaic.Summary."""

    def firmware(self, name: str) -> dict[str, str]:
        """C sources by file name. An empty name: the model's."""

    def pieces(self) -> list[str]:
        """The names that `piece` takes."""

    def piece(self, name: str) -> bytes:
        """Made when asked for."""

    def manifest(self) -> str:
        """As JSON."""

    def report(self, profile: str, comparison: str, format: str) -> str:
        """
        `format`: html, json or mlia-json. `profile` and `comparison`: JSON, which may be empty.
        """

def compile(program: Program, target: str, options: dict[str, list[str]], progress: Callable[[str, int, int], object] | None, samples: dict[str, Iterator[tuple[list[object], list[tuple[int, str, tuple[int, ...], tuple[int, ...] | None]]]] | str]) -> tuple[Artifact, list[Diagnostic]]:
    """
    The artifact, and what was said. Samples by the method's name, empty for the only one: a file's path, or what owns the memory and its tensors as (address, dtype, sizes, strides).
    """

class Comparison:
    """Where a program loses accuracy in integers."""

    def text(self, limit: int) -> str:
        """As a table of the worst layers; 0: of all."""

    def json(self) -> str:
        """All of it."""

def compare(program: Program, target: str, options: dict[str, list[str]], progress: Callable[[str, int, int], object] | None, samples: dict[str, Iterator[tuple[list[object], list[tuple[int, str, tuple[int, ...], tuple[int, ...] | None]]]] | str], shown: dict[str, Iterator[tuple[list[object], list[tuple[int, str, tuple[int, ...], tuple[int, ...] | None]]]] | str], labels: Sequence[int], on_device: bool) -> tuple[Comparison, list[Diagnostic]]:
    """
    The comparison, and what was said. Samples as of `compile`; `shown`: those to compare on, with their labels, which may be none.
    """

class Tuning:
    """Which calls of an int8 program get 16 bits."""

    def text(self) -> str:
        """As a table."""

    def json(self) -> str:
        """All of it."""

def tune(program: Program, target: str, options: dict[str, list[str]], budget: str, progress: Callable[[str, int, int], object] | None, samples: dict[str, Iterator[tuple[list[object], list[tuple[int, str, tuple[int, ...], tuple[int, ...] | None]]]] | str], shown: dict[str, Iterator[tuple[list[object], list[tuple[int, str, tuple[int, ...], tuple[int, ...] | None]]]] | str], labels: Sequence[int]) -> tuple[Tuning, list[Diagnostic]]:
    """
    What was measured and chosen, and what was said. `budget` may be empty. Samples as of `compare`.
    """

def piece_in_file(path: str) -> str:
    """The piece that a file holds, as its ending says; "manifest" of .json."""

def explain(program: Program, target: str, options: dict[str, list[str]]) -> tuple[Artifact, list[Diagnostic]]:
    """An artifact without a program: its summary is what counts."""

def supports(program: Program, target: str, options: dict[str, list[str]]) -> list[NodeVerdict]:
    """A verdict per node of the exported graph."""

def plan(program: Program, target: str, options: dict[str, list[str]]) -> tuple[str, str]:
    """The quantisation plan as text and as JSON."""

def annotation(program: Program, target: str, options: dict[str, list[str]], in_pieces: bool) -> str:
    """The plan as JSON, for PT2E's quantizers."""

def equalized_parameters(program: Program, target: str, options: dict[str, list[str]], samples: dict[str, Iterator[tuple[list[object], list[tuple[int, str, tuple[int, ...], tuple[int, ...] | None]]]] | str]) -> dict[str, Any]:
    """
    Parameters with which small channels are larger, by their names, as objects that speak DLPack; only those that change. For PT2E's quantizers. Samples as of `compile`.
    """

class Session:
    """Something that runs, for one thread at a time."""

    @staticmethod
    def open(path: str, options: dict[str, Any]) -> tuple[Session, list[Diagnostic]]:
        """Of a file, and what was said while loading."""

    @staticmethod
    def from_bytes(file: bytes, name: str, options: dict[str, Any]) -> tuple[Session, list[Diagnostic]]:
        """Of a file's bytes, which are kept."""

    @staticmethod
    def of_artifact(artifact: Artifact, options: dict[str, Any]) -> tuple[Session, list[Diagnostic]]:
        """Of what was compiled, without a file."""

    @staticmethod
    def of_program(program: Program, options: dict[str, Any]) -> tuple[Session, list[Diagnostic]]:
        """Of an exported program, in floats."""

    @property
    def inputs(self) -> list[TensorInfo]:
        """The tensors that it takes."""

    @property
    def outputs(self) -> list[Argument]:
        """What it gives."""

    @property
    def arguments(self) -> list[Argument]:
        """What the exported call takes: the tensors, and values that were fixed."""

    @property
    def input_tree(self) -> str:
        """PyTorch's description of the call, of a .pte; empty: none."""

    @property
    def output_tree(self) -> str:
        """PyTorch's description of the result, of a .pte; empty: none."""

    @property
    def device(self) -> str:
        """"cpu", "ethos-u55-128 (simulated)"."""

    def run(self, inputs: Iterable[tuple[int, str, tuple[int, ...], tuple[int, ...] | None]]) -> list[Any]:
        """
        Tensors as (address, dtype, sizes, strides) in; (an object that speaks DLPack, dtype) or a literal out.
        """

    def warm(self, inputs: Iterable[tuple[int, str, tuple[int, ...], tuple[int, ...] | None]]) -> None:
        """One run that changes no state; of no inputs: on likely ones."""

    @property
    def states(self) -> list[TensorInfo]:
        """What it keeps from run to run, by name."""

    def state(self, name: str) -> tuple[Any, str]:
        """
        A copy of what a state holds now: (an object that speaks DLPack, dtype).
        """

    def set_state(self, name: str, content: tuple[int, str, tuple[int, ...], tuple[int, ...] | None]) -> None:
        """A tensor as (address, dtype, sizes, strides)."""

    def reset(self) -> None:
        """The state is again the first one."""

    def clone(self) -> Session:
        """For another thread; weights are shared."""

    @property
    def useful_clones(self) -> int:
        """How many are worth having at work at once."""

    most_threads: Final[int] = ...
    """That a session takes."""

    @property
    def methods(self) -> list[str]:
        """The program's, in its order."""

    def method(self, name: str) -> Session:
        """Another method of the program, next to this one."""

    def measure(self, on: bool) -> None:
        """Keep times from now on."""

    def profile(self) -> list[tuple[str, float, str, str, str]]:
        """
        (operation, seconds, the delegate around it, the value that it computes, its place in the program).
        """

class Evaluated:
    """A program on a whole data set."""

    def text(self) -> str:
        """As a table."""

    def json(self) -> str:
        """All of it."""

def evaluate(session: Session, floats: Session | None, samples: Iterator[tuple[list[object], list[tuple[int, str, tuple[int, ...], tuple[int, ...] | None]], list[int], str]] | str, labels: str, expected: int, workers: int, limit: int, worst: int, progress: Callable[[str, int, int], object] | None, each: Callable[[int, list[Any], list[Any]], object] | None, program: str, program_in_floats: str) -> tuple[Evaluated, list[Diagnostic]]:
    """
    The figures, and what was said. Samples are dense; a text is the path of a data set, `labels` of its labels.
    """

class SweepPoint:
    """A program to be compiled."""

    @property
    def target(self) -> str:
        """"ethos-u55-128"."""

    @property
    def precision(self) -> str:
        """"int8"."""

    @property
    def memory_mode(self) -> str:
        """Vela's name; empty: the product's own."""

    def __getstate__(self) -> tuple[str, str, str, dict[str, list[str]]]: ...

    def __setstate__(self, arg: tuple[str, str, str, Mapping[str, Sequence[str]]], /) -> None: ...

class SweepRow:
    """What became of one."""

    @property
    def best(self) -> bool:
        """Is it on the Pareto front?"""

    def __getstate__(self) -> tuple[str, str, str, str, list[int], list[float | None], bool]: ...

    def __setstate__(self, arg: tuple[str, str, str, str, Sequence[int], Sequence[float | None], bool], /) -> None: ...

def sweep_points(targets: Sequence[str], precisions: Sequence[str], memory_modes: Sequence[str], options: dict[str, list[str]]) -> list[SweepPoint]:
    """What is to be compiled."""

class SweepData:
    """Samples in memory."""

    def __getstate__(self) -> tuple[list[list[tuple[str, list[int], bytes]]], list[tuple[list[tuple[str, list[int], bytes]], list[int], str, list[tuple[str, list[int], bytes]]]]]: ...

    def __setstate__(self, arg: tuple[Sequence[Sequence[tuple[str, Sequence[int], bytes]]], Sequence[tuple[Sequence[tuple[str, Sequence[int], bytes]], Sequence[int], str, Sequence[tuple[str, Sequence[int], bytes]]]]], /) -> None: ...

def sweep_data(program: Program, calibration: Iterator[tuple[list[object], list[tuple[int, str, tuple[int, ...], tuple[int, ...] | None]]]] | str | None, evaluation: Iterator[tuple[list[object], list[tuple[int, str, tuple[int, ...], tuple[int, ...] | None]], list[int], str]] | str | None, labels: str, limit: int) -> tuple[SweepData, list[Diagnostic]]:
    """
    Dense samples copied into memory, or read from files, and what was said.
    """

def run_floats(program: Program, data: SweepData) -> SweepData:
    """The data, with what floats give for each sample."""

def measure_point(program: Program, point: SweepPoint, data: SweepData) -> SweepRow:
    """Compiled and run here."""

def sweep_marked(rows: Sequence[SweepRow], hertz: float) -> list[SweepRow]:
    """The rows with the Pareto front marked; 0 Hz: at Vela's clock."""

def sweep_text(model: str, rows: Sequence[SweepRow]) -> str:
    """As a table."""

def sweep_json(model: str, rows: Sequence[SweepRow]) -> str:
    """All of it."""

def sweep_csv(rows: Sequence[SweepRow]) -> str:
    """For spreadsheets."""

def sweep_html(model: str, rows: Sequence[SweepRow]) -> str:
    """As a page that sorts."""

class CaseOutcome:
    """What became of one case of a bundled program."""

    @property
    def method(self) -> str:
        """"forward"."""

    @property
    def number(self) -> int:
        """Among the cases of the method."""

    @property
    def passed(self) -> bool:
        """It gave what was expected."""

    @property
    def why(self) -> str:
        """What differs, or what went wrong; empty: it passed."""

    def __bool__(self) -> bool: ...

    def __repr__(self) -> str: ...

def bundle(program: bytes, cases: list[tuple[str, list[Any], list[Any]]]) -> bytes:
    """
    A .bpte of a .pte and cases: (method, inputs, outputs), of dense tensors as (address, dtype, sizes, strides) and numbers.
    """

def check_cases(file: bytes, name: str, options: dict[str, Any], rtol: float, atol: float) -> tuple[list[CaseOutcome], list[Diagnostic]]:
    """The outcomes of a .bpte's cases, and what was said while loading."""

class TosaOperand:
    """An operand or a result of an operator of TOSA."""

    @property
    def name(self) -> str:
        """As the standard calls it."""

    @property
    def type(self) -> str:
        """
        A dtype, or a variable that `types` binds; "shape": a list of integers.
        """

    @property
    def list(self) -> bool:
        """Takes several tensors."""

    @property
    def constant(self) -> bool:
        """Must be known when the program is compiled."""

class TosaOperator:
    """An operator of TOSA as a call of a program."""

    @property
    def name(self) -> str:
        """"clamp": the call is "tosaic.clamp.default", or .integer."""

    @property
    def summary(self) -> str:
        """What it computes, in one sentence."""

    @property
    def schemas(self) -> list[str]:
        """In PyTorch's notation: the overloads default and integer."""

    @property
    def operands(self) -> list[TosaOperand]:
        """In order."""

    @property
    def results(self) -> list[TosaOperand]:
        """In order."""

    @property
    def types(self) -> list[dict[str, str]]:
        """The supported combinations: variable to dtype."""

def tosa_operators() -> list[TosaOperator]:
    """Every operator of TOSA that takes and gives tensors."""

def evaluate_call(overload: str, operands: list[tuple[int, str, tuple[int, ...], tuple[int, ...] | None]], arguments: dict[str, object]) -> list[tuple[str, tuple[int, ...], Any]]:
    """
    What a call gives, as (dtype, sizes, elements). Operands are lent: (address, dtype, sizes, strides); where one's address is 0, the elements of the results are None.
    """

def version() -> str:
    """The library's version, "0.1.0"."""
