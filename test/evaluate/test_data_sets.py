# SPDX-License-Identifier: Apache-2.0
"""tosaic evaluate: figures are those that NumPy computes from the outputs of `tosaic run`, whatever form the data have."""
import json
import subprocess

import numpy as np
import pytest

from labelled_digits import LabelledDigits


@pytest.fixture(scope="module")
def digits(tosaic, tmp_path_factory):
    return LabelledDigits(tosaic, tmp_path_factory.mktemp("digits"))


def evaluate(tosaic, *words, rc=0):
    done = subprocess.run([tosaic, "evaluate", *map(str, words), "--json"], capture_output=True, text=True, timeout=300)
    assert done.returncode == rc, done.stderr
    return json.loads(done.stdout) if rc == 0 else json.loads(done.stderr.splitlines()[-1]), done.stderr


def test_figures_are_those_of_the_outputs(tosaic, digits):
    found, said = evaluate(tosaic, digits.pte, "--data", digits.npz, "--float", digits.pt2, "--worst", 3)
    ints, floats = digits.outputs(digits.pte), digits.outputs(digits.pt2)
    right = [100 * np.mean(x.argmax(1) == digits.labels) for x in (ints, floats)]
    assert [found["right"]["top1"], found["right_in_floats"]["top1"]] == pytest.approx(right, abs=1e-3)
    five = [100 * np.mean([label in np.argsort(-row, kind="stable")[:5] for row, label in zip(x, digits.labels)]) for x in (ints, floats)]
    assert [found["right"]["top5"], found["right_in_floats"]["top5"]] == pytest.approx(five, abs=1e-3)
    assert found["agreement"] == pytest.approx(100 * np.mean(ints.argmax(1) == floats.argmax(1)), abs=1e-3)
    db = 10 * np.log10((floats.astype(float)**2).sum(1) / ((ints - floats).astype(float)**2).sum(1))
    whole = 10 * np.log10((floats.astype(float)**2).sum() / ((ints - floats).astype(float)**2).sum())
    assert found["outputs"][0]["snr_db"] == pytest.approx(whole, abs=1e-3)
    assert [w["sample"] for w in found["worst"]] == list(np.argsort(db, kind="stable")[:3])
    assert [w["snr_db"] for w in found["worst"]] == pytest.approx(sorted(db)[:3], abs=1e-3)
    counted = {(c["label"], c["said"]): c["times"] for c in found["confusion"] if c["times"]}
    wanted = {}
    for pair in zip(digits.labels.tolist(), ints.argmax(1).tolist()):
        wanted[pair] = wanted.get(pair, 0) + 1
    assert counted == wanted and found["samples"] == len(digits.labels) and not said


def test_the_number_of_workers_changes_no_figure(tosaic, digits):
    of = [evaluate(tosaic, digits.pte, "--data", digits.npz, "--float", digits.pt2, "-j", n)[0] for n in (1, 2, 5)]
    for found in of:
        for key in ("seconds", "run_seconds", "floats_run_seconds", "samples_per_second", "workers"):
            del found[key]
    assert of[0] == of[1] == of[2]


def test_every_form_of_the_data_is_the_same_data(tosaic, digits, tmp_path):
    wanted = evaluate(tosaic, digits.pte, "--data", digits.npz)[0]["confusion"]
    count = len(digits.labels)
    stacked, batch = tmp_path / "stacked.npy", tmp_path / "batch.npy"
    np.save(stacked, digits.images[:, None])  # N x 1 x ..., one sample after the other
    np.save(batch, digits.images)
    np.save(tmp_path / "labels.npy", digits.labels)
    (tmp_path / "labels.txt").write_text("".join(f"{label}\n" for label in digits.labels))
    for data in (stacked, batch):
        for labels in ("labels.npy", "labels.txt"):
            assert evaluate(tosaic, digits.pte, "-d", data, "-l", tmp_path / labels)[0]["confusion"] == wanted
    loose, classes = tmp_path / "loose", tmp_path / "classes"
    loose.mkdir()
    lines = ["file,class"]
    for i in range(count):
        np.save(loose / f"{i:03}.npy", digits.images[i:i + 1])
        lines.append(f"{i:03}.npy,{digits.labels[i]}")
        (classes / str(digits.labels[i])).mkdir(parents=True, exist_ok=True)
        np.savez(classes / str(digits.labels[i]) / f"{i}.npz", input_0=digits.images[i])
    (tmp_path / "names.csv").write_text("\n".join(lines) + "\n")
    assert evaluate(tosaic, digits.pte, "-d", loose, "-l", tmp_path / "names.csv")[0]["confusion"] == wanted
    assert evaluate(tosaic, digits.pte, "-d", loose, "-l", tmp_path / "labels.npy")[0]["confusion"] == wanted
    assert evaluate(tosaic, digits.pte, "-d", classes)[0]["confusion"] == wanted
    (loose / "000.npy").write_bytes((loose / "000.npy").read_bytes()[:90])  # broken: it is named, the others count
    found, said = evaluate(tosaic, digits.pte, "-d", loose, "-l", tmp_path / "names.csv")
    assert (found["samples"], found["skipped"]) == (count - 1, 1) and "evaluate.skipped" in said and "000.npy" in said


