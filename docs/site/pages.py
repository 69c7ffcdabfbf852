# SPDX-License-Identifier: Apache-2.0
"""A hook of mkdocs: what the site is made of. Every page in Markdown of the repository has its place in it, under its own
path, so that relative links hold on a code host as well as here. Links to other files lead to pages that show them
(source_pages), those to headers of include/ to the reference that is made of them."""
import pathlib
import posixpath
import re

from mkdocs.structure.files import File, Files

import commands
import diagrams
import headers
import markdown_links
import python_reference
import source_pages

ROOT = pathlib.Path(__file__).resolve().parents[2]
HOME = "docs/README.md"
# Folders without pages: what builds leave, and this one.
OUTSIDE = {"build", "dist", "docs/site"}
PICTURES = (".png", ".jpg", ".svg")


def repository_pages():
    """Paths of the repository's pages."""
    for top in sorted(ROOT.iterdir()):
        if top.is_file() and top.suffix == ".md":
            yield top.name
        if top.is_dir() and not top.name.startswith(".") and top.name not in OUTSIDE:
            yield from sorted(p.relative_to(ROOT).as_posix() for p in top.rglob("*.md")
                              if not any(part in OUTSIDE or part.startswith(".") for part in p.relative_to(ROOT).parts))


def place(path):
    """The file of the site in which the page is shown."""
    name = path.removesuffix(".md").lower()
    if path == HOME:
        return "index.html"
    if path == "README.md":
        return "overview/index.html"
    return posixpath.join(name.removeprefix("docs/").removesuffix("/readme"), "index.html")


def inside(page, target):
    """The path in the repository to which a relative link of `page` leads, and its #anchor."""
    path, mark, anchor = target.partition("#")
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), path)) if path else page, mark + anchor


def shown_by(path):
    """The page that shows this file or folder of the repository."""
    if path.endswith((".md", *PICTURES)):
        return path
    if (ROOT / path / "README.md").is_file():
        return f"{path}/README.md"
    return headers.page_of(path) or source_pages.page_of(path)


def generated():
    """path -> Markdown of the pages that are made when the site is built; and the paths of the pictures in all pages."""
    pages = {**commands.pages(ROOT), **headers.pages(ROOT), **python_reference.pages(ROOT)}
    texts = {path: (ROOT / path).read_text() for path in repository_pages()}
    shown = {inside(page, target)[0] for page, text in (texts | pages).items() for _, target in markdown_links.links(text)
             if not markdown_links.is_outside(target)}
    made = pages | source_pages.pages(ROOT, [path for path in shown if shown_by(path) == source_pages.page_of(path)])
    return made, sorted(path for path in shown if path.endswith(PICTURES))


def on_config(config):
    config.nav = expanded(config.nav)
    config.watch += [str(ROOT / "docs"), str(ROOT / "include"), str(ROOT / "python")]
    return config


def expanded(nav):
    """`made: cpp` in the navigation stands for the pages that the reference has of it."""
    made = {"cpp": headers.navigation(ROOT, ".hpp"), "c": headers.navigation(ROOT, ".h")}
    if isinstance(nav, list):
        return [part for item in nav for part in (made[item["made"]] if isinstance(item, dict) and "made" in item
                                                  else [expanded(item)])]
    return {title: expanded(part) for title, part in nav.items()} if isinstance(nav, dict) else nav


def on_files(files, config):
    kept = [file for file in files if file.src_dir != config.docs_dir]  # the theme's
    for path in repository_pages():
        kept.append(File(path, str(ROOT), config.site_dir, True, dest_uri=place(path)))
    made, pictures = generated()
    for path in pictures:
        kept.append(File(path, str(ROOT), config.site_dir, True, dest_uri=path.removeprefix("docs/")))
    for path, text in made.items():
        file = File.generated(config, path, content=text)
        file.dest_uri = place(path)
        kept.append(file)
    return Files(kept)


def on_page_markdown(markdown, page, config, files):
    source = page.file.src_uri
    if source == HOME:
        page.meta |= {"template": "home.html", "hide": ["navigation", "toc"]}
    origin = source.removeprefix(source_pages.FOLDER)  # links of a notebook are those of its own place

    def to(target):
        if markdown_links.is_outside(target) or target.startswith("#"):
            return target
        path, anchor = inside(origin, target)
        shown = shown_by(path)
        if shown != path and not path.endswith(".md"):
            anchor = ""
        return posixpath.relpath(shown, posixpath.dirname(source) or ".") + anchor

    def title(target):
        file = ROOT / inside(origin, target)[0]
        found = re.search(r"^# (.*)$", file.read_text(), re.M) if file.is_file() and file.suffix not in PICTURES else None
        return found and found[1]

    return diagrams.drawn(markdown_links.with_links(markdown_links.with_titles(markdown, title), to))
