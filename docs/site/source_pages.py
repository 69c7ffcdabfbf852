# SPDX-License-Identifier: Apache-2.0
"""Pages that show a file of the repository to which another page has a link."""
import json
import posixpath

LANGUAGES = {".cpp": "cpp", ".h": "cpp", ".hpp": "cpp", ".c": "c", ".py": "python", ".sh": "sh", ".cmake": "cmake", ".fbs": "text",
             ".txt": "text"}
FOLDER = "source/"
# Not found by the search: it is for what is written about these files.
HEAD = "---\nsearch:\n  exclude: true\nhide:\n  - toc\n---\n\n"


def page_of(path):
    return f"{FOLDER}{path}.md"


def fenced(language, text):
    fence = "`" * 3
    while fence in text:
        fence += "`"
    return f"{fence}{language}\n{text.rstrip()}\n{fence}\n"


def notebook(text):
    cells = json.loads(text)["cells"]
    return "\n".join(source if cell["cell_type"] == "markdown" else fenced("python", source)
                     for cell in cells if (source := "".join(cell["source"])))


def shown(path, file):
    if file.suffix == ".ipynb":
        return notebook(file.read_text())
    language = "cmake" if file.name == "CMakeLists.txt" else LANGUAGES.get(file.suffix, "text")
    return fenced(language, file.read_text())


def pages(root, paths):
    """path of a page -> Markdown, for files and folders of the repository. A folder's page lists its files."""
    made, left = {}, sorted(paths)
    while left:
        path = left.pop()
        file = root / path
        if page_of(path) in made or not file.exists():
            continue
        if file.is_dir():
            files = sorted(p.name for p in file.iterdir() if p.is_file())
            left += [posixpath.join(path, name) for name in files]
            text = "\n".join(f"- [{name}]({posixpath.basename(path)}/{name})" for name in files)
        else:
            text = shown(path, file)
        head = "" if file.suffix == ".ipynb" else f"# {path.replace('_', chr(92) + '_')}\n\n"
        made[page_of(path)] = HEAD + head + text
    return made
