# SPDX-License-Identifier: Apache-2.0
"""What a compilation leaves: an Artifact, or the Explanation of what would become of the nodes."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from . import _core
from ._bundle import bundle
from ._errors import Error, tell
from ._program import Program
from ._session import Session, _trees_in_file, session_options
from ._text import size_text

if TYPE_CHECKING:
    import pandas

    from ._comparison import Comparison
    from ._evaluation import Evaluation


class Summary:
    """What there is to say about a compilation; attributes, text and a table for notebooks.

    Attributes:
        name: the file's or module's.
        target, tosa_spec: "ethos-u55-128", "TOSA-1.0+INT+...".
        nodes: one `NodeVerdict` per node of the exported graph.
        delegates: the number of delegates; pieces, delegated: nodes of the partitioned graph, and those in delegates.
        estimates: of Ethos-U, one `NpuEstimate` per delegate.
        messages: notes and warnings, as `Diagnostic`.
        stage_seconds: [(stage, seconds)]; peer_seconds: thereof in a compiler that is not ours.
        self_check_seconds: what comparing the NPU's command streams with TOSA took; None: it was not asked for.
        samples: how many calibrated it.
        model_bytes, program_bytes, payload_bytes: sizes; tosa_operators: their number in delegates.
        printed: text that the options `print_after` and `trace_node` ask for.
    """

    name: str
    target: str
    tosa_spec: str
    nodes: list[_core.NodeVerdict]
    delegated: int
    delegates: int
    pieces: int
    stage_seconds: list[tuple[str, float]]
    peer_seconds: float
    model_bytes: int
    program_bytes: int
    payload_bytes: int
    tosa_operators: int
    estimates: list[_core.NpuEstimate]
    samples: int
    self_check_seconds: float | None
    printed: str
    messages: list[_core.Diagnostic]

    def __init__(self, program: Program, facts: dict[str, Any]) -> None:
        self.name = program.name
        self.__dict__.update(facts)
        self.messages = [*program.messages, *facts["messages"]]

    def rows(self) -> list[tuple[str, str]]:
        """(what, text), as they are printed."""
        outside = [n for n in self.nodes if not n.taken]
        rows = [("target", f"{self.target} ({self.tosa_spec})"),
                ("delegated", f"{len(self.nodes) - len(outside)} of {len(self.nodes)} nodes, in {self.delegates} "
                              f"delegate{'' if self.delegates == 1 else 's'}")]
        for (op, why), count in Counter((n.op, n.reason.reason) for n in outside).most_common():
            rows.append(("outside", f"{count} x {op}: {why}"))
        for e in self.estimates:
            rows.append(("estimate", f"{e.cycles:,.0f} cycles, {e.inferences_per_second:,.1f} inferences/s, "
                                     f"SRAM {size_text(e.sram_bytes)}, flash {size_text(e.flash_bytes)} ({e.system_config})"))
        if self.program_bytes:
            rows.append(("program", f"{size_text(self.program_bytes)}, payload {size_text(self.payload_bytes)}, "
                                    f"{self.tosa_operators} TOSA operators"))
        seconds = sum(s for _, s in self.stage_seconds)
        rows.append(("time", f"{seconds:.3f} s" + (f", of it {self.peer_seconds:.3f} s outside tosaic"
                                                     if self.peer_seconds else "")))
        rows += [(m.severity, str(m)) for m in self.messages]
        return rows

    def __str__(self) -> str:
        return f"{self.name}\n" + "\n".join(f"  {key:<10} {value}" for key, value in self.rows())

    def html(self) -> str:
        """What a notebook shows: delegation, cycles and memory, the layers that take most of them, what stays outside with
        reasons and source lines, and the compiler's notes and warnings."""
        from ._html import page_of

        return page_of(self)


