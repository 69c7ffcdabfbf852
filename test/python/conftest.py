# SPDX-License-Identifier: Apache-2.0
"""What several of the package's tests need."""

import pytest


@pytest.fixture
def lowerings():
    """Lowerings of custom operators that a test adds are gone after it."""
    from tosaic import _lowering

    before = dict(_lowering.lowerings())
    yield
    _lowering.lowerings().clear()
    _lowering.lowerings().update(before)
