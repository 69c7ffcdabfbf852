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


def test_floats_are_run_once(net):
    """What floats give goes with the samples to every point: the same figures, without running them again."""
    model, samples = net
    program = tosaic.Program.of(model, samples[0])
    point = tosaic._core.sweep_points(["cortex-m55"], ["int8"], [], {})[0]
    data, _ = tosaic._core.sweep_data(program._core, tosaic._sweep._samples(samples, program), None, "", 0)
    kept = tosaic._core.run_floats(program._core, data)
    calibration, evaluation = kept.__getstate__()
    for sample, (_, _, _, (output,)) in zip(samples, evaluation, strict=True):
        got = torch.frombuffer(bytearray(output[2]), dtype=torch.float32)
        torch.testing.assert_close(got, model(sample).flatten(), rtol=1e-4, atol=1e-5)

    def figures(of):
        row = tosaic._core.measure_point(program._core, point, of)
        return row.__getstate__()[:5], row.__getstate__()[5][:7]  # without the seconds
    assert figures(kept) == figures(data) and figures(data)[1][4] > 20
    others = [(inputs, labels, name, evaluation[i - 1][3]) for i, (inputs, labels, name, _) in enumerate(evaluation)]
    swapped = tosaic._core.SweepData.__new__(tosaic._core.SweepData)
    swapped.__setstate__((calibration, others))
    assert figures(swapped)[1][4] < 10, "floats were run, although the samples had what they give"


def test_bad_questions(net):
    for question, code in ((dict(targets="ethos-u99"), "target.unknown"), (dict(precisions=["int3"]), "sweep.precision"),
                           (dict(evaluation=3), "evaluate.data"), (dict(calibration="none.npz"), "file.missing")):
        with pytest.raises(tosaic.Error) as why:
            tosaic.sweep(*net[:1], net[1][0], **question)
        assert why.value.code == code
    program = tosaic.Program.of(*net[:1], net[1][0])
    with pytest.raises(tosaic.Error, match="sweep.program"), concurrent.futures.ThreadPoolExecutor() as executor:
        tosaic.sweep(tosaic.Program(program._core), targets="cortex-m55", executor=executor)
