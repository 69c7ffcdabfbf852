# SPDX-License-Identifier: Apache-2.0
"""Arrows between libraries point one way: true of the tree, and a wrong one is noticed."""
import pathlib
import shutil
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / ".ci"))
import arrows  # noqa: E402


def test_the_tree():
    assert arrows.offences(ROOT) == []


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tree")
    for name in ("src", "include"):
        shutil.copytree(ROOT / name, folder / name)
    return folder


@pytest.fixture
def change(copy):
    """change(file, function of its text): until the test ends."""
    before = {}

    def once(file, function):
        path = copy / file
        before[path] = path.read_text() if path.exists() else None
        path.parent.mkdir(exist_ok=True)
        path.write_text(function(before[path] or ""))
        return arrows.offences(copy)
    yield once
    for path, text in before.items():
        path.unlink() if text is None else path.write_text(text)


@pytest.mark.parametrize("file, include, belongs", [
    ("runtime/method.cpp", "ops/op.h", "lowerings"), ("runtime/method.h", "ops/definitions/tosa_op.h", "tosa"),
    ("runtime/method.cpp", "kernels/lowered_kernel.h", "kernels"), ("runtime/method.cpp", "delegates/delegates.h", "delegates"),
    ("formats/tosa/read.cpp", "ops/builder.h", "lowerings"), ("formats/pte/read.cpp", "ops/definitions/tosa_op.h", "tosa"),
    ("ethosu/machine.h", "cpu/cpu.h", "cpu"), ("normalise/views.cpp", "cpu/cpu.h", "cpu"),
    ("ops/tosa/add.cpp", "ops/op.h", "lowerings"), ("ops/definitions/row.h", "ops/schema.h", "lowerings"),
    ("delegates/ethos_u/ethos_u_delegate.cpp", "ops/definitions/tosa_op.h", "tosa"), ("targets/ethos_u/vela.h", "tosaic/tosaic.hpp", "api"),
    ("base/bytes.h", "ir/type.h", "types"), ("api/artifact.cpp", "tools/tool.h", "tools"),
    ("pipeline/pipeline.cpp", "api/artifact.h", "api"), ("partition/partition.cpp", "pipeline/question.h", "pipeline"), ("tidy/tidy.cpp", "lower/lower.h", "lower")])
def test_a_wrong_arrow_is_an_offence(change, file, include, belongs):
    offence, = change(f"src/{file}", lambda text: text + f'\n#include "{include}"\n')
    assert offence.startswith(f"src/{file}: includes {include} of '{belongs}'")


def test_public_headers_are_closed(change):
    said = change("include/tosaic/delegate.h", lambda text: text + '#include "ir/type.h"\n')
    assert said == ["include/tosaic/delegate.h: includes ir/type.h, which is not public"]


def test_links_that_go_round_are_an_offence(change):
    right = "LINKS tosaic_base tosaic_types)"
    said = change("src/CMakeLists.txt", lambda text: text.replace(right, right.replace(")", " tosaic_lower)")))
    assert any("'ir' links itself" in o for o in said) and any("'lower' links itself" in o for o in said)


@pytest.mark.parametrize("file", ["stray/stray.cpp", "formats/helper.h"])
def test_a_file_without_library_is_an_offence(change, file):
    said = change(f"src/{file}", lambda text: text)
    assert len(said) == 1 and f"src/{file}: belongs to no library" in said[0]
