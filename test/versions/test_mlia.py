# SPDX-License-Identifier: Apache-2.0
"""Arm's adviser MLIA with tosaic as its converter. Where it is installed: `run_versions.py mlia` does that."""
import json
import pathlib
import subprocess
import sys

import pytest

pytest.importorskip("mlia")
pytest.importorskip("mlia_converters_tosaic")

from mlia.core.errors import ConfigurationError  # noqa: E402
from mlia.core.output_schema import StandardizedOutput  # noqa: E402
from mlia.core.output_validation import JSONSCHEMA_AVAILABLE, collect_validation_errors  # noqa: E402
from mlia.transformers.registry import TransformRequest, ensure_transformer_plugins_loaded, transform_model  # noqa: E402

import tosaic  # noqa: E402

DIGITS = pathlib.Path(__file__).resolve().parents[2] / "examples" / "digits" / "digits.pt2"
U55 = {"target": "ethos-u55", "mac": 128, "system_config": "Ethos_U55_High_End_Embedded", "memory_mode": "Shared_Sram"}


def converted(folder, target_format, **options):
    ensure_transformer_plugins_loaded()
    return transform_model(TransformRequest(DIGITS, folder, target_format, options))


def test_tosa(tmp_path):
    whole = converted(tmp_path, "tosa")
    integers = whole.read_bytes()
    assert whole.name == "digits.tosa" and b"TOSA" in integers[:64]
    assert converted(tmp_path, "tosa", enable_quantization=False).read_bytes() != integers


def test_pte(tmp_path):
    program = tosaic.load(converted(tmp_path, "pte", executorch_target_config=U55))
    assert program.inputs[0].dtype == "f32"


def test_what_there_is_not_is_mlias_error(tmp_path):
    with pytest.raises(ConfigurationError, match="ethos-u55-100"):
        converted(tmp_path, "pte", executorch_target_config={**U55, "mac": 100})


@pytest.mark.parametrize("target", ["ethos-u55-128", "ethos-u85-256", "tosa-int", "tosa-fp", "vulkan", "cortex-m55"])
def test_reports_are_what_mlia_takes(target):
    """Its schema, and what it asks beyond that: entities, their kinds, and who is whose parent."""
    artifact = tosaic.compile(DIGITS, target=target, calibration=str(DIGITS.with_name("digits_samples.npz")), progress=False)
    found = json.loads(artifact.report(format="mlia-json"))
    assert JSONSCHEMA_AVAILABLE and collect_validation_errors(found) == []
    assert StandardizedOutput.from_dict(found).to_dict()["target"]["profile_name"] == target


def test_mlia_check(tmp_path):
    """The command that users type: Vela's cycles for the .pt2 file."""
    mlia = pathlib.Path(sys.executable).with_name("mlia")
    done = subprocess.run([mlia, "check", DIGITS, "--target-profile", "ethos-u55-128", "--performance", "--backend", "vela"],
                          cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and "npu_cycles" in done.stdout, done.stdout + done.stderr
    assert list(tmp_path.rglob("digits.tosa"))