def test_a_program_of_integers_takes_integers(tosaic, digits, tmp_path):
    """The scale of its inputs is not in its file: floats are refused, with the way out."""
    quantised = tmp_path / "quantised.pte"
    subprocess.run([tosaic, "compile", digits.pt2, "--calibrate", digits.samples, "--io", "quantized", "-o", quantised, "-q"], check=True)
    why, _ = evaluate(tosaic, quantised, "--data", digits.npz, rc=1)
    assert why["code"] == "evaluate.data" and "--io float" in why["help"]
    np.savez(tmp_path / "q.npz", x=np.zeros((3, 1, 1, 8, 8), np.int8), labels=[0, 1, -1])
    found, _ = evaluate(tosaic, quantised, "--data", tmp_path / "q.npz")
    assert found["samples"] == 3 and found["right"]["labels"] == 2


def cut(path, content):
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("words, code, text", [
    (lambda d, t: ["-d", d.npz, "-l", cut(t / "l.txt", b"1\n2\n3\n")], "evaluate.labels", "3 labels for"),
    (lambda d, t: ["-d", d.npz, "-l", cut(t / "l.txt", b"head\n1\ntwo\n")], "evaluate.labels", "this line has no label"),
    (lambda d, t: ["-d", d.npz, "-l", cut(t / "l.txt", b"")], "evaluate.labels", "holds no labels"),
    (lambda d, t: ["-d", d.large_labels], "evaluate.labels", "tells 10 classes apart"),
    (lambda d, t: ["-d", d.wide], "evaluate.data", "the program takes"),
    (lambda d, t: ["-d", d.other_name, "-f", d.pt2], "evaluate.data", "'picture' belongs to no input"),
    (lambda d, t: ["-d", t], "evaluate.data", "no .npy and no .npz"),
    (lambda d, t: ["-d", t / "none.npz"], "file.missing", "none.npz"),
    (lambda d, t: ["-d", cut(t / "x.npz", b"PK no archive")], None, "x.npz"),
    (lambda d, t: ["-d", cut(t / "x.png", b"\x89PNG").parent], "evaluate.data", "holds images"),
    (lambda d, t: ["-d", d.npz, "-f", d.samples], None, "digits_samples.npz"),
    (lambda d, t: ["-d", d.npz, "--method", "none"], "method.missing", "none"),
])
def test_what_does_not_fit_is_refused(tosaic, digits, tmp_path, words, code, text):
    why, _ = evaluate(tosaic, digits.pte, *words(digits, tmp_path), rc=1)
    assert why["severity"] == "error" and (code is None or why["code"] == code)
    assert text in why["message"] + why["file"] and why["help"]


def test_a_data_set_of_broken_files_says_why(tosaic, digits, tmp_path):
    (tmp_path / "a.npy").write_bytes(b"no array")
    (tmp_path / "b.npy").write_bytes(b"\x93NUMPY")
    why, said = evaluate(tosaic, digits.pte, "-d", tmp_path, rc=1)
    assert why["file"].endswith("a.npy") and said.count("evaluate.skipped") == 2


def test_without_labels_and_floats_it_says_so(tosaic, digits, tmp_path):
    np.save(tmp_path / "x.npy", digits.images[:4])
    found, said = evaluate(tosaic, digits.pte, "-d", tmp_path / "x.npy")
    assert found["samples"] == 4 and found["right"] is None and "evaluate.alone" in said


def test_the_table(tosaic, digits):
    done = subprocess.run([tosaic, "evaluate", digits.pte, "-d", digits.npz, "-f", digits.pt2], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert lines[0].startswith("digits.pte on cpu: ") and any(line.split()[0] == "top-5" for line in lines if line.strip())
    assert any("samples/s, floats included" in line for line in lines) and "farthest from floats" in done.stdout
