# SPDX-License-Identifier: Apache-2.0
import pathlib
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))


@pytest.fixture(scope="session")
def library(request):
    """The simulator next to the tool under test."""
    given = request.config.getoption("--ethosu-library")
    path = pathlib.Path(given) if given else pathlib.Path(request.config.getoption("--tosaic")).parent.parent / "src/libtosaic_ethosu_c.so"
    assert path.exists(), f"{path} is missing; build the target tosaic_ethosu_c"
    return path


@pytest.fixture(scope="session")
def workspace(request, tmp_path_factory):
    """Compiled networks; --ethosu-cache keeps them for the next run (the mutation gate runs the suite often)."""
    given = request.config.getoption("--ethosu-cache")
    return pathlib.Path(given) if given else tmp_path_factory.mktemp("ethosu")
