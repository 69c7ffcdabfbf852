# SPDX-License-Identifier: Apache-2.0
"""ETRecords of compiled programs (docs/executorch.md), in ExecuTorch's Inspector: events in delegates and outside bear the model's nodes."""
import pytest
import torch

import tosaic
from tosaic.executorch.etrecord import etrecord

pytestmark = pytest.mark.filterwarnings("ignore")


class Small(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.conv = torch.nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.head = torch.nn.Linear(8, 4)

    def forward(self, x):
        return self.head(torch.cumsum(torch.relu(self.conv(x)), 1).sigmoid().mean((2, 3)))


EXAMPLE = (torch.randn(1, 3, 16, 16),)


@pytest.mark.parametrize("target", ["tosa-fp", "vgf"])
def test_events_have_the_models_nodes(target, tmp_path):
    import tosaic.executorch.runtime
    from executorch.devtools import Inspector, parse_etrecord

    artifact = tosaic.compile(Small().eval(), EXAMPLE, target)
    record = str(tmp_path / "record.bin")
    etrecord(artifact).save(record)
    program = tosaic.executorch.runtime.load_program(artifact.pte, enable_etdump=True, debug_buffer_size=1 << 20)
    program.load_method("forward").execute(list(EXAMPLE))
    program.write_etdump_result_to_file(str(tmp_path / "dump.etdp"), str(tmp_path / "debug.bin"))
    inspector = Inspector(etdump_path=str(tmp_path / "dump.etdp"), etrecord=record)
    events = [e for block in inspector.event_blocks if block.name == "Execute" for e in block.events]
    inside = {op for e in events if e.is_delegated_op for op in e.op_types or []}
    assert {"aten.relu.default", "aten.sigmoid.default"} <= inside
    whole = {op for e in events if e.name == "DELEGATE_CALL" for op in e.op_types or []}
    assert "aten.convolution.default" in whole and inside <= whole
    parsed = parse_etrecord(record)
    handles = {n.meta["debug_handle"] for n in parsed.edge_dialect_program.graph.nodes if n.op == "call_function"}
    told = {h for of_call in parsed._debug_handle_map["forward"].values() for h in of_call}
    assert told and told <= handles


@pytest.mark.parametrize("target", ["tosa-fp", "tosa-int", "ethos-u55-128"])
def test_the_numeric_gap_to_the_exported_program(target, tmp_path):
    import tosaic.executorch.runtime
    from executorch.devtools import Inspector

    model, calibration = Small().eval(), None if target == "tosa-fp" else [EXAMPLE[0]]
    artifact = tosaic.compile(model, EXAMPLE, target, calibration=calibration)
    etrecord(artifact, for_gap=True).save(str(tmp_path / "record.bin"))
    program = tosaic.executorch.runtime.load_program(artifact.pte, enable_etdump=True, debug_buffer_size=1 << 20)
    program.load_method("forward").execute(list(EXAMPLE))
    program.write_etdump_result_to_file(str(tmp_path / "dump.etdp"), str(tmp_path / "debug.bin"))
    inspector = Inspector(etdump_path=str(tmp_path / "dump.etdp"), etrecord=str(tmp_path / "record.bin"),
                          debug_buffer_path=str(tmp_path / "debug.bin"))
    gaps = inspector.calculate_numeric_gap("SNR")
    assert len(gaps) == 1 and all(gap[0] > (80 if target == "tosa-fp" else 15) for gap in gaps["gap"]), gaps


class Written(torch.nn.Module):
    """Writes a state and an input."""

    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(4))

    def forward(self, x, y):
        self.count.add_(x)
        y.mul_(2)
        return self.count + y, x - y


def test_references_of_cases():
    x, y = torch.tensor([1.0, 2, 3, 4]), torch.ones(4)
    artifact = tosaic.compile(Written(), (x, y), "tosa-fp")
    for record, count in ((etrecord(artifact), 1), (etrecord(artifact, cases=[(x, y), (2 * x, y)]), 2)):
        assert [i.tolist() for i in record._representative_inputs] == [x.tolist(), y.tolist()]
        references = record._reference_outputs["forward"]
        wanted = [[2 * y, n * x + 2 * y, n * x - 2 * y] for n in (1, 2)][:count]
        assert [[o.tolist() for o in case] for case in references] == [[o.tolist() for o in case] for case in wanted]
    assert y.tolist() == [1] * 4 and artifact._program._exported.state_dict["count"].tolist() == [0] * 4


class Chosen(torch.nn.Module):
    """U55 neither compares nor selects."""

    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 8, 3)

    def forward(self, x):
        y = self.conv(x)
        return torch.relu(torch.where(y > 0.25, y, x[:, :1, 1:-1, 1:-1]))


def test_what_stays_outside_has_its_node():
    artifact = tosaic.compile(Chosen().eval(), EXAMPLE, "ethos-u55-128", calibration=[EXAMPLE[0]])
    record = etrecord(artifact)
    nodes = {n.meta["debug_handle"]: n.name for n in record.edge_dialect_program.graph.nodes if n.op == "call_function"}
    calls = record._debug_handle_map["forward"]
    outside = {nodes[h] for number, of_call in calls.items() if number not in record._delegate_map["forward"] for h in of_call}
    assert outside and {n.name for n in artifact.summary.nodes if not n.taken} <= {"gt", "where"}
    assert all(name.startswith(("aten_gt", "aten_where")) for name in outside), outside


def test_a_file_has_no_exported_program(tmp_path):
    torch.export.save(torch.export.export(Small().eval(), EXAMPLE), tmp_path / "model.pt2")
    with pytest.raises(tosaic.Error) as why:
        etrecord(tosaic.compile(tmp_path / "model.pt2", target="tosa-fp"))
    assert why.value.code == "etrecord.program" and "torch.export.load" in why.value.help