class Artifact:
    """A compiled program. Its pieces are made when asked for; `run` runs it here, on the CPU or the simulated NPU.

    Attributes:
        summary: the `Summary`.
    """

    def __init__(self, core: _core.Artifact, program: Program, compared: Callable[..., Comparison] | None = None) -> None:
        self._core, self._program, self._compared = core, program, compared
        self.summary = Summary(program, core.summary())
        self._session: Session | None = None  # of `run`

    @property
    def pieces(self) -> list[str]:
        """The names that `piece` takes: "pte", "header", "payload", "tosa", "vgf", "vela/...", "ptd/..."."""
        return self._core.pieces()

    def piece(self, name: str = "pte") -> bytes:
        """Raises Error artifact.no-piece, which names those that there are."""
        return self._core.piece(name)

    @property
    def pte(self) -> bytes:
        """The ExecuTorch program."""
        return self._core.piece("pte")

    @property
    def manifest(self) -> str:
        """JSON: versions, options, hashes, estimates, the location of every node."""
        return self._core.manifest()

    def bundle(self, cases: Iterable[Any], expected: Iterable[Any] | None = None) -> bytes:
        """The program with cases to try it with, as ExecuTorch bundles them (`.bpte`).

        Args:
            cases: calls of the module: each a tensor (the only input), a tuple of arguments or a dict of keyword arguments.
            expected: the module's result for each; None: what the artifact gives here, to which a device can be held bit
                for bit.

        Raises:
            Error: bpte.value (None and texts among inputs or results), bundle.expected, and what `run` raises.
        """
        return bundle(self.pte, self._program, self.session(), cases, expected)

    def save(self, path: str | os.PathLike[str], *, cases: Iterable[Any] | None = None,
             expected: Iterable[Any] | None = None) -> None:
        """Writes a piece, told by the file's ending: `.pte` and `.bpte` (with `.ptd` files next to them), `.tosa`, `.vgf`,
        `.h`, `.json` (the manifest). A file is written whole or not at all. `cases` and `expected` are of `.bpte`, as
        `bundle` takes them."""
        path = os.fspath(path)
        ending = os.path.splitext(path)[1]
        if (ending == ".bpte") != (cases is not None):
            raise Error(code="artifact.cases", message="a .bpte is a program with cases" if cases is None else
                        f"'{path}' cannot hold cases", help="save('model.bpte', cases=[call, ...]), or a .pte without")
        try:
            piece = "pte" if ending == ".bpte" else _core.piece_in_file(path)
        except Error as why:
            raise Error(code=why.code, message=f"what is to be written to {path!r}?",
                        help=f"{why.help}, .bpte (with cases); piece(NAME) gives the others as bytes") from None
        if piece == "manifest":
            _write(path, self.manifest.encode())
            return
        content = self.piece(piece) if cases is None else self.bundle(cases, expected)
        if piece == "pte":
            for name in self.pieces:
                if name.startswith("ptd/"):
                    _write(os.path.join(os.path.dirname(path), os.path.basename(name[4:])), self.piece(name))
        _write(path, content)

    def firmware(self, name: str | None = None) -> dict[str, str]:
        """C sources for a Cortex-M, alone or next to an Ethos-U, by file name: what `--emit firmware=DIR` writes.

        Args:
            name: begins the names of files and functions; None: the model's.

        Raises:
            Error: firmware.*, c.unsupported, board.flash and board.sram.
        """
        return self._core.firmware(name or "")

    def save_firmware(self, folder: str | os.PathLike[str], *, name: str | None = None) -> None:
        """Writes what `firmware` gives into a folder, which is made where there is none."""
        files = self.firmware(name)
        folder = os.fspath(folder)
        try:
            os.makedirs(folder, exist_ok=True)
        except (OSError, ValueError) as why:
            raise Error(code="file.write", message=f"cannot make the folder {folder!r}: {getattr(why, 'strerror', None) or why}",
                        help="check the path and its permissions") from why
        for file, text in files.items():
            _write(os.path.join(folder, file), text.encode())

    def session(self, *, executor: str = "cpu", method: str | None = None, device: str = "auto", vulkan_device: str = "",
                threads: int = 0) -> Session:
        """A session of its own, with a state of its own. `method`: None is the program's first; others of it are
        `session.method(name)`."""
        methods = self._program.methods
        core, said = _core.Session.of_artifact(
            self._core, session_options(executor, method or methods[0], device, vulkan_device, threads, None))
        tell(said)
        known = {m["name"]: m["written_inputs"] for m in self._program._core.methods}
        if len(methods) > 1 or method not in (None, methods[0]):
            return Session(core, *_trees_in_file(core), core.arguments, known.get(method or methods[0]))
        return Session(core, *self._program._trees(), self._program.inputs, known[methods[0]])

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """As `Session.run`, on a session that is kept: state goes on from run to run. For one thread at a time."""
        if self._session is None:
            self._session = self.session()
        return self._session.run(*args, **kwargs)

    __call__ = run

    def run_many(self, calls: Iterable[Any], *, workers: int = 0) -> Iterator[Any]:
        """As `Session.run_many`, on clones of a session with one thread."""
        return self.session(threads=1).run_many(calls, workers=workers)

    def compare(self, samples: Any = None, *, labels: Any = None, on_device: bool = False,
                progress: bool | None = None) -> Comparison:
        """Where it loses accuracy, layer by layer: `tosaic.compare` with the arguments that it was compiled with. The
        program is calibrated again, so `calibration` must not have been an iterator.

        Args:
            samples: what to compare on, as `calibration` of `compile`; None: the first 8 samples of the calibration.
            labels: of these samples, as `tosaic.compare` takes them.
            on_device: as `tosaic.compare` takes it.

        Raises:
            Error: compare.*, and what `tosaic.compare` raises.
        """
        if self._compared is None:
            raise Error(code="compare.calibration", message="it is not known how the artifact was compiled",
                        help="tosaic.compare(model, ..., calibration=[...])")
        return self._compared(samples, labels, progress, on_device)

    def evaluate(self, dataset: Any, metric: Callable[..., Any] | None = None, *, labels: Any = None, floats: bool = True,
                 device: str = "auto", workers: int = 0, limit: int = 0, worst: int = 10,
                 progress: bool | None = None) -> Evaluation:
        """Runs a whole data set, several samples at once, next to the program in floats: how often it is right, how far it
        is from floats, which samples are worst, and how fast it is. States are reset between samples.

        Args:
            dataset: samples, or (sample, label): a data set of PyTorch's, a loader, any iterable; samples are calls of the
                module as `calibration` of `compile` has them, a loader's batches are taken apart. A label says which element
                along the last axis of the first output should be the largest; several are those of the output's rows;
                negative ones do not count. Of a data set with indices a sample that raises is left out, with a
                `CompileWarning`. Or the path of a .npz, a .npy or a folder, as `tosaic evaluate --data` takes it.
            metric: metric(outputs, label), or metric(outputs) where there are no labels: a number for one sample's outputs,
                which come as the module returns them. Its mean is told, for both programs.
            labels: an iterable of labels, of a data set without; or the path of a file, of a path.
            floats: run the program in floats, too.
            device: as of `session`.
            workers: samples that run at once; 0: as many as there are cores, on a Vulkan device 1.
            limit: samples at most; 0: all.
            worst: how many samples to name.
            progress: a bar; None: where somebody looks.

        Raises:
            Error: evaluate.*, and what `run` raises.
        """
        from ._evaluation import evaluate

        own = self.session(device=device, threads=1)
        in_floats = None
        if floats:
            first = self._program.methods[0]
            core, said = _core.Session.of_program(self._program._core,
                                                  session_options("cpu", first, "auto", "", 1, None))
            tell(said)
            in_floats = Session(core, *self._program._trees(), self._program.inputs,
                             {m["name"]: m["written_inputs"] for m in self._program._core.methods}[first])
        return evaluate(own, in_floats, self._program, dataset, metric, labels, workers, limit, worst, progress)

    def report(self, path: str | os.PathLike[str] | None = None, *, profile: Session | None = None,
               comparison: Comparison | None = None, format: str | None = None) -> str:
        """What became of the program as one HTML page that needs no network: graph, cycles and times, memory, placement,
        scales, messages, versions. What `tosaic report` writes.

        Args:
            path: where to write it, too; a name that ends in `.json` gets the data of the page, and they are returned.
            profile: a session of this artifact that has run while it measured (`session.measure()`): its times are shown.
            comparison: what `compare` gave: the accuracy of each layer is shown.
            format: instead of what the name says: "html", "json", or "mlia-json", as Arm's adviser MLIA prints it.

        Raises:
            Error: report.json (a session that has not measured), report.format, file.write.
        """
        name = None if path is None else os.fspath(path)
        text = self._core.report(_profile_json(profile) if profile else "", comparison.json() if comparison else "",
                                 format or ("json" if name is not None and name.endswith(".json") else "html"))
        if name is not None:
            _write(name, text.encode())
        return text

    def __repr__(self) -> str:
        return f"<tosaic.Artifact {self.summary}>"

    def _repr_html_(self) -> str:
        return self.summary.html()


