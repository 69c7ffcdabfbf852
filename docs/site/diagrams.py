# SPDX-License-Identifier: Apache-2.0
"""Flowcharts in mermaid's language as pictures, drawn by Graphviz when the site is built: a code host draws them itself, and
here a reader's browser need not load mermaid from elsewhere. Of the language: nodes in three shapes, arrows with texts."""
import html
import re
import shutil
import subprocess

BLOCK = re.compile(r"^```mermaid\n(.*?)^```$", re.S | re.M)
SHAPES = {"[": "box", "([": "oval", "{": "diamond"}
NODE = re.compile(r'(?P<id>\w+)(?:(?P<open>\(\[|\[|\{)"(?P<text>[^"]*)"(?:\]\)|\]|\}))?')
ARROW = re.compile(r' *-->(?:\|"?(?P<text>[^"|]*)"?\|)? *')


def quoted(text):
    return '"' + text.replace("<br>", "\\n").replace('"', '\\"') + '"'


def graph(text):
    """The same in Graphviz's language."""
    head, *lines = text.strip().split("\n")
    direction = head.split()[1]
    made = [f"digraph {{ rankdir={'TB' if direction == 'TD' else direction}; bgcolor=transparent; nodesep=0.25; ranksep=0.35;",
            'node [fontname="sans-serif", fontsize=12, margin="0.15,0.08", style=rounded]; edge [fontname="sans-serif", fontsize=11];']
    for line in lines:
        at, before, said = 0, None, ""
        line = line.strip()
        while at < len(line):
            node = NODE.match(line, at)
            if not node:
                raise ValueError(f"diagrams.py does not know this line of a flowchart: {line}")
            if node["open"]:
                made.append(f"{node['id']} [label={quoted(node['text'])}, shape={SHAPES[node['open']]}];")
            if before:
                made.append(f"{before} -> {node['id']} [label={quoted(' ' + said + ' ')}];")
            before, at = node["id"], node.end()
            arrow = ARROW.match(line, at)
            if arrow:
                said, at = arrow["text"] or "", arrow.end()
            elif at < len(line):
                raise ValueError(f"diagrams.py does not know this line of a flowchart: {line}")
    return "\n".join([*made, "}"])


def picture(match):
    if not shutil.which("dot"):
        return match[0].replace("```mermaid", "```text")
    svg = subprocess.run(["dot", "-Tsvg"], input=graph(match[1]), capture_output=True, text=True, check=True).stdout
    svg = svg[svg.index("<svg"):].replace("\n", " ")
    svg = re.sub(r'<svg width="(\d+)pt" height="(\d+)pt"', r'<svg style="width:\1pt" role="img"', svg)
    svg = re.sub(r"<!--.*?-->|<title>.*?</title>", "", svg)
    # The page's colours, light or dark.
    svg = svg.replace('stroke="black"', 'stroke="currentColor"').replace('fill="black"', 'fill="currentColor"')
    svg = svg.replace("<text ", '<text fill="currentColor" ')
    words = html.escape(re.sub(r"\s+", " ", " ".join(re.findall(r'"([^"]*)"', match[1])).replace("<br>", " ")))
    return f'<div class="diagram" aria-label="{words}">{svg}</div>'


def drawn(markdown):
    return BLOCK.sub(picture, markdown)
