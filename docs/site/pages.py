"""Hooks of mkdocs: the navigation comes from docs/README.md, and links that leave docs/ lead to a page of the site, or nowhere."""

import posixpath
import re
from pathlib import Path
from typing import Any

from markdown import Extension, Markdown
from markdown.blockprocessors import CodeBlockProcessor, ListIndentProcessor, OListProcessor, UListProcessor
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

REPOSITORY = Path(__file__).resolve().parents[2]
BROUGHT = {
    "README.md": "index.md",
    "docs/README.md": "pages.md",
    "CHANGELOG.md": "CHANGELOG.md",
    "CONTRIBUTING.md": "CONTRIBUTING.md",
}
"""Pages that have another place in the site than in docs/, by their place in the repository."""
FOR_USERS = ("index.md", "guide/", "reference/", "glossary.md", "performance.md", "reliability.md")
"""The beginnings of pages that a search finds. The others say how sparklog works, and have most of the words: they would come first."""
LINK = re.compile(r"\[((?:`[^`]*`|[^\[\]`]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
FENCE = re.compile(r"^( *```\w+) .*$", re.MULTILINE)
"""The begin of a block of code whose language is followed by a word for tests."""
ITEM = re.compile(r" *([*-]|\d+\.) ")
LINK_OR_CODE = re.compile(rf"{LINK.pattern}|^ *```.*?^ *```$|(`+)[^`].*?\3", re.MULTILINE | re.DOTALL)


class _Nested(Extension):  # type: ignore[misc]
    """Lists within lists are indented by two columns, as repositories show them; Python-Markdown expects four."""

    def extendMarkdown(self, md: Markdown) -> None:
        md.tab_length = 2
        processors = md.parser.blockprocessors
        processors.register(ListIndentProcessor(md.parser), "indent", 90)
        processors.register(CodeBlockProcessor(md.parser), "code", 80)
        processors.register(OListProcessor(md.parser), "olist", 40)
        processors.register(UListProcessor(md.parser), "ulist", 30)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    config.nav = navigation((REPOSITORY / "docs" / "README.md").read_text(encoding="utf-8"))
    config.markdown_extensions.append(_Nested())
    return config


def navigation(index: str) -> list[dict[str, Any]]:
    """The sections (`##`) and parts (`###`) of the list of pages, each with the pages that its items link first."""
    nav: list[dict[str, Any]] = [{"Home": "index.md"}, {"All pages": "pages.md"}]
    here: list[dict[str, Any]] = nav
    section: list[dict[str, Any]] = nav
    for line in index.splitlines():
        if heading := re.fullmatch(r"(##|###) (.*)", line):
            here = []
            (nav if heading[1] == "##" else section).append({heading[2]: here})
            section = here if heading[1] == "##" else section
        elif item := re.match(r"\* " + LINK.pattern, line):
            here.append({item[1].replace("`", ""): site_path("docs", item[2])})
    return nav


def site_path(folder: str, link: str) -> str:
    """The place in the site of a file that a page of a folder of the repository links."""
    place = posixpath.normpath(posixpath.join(folder, link))
    return BROUGHT.get(place) or posixpath.relpath(place, "docs")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    if (listed := files.get_file_from_path("README.md")) is not None:
        files.remove(listed)  # the list of pages, which mkdocs would take for the first page
    for source, place in BROUGHT.items():
        if (REPOSITORY / source).exists():
            files.append(File.generated(config, place, abs_src_path=str(REPOSITORY / source)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    page.meta["search"] = {"exclude": not page.file.src_uri.startswith(FOR_USERS)}
    if page.file.src_uri == "index.md":
        page.meta["hide"] = ["navigation"]  # it would list this page alone, and take the width that the code needs
    brought = {place: source for source, place in BROUGHT.items()}
    source = brought.get(page.file.src_uri) or posixpath.join("docs", page.file.src_uri)

    def led(link: re.Match[str]) -> str:
        name, _, anchor = (link[2] or "").partition("#")
        if "://" in name or not name:
            return link[0]  # code, a page elsewhere, or a part of this page
        place = site_path(posixpath.dirname(source), name)
        if place.startswith("..") or (REPOSITORY / "docs" / place).is_dir():
            return link[1]  # a file or a folder of the repository, which the site does not have
        target = posixpath.relpath(place, posixpath.dirname(page.file.src_uri) or ".")
        return f"[{link[1]}]({target}{'#' + anchor if anchor else ''})"

    return LINK_OR_CODE.sub(led, in_python_markdown(markdown))


def in_python_markdown(markdown: str) -> str:
    """Puts an empty line before a list that follows a paragraph or a block of code, and names the language of a block alone."""
    lines: list[str] = []
    fenced = False
    for line in FENCE.sub(r"\1", markdown).splitlines():
        before = lines[-1] if lines else ""
        if not fenced and ITEM.match(line) and before.strip() and not ITEM.match(before):
            lines.append("")
        fenced ^= line.lstrip().startswith("```")
        lines.append(line)
    return "\n".join(lines) + "\n"
