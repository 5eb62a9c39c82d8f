"""What README, guides and notebooks say is run: every Python block of a page, in order, in an empty folder."""

import json
import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

HERE = Path(__file__).resolve().parents[2]
PAGES = [HERE / "README.md", *sorted((HERE / "docs" / "guide").glob("*.md"))]
NOTEBOOKS = sorted((HERE / "notebooks").glob("*.ipynb"))


def run(blocks: list[str], page: Path) -> None:
    assert blocks, f"{page} has nothing to run"
    names: dict[str, object] = {"__name__": page.stem}
    for number, block in enumerate(blocks, 1):
        exec(compile(block, f"{page.name}, block {number}", "exec"), names)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_page(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page: Path) -> None:
    monkeypatch.chdir(tmp_path)
    run(re.findall(r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL), page)


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.name)
def test_notebook(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, notebook: Path) -> None:
    monkeypatch.chdir(tmp_path)
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    assert not any(cell.get("outputs") for cell in cells), "a notebook is kept without outputs"
    run(["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"], notebook)
