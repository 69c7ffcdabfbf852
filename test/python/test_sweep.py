# SPDX-License-Identifier: Apache-2.0
"""tosaic.sweep (docs/evaluate.md): the same rows wherever the programs are compiled: here, in other processes, on a Dask cluster."""
import concurrent.futures
import multiprocessing
import pickle

import pytest
import torch

import tosaic


@pytest.fixture(scope="module")
def net():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(8 * 36, 4)).eval()
    return model, [torch.randn(1, 3, 8, 8) for _ in range(6)]


def without_times(sweep):
    return [{k: v for k, v in row.items() if k != "seconds"} for row in sweep.rows]


def asked(net, **more):
    model, samples = net
    labels = [int(model(x).argmax()) for x in samples]
    return tosaic.sweep(model, samples[0], targets="ethos-u55-128,cortex-m55", calibration=samples,
                        evaluation=list(zip(samples, labels)), **more)


def test_rows_and_forms(net):
    found = asked(net)
    assert [(r["target"], r["precision"]) for r in found.rows] == [(t, p) for t in ("ethos-u55-128", "cortex-m55")
                                                                  for p in ("int8", "int16x8")]
    model, samples = net
    artifact = tosaic.compile(model, samples[0], "ethos-u55-128", calibration=samples)
    row = found.rows[0]
    assert row["cycles"] == artifact.summary.estimates[0].cycles and row["problem"] is None
    same = artifact.evaluate(samples)
    assert row["snr_db"] == pytest.approx(same.outputs[0]["snr_db"], rel=1e-5) and row["right_in_floats"] == 100
    assert found.best and all(r["best"] for r in found.best) and len(found.to_pandas()) == 4
    assert "ethos-u55-128" in found.text() and found.csv().startswith("target,") and found.html().startswith("<!doctype html>")


def test_other_processes_give_the_same(net):
    wanted = without_times(asked(net))
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as executor:
        assert without_times(asked(net, executor=executor)) == wanted


def test_a_dask_cluster_gives_the_same(net):
    distributed = pytest.importorskip("distributed", reason="distributed is in test/requirements.txt: make venv")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        with distributed.Client(cluster) as client:
            assert without_times(asked(net, executor=client.get_executor())) == without_times(asked(net))


def test_points_rows_and_data_are_values(net):
    model, samples = net
    program = tosaic.Program.of(model, samples[0])
    point = tosaic._core.sweep_points(["cortex-m55"], ["int8"], [], {"observer": ["minmax"]})[0]
    assert pickle.loads(pickle.dumps(point)).__getstate__() == point.__getstate__()
    data, _ = tosaic._core.sweep_data(program._core, None, None, "", 0)
    assert pickle.loads(pickle.dumps(data)).__getstate__() == data.__getstate__()


def test_bad_questions(net):
    for question, code in ((dict(targets="ethos-u99"), "target.unknown"), (dict(precisions=["int3"]), "sweep.precision"),
                           (dict(evaluation=3), "evaluate.data"), (dict(calibration="none.npz"), "file.missing")):
        with pytest.raises(tosaic.Error) as why:
            tosaic.sweep(*net[:1], net[1][0], **question)
        assert why.value.code == code
    program = tosaic.Program.of(*net[:1], net[1][0])
    with pytest.raises(tosaic.Error, match="sweep.program"), concurrent.futures.ThreadPoolExecutor() as executor:
        tosaic.sweep(tosaic.Program(program._core), targets="cortex-m55", executor=executor)
