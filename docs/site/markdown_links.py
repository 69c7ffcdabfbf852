# SPDX-License-Identifier: Apache-2.0
"""The links of a page in Markdown, without those that stand in code. Used by the site and by test/docs_site."""
import re

# Fenced blocks, comments, then code inside a line.
CODE = re.compile(r"^(?P<indent> *)(?P<fence>```+|~~~+)[^\n]*\n.*?^(?P=indent)(?P=fence) *$|<!--.*?-->"
                  r"|(?P<ticks>`+)(?!`)[^\n]*?(?:\n[^\n]+?)??(?<!`)(?P=ticks)(?!`)", re.S | re.M)
LINK = re.compile(r"(?<=\]\()[^()\s]+(?=\))")

# Its text is the name of a page.
NAMED = re.compile(r"\[(?P<text>(?:[\w-]+/)*[\w-]+\.md)\]\((?P<target>[^()\s]+\.md)(?P<anchor>#[^()\s]*)?\)")


def prose(text):
    """(start, end) of what is no code."""
    at = 0
    for code in CODE.finditer(text):
        yield at, code.start()
        at = code.end()
    yield at, len(text)


def links(text):
    """(line, target) of each link."""
    for start, end in prose(text):
        for link in LINK.finditer(text, start, end):
            yield text.count("\n", 0, link.start()) + 1, link.group()


def with_links(text, to):
    """`text`, with to(target) in place of each target."""
    parts, at = [], 0
    for start, end in prose(text):
        parts += [text[at:start], LINK.sub(lambda link: to(link.group()), text[start:end])]
        at = end
    return "".join(parts)


def with_titles(text, title):
    """A page's name as the text of a link to it, `[plan.md](plan.md#words)`, becomes title(target), where that is something."""
    def named(link):
        return f"[{title(link['target']) or link['text']}]({link['target']}{link['anchor'] or ''})"

    parts, at = [], 0
    for start, end in prose(text):
        parts += [text[at:start], NAMED.sub(named, text[start:end])]
        at = end
    return "".join(parts)


def is_outside(target):
    return re.match(r"[a-z]+:", target) is not None
