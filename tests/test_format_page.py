"""docs/FORMAT.md: each part names its conformance class, it is short, and section numbers anywhere in the tree lead somewhere."""

import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path

import google_crc32c
import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "FORMAT.md"
CLASSES = {"record reader", "key reader", "writer"}
OTHERS = {"streaming query", "server", "our own writer", "faster reader", "no program"}
LONGEST = 40
"""Words of a sentence."""
MOST_OF_THE_PAGE, MOST_FOR_RECORD_READERS = 15_000, 8_000
"""Words, as `wc -w` counts them: of the page without its annexes, and of the parts that a record reader keeps."""


def blocks(text: str) -> Iterator[str]:
    """The paragraphs, list items and table cells of a page, each without its mark; no code and no headings."""
    text = re.sub(r"^ *```.*?^ *```$", "", text, flags=re.MULTILINE | re.DOTALL)
    paragraph: list[str] = []
    for line in [*map(str.strip, text.splitlines()), ""]:
        if not line or (re.match(r"[#|*-]|\d+\. ", line) and not re.match(r"\*\w|\*\*", line)):
            yield " ".join(paragraph)
            paragraph = []
        if line.startswith("|"):
            yield from line.strip("|").split("|")
        elif line and not line.startswith("#"):
            paragraph.append(re.sub(r"^(?:[*-]|\d+\.) ", "", line))


def sentences(block: str) -> list[str]:
    """The sentences of a block. Code is one word, and a link is its text. A colon or a semicolon ends no sentence."""
    block = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", re.sub(r"`[^`]*`", "`code`", block))
    return re.split(r"(?<=[.!?])[)\]*]*\s+(?![a-z])", block)


def words(text: str) -> int:
    return sum(bool(re.search(r"\w", word)) for word in text.split())


def parts(text: str) -> Iterator[tuple[str, str, str]]:
    """Title, class and text of each part of the page: from one heading to the next."""
    code = False
    pieces: list[list[str]] = []
    for line in text.splitlines():
        code ^= line.strip().startswith("```")
        if re.match(r"##+ ", line) and not code:
            pieces.append([])
        if pieces:
            pieces[-1].append(line)
    for title, *lines in pieces:
        body = "\n".join(lines).strip()
        mark = re.match(r"\*Class: ([a-z ]+)\*$", body, re.MULTILINE)
        yield title, mark[1] if mark else "", body


def test_no_sentence_is_long():
    text = PAGE.read_text(encoding="utf-8")
    assert [each for block in blocks(text) for each in sentences(block) if words(each) > LONGEST] == []


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("One two. Three\nfour five.\n\nSix.\n", [2, 3, 1]),
        ("* One\n  two\n* **Three** four: five; six\n1. Seven. Eight\n", [2, 4, 1, 1]),
        ("| a b | `c d e` |\n| --- | --- |\nOne [two three](x.md#y z).\n", [2, 1, 3]),
        ("# A title\n```\ncode, code, code\n```\nWith 1.5 of *this* (a. b.) one. (Two.) *Three.* `four` is\n", [7, 1, 1, 2]),
    ],
)
def test_sentences_of_a_page(text, counts):
    assert [count for block in blocks(text) for each in sentences(block) if (count := words(each))] == counts


def test_each_part_names_its_class():
    found = [(title, kind) for title, kind, _ in parts(PAGE.read_text(encoding="utf-8"))]
    assert {title: kind for title, kind in found if kind not in CLASSES | OTHERS} == {}
    assert {kind for _, kind in found} >= CLASSES


def label(title: str) -> str:
    """The number of a section, the letter of an annex with a section's number in it, or the whole title of the first part."""
    found = re.match(r"#+ (?:Annex )?(\d+(?:\.\d+)?|[A-Z](?:\.\d+)?)\b", title)
    return found[1] if found and title != "## Classes" else title.lstrip("# ")


def wc(text: str) -> int:
    return len(text.split())


def sizes(text: str) -> dict[str, tuple[str, int]]:
    """Class and words of each part by its label, heads included; and of the text above the first part."""
    found = {label(title): (kind, wc(title) + wc(body)) for title, kind, body in parts(text)}
    return {"the text above": ("record reader", wc(text[: text.index("\n## ")])), **found}


def test_the_page_without_its_annexes_is_short():
    text = PAGE.read_text(encoding="utf-8")
    assert 10_000 < wc(text[: text.index("\n## Annex A")]) <= MOST_OF_THE_PAGE


def test_a_record_reader_keeps_little_of_the_page():
    needed = sum(count for kind, count in sizes(PAGE.read_text(encoding="utf-8")).values() if kind == "record reader")
    assert 5_000 < needed <= MOST_FOR_RECORD_READERS


def test_the_table_of_classes_names_the_marked_parts_and_counts_their_words():
    text = PAGE.read_text(encoding="utf-8")
    given = sizes(text)
    labels = list(given)
    main = set(labels[: labels.index("A")])
    kept: set[str] = set()
    for kind in ("record reader", "key reader", "writer"):
        ((names, count),) = re.findall(rf"^\| \*\*{kind}\*\* \|.*\| (.*) \| ([\d,]+) \|$", text, re.MULTILINE)
        known = {"these": kept, "all before the annexes": main}
        kept = set().union(*(known.get(each) or spread(each, labels) for each in names.split(", ")))
        marked = {each for each, (mark, _) in given.items() if mark in {"record reader", kind}}
        assert kept == (marked if kind != "writer" else main | {"A", "A.8", "D.1"})
        assert abs(int(count.replace(",", "")) - sum(given[each][1] for each in kept)) <= 100, kind


