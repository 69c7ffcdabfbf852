#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A CMSIS pack of the runtime for boards: `make cmsis-pack`. Which files it holds, and the options that they are compiled
with, are read from the build of the preset cortex-m55. The format: https://open-cmsis-pack.github.io/Open-CMSIS-Pack-Spec"""
import argparse
import json
import pathlib
import re
import subprocess
import zipfile
from xml.etree import ElementTree as xml

ROOT = pathlib.Path(__file__).resolve().parent.parent
VENDOR, NAME = "tosaic", "tosaic"
# Csub, the archive that it is made of, what it is.
COMPONENTS = [
    ("Runtime", "firmware", "Reader of .pte programs, runtime, the Ethos-U delegate"),
    ("NPU Registers", "npu_registers", "Drives an Ethos-U by its registers"),
    ("NPU Simulator", "npu_simulator", "Stands in for an Ethos-U, in software"),
    ("Runner", "runner", "main: loads a program into an arena, and runs it on files"),
]
LICENCES = """tosaic                 Apache-2.0, LICENSE
third_party/flatbuffers  Apache-2.0, https://github.com/google/flatbuffers
third_party/xxhash.h     BSD-2-Clause, in the file
third_party/hwy          Apache-2.0 or BSD-3-Clause, https://github.com/google/highway
"""


class Build:
    """What the build knows: sources of each archive, headers of each object, definitions."""

    def __init__(self, folder):
        self.folder = folder
        commands = json.loads((folder / "compile_commands.json").read_text())
        self.commands = {re.search(r" -o (\S+)", command["command"])[1]: command for command in commands}
        self.headers = {}
        for block in self.ninja("deps").split("\n\n"):
            first, *rest = block.splitlines() or [""]
            self.headers[first.split(":")[0]] = [folder / line.strip() for line in rest]

    def ninja(self, *words):
        return subprocess.run(["ninja", "-C", str(self.folder), "-t", *words], check=True, capture_output=True, text=True).stdout

    def objects(self, archive):
        lines = self.ninja("query", f"device/libtosaic_{archive}.a").split("outputs:")[0].splitlines()
        return [line.strip() for line in lines if line.strip() in self.commands]

    def source(self, an_object):
        return pathlib.Path(self.commands[an_object]["file"])

    def definitions(self, objects):
        """That all of them have."""
        each = [dict.fromkeys(re.findall(r"-D(\w+(?:=\S+)?)", self.commands[o]["command"])) for o in objects]
        return [d for d in each[0] if all(d in one for one in each)]


def place_of(path, build):
    """Where a file lies in the pack; none: it is the compiler's own."""
    path = (build / path).resolve()
    for link in (build / "headers").iterdir():  # of other projects: a file or a folder each
        if path == link.resolve() or link.resolve() in path.parents:
            return pathlib.PurePath("third_party", link.name, path.relative_to(link.resolve()))
    for root, place in ((build / "generated", "generated"), (ROOT, "")):
        if root in path.parents:
            return pathlib.PurePath(place, path.relative_to(root))
    return None


def description(version, components, folders, definitions):
    """The .pdsc of components: (Csub, text, sources)."""
    top = xml.Element("package", {"schemaVersion": "1.7.7", "xmlns:xs": "http://www.w3.org/2001/XMLSchema-instance",
                                  "xs:noNamespaceSchemaLocation": "PACK.xsd"})
    for tag, text in (("vendor", VENDOR), ("name", NAME), ("description", "PyTorch programs (.pte) on boards with an Ethos-U, without an operating system"),
                      ("url", ""), ("license", "LICENSE")):
        xml.SubElement(top, tag).text = text
    releases = xml.SubElement(top, "releases")
    xml.SubElement(releases, "release", version=version).text = "CHANGELOG.md of tosaic says what is new"
    conditions = xml.SubElement(top, "conditions")
    condition = xml.SubElement(conditions, "condition", id="Runtime")
    xml.SubElement(condition, "require", Cclass="Machine Learning", Cgroup=NAME, Csub="Runtime")
    all_of_them = xml.SubElement(top, "components")
    for sub, text, sources in components:
        component = xml.SubElement(all_of_them, "component", Cclass="Machine Learning", Cgroup=NAME, Csub=sub, Cversion=version)
        if sub != "Runtime":
            component.set("condition", "Runtime")
        xml.SubElement(component, "description").text = text
        if sub == "Runtime":
            xml.SubElement(component, "Pre_Include_Global_h").text = "".join(
                f"\n#ifndef {name}\n#define {name}{' ' + value if value else ''}\n#endif" for name, _, value in
                (d.partition("=") for d in definitions)) + "\n"
        files = xml.SubElement(component, "files")
        if sub == "Runtime":
            for folder in folders:
                xml.SubElement(files, "file", category="include", name=f"{folder}/")
        for source in sources:
            xml.SubElement(files, "file", category="source", name=str(source))
    xml.indent(top)
    return xml.tostring(top, encoding="unicode", xml_declaration=True)


def make(folder, output):
    build = Build(folder)
    packed, components, everything = {}, [], []
    for sub, archive, text in COMPONENTS:
        objects = build.objects(archive)
        everything += objects
        sources = []
        for an_object in objects:
            source = build.source(an_object)
            for path in (source, *build.headers[an_object]):
                place = place_of(path, folder)
                if place:
                    packed[place] = folder / path
            sources.append(place_of(source, folder))
        components.append((sub, text, sorted(sources)))
    # In the order in which the compiler looks; a folder that a definition puts first stays there.
    ours = ["include", "src", "device", "generated", "third_party"]
    first = pathlib.PurePath("src/base/system/bare/without_texts")
    folders = [str(first)] * any(first in place.parents for place in packed) + ours
    version = (ROOT / "VERSION").read_text().strip()
    output.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(output, "w", zipfile.ZIP_DEFLATED) as pack:
        def write(name, text):
            pack.writestr(zipfile.ZipInfo(str(name), (1980, 1, 1, 0, 0, 0)), text, zipfile.ZIP_DEFLATED)
        write(f"{VENDOR}.{NAME}.pdsc", description(version, components, folders, build.definitions(everything)))
        write("LICENSE", (ROOT / "LICENSE").read_bytes())
        write("third_party/LICENCES.txt", LICENCES)
        for place in sorted(packed):
            write(place, packed[place].read_bytes())
    return len(packed)


def main():
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--build", type=pathlib.Path, default=ROOT / "build/cortex-m55")
    words.add_argument("--output", type=pathlib.Path)
    asked = words.parse_args()
    version = (ROOT / "VERSION").read_text().strip()
    output = asked.output or ROOT / f"build/{VENDOR}.{NAME}.{version}.pack"
    print(f"{output}: {make(asked.build.resolve(), output)} files")


if __name__ == "__main__":
    main()
