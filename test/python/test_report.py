# SPDX-License-Identifier: Apache-2.0
"""artifact.report: the page of the command line's `report`, from Python."""
import json

import pytest
import torch

import tosaic


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(8, 16), torch.nn.Linear(16, 4)

    def forward(self, x):
        return self.second(self.first(x).relu()).sort().values


@pytest.fixture(scope="module")
def artifact():
    torch.manual_seed(0)
    x = torch.randn(2, 8)
    return tosaic.compile(Net().eval(), (x,), target="tosa-int", calibration=[(torch.randn(2, 8),) for _ in range(4)])


def data_in(page):
    return json.loads(page.split('<script type="application/json" id="data">')[1].split("</script>")[0])


def test_it_is_a_page_with_the_program():
    page = tosaic.compile(Net().eval(), (torch.randn(2, 8),), target="tosa-fp").report()  # which has no way to sort
    assert page.startswith("<!DOCTYPE html>") and "</html>" in page
    report = data_in(page)
    program = report["graphs"][0]
    assert [n["module"] for n in program["nodes"] if n["op"].startswith("aten.linear")] == ["first", "second"]
    outside = [n for n in program["nodes"] if n["delegate"] < 0 and n["op"].startswith("aten.sort")]
    assert len(outside) == 1 and outside[0]["reason"] and "test_report.py" in outside[0]["place"]


def test_it_is_written(artifact, tmp_path):
    page = artifact.report(tmp_path / "net.html")
    assert (tmp_path / "net.html").read_text() == page
    assert json.loads(artifact.report(str(tmp_path / "net.json")))["command"] == "report"
    assert json.loads(artifact.report(format="mlia-json"))["target"]["profile_name"] == "tosa-int"
    with pytest.raises(tosaic.Error, match="report.format"):
        artifact.report(format="pdf")
    with pytest.raises(tosaic.Error, match="file.write"):
        artifact.report(tmp_path / "missing" / "net.html")


def test_it_takes_times_and_a_comparison(artifact):
    session = artifact.session()
    with pytest.raises(tosaic.Error, match="report.json"):
        artifact.report(profile=session)
    session.measure()
    session.run(torch.randn(2, 8))
    report = data_in(artifact.report(profile=session, comparison=artifact.compare()))
    assert report["profile"]["operations"] and report["profile"]["device"] == session.device
    assert report["comparison"]["layers"]


def test_names_stay_text():
    class Evil(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.add_module("</script><script>alert(1)", torch.nn.ReLU())

        def forward(self, x):
            return self._modules["</script><script>alert(1)"](x)

    page = tosaic.compile(Evil(), (torch.randn(4),), target="tosa-fp").report()
    assert "<script>alert" not in page
    assert any("alert(1)" in n.get("module", "") for n in data_in(page)["graphs"][0]["nodes"])
