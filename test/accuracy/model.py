# SPDX-License-Identifier: Apache-2.0
"""What a file of models/ gives: a trained module, samples that it was not trained on, and what its task counts."""
import dataclasses
import hashlib
import importlib.util
import inspect
import pathlib
from collections.abc import Callable

import filelock
import numpy as np
import torch

from packages import BUILD, HERE

torch.set_num_threads(1)


@dataclasses.dataclass
class Model:
    module: torch.nn.Module
    calibration: list  # of calls: tuples of tensors
    test: list  # of calls; of streams where `play` is given
    metric: str  # what `score` counts, with its unit: "right, %"
    score: Callable  # from the results of all test calls (tuples of arrays) to a number
    lower_is_better: bool = False
    output: int = 0  # the result whose dB are reported
    play: Callable | None = None  # (call, stream) to a list of results, for models that feed state back
    draws: int = 1  # that are reported: results of some models depend on the samples
    train: Callable | None = None  # train(module, tuning=True) goes on with what made the weights

    def __post_init__(self):
        first = self.calibration[0]
        assert len({id(t) for t in first}) == len(first), "torch.export takes one tensor that is given twice for one input"


def names():
    return sorted(path.stem for path in (HERE / "models").glob("*.py"))


def load(name, seed=0):
    """`seed` draws the samples. Weights are the same for every draw."""
    path = HERE / "models" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"accuracy_model_{name}", path)
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    model = found.model(np.random.default_rng([7, seed]))
    model.module.eval()
    return model


def trained(make, train, *sources):
    """The module make(), with the weights that train(module) gives. These are kept under build/accuracy until the model's file
    or `sources`, the modules that made its layers and data, are edited."""
    files = [inspect.getfile(train), *(source.__file__ for source in sources)]
    key = hashlib.sha256(b"".join(pathlib.Path(file).read_bytes() for file in files)).hexdigest()[:12]
    kept = BUILD / "trained" / f"{pathlib.Path(files[0]).stem}-{key}.pt"
    kept.parent.mkdir(parents=True, exist_ok=True)
    with filelock.FileLock(f"{kept}.lock"):
        if not kept.exists():
            torch.manual_seed(1)
            module = make().train()
            train(module)
            torch.save(module.state_dict(), kept)
    module = make()
    module.load_state_dict(torch.load(kept))
    return module.eval()


def fit(module, loss, batches, rate, tuning=False):
    """Adam on loss(batch) for each batch, with a rate that rises and falls. Tuning what was trained: a quarter of the batches, a
    tenth of the rate."""
    if tuning:
        batches, rate = batches[:len(batches) // 4], rate / 10
    optimizer = torch.optim.AdamW(module.parameters(), lr=rate, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=len(batches))
    for batch in batches:
        optimizer.zero_grad()
        loss(batch).backward()
        optimizer.step()
        schedule.step()


def decibels(expected, found):
    """The signal-to-noise ratio over all arrays."""
    signal = sum(float(np.square(e, dtype=np.float64).sum()) for e in expected)
    noise = sum(float(np.square(e.astype(np.float64) - f).sum()) for e, f in zip(expected, found, strict=True))
    return 10 * np.log10(signal / noise) if noise else float("inf")
