# SPDX-License-Identifier: Apache-2.0
"""examples/llm: a decoder exported, compiled and run as `prefill` and `decode` gives PyTorch's perplexity and tokens, and
takes any number of tokens in few runs. Whether PyTorch's are right: test_checkpoints.py."""
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
import checkpoint  # noqa: E402
import decoder  # noqa: E402
import llm  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")


def saved(folder, model):
    """As transformers saves it, in the type that most have."""
    shape, header, data = model.shape, {}, b""
    for name, p in model.state_dict().items():
        bits = (p.numpy().view(np.uint32) >> 16).astype(np.uint16).tobytes()
        header[name] = {"dtype": "BF16", "shape": list(p.shape), "data_offsets": [len(data), len(data) + len(bits)]}
        data += bits
    text = json.dumps(header).encode()
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + data)
    config = {key: getattr(shape, key) for key in (*checkpoint.SIZES, "rms_norm_eps")}
    (folder / "config.json").write_text(json.dumps({"model_type": "llama", **config}))
    return folder


@pytest.mark.parametrize("options, near", [([], 1e-4), (["--weights", "int8"], 0.01),
                                           (["--weights", "int4", "--quantize", "dynamic-int8"], 0.06)])
def test_perplexity(options, near, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = decoder.random_decoder(decoder.Shape(hidden_size=128, num_hidden_layers=1, intermediate_size=256), seed=1)
    folder = saved(tmp_path / "saved", model)
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


def test_tokens_are_pytorchs():
    model = decoder.random_decoder(decoder.Shape(hidden_size=64, num_hidden_layers=2, intermediate_size=128, context=32))
    prompt = list(b"It was")
    ours = llm.generate(llm.Runner(llm.compiled(model, [4])), prompt, 8)
    tokens = list(prompt)
    with torch.no_grad():
        for _ in range(8):
            model.forget()
            tokens.append(int(model(torch.tensor([tokens]), torch.arange(len(tokens)))[0, -1].argmax()))
    assert ours == tokens[len(prompt):]


def test_any_number_of_tokens_takes_few_runs():
    shape = decoder.Shape(hidden_size=64, num_hidden_layers=2, intermediate_size=128, context=40)
    model = decoder.random_decoder(shape, seed=2)
    tokens = torch.randint(0, 512, (40,), generator=torch.Generator().manual_seed(0)).tolist()
    with torch.no_grad():
        wanted = model(torch.tensor([tokens]), torch.arange(40))
    run, runs = llm.Runner(llm.compiled(model, [16, 4, 400])), []
    assert run.artifact.session().methods == ["prefill", "prefill_16", "prefill_4", "decode"]

    class Counted:
        def __init__(self, method, size):
            self.method, self.size = method, size

        def run(self, *inputs):
            runs.append(self.size)
            return self.method.run(*inputs)

    # By how many tokens are given one call after the other: how many each run takes.
    for counts, sizes in (([1], [1]), ([2], [4]), ([3, 1], [4, 1]), ([5], [4, 1]), ([6], [4, 4]), ([15], [4, 4, 4, 4]),
                          ([17], [16, 1]), ([39], [16, 16, 4, 4]), ([40], [40]), ([1, 2, 37], [1, 4, 16, 16, 4, 1]),
                          ([38, 2], [16, 16, 4, 4, 4])):
        runs.clear()
        run.forget()
        run.methods = {size: Counted(method, size) for size, method in run.methods.items()}
        given, logits = list(tokens), []
        for count in counts:
            logits.append(run(given[:count]))
            given = given[count:]
        torch.testing.assert_close(torch.cat(logits, 1), wanted[:, :sum(counts)], rtol=0, atol=1e-5)
        assert runs == sizes, counts
