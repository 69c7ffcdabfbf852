# SPDX-License-Identifier: Apache-2.0
"""VGF compared with its peers: Arm's model converter and ExecuTorch's VGF flow; one table, every row measured in this
run.

    python vgf.py --tosaic build/release/bin/tosaic [--output build/bench-vgf.md] [--only convert size flow run]

Each row compares like with like, as in bench.py: processes with processes (the converter's without Python), what happens in
process with the same, without imports. Both sides run equally often and the least counts.
"""
import argparse
import json
import os
import pathlib
import re
import sys

import bench
import numpy as np

MODEL = "mobilenet_v2"
KINDS = {"int8": ["--quantize", "int8", "--io", "quantized"], "float": []}
SIZED = ["digits", "mobilenet_v2", "mobilenet_v3_small", "resnet18", "keyword_spotting", "auto_encoder", "unet", "tiny_vit"]


def native_converter():
    import model_converter
    return pathlib.Path(model_converter.__file__).parent / "binaries/bin/model-converter"


def emit(tosaic, model, kind):
    """The TOSA and VGF files of one compile."""
    tosa, vgf = (bench.WORK / f"{model}_{kind}.{ending}" for ending in ("tosa", "vgf"))
    if not vgf.exists():
        bench.process(sys.executable, bench.ROOT / "test/models/make_models.py", "--output", bench.MODELS, "--only", model)
        samples = ["--calibrate", bench.MODELS / f"{model}_samples.npz"] if kind == "int8" else []
        bench.process(tosaic, "compile", bench.MODELS / f"{model}.pt2", "--target", "vgf", "--emit", f"tosa={tosa}",
                      "--emit", f"vgf={vgf}", "--require-full-delegation", *KINDS[kind], *samples)
    return tosa, vgf


def by_sdk(tosa):
    out = tosa.with_suffix(".sdk.vgf")
    return bench.least(10, native_converter(), "-i", tosa, "-o", out)[0], out


def converting(table, tosaic):
    for kind in KINDS:
        tosa, _ = emit(tosaic, MODEL, kind)
        table.add(f"TOSA to VGF, MobileNetV2 {kind}, process",
                  lambda: bench.least(10, tosaic, "convert", tosa, "-o", tosa.with_suffix(".ours.vgf"))[0],
                  "model-converter, process", lambda: by_sdk(tosa)[0], bench.milliseconds)


def sizes(table, tosaic):
    for model in SIZED:
        for kind in KINDS:
            tosa, vgf = emit(tosaic, model, kind)
            table.add(f"file, {model} {kind}", lambda: vgf.stat().st_size, "model-converter",
                      lambda: by_sdk(tosa)[1].stat().st_size, lambda size: f"{size:,} B")


def flows(table, tosaic):
    model = bench.MODELS / f"{MODEL}.pt2"
    for kind, target in (("float", "vgf-fp"), ("int8", "vgf-int")):
        samples = [bench.WORK / "one_sample.npz"] if kind == "int8" else []
        options = ["--quantize", "int8", "--calibrate", *samples] if samples else []
        own = bench.once(lambda: bench.compiled(tosaic, "compile", model, "--target", "vgf", "-o", bench.WORK / "ours_vgf.pte", *options))
        theirs = bench.once(lambda: bench.flow(model, target, bench.WORK / f"et_{target}.pte", *samples))
        for key, counted in (("seconds", "in process"), ("process", "process")):
            table.add(f".pt2 to VGF .pte, MobileNetV2 {kind}, {counted}", lambda: own()[key],
                      f"ExecuTorch's VGF flow, {counted}", lambda: theirs()[key], bench.milliseconds)


def layered_environment():
    """What makes the loader put Arm's graph layer above its tensor layer: a folder each, in this order."""
    import emulation_layer
    deployed = pathlib.Path(emulation_layer.__file__).parent / "deploy"
    folders = []
    for layer in ("Graph", "Tensor"):
        manifest = json.loads((deployed / f"share/vulkan/explicit_layer.d/VkLayer_{layer}.json").read_text())
        folder = bench.WORK / f"layer_{layer}"
        folder.mkdir(exist_ok=True)
        (folder / "layer.json").write_text(json.dumps(manifest))
        folders.append(str(folder))
    return {"VK_LAYER_PATH": ":".join(folders), "LD_LIBRARY_PATH": str(deployed / "lib"),
            "VK_INSTANCE_LAYERS": "VK_LAYER_ML_Graph_Emulation:VK_LAYER_ML_Tensor_Emulation"}


def scenario(vgf, inputs):
    """A scenario file that runs the VGF file on stored inputs."""
    tools = pathlib.Path(sys.executable).parent
    text = bench.process(tools / "vgf_dump", "-i", vgf, "--scenario-template")[2]
    for i, path in enumerate(inputs):
        text = text.replace(f"TEMPLATE_PATH_TENSOR_INPUT_{i}", str(path))
    text = re.sub(r"TEMPLATE_PATH_TENSOR_OUTPUT_(\d+)", lambda m: str(bench.WORK / f"scenario_{m[1]}.npy"), text)
    path = vgf.with_suffix(".scenario.json")
    path.write_text(text)
    return path


def running(table, tosaic):
    """One dispatch as a whole process, and what each of 300 further ones adds to it."""
    if "vulkan" not in bench.process(tosaic, "run", "--help")[2]:
        print("tosaic run has no --device vulkan: nothing to compare with the scenario runner", file=sys.stderr)
        return
    import scenario_runner
    native = pathlib.Path(scenario_runner.__file__).parent / "binaries/bin/scenario-runner"
    for kind, dtype in (("float", np.float32), ("int8", np.int8)):
        _, vgf = emit(tosaic, "digits", kind)
        image = bench.WORK / f"digits_{kind}.npy"
        np.save(image, np.load(bench.MODELS / "digits_expected.npz")["input_0"][0].astype(dtype))
        written = scenario(vgf, [image])
        arguments = ["run", vgf, "--device", "vulkan", "--input", image, "--output-dir", bench.WORK / "out"]

        def theirs(repeat):
            with_layers = ["env", *(f"{k}={v}" for k, v in layered_environment().items())]
            return bench.least(3, *with_layers, native, "--scenario", written, "--output", vgf.parent, "--repeat", repeat)[0]

        def ours(repeat):
            return bench.least(3, tosaic, *arguments, "--repeat", repeat)[0]

        own, others = bench.once(ours), bench.once(theirs)
        table.add(f"one dispatch on Vulkan, digits {kind}, process", lambda: bench.least(3, tosaic, *arguments)[0], "scenario runner, process",
                  lambda: others(1), bench.milliseconds)
        table.add(f"each further dispatch on Vulkan, digits {kind}", lambda: (own(301) - own(1)) / 300, "scenario runner",
                  lambda: (others(301) - others(1)) / 300, bench.milliseconds)


SECTIONS = {"convert": converting, "size": sizes, "flow": flows, "run": running}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tosaic", type=pathlib.Path, default=bench.ROOT / "build/release/bin/tosaic")
    parser.add_argument("--output", type=pathlib.Path, default=bench.ROOT / "build/bench-vgf.md")
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=list(SECTIONS))
    arguments = parser.parse_args()
    os.environ["PATH"] = f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"  # where pip put model-converter
    bench.prepare(arguments.tosaic)
    for old in bench.WORK.glob("*.vgf"):
        old.unlink()
    table = bench.Table()
    for section in arguments.only:
        SECTIONS[section](table, arguments.tosaic)
    text = f"{bench.cpu_name()}\n\n{table.text()}"
    arguments.output.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
