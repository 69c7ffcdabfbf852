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
import tosaic

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


@pytest.mark.parametrize("tied", [False, True])
def test_embeddings_are_codes_of_8_bits_or_the_layers_own(tied):
    class Tokens(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.head = torch.nn.Embedding(512, 64), torch.nn.Linear(64, 512, bias=False)
            if tied:
                self.head.weight = self.table.weight

        def forward(self, tokens):
            return self.table(tokens), self.head(self.table(tokens).relu())

    torch.manual_seed(0)
    tokens, model = torch.tensor([[0, 511, 7, 7]]), Tokens().eval()
    program = torch.export.export(model, (tokens,))
    artifact = tosaic.compile(program, target="tosa-fp", weights="int4")
    weight = 512 * 64
    assert len(artifact.pte) < (weight * (0.5 + 4 / 32) if tied else weight * (1.5 + 4 / 32)) + 12000  # and the program
    rows, scores = artifact.run(tokens)
    with torch.no_grad():
        noise, wanted = rows - model(tokens)[0], model(tokens)[0]
        again = torch.nn.functional.linear(rows.relu(), model.head.weight)
    assert 10 * torch.log10(wanted.square().sum() / noise.square().sum()) > (17 if tied else 40)
    assert 10 * torch.log10(again.square().sum() / (scores - again).square().sum()) > 17
    interpreted = artifact.session(executor="interp").run(tokens)
    assert torch.equal(interpreted[0], rows)
    torch.testing.assert_close(interpreted[1], scores, rtol=1e-5, atol=1e-5)
    session = artifact.session()
    session.measure()
    session.run(tokens)
    assert any("coded_rows" in name for name, *_ in session.profile())


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
