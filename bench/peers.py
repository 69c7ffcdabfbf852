# SPDX-License-Identifier: Apache-2.0
"""What tosaic is compared with, one measurement per process; prints one JSON object of seconds and files.

    python peers.py flow THREADS MODEL.pt2 {tosa-int,tosa-fp,vgf-int,vgf-fp,ethos-u55-128...} OUT.pte [SAMPLES.npz]
                                                                                ExecuTorch's Arm flow
    python peers.py eager THREADS RUNS MODEL.pt2 INPUT.npy                      PyTorch
    python peers.py xnnpack THREADS RUNS MODEL.pt2 INPUT.npy {float,int8} [SAMPLES.npz]
                                                                                ExecuTorch's runtime with XNNPACK
    python peers.py reference RUNS MODEL.tosa INPUT.npy                         tosa_reference_model, whole process
    python peers.py chain N OUT.pt2                                             a program of N pointwise nodes
    python peers.py three OUT.pt2                                               a model of three operators

Seconds never hold an import: all that a measurement needs is imported before its clock starts. A flow that leaves a node
outside its delegate is no flow to compare with, and fails.
"""
import json
import pathlib
import shutil
import subprocess
import sys
import time
import warnings

warnings.filterwarnings("ignore")
import numpy as np


def least(count, call):
    """The least seconds of `count` calls, after one that does not count."""
    call()
    best = float("inf")
    for _ in range(count):
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best


def batches_of(samples):
    import torch
    arrays = list(np.load(samples).values())
    return [tuple(torch.from_numpy(a[i]) for a in arrays) for i in range(len(arrays[0]))]


def quantised(program, quantizer, samples):
    import torch
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e
    prepared = prepare_pt2e(program.module(check_guards=False), quantizer)
    for batch in batches_of(samples):
        prepared(*batch)
    return torch.export.export(convert_pt2e(prepared), batches_of(samples)[0])


def delegated_whole(edge):
    """Fails unless all nodes but conversions at the boundary are in delegates."""
    import operator
    outside = {str(node.target) for node in edge.exported_program().graph.nodes if node.op == "call_function"
               and node.target is not operator.getitem and "executorch_call_delegate" not in str(node.target)
               and "quantize_per" not in str(node.target) and "_clone_dim_order" not in str(node.target)
               and "_to_dim_order_copy" not in str(node.target)}
    if outside:
        raise RuntimeError(f"not delegated: {', '.join(sorted(outside))}")
    return edge


def arm_backend(target, out):
    """ExecuTorch's compile spec, quantizer class and partitioner class for a target."""
    from executorch.backends.arm.quantizer import EthosUQuantizer, TOSAQuantizer, VgfQuantizer
    from executorch.backends.arm.tosa.compile_spec import TosaCompileSpec
    from executorch.backends.arm.tosa.partitioner import TOSAPartitioner
    if target.startswith("vgf"):
        from executorch.backends.arm.vgf import VgfCompileSpec, VgfPartitioner
        return VgfCompileSpec("TOSA-1.0+INT" if target == "vgf-int" else "TOSA-1.0+FP"), VgfQuantizer, VgfPartitioner
    if not target.startswith("ethos-u"):
        return TosaCompileSpec("TOSA-1.0+INT" if target == "tosa-int" else "TOSA-1.0+FP"), TOSAQuantizer, TOSAPartitioner
    from executorch.backends.arm.ethosu import EthosUCompileSpec, EthosUPartitioner
    spec = EthosUCompileSpec(target, extra_flags=["--verbose-performance"])
    folder = pathlib.Path(out).with_suffix("")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    spec.dump_intermediate_artifacts_to(str(folder))  # before the partitioner, which takes a copy of the spec
    return spec, EthosUQuantizer, EthosUPartitioner


def timed(module, name, spent, after=lambda: None):
    """Replaces module.name by itself with its seconds added to spent[0], and `after` called behind it."""
    call = getattr(module, name)

    def wrapper(*arguments, **options):
        start = time.perf_counter()
        try:
            return call(*arguments, **options)
        finally:
            spent[0] += time.perf_counter() - start
            after()
    setattr(module, name, wrapper)


