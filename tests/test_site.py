"""The pages of docs/ as a list and as a site."""

import json
import os
import re
import runpy
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

import sparklog
from sparklog import consumer, groups, spark_functions

ROOT = Path(__file__).resolve().parents[1]
INDEX = ROOT / "docs" / "README.md"
FIGURES = ROOT / "docs" / "figures"
SVG = "{http://www.w3.org/2000/svg}"


def test_the_list_of_pages_has_every_page() -> None:
    pages = {page.relative_to(INDEX.parent).as_posix() for page in INDEX.parent.rglob("*.md") if page != INDEX}
    items = re.findall(r"^\* \[.*?\]\(([^)]*)\)", INDEX.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(items) == len(set(items)), "a page is listed twice"
    assert pages - set(items) == set(), "docs/README.md does not list these pages"
    assert [item for item in items if not (INDEX.parent / item).is_file()] == []


def test_each_line_of_the_changelog_leads_to_a_page() -> None:
    """A release has 30 lines at most: commits have the rest."""
    for release in re.split(r"^## ", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        lines = re.findall(r"^- .*", release, re.MULTILINE)
        assert len(lines) <= 30
        assert [line for line in lines if "](" not in line] == []


@pytest.fixture(scope="module")
def drawing() -> dict[str, Any]:
    return runpy.run_path(str(FIGURES.parent / "make_figures.py"))


def test_each_figure_is_made_from_its_text_and_explains_a_page(drawing: dict[str, Any]) -> None:
    made = drawing["figures"]()
    assert {file.name: file.read_text(encoding="utf-8") for file in FIGURES.glob("*.svg")} == made, "run make docs"
    shown = [
        ((page.parent / link).resolve(), alt)
        for page in [ROOT / "README.md", *INDEX.parent.rglob("*.md")]
        for alt, link in re.findall(r"!\[([^]]*)\]\(([^)]*)\)", page.read_text(encoding="utf-8"))
    ]
    assert {FIGURES / name for name in made} == {file for file, _ in shown}
    assert [alt for _, alt in shown if len(alt.split()) < 10] == [], "a reader who does not see a figure has its alt text alone"
    for figure in made.values():
        root = ElementTree.fromstring(figure)
        assert root.tag == f"{SVG}svg" and root.findtext(f"{SVG}title") and root.findtext(f"{SVG}desc")


@pytest.mark.parametrize(
    ("lines", "fault"),
    [
        (["box a disk 0 0 5 4 | much too wide"], "wider than its box"),
        (["box a disk 0 0 5 4", "box b disk 4 2 5 4"], "meet"),
        (["box a disk 0 0 5 4", "box b disk 10 0 5 4", "link a b | too long"], "meet"),
        (["frame a 0 2 9 9 | a", "text 7 6 | over its border"], "meet"),
        (["box a paper 0 0 5 4"], "no kind of a box"),
    ],
)
def test_no_figure_has_texts_or_boxes_that_overlap(drawing: dict[str, Any], lines: list[str], fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        drawing["drawn"]("\n".join(["title t", "says s", *lines]))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, which is built without a warning: `strict` is set in mkdocs.yml."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--config-file", "docs/site/mkdocs.yml", "--site-dir", str(folder)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0 and "WARNING" not in ran.stderr, ran.stderr[-4_000:]
    return folder


@pytest.mark.slow
def test_the_site_has_every_page_and_loads_nothing_from_elsewhere(site: Path) -> None:
    pages = {page.relative_to(site).as_posix(): page.read_text(encoding="utf-8") for page in site.rglob("*.html")}
    written = {page.relative_to(INDEX.parent).with_suffix(".html").as_posix() for page in INDEX.parent.rglob("*.md") if page != INDEX}
    assert {page.replace("README.html", "index.html") for page in written} | {"index.html", "pages.html"} <= set(pages)
    loaded = re.compile(r"<(?:script|link|img|iframe)\b[^>]*?\b(?:src|href)=.?https?://[^>]*>|@import url\(.?https?://")
    assert {name: loaded.findall(text) for name, text in pages.items() if loaded.search(text)} == {}


@pytest.mark.slow
def test_the_site_begins_with_the_front_page_and_searches_the_pages_of_users(site: Path) -> None:
    home = (site / "index.html").read_text(encoding="utf-8")
    assert "Kafka topics for Spark, without a Kafka cluster." in home and '<a href="guide/installing.html">Installing</a>' in home
    assert '<a href="guide/verify.html">Verify</a>' in (site / "pages.html").read_text(encoding="utf-8")
    found = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))["docs"]
    searched = {each["location"].partition("#")[0] for each in found}
    users = {page.relative_to(site).as_posix() for folder in ("guide", "reference") for page in (site / folder).rglob("*.html")}
    assert users < searched
    # The words of these pages are those that a user asks for, and more often there than in a guide.
    assert searched & {page.relative_to(site).as_posix() for page in (site / "decisions").rglob("*.html")} == set()
    assert "FORMAT.html" not in searched


@pytest.mark.slow
def test_the_site_shows_markdown_as_it_is_meant(site: Path) -> None:
    """No list, fence or link is left as text, as where Python-Markdown needs another form than repositories."""
    left = re.compile(r"\n *(?:[*-]|\d+\.) |^ *(?:\||```)|\]\([^)\s]+\)", re.MULTILINE)
    found = {}
    for page in site.rglob("*.html"):
        shown = re.sub(r"<(pre|code)\b.*?</\1>", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        parts = [part for paragraph in re.findall(r"<p>.*?</p>", shown, re.DOTALL) for part in left.findall(paragraph)]
        if parts:
            found[page.relative_to(site).as_posix()] = parts
    assert found == {}


def test_the_page_of_the_python_api_has_every_public_name() -> None:
    public = {"sparklog": sparklog, "sparklog.consumer": consumer, "sparklog.groups": groups, "sparklog.spark_functions": spark_functions}
    listed = re.findall(r"^::: (\S+)\.(\w+)$", (INDEX.parent / "reference" / "api.md").read_text(encoding="utf-8"), re.MULTILINE)
    names = {name for module in public.values() for name in module.__all__}
    assert {name for _, name in listed} == names
    assert [(module, name) for module, name in listed if name not in public[module].__all__] == []
