"""The pages of docs/ as a list and as a site."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import sparklog
from sparklog import consumer, groups, spark_functions

ROOT = Path(__file__).resolve().parents[1]
INDEX = ROOT / "docs" / "README.md"


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