def flow(threads, path, target, out, samples=None):
    """Seconds of the flow; those inside Vela are left out, and returned separately."""
    import torch
    import torchao.quantization.pt2e.quantize_pt2e  # noqa: F401 (it registers operators that a stored program names)
    from executorch.backends.arm.quantizer import get_symmetric_quantization_config
    from executorch.exir import EdgeCompileConfig, to_edge_transform_and_lower
    torch.set_num_threads(int(threads))
    arm_backend(target, out)  # imports
    pathlib.Path(path).read_bytes()
    vela = [0.0]
    if target.startswith("ethos-u"):
        from executorch.backends.arm._passes import decompose_permute_for_u55_pass
        from executorch.backends.arm.ethosu import backend
        reports = pathlib.Path(out).with_suffix("") / "output"

        def keep():  # the next delegate's reports go to the same place
            if reports.exists():
                reports.rename(reports.with_name(f"delegate_{len(list(reports.parent.iterdir()))}"))
        timed(backend, "vela_compile", vela, keep)
        timed(decompose_permute_for_u55_pass, "vela_compile", vela)
    start = time.perf_counter()
    program = torch.export.load(path)
    spec, quantizer_class, partitioner_class = arm_backend(target, out)
    if not target.endswith("-fp"):
        quantizer = quantizer_class(spec)
        quantizer.set_global(get_symmetric_quantization_config(is_per_channel=True))
        program = quantised(program, quantizer, samples)
    edge = to_edge_transform_and_lower(program, partitioner=[partitioner_class(spec)],
                                       compile_config=EdgeCompileConfig(_check_ir_validity=False))
    until_here = time.perf_counter() - start
    delegated_whole(edge)  # which memory planning, the next step, writes to
    start = time.perf_counter()
    pathlib.Path(out).write_bytes(edge.to_executorch().buffer)
    return {"seconds": until_here + time.perf_counter() - start - vela[0], "vela_seconds": vela[0]}


def eager(threads, runs, path, input_file):
    import torch
    torch.set_num_threads(int(threads))
    module, x = torch.export.load(path).module(check_guards=False), torch.from_numpy(np.load(input_file))
    with torch.no_grad():
        return {"seconds": least(int(runs), lambda: module(x))}


def xnnpack_program(path, kind, samples=None):
    """The bytes of a .pte."""
    import torch
    from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
    from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import XNNPACKQuantizer, get_symmetric_quantization_config
    from executorch.exir import to_edge_transform_and_lower
    program = torch.export.load(path)
    if kind == "int8":
        program = quantised(program, XNNPACKQuantizer().set_global(get_symmetric_quantization_config(is_per_channel=True)),
                            samples)
    return delegated_whole(to_edge_transform_and_lower(program, partitioner=[XnnpackPartitioner()])).to_executorch().buffer


def xnnpack_method(threads, program):
    """Of the bytes of a .pte, as a function of a list of inputs."""
    from executorch.extension.pybindings import portable_lib
    from executorch.runtime import Runtime
    portable_lib._unsafe_reset_threadpool(threads)
    method = Runtime.get().load_program(program).load_method("forward")
    return lambda inputs, memory=program: method.execute(inputs)  # the method reads the memory


def xnnpack(threads, runs, path, input_file, kind, samples=None):
    import torch
    run = xnnpack_method(int(threads), xnnpack_program(path, kind, samples))
    x = torch.from_numpy(np.load(input_file))
    return {"seconds": least(int(runs), lambda: run([x]))}


def reference(runs, path, input_file):
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "test/peers"))
    import reference_model
    taken, _ = reference_model.interface(path)
    x = np.load(input_file)
    if np.issubdtype(taken[0][1], np.integer):
        x = np.round(x / np.abs(x).max() * np.iinfo(taken[0][1]).max)
    folder = pathlib.Path(path).parent
    x = x.astype(taken[0][1])
    np.save(folder / "reference_input.npy", x)
    return {"seconds": least(int(runs), lambda: reference_model.run(path, [x], folder)),
            "input": str(folder / "reference_input.npy")}


def chain(count, out):
    """x = relu(x + 1) and so on: `count` nodes, exported like any model."""
    import torch

    class Chain(torch.nn.Module):
        def forward(self, x):
            for i in range(int(count)):
                x = torch.relu(x) if i % 2 else x + 0.5
            return x

    torch.export.save(torch.export.export(Chain(), (torch.randn(1, 16),)), out)
    return {}


def three(out):
    import torch
    from torch import nn
    torch.manual_seed(1)
    net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.MaxPool2d(2)).eval()
    torch.export.save(torch.export.export(net, (torch.randn(1, 3, 16, 16),)), out)
    return {}


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    called = {f.__name__: f for f in (flow, eager, xnnpack, reference, chain, three)}[sys.argv[1]]
    print(json.dumps(called(*sys.argv[2:])))
