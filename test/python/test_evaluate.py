# SPDX-License-Identifier: Apache-2.0
"""Artifact.evaluate, against scikit-learn's metrics and PyTorch, on the data sets that people have."""
import threading

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from sklearn.metrics import accuracy_score, confusion_matrix, top_k_accuracy_score

import tosaic


class Classifier(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(1, 8, 3, padding=1)
        self.head = torch.nn.Linear(8 * 16, 10)

    def forward(self, x):
        return self.head(torch.nn.functional.max_pool2d(self.conv(x).relu(), 2).flatten(1))


@pytest.fixture(scope="module")
def trained():
    """A classifier of digits, its held-out images and labels, and it compiled."""
    torch.manual_seed(1)
    pixels, labels = load_digits(return_X_y=True)
    images = torch.tensor(pixels / 16, dtype=torch.float32).reshape(-1, 1, 8, 8)
    labels = torch.tensor(labels)
    model = Classifier()
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    for _ in range(60):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(images[:1200]), labels[:1200]).backward()
        optimizer.step()
    model.eval()
    artifact = tosaic.compile(model, images[:1], calibration=[x[None] for x in images[:32]])
    return model, images[1200:1500], labels[1200:1500], artifact


def test_it_agrees_with_scikit_learn(trained):
    model, images, labels, artifact = trained
    dataset = torch.utils.data.TensorDataset(images[:, None], labels)
    found = artifact.evaluate(dataset)  # a data set with indices
    scores = np.concatenate([artifact.run(x[None]).numpy() for x in images])
    floats = model(images).detach().numpy()
    assert found.samples == 300 and found.skipped == 0
    assert found.top1 == pytest.approx(100 * accuracy_score(labels, scores.argmax(1)), abs=1e-3)
    assert found.top1_in_floats == pytest.approx(100 * accuracy_score(labels, floats.argmax(1)), abs=1e-3)
    assert found.top5 == pytest.approx(100 * top_k_accuracy_score(labels, scores, k=5), abs=1e-3)
    assert (found.confusion_matrix() == confusion_matrix(labels, scores.argmax(1))).all()
    assert "top-1" in found.text() and "top-1" in found._repr_html_() and len(found.to_pandas()) == 10
    # A loader's batches, labels of their own, a generator: the same figures.
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(images, labels), batch_size=32)
    for same in (artifact.evaluate(loader), artifact.evaluate(loader.dataset),  # items without a batch artifact.evaluate([x[None] for x in images], labels=labels),
                 artifact.evaluate(((x[None].numpy(), y) for x, y in zip(images, labels)), workers=3)):
        assert (same.samples, same.top1, same.agreement, same.confusion) == (300, found.top1, found.agreement, found.confusion)
    few = artifact.evaluate(loader, floats=False, limit=40)
    assert few.samples == 40 and few.top1_in_floats is None and few.outputs == [] and few.agreement is None


def test_a_metric_of_ones_own(trained):
    model, images, labels, artifact = trained
    threads = set()

    def loss(outputs, label):
        threads.add(threading.get_ident())
        return torch.nn.functional.cross_entropy(outputs, torch.tensor([label])).item()

    found = artifact.evaluate(list(zip(images[:50, None], labels[:50])), loss, workers=2)
    wanted = torch.nn.functional.cross_entropy(model(images[:50]), labels[:50]).item()
    assert found.metric_in_floats == pytest.approx(wanted, rel=1e-5) and found.metric == pytest.approx(wanted, rel=0.2)
    assert "metric" in found.text()
    alone = artifact.evaluate([x[None] for x in images[:5]], lambda outputs: outputs.shape[1])
    assert alone.metric == alone.metric_in_floats == 10
    with pytest.raises(tosaic.Error, match="evaluate.metric"):
        artifact.evaluate([images[:1]], lambda outputs: "good")
    with pytest.raises(ZeroDivisionError):  # the user's own
        artifact.evaluate([images[:1]], lambda outputs: 1 / 0)


