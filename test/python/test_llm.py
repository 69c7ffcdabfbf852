# SPDX-License-Identifier: Apache-2.0
"""examples/llm: a decoder exported, compiled and run as `prefill` and `decode` gives PyTorch's perplexity and tokens; a
checkpoint is read as it was written, and refused where it does not fit."""
import json
import math
import pathlib
import re
import sys

import numpy as np
import pytest
import torch

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "examples/llm"))
import decoder  # noqa: E402
import llm  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")


def checkpoint(folder, model, leave_out=()):
    """As transformers saves it, in the type that most have."""
    shape, header, data = model.shape, {}, b""
    for name, p in model.state_dict().items():
        if name in leave_out:
            continue
        bits = (p.numpy().view(np.uint32) >> 16).astype(np.uint16).tobytes()
        header[name] = {"dtype": "BF16", "shape": list(p.shape), "data_offsets": [len(data), len(data) + len(bits)]}
        data += bits
    text = json.dumps(header).encode()
    folder.mkdir(exist_ok=True)
    (folder / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + data)
    (folder / "config.json").write_text(json.dumps({k: v for k, v in vars(shape).items() if k != "context"}))
    return folder


@pytest.mark.parametrize("options, near", [([], 1e-4), (["--weights", "int8"], 0.01),
                                           (["--weights", "int4", "--quantize", "dynamic-int8"], 0.06)])
def test_perplexity(options, near, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = decoder.random_decoder(decoder.Shape(hidden_size=128, num_hidden_layers=1, intermediate_size=256), seed=1)
    folder = checkpoint(tmp_path / "saved", model)
    llm.main(["--checkpoint", str(folder), "--context", "96", "--tokens", "4", "-o", "m.pte", *options])
    said = capsys.readouterr().out
    ours, theirs = map(float, re.search(r"tokens: ([\d.]+), PyTorch ([\d.]+)", said).groups())
    assert abs(math.log(ours) - math.log(theirs)) < near, said


def test_tokens_are_pytorchs(tmp_path):
    model = decoder.random_decoder(decoder.Shape(hidden_size=64, num_hidden_layers=2, intermediate_size=128, context=32))
    artifact = llm.tosaic.compile({"prefill": llm.exported(model, 4), "decode": llm.exported(model, 1)}, target="tosa-fp")
    prompt = list(b"It was")
    ours = llm.generate(llm.Compiled(artifact, 4), prompt, 8)
    tokens = list(prompt)
    with torch.no_grad():
        for _ in range(8):
            model.forget()
            tokens.append(int(model(torch.tensor([tokens]), torch.arange(len(tokens)))[0, -1].argmax()))
    assert ours == tokens[len(prompt):]


def test_checkpoints_that_do_not_fit(tmp_path):
    model = decoder.random_decoder(decoder.Shape(hidden_size=64, num_hidden_layers=1, intermediate_size=64))
    name = "model.layers.0.mlp.up_proj.weight"
    with pytest.raises(SystemExit, match=name):
        decoder.from_checkpoint(checkpoint(tmp_path / "short", model, leave_out=[name]), 32)
    with pytest.raises(SystemExit, match="config.json"):
        decoder.from_checkpoint(tmp_path, 32)
    folder = checkpoint(tmp_path / "other", model)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"intermediate_size": 128}))
    with pytest.raises(SystemExit, match="lacks"):
        decoder.from_checkpoint(folder, 32)