class Explanation:
    """What the target takes of a program, and why not the rest.

    Attributes:
        summary: the `Summary`.
    """

    def __init__(self, core: _core.Artifact, program: Program) -> None:
        self.summary = Summary(program, core.summary())

    @property
    def nodes(self) -> list[_core.NodeVerdict]:
        """One per node of the exported graph, in its order."""
        return self.summary.nodes

    def records(self) -> list[dict[str, Any]]:
        """One dict per node: name, op, module, place, taken, delegates, code, reason."""
        return [{"name": n.name, "op": n.op, "module": n.module, "place": n.place, "taken": n.taken,
                 "delegates": n.delegates, "code": n.reason.code if n.reason else "",
                 "reason": n.reason.reason if n.reason else ""} for n in self.nodes]

    def to_pandas(self) -> pandas.DataFrame:
        """The records as a DataFrame."""
        import pandas

        return pandas.DataFrame(self.records())

    def __repr__(self) -> str:
        return f"<tosaic.Explanation {self.summary}>"

    def _repr_html_(self) -> str:
        return self.summary.html()


def _profile_json(session: Session) -> str:
    """As `tosaic run --profile --json` prints it."""
    import json

    rows = session.profile()
    if not rows:
        raise Error(code="report.json", message="the session has not measured a run",
                    help="session.measure(); session.run(...); artifact.report(profile=session)")
    return json.dumps({"command": "run", "device": session.device, "run_seconds": [sum(r.seconds for r in rows if not r.within)],
                       "operations": [r._asdict() for r in rows]})


def _write(path: str, content: bytes) -> None:
    import tempfile  # takes a while to import, and `import tosaic` is to be quick

    folder = os.path.dirname(path) or "."
    try:
        handle, temporary = tempfile.mkstemp(dir=folder, prefix=".tosaic-")  # whatever the length of the name
    except (OSError, ValueError) as why:
        raise Error(code="file.write", message=f"cannot write {path!r}: {getattr(why, 'strerror', None) or why}",
                    help="check the path and its permissions") from why
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException as why:
        os.unlink(temporary)
        if isinstance(why, (OSError, ValueError)):
            raise Error(code="file.write", message=f"cannot write {path!r}: {getattr(why, 'strerror', None) or why}",
                        help="check the path, its permissions and the room on the disk") from why
        raise


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current