class Broken(torch.utils.data.Dataset):
    """As a folder of images of which one is no image."""

    def __init__(self, images, labels):
        self.images, self.labels = images, labels
        self.samples = [(f"val/{i}.png", int(y)) for i, y in enumerate(labels)]

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        if i == 3:
            raise OSError("cannot identify image file")
        return self.images[i:i + 1], self.labels[i]


def test_a_broken_sample_is_named_and_left_out(trained):
    _, images, labels, artifact = trained
    with pytest.warns(tosaic.CompileWarning, match=r"val/3\.png is left out: cannot identify image file"):
        found = artifact.evaluate(Broken(images[:10], labels[:10]))
    assert found.samples == 9 and found.skipped == 1
    assert {w["name"] for w in found.worst} == {f"val/{i}.png" for i in range(10) if i != 3}


class TwoInputs(torch.nn.Module):
    """A row of classes for every step, of two inputs, one of them by name; and whole numbers."""

    def forward(self, x, *, mask):
        y = torch.tanh(x) * mask
        return y, y.argmax(-1)


def test_rows_and_several_inputs():
    torch.manual_seed(2)
    calls = [((torch.randn(6, 4),), {"mask": torch.rand(6, 4)}) for _ in range(12)]
    labels = [torch.randint(0, 4, (6,)) for _ in calls]
    labels[0][2] = -100  # as PyTorch's ignore_index
    artifact = _compiled(calls)
    found = artifact.evaluate(calls, labels=labels)
    said = [TwoInputs()(*args, **kwargs)[1] for args, kwargs in calls]
    right = np.mean([p == t for s, l in zip(said, labels) for p, t in zip(s.tolist(), l.tolist()) if t >= 0])
    assert found.top1_in_floats == pytest.approx(100 * right, abs=1e-3)
    assert [sorted(o) for o in found.outputs] == [["equal_share", "exact", "name", "snr_db", "type"]] * 2
    assert found.outputs[0]["snr_db"] > 25 and found.outputs[1]["snr_db"] is None and found.outputs[1]["equal_share"] > 0.9


def _compiled(calls):
    args, kwargs = calls[0]
    return tosaic.compile(torch.export.export(TwoInputs().eval(), args, kwargs), calibration=calls)


class Counter(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("sum", torch.zeros(1, 4))

    def forward(self, x):
        self.sum.add_(x)
        return self.sum.clone()


def test_states_begin_anew_with_every_sample():
    samples = [torch.rand(1, 4) for _ in range(8)]
    artifact = tosaic.compile(Counter().eval(), samples[0], "tosa-fp")
    found = artifact.evaluate(samples, lambda y: float(y.sum()), workers=2)
    assert found.metric == pytest.approx(float(torch.stack(samples).sum() / 8), rel=1e-5)
    assert found.outputs[0]["exact"]


@pytest.mark.parametrize("dataset, labels, code, text", [
    (3, None, "evaluate.data", "a int is no data set"),
    ([], None, "evaluate.nothing", "no samples"),
    ([(torch.zeros(1, 1, 8, 8), 12)], None, "evaluate.labels", "tells 10 classes apart"),
    ([torch.zeros(1, 1, 8, 8)] * 2, [1], "evaluate.labels", "fewer labels than samples"),
    ([torch.zeros(1, 1, 9, 9)], None, "run.input-type", "9x9"),
    (["picture"], None, "evaluate.data", "#0: .*a str is no tensor"),
    ("none.npz", None, "file.missing", "none.npz"),
])
def test_what_does_not_fit_is_refused(trained, dataset, labels, code, text):
    with pytest.raises(tosaic.Error, match=text) as why:
        trained[3].evaluate(dataset, labels=labels)
    assert why.value.code == code and "help: " in str(why.value)


def test_an_exception_of_the_data_set_is_the_callers(trained):
    def samples():
        yield torch.zeros(1, 1, 8, 8)
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        trained[3].evaluate(samples())