def spread(listed: str, labels: list[str]) -> set[str]:
    """The labels of `3 to 3.3`, or of `10`."""
    first, _, last = listed.partition(" to ")
    return set(labels[labels.index(first) : labels.index(last or first) + 1])


LABEL = r"(?:\d{1,2}(?:\.\d{1,2})?|[A-Z](?:\.\d{1,2})?)(?![\w]|\.\d)"
CITED = re.compile(rf"(?<!RFC )\b(?:[Ss]ections?|[Aa]nnex(?:es)?|FORMAT\.md) ({LABEL}(?:(?:,? and |, | to ){LABEL})*)")
OLD = re.compile(r"\b[Aa]ppendi(?:x|ces) [A-Z]\b")
TOLD = {".py", ".java", ".md", ".ipynb", ".json", ".js"}


def citations(path: Path) -> Iterator[str]:
    """The labels of sections and annexes that a file names: in texts, and as targets of links."""
    text = re.sub(r"\s*\n\s*(?:[*#]+|//)?\s*", " ", path.read_text(encoding="utf-8"))
    text = re.sub(r"\[([^]]*)\]\((?:[^)]*FORMAT\.md)?(?:#[^)]*)?\)", r"\1", text)
    for each in CITED.findall(text):
        yield from re.findall(LABEL, each)
    yield from OLD.findall(text)
    if path.parent.name == "foreign":
        yield from re.findall(r"(?:\"|# | \(|and )((?:\d{1,2}|[A-Z])\.\d{1,2})(?![\w]|\.\d)", text)


def told() -> Iterator[Path]:
    for top in ("sparklog", "docs", "tests", "jvm-shim/src", "jvm-shim/serve/src", "notebooks", "bench"):
        yield from (path for path in (ROOT / top).rglob("*") if path.suffix in TOLD and path.is_file() and path != Path(__file__))
    yield from ROOT.glob("*.md")


def test_sections_that_are_named_exist():
    titles = set(sizes(PAGE.read_text(encoding="utf-8")))
    found = [(str(path.relative_to(ROOT)), each) for path in told() for each in citations(path)]
    assert [each for each in found if each[1] not in titles] == []
    assert {Path(name).suffix for name, _ in found} >= {".py", ".java", ".md", ".ipynb"}


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("FORMAT.md sections 2, 3.1 and A.10. Of 5 files", ["2", "3.1", "A.10"]),
        ("see section 7 and annex B, or\n * annexes C and D.2", ["7", "B", "C", "D.2"]),
        ("[FORMAT.md annex A](../FORMAT.md#annex-a-routing), sections 5 to\n# 7", ["A", "5", "7"]),
        ("RFC 5 section, Spark 4.2, a section of 3", []),
        ("FORMAT.md 13.6, appendix C", ["13.6", "appendix C"]),
    ],
)
def test_citations_of_a_text(text, named, tmp_path):
    path = tmp_path / "text.md"
    path.write_text(text, encoding="utf-8")
    assert list(citations(path)) == named


def test_links_into_the_page_lead_to_a_heading():
    text = PAGE.read_text(encoding="utf-8")
    anchors = {re.sub(r"[^\w -]", "", title.lstrip("# ").lower()).strip().replace(" ", "-") for title, _, _ in parts(text)}
    found = [(path.name, each) for path in told() for each in re.findall(r"FORMAT\.md#([\w-]+)", path.read_text(encoding="utf-8"))]
    found += [(PAGE.name, each) for each in re.findall(r"\]\(#([\w-]+)\)", text)]
    assert len(found) > 50
    assert [each for each in found if each[1] not in anchors] == []


def test_checksums_hashes_and_order_of_the_examples():
    """Version files and checkpoints have the fields that they share first, in one order."""
    text = PAGE.read_text(encoding="utf-8")
    versions = re.findall(r'^(\{"format":1,"features".*\})\ncrc32c:([0-9a-f]{8})\n', text, re.MULTILINE)
    head, head_crc, segment, crc = re.findall(r"^(\{.*\})\t([0-9a-f]{8})\n(\[.*\])\t([0-9a-f]{8})\n", text, re.MULTILINE)[0]
    checked = [*versions, (head, head_crc), (head + segment, crc)]
    assert [f"{google_crc32c.value(line.encode()):08x}" for line, _ in checked] == [crc for _, crc in checked]
    assert f"`{head_crc}` is the" in text and f"`{crc}` the CRC" in text
    hashes = [hashlib.sha256(f"{line}\ncrc32c:{crc}\n".encode()).hexdigest() for line, crc in versions]
    assert all(f"Its hash is `{each}`" in text for each in hashes)
    begin, end = (json.loads(line) for line, _ in versions)
    assert (begin["previous"], end["previous"]) == (None, hashes[0])
    shared = ["format", "features", "topic", "topicId", "version", "time", "horizon", "boundary"]
    for fields in (begin, end, json.loads(head)):
        assert [name for name in fields if name != "deleted"][: len(shared)] == shared
