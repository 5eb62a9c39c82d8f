"""The words of pages: those of the field, where Kafka, Delta or Spark have one."""

import re

import test_tidy

FORMER_WORDS = {
    "heartbeat": r"signs? of life",
    "server": r"doors?",
    "poll, refresh or stat": r"(?:an?|each|every|one|two|no|several|another|more|many|between) looks?",
    "assigned partition, or weight": r"(?:its|their|of|these|those|no|all|each|new|the) shares?",
    "maintenance": r"upkeep",
    "event of a group, or file of a trial": r"notes?",
    "where a group is stored": r"(?<!;)homes?(?! directory)",
    "remote store": r"far (?:from the )?(?:stores?|roots?)",
    "bytes": r"octets?",
}
"""By the field's word, the words that the project used before. The names of fields, settings and packages keep them, in backticks."""
KEPT_IN_THE_FORMAT = {"the share", "the shares", "its share", "note"}
"""FORMAT.md has them for the fields that it defines: `placement.shares`, and the note of a server's trial."""


def test_pages_have_the_words_of_the_field():
    former = {word: re.compile(rf"\b{pattern}\b", re.IGNORECASE) for word, pattern in FORMER_WORDS.items()}
    found = [
        f"{path.relative_to(test_tidy.ROOT)}: {hit[0]}: write {word}"
        for path in test_tidy.sources()
        if test_tidy.kind_of(path) == "pages"
        for text in test_tidy.texts(path)
        for word, pattern in former.items()
        for hit in pattern.finditer(" ".join(text.split()))
        if path.name != "FORMAT.md" or hit[0].lower() not in KEPT_IN_THE_FORMAT
    ]
    assert found == []
