# SPDX-License-Identifier: Apache-2.0
"""No two types have one name: true of the tree, and a second one is noticed."""
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / ".ci"))
import types_once  # noqa: E402


def test_the_tree():
    assert types_once.offences(ROOT) == []
    assert len(set(types_once.defined((ROOT / "src/ir/graph.h").read_text()))) > 5  # it sees them


def test_a_second_type_of_a_name_is_an_offence(tmp_path):
    (tmp_path / "src/b").mkdir(parents=True)
    one = "namespace tosaic {\nstruct Payload {\n  int a;\n};\n}  // namespace tosaic\n"
    (tmp_path / "src/a.h").write_text(one)
    (tmp_path / "src/b/b.cpp").write_text(one.replace("struct", "class"))
    (tmp_path / "src/b/c.cpp").write_text(one.replace("tosaic {", "tosaic::c {"))  # a namespace of its own
    (tmp_path / "src/b/d.cpp").write_text("namespace tosaic {\nnamespace {\nstruct Payload {\n};\n}  // namespace\n}  // namespace tosaic\n")
    assert types_once.offences(tmp_path) == ["src/b/b.cpp: defines tosaic::Payload, as src/a.h does: the linker takes them for one"]
