# SPDX-License-Identifier: Apache-2.0
"""What every Python-side test needs: the tool under test, and whether to take all models or the quick ones."""
import pathlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent


def pytest_addoption(parser):
    parser.addoption("--tosaic", default=str(ROOT / "build/release/bin/tosaic"), help="the tool under test")
    parser.addoption("--all-models", action="store_true", help="every model, not only the quick ones")
    parser.addoption("--ethosu-library", default="", help="the Ethos-U simulator, if not beside the tool")
    parser.addoption("--ethosu-cache", default="", help="a folder that keeps what Vela compiled")
    parser.addoption("--turn", type=int, help="of tests that are marked by_turns, the part that this number chooses; without: all")
    parser.addoption("--first-of-each-file", action="store_true", help="one test of each file: is there what it needs?")
    parser.addoption("--bless", action="store_true", help="rewrite the expected outputs of test/cli")


def pytest_configure(config):
    config.addinivalue_line("markers", "by_turns(n): of a file's tests with this mark every n-th runs, others with every commit")


def not_their_turn(items, turn):
    """Of each file's tests that run by turns, all but every n-th."""
    seen, others = {}, set()
    for item in items:
        mark = item.get_closest_marker("by_turns")
        if mark is None:
            continue
        number = seen[item.path] = seen.get(item.path, -1) + 1
        if number % mark.args[0] != turn % mark.args[0]:
            others.add(item)
    return others


def pytest_collection_modifyitems(config, items):
    turn = config.getoption("--turn")
    if turn is not None and not config.getoption("--all-models"):
        others = not_their_turn(items, turn)
        config.hook.pytest_deselected(items=list(others))
        items[:] = [item for item in items if item not in others]
    if config.getoption("--first-of-each-file"):
        first = {}
        for item in items:
            first.setdefault(item.path, item)
        config.hook.pytest_deselected(items=[item for item in items if first[item.path] is not item])
        items[:] = first.values()


@pytest.fixture(scope="session")
def tosaic(request):
    path = pathlib.Path(request.config.getoption("--tosaic")).resolve()  # tests run it in folders of their own
    assert path.exists(), f"{path} is missing; run make build"
    return str(path)
