import re
from collections import Counter

import pytest

from sparklog import errors, options

DECLARED = options.declared()


def keys_that_count(scopes: set[str]) -> list[str]:
    return [key.lower() for option in DECLARED.options if scopes & set(option.scopes) for key in (option.key, *option.aliases)]


@pytest.mark.parametrize("scopes", [{"read", "batch", "stream"}, {"write", "topic"}], ids=["reading", "writing"])
def test_a_key_counts_once_on_a_side(scopes):
    assert [key for key, times in Counter(keys_that_count(scopes)).items() if times > 1] == []


@pytest.mark.parametrize("option", DECLARED.options, ids=lambda option: option.key)
class TestDeclaration:
    def test_is_complete(self, option):
        assert option.type in {"boolean", "int", "long", "choice", "string", "names", "regex", "json", "duration", "time", "pattern"}
        assert option.scopes
        assert set(option.scopes) <= {"read", "batch", "stream", "write", "topic"}
        assert option.text.endswith((".", ")"))
        assert (option.min is not None and option.max is not None) == (option.type in ("int", "long", "time"))
        assert bool(option.values) == (option.type == "choice")
        assert set(option.synonyms.values()) <= set(option.values)

    def test_has_a_default_that_is_valid(self, option):
        if option.default is not None:
            default = str(option.default).lower() if option.type == "boolean" else str(option.default)
            assert option.problem(default) is None
        if option.words:
            assert option.default in option.words
            assert option.stream.get("default", option.default) in option.stream.get("words", option.words)

    def test_fits_the_type_of_java(self, option):
        if option.type in ("int", "long"):
            assert option.max < 2 ** (31 if option.type == "int" else 63)

    def test_of_a_topic_has_a_default(self, option):
        assert "topic" not in option.scopes or option.default is not None

    def test_names_only_options_that_there_are(self, option):
        assert option.requires is None or option.requires in {other.key for other in DECLARED.options}


# The options of source and sink in the guide to Spark's Kafka connector.
OF_KAFKA = """
    assign subscribe subscribePattern kafka.bootstrap.servers startingTimestamp startingOffsetsByTimestamp startingOffsets endingTimestamp
    endingOffsetsByTimestamp endingOffsets failOnDataLoss kafkaConsumer.pollTimeoutMs fetchOffset.numRetries fetchOffset.retryIntervalMs
    maxOffsetsPerTrigger minOffsetsPerTrigger maxTriggerDelay minPartitions maxRecordsPerPartition groupIdPrefix kafka.group.id
    includeHeaders startingOffsetsByTimestampStrategy topic
"""


def test_the_page_for_those_who_come_from_kafka_has_all_of_its_options(repository):
    page = (repository / "docs" / "guide" / "from-kafka.md").read_text(encoding="utf-8")
    assert [key for key in OF_KAFKA.split() if f"\n| `{key}` |" not in page] == []


def test_what_is_given_instead_is_declared():
    for entry in DECLARED.warned:
        for named in re.findall("`([^`]+)`", entry.instead or ""):
            assert named in {option.key for option in DECLARED.options}, entry.key


def test_a_mistaken_key_is_not_a_key():
    mistaken = [word for option in DECLARED.options for word in option.mistaken]
    assert not set(mistaken) & set(keys_that_count({"read", "batch", "stream", "write", "topic"}))
    assert len(mistaken) == len(set(mistaken))


def test_of_the_ignored_the_more_special_come_first():
    keys = [entry.key.lower() for entry in DECLARED.warned]
    for number, key in enumerate(keys):
        assert not any(earlier.endswith("*") and key.startswith(earlier[:-1]) for earlier in keys[:number]), f"{key} is never found"


def test_what_is_ignored_does_not_count():
    """One key with Kafka's prefix is ours: an option that is declared comes before a pattern (`OptionsTest`)."""
    ignored = [entry.key.lower() for entry in (*DECLARED.warned, *DECLARED.silent)]
    counting = set(keys_that_count({"read", "batch", "stream", "write", "topic"})) - {"kafka.view"}
    assert "kafka.view" not in ignored
    for key in ignored:
        assert not [other for other in counting if other == key or (key.endswith("*") and other.startswith(key[:-1]))]


@pytest.mark.parametrize(
    ("key", "value", "fits"),
    [
        ("partitions", "1", True),
        ("partitions", "10000", True),
        ("partitions", "0", False),
        ("partitions", "10001", False),
        ("partitions", "8.0", False),
        ("partitions", "", False),
        ("compression.type", "ZSTD", True),
        ("compression.type", "uncompressed", True),
        ("compression.type", "brotli", False),
    ],
)
def test_a_value_is_checked(key, value, fits):
    assert (options.topic_option(key).problem(value) is None) == fits


def test_a_boolean_is_checked():
    option = next(option for option in DECLARED.options if option.type == "boolean")
    assert option.problem("True") is None
    assert option.problem("yes") == "it must be true or false"


def test_only_topics_have_topic_options():
    with pytest.raises(KeyError):
        options.topic_option("subscribe")


def test_the_reference_names_every_option_and_every_error(reference):
    pages = reference["generate_reference"]()
    for entry in (*DECLARED.options, *DECLARED.warned, *DECLARED.silent):
        assert f"`{entry.key}`" in pages["options.md"]
    for id in errors.declared():
        assert f"`PARTLOG_{id}`" in pages["errors.md"]
