# SPDX-License-Identifier: Apache-2.0
"""ExecuTorch as the judge of every .pte that a test makes: it loads, all its kernels are registered, and without a delegate
it runs. Called as a script, it prints the kernels for `pack` to compare its calls with:

    python test/executorch_programs.py > src/pack/executorch_kernels.inc
"""
import functools
import importlib.metadata
import json
import logging
import re
import subprocess
import warnings

# What the compiler says of a program that ExecuTorch, as it is installed here, does not run.
SAID = ("warning[pack.tosaic-only]", "warning[pack.unknown-kernel]")


@functools.cache
def kernels():
    """The names of the portable and the quantised kernels."""
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    from executorch.extension.pybindings import portable_lib
    import executorch.kernels.quantized  # noqa: F401  registers its kernels
    logging.disable(logging.NOTSET)
    return sorted(portable_lib._get_operator_names())


def functional(kernel):
    """PyTorch's schema of the operator whose results the kernel writes into tensors that it is given."""
    import torch
    name, _, overload = kernel.partition(".")
    schemas = torch._C._jit_get_schemas_for_operator(name) if name.startswith("aten::") else []

    def arguments(schema):
        kept = [(a.name, str(a.type)) for a in schema.arguments if not a.is_out]
        made = {"layout", "device"} <= {n for n, _ in kept}  # such tensors are made anew, by dtype, layout and device
        return [a for a in kept if not (made and a[0] in ("dtype", "layout", "device", "pin_memory"))]
    for out in schemas:
        if out.overload_name == overload and any(a.is_out for a in out.arguments):
            return next((str(s).removeprefix("aten::").replace('"', "'") for s in schemas
                         if not s.is_mutable and arguments(s) == arguments(out)), "")
    return ""


def listing():
    lines = ["// SPDX-License-Identifier: Apache-2.0",
             f"// The kernels of ExecuTorch {importlib.metadata.version('executorch')} and PyTorch's schemas, by test/executorch_programs.py."]
    return "\n".join(lines + [f"{{{json.dumps(name)}, {json.dumps(functional(name))}}}," for name in kernels()]) + "\n"


def check(path, tosaic, said=""):
    if any(warning in said for warning in SAID):
        return
    known = set(kernels())
    from executorch.runtime import Runtime, Verification
    program = Runtime.get().load_program(path, verification=Verification.InternalConsistency)
    text = subprocess.run([tosaic, "inspect", path], capture_output=True, text=True, check=True).stdout
    called = set(re.findall(r"^ +\d+ kernel +([\w:.]+)", text, re.MULTILINE))
    assert called <= known, f"{path}: ExecuTorch has no {sorted(called - known)}"
    if re.search(r"^  delegate ", text, re.MULTILINE):
        return
    import torch
    method = program.load_method("forward")
    meta = method.metadata
    numbered = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.float32,
                torch.float64, None, None, None, torch.bool, None, None, None, torch.bfloat16]
    try:
        inputs = [meta.input_tensor_meta(i) for i in range(meta.num_inputs())]
    except IndexError:  # an input that is no tensor: its value is for the test that made the program to give
        return
    method.execute([torch.zeros(tuple(t.sizes()), dtype=numbered[t.dtype()]) for t in inputs])


def check_written(arguments, tosaic, said=""):
    """The programs that a command line of `tosaic compile` names, once it has run."""
    if arguments[0] == "compile":
        for path in map(str, arguments):
            if path.endswith(".pte"):
                check(path, tosaic, said)


if __name__ == "__main__":
    print(listing(), end="")
