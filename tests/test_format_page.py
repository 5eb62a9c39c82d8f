"""docs/FORMAT.md: each part names its conformance class, sentences are short, and section numbers lead somewhere."""

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
OTHERS = {"streaming query", "server", "our own writer", "no program"}
LONGEST = 40
"""Words of a sentence."""
MOST_FOR_RECORD_READERS = 0.4
"""A share of the words of the page."""


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


def test_a_record_reader_needs_two_fifths_of_the_page():
    """All words above the first part count, too."""
    text = PAGE.read_text(encoding="utf-8")
    above = words(text[: text.index("\n## ")])
    needed = above + sum(words(body) for _, kind, body in parts(text) if kind == "record reader")
    assert 0.3 < needed / (above + sum(words(body) for *_, body in parts(text))) <= MOST_FOR_RECORD_READERS


def test_sections_that_are_named_exist():
    titles = re.findall(r"^##+ (?:Appendix )?(\d+(?:\.\d+)?|[A-Z])\b", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    sources = [PAGE, *(path for top in ("sparklog", "docs", "tests", "jvm-shim/src") for path in (ROOT / top).rglob("*") if path.is_file())]
    named = re.compile(r"(?:FORMAT\.md|\]\(FORMAT\.md\)),? (?:sections? |appendix )([\dA-Z.]+(?:(?:, | and | to |, and )[\d.]+)*)")
    unknown = []
    for path in sources:
        if path.suffix in {".py", ".java", ".md"}:
            text = re.sub(r"\s*\n\s*[*#]*\s*", " ", path.read_text(encoding="utf-8"))
            found = named.findall(text) + (re.findall(r"\b[Ss]ections? ([\d.]+(?:(?:, | and | to )[\d.]+)*)", text) if path == PAGE else [])
            for number in (number.rstrip(".") for each in found for number in re.split(r"[^\dA-Z.]+", each)):
                unknown += [f"{path.relative_to(ROOT)}: {number}"] if number and number not in titles else []
    assert unknown == []


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
