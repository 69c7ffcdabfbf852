# SPDX-License-Identifier: Apache-2.0
"""Runs a .vgf file in Arm's scenario runner, on the Vulkan driver of this machine with the emulation layer."""
import json
import os
import pathlib
import shutil
import subprocess
import sys

import emulation_layer.cli
import numpy as np

TOOLS = pathlib.Path(sys.executable).parent


def environment(folder):
    """Layers that are enabled by environment stack in the order in which their manifests are found; in one folder that is
    no order at all, so each gets its own."""
    paths = emulation_layer.cli.get_deploy_paths()
    for name in ("Graph", "Tensor"):
        (folder / name).mkdir(exist_ok=True)
        shutil.copy(pathlib.Path(paths["VK_LAYER_PATH"], f"VkLayer_{name}.json"), folder / name)
    return {**os.environ, "LD_LIBRARY_PATH": paths["LD_LIBRARY_PATH"], "VK_LAYER_PATH": f"{folder}/Graph:{folder}/Tensor",
            "VK_INSTANCE_LAYERS": "VK_LAYER_ML_Graph_Emulation:VK_LAYER_ML_Tensor_Emulation"}


def run(vgf, inputs, folder):
    """The outputs of `vgf` on `inputs`; files go to `folder`."""
    vgf, folder = pathlib.Path(vgf).resolve(), pathlib.Path(folder).resolve()
    dump = subprocess.run([TOOLS / "vgf_dump", "-i", vgf, "--scenario-template"], capture_output=True, text=True, check=True)
    scenario = json.loads(dump.stdout)
    outputs = []
    taken = iter(enumerate(inputs))
    for resource in scenario["resources"]:
        tensor = resource.get("tensor", {})
        if "src" in tensor:
            number, array = next(taken)
            tensor["src"] = str(folder / f"scenario_in_{number}.npy")
            np.save(tensor["src"], array)
        if "dst" in tensor:
            tensor["dst"] = str(folder / f"scenario_out_{len(outputs)}.npy")
            outputs.append(tensor["dst"])
        if "graph" in resource:
            resource["graph"]["src"] = str(vgf)
    (folder / "scenario.json").write_text(json.dumps(scenario))
    done = subprocess.run([TOOLS / "scenario_runner", "--scenario", folder / "scenario.json", "--output", folder, "--log-level",
                           "error"], capture_output=True, text=True, env=environment(folder))
    assert done.returncode == 0, f"scenario_runner: {done.stdout[-2000:]}{done.stderr[-2000:]}"
    return [np.load(path) for path in outputs]
