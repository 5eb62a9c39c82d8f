"""Groups, generations and positions, in a table that deltalake writes."""

import datetime
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from random import Random

import pytest
from handmade import Topic, identity, records
from in_notebook import html
from owners import Own, add

import sparklog
from sparklog.groups import OffsetTable, rows
from sparklog.groups.commits import OffsetCommit
from sparklog.groups.table import owner


def places(table: OffsetTable, group: str = "g") -> dict[tuple[str, int], int]:
    return {(each.topic, each.partition): each.offset for each in table.positions(group)}


def test_a_group_commits_positions(table, topic):
    before = datetime.datetime.now(datetime.timezone.utc)
    own = Own(table, "g")
    assert own.generation == 1
    assert table.positions("g") == []
    own.to({"t": {0: 5, 1: 2}}, query_id="q", epoch=3, metadata="m")
    own.to({"t": {0: 7}})
    assert places(table) == {("t", 0): 7, ("t", 1): 2}
    second = table.positions("g", "t")[1]
    assert (second.topic_id, second.query_id, second.epoch, second.metadata) == (identity("t"), "q", 3, "m")
    assert before <= second.committed_at <= datetime.datetime.now(datetime.timezone.utc)
    assert table.positions("g", "u") == []
    assert [each.offset for each in table.history("g")] == [5, 2, 7]
    assert table.groups() == ["g"]


def test_another_process_sees_the_same(table, topic):
    Own(table, "g", {"t": {0: 5, 1: 2}})
    other = OffsetTable(topic.root, f"file:{table.path}")
    assert other.positions("g") == table.positions("g")
    add(other, "g", 1, {"t": {0: 6}})
    assert places(table) == {("t", 0): 6, ("t", 1): 2}


def test_a_generation_begins_with_the_positions_of_the_one_before(table):
    Own(table, "g", {"t": {0: 5, 1: 2}})
    assert Own(table, "g").generation == 2
    assert {(each.generation, each.partition, each.offset) for each in table.positions("g")} == {(2, 0, 5), (2, 1, 2)}


def test_an_owner_goes_on_in_a_topic_that_was_created_again(table, topic):
    own = Own(table, "g", {"t": {0: 9, 1: 2}})
    topic.delete()
    topic.append(records(3))
    own.to({"t": {0: 1}})
    assert places(table) == {("t", 0): 1}, "the position in the other partition was of the topic before"
    with pytest.raises(sparklog.SparklogError, match="PARTLOG_OFFSETS_OUT_OF_RANGE"):
        own.to({"t": {0: 4}})
    assert places(table) == {("t", 0): 1}


def test_an_owner_whose_generation_is_over_moves_nothing(table):
    own = Own(table, "g", {"t": {0: 5}})
    Own(table, "g")
    with pytest.raises(
        sparklog.GenerationFencedError,
        match=r"PARTLOG_GENERATION_FENCED.* 1 of group g .* newest generation is 2.* partition_assignment_strategy='exclusive'",
    ):
        own.to({"t": {0: 20}})
    for call in (own.require, own.end):
        with pytest.raises(sparklog.GenerationFencedError):
            call()
    assert places(table) == {("t", 0): 5}


def test_a_commit_beside_the_claim_of_the_next_generation_is_not_lost(table, topic):
    """The earlier owner commits after the next one read its positions and before that claims: it is told that it did."""
    earlier, engine = Own(OffsetTable(topic.root, table.path), "g", {"t": {0: 5, 1: 1}}), table.lake
    append = engine.append

    def late(*commit):
        engine.append = append
        earlier.to({"t": {0: 9}})
        return append(*commit)

    engine.append = late
    assert Own(table, "g").generation == 2
    assert places(table) == {("t", 0): 9, ("t", 1): 1}


def test_a_commit_beside_the_claim_of_the_next_generation_is_refused(table, topic):
    """The next owner claims after the earlier one saw that its generation is the newest, and before that commits."""
    own = Own(table, "g", {"t": {0: 5, 1: 1}})
    rival, engine = OffsetTable(topic.root, table.path), table.lake
    append = engine.append

    def late(*commit):
        engine.append = append
        assert Own(rival, "g").generation == 2
        return append(*commit)

    engine.append = late
    with pytest.raises(sparklog.GenerationFencedError, match="newest generation is 2"):
        own.to({"t": {0: 9}})
    assert Own(rival, "g").generation == 3
    assert places(table) == {("t", 0): 5, ("t", 1): 1}
    assert [each.offset for each in table.history("g") if each.offset == 9] == []


def test_commits_of_a_group_are_numbered(table, topic):
    rival = OffsetTable(topic.root, table.path)
    generation = Own(table, "g").generation
    for offset, each in enumerate([table, rival, rival, table], 1):
        add(each, "g", generation, {"t": {0: offset}})
    assert Own(table, "g").generation == 2
    assert [each.seq for each in table.history("g")] == [2, 3, 4, 5, 6]
    assert Own(rival, "h").generation == 1


def test_rows_that_were_deleted_by_hand_do_not_give_their_generation_to_another_owner(table):
    import deltalake

    own = Own(table, "g", {"t": {0: 5}})
    deltalake.DeltaTable(table.path).delete("true")
    Own(table, "g")
    with pytest.raises(sparklog.GenerationFencedError):
        own.to({"t": {0: 9}})
    assert places(table) == {}


def test_of_two_claims_of_a_generation_one_wins(table, topic):
    Own(table, "g")
    rival, engine = OffsetTable(topic.root, table.path), table.lake
    append, numbers = engine.append, []

    rivals = []

    def beaten(rows, group, number, *more):
        if not numbers:
            rivals.append(Own(rival, "g"))
        numbers.append(number)
        return append(rows, group, number, *more)

    engine.append = beaten
    assert Own(table, "g").generation == 3
    assert (numbers, [each.generation for each in rivals]) == ([2, 3], [2])
    with pytest.raises(sparklog.GenerationFencedError):
        rivals[0].to({"t": {0: 1}})


def test_an_owner_goes_back_only_while_its_generation_is_the_newest(table, topic):
    """Another owner takes the group just before the claim: what goes back does not take it from that one."""
    own = Own(table, "g", {"t": {0: 5}})
    own.to({"t": {0: 3}})
    assert own.generation == 2
    assert places(table) == {("t", 0): 3}
    rival, engine = OffsetTable(topic.root, table.path), table.lake
    append = engine.append

    def beaten(*commit):
        engine.append = append
        assert Own(rival, "g", {"t": {0: 9}}).generation == 3
        return append(*commit)

    engine.append = beaten
    for offset in (2, 1):  # refused by the table, and by a look before
        with pytest.raises(sparklog.GenerationFencedError, match="newest generation is 3"):
            own.to({"t": {0: offset}})
    with pytest.raises(sparklog.GenerationFencedError):
        own.to({"t": {0: 3}})  # which moves nothing
    assert places(table) == {("t", 0): 9}


def test_threads_share_a_table(table):
    """Each claim is another generation, though all threads look at the same state of the table."""
    with ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(lambda name: Own(table, name).generation, ["g"] * 24)) == list(range(1, 25))


def test_a_heartbeat_repeats_the_position(table, monkeypatch):
    monkeypatch.setattr(owner, "_HEARTBEAT_S", 0)
    own = Own(table, "g")
    own.beat()
    assert (table.positions("g"), table.group("g").summary.running) == ([], True)
    own.to({"t": {0: 5}})
    first = table.positions("g")[0].committed_at
    own.beat()
    (now,) = table.positions("g")
    assert now.offset == 5 and now.committed_at > first


def test_a_group_has_any_name(table):
    names = ["it's", 'a "quoted" \\ one', "'; DROP TABLE offsets --", "%_*?/..", "\n\t", "Gruppe 🦀", "x" * 255, " "]
    for number, name in enumerate(names):
        Own(table, name, {"t": {0: number}})
    assert table.groups() == sorted(names)
    for number, name in enumerate(names):
        assert places(table, name) == {("t", 0): number}


@pytest.mark.parametrize("name", ["", "x" * 256, "a\0b", "\ud800"])
def test_a_name_that_no_group_can_have(table, name):
    with pytest.raises(sparklog.CallError, match=r"PARTLOG_OPTION_VALUE.*`group`"):
        Own(table, name)
    with pytest.raises(sparklog.CallError, match=r"PARTLOG_OPTION_VALUE.*`group`"):
        table.positions(name)


def test_a_group_that_does_not_exist(table):
    assert not table.exists()
    with pytest.raises(sparklog.CallError, match=r"PARTLOG_OFFSETS_TABLE_NOT_FOUND.* An offset table was asked for at .*offsets, "):
        table.positions("g")
    Own(table, "h")
    assert table.exists()
    for call in (table.positions, table.history, table.starting_offsets):
        with pytest.raises(sparklog.CallError, match=r"Existing groups: h."):
            call("g")


def test_starting_offsets_name_every_partition(table):
    Own(table, "g", {"t": {1: 4}})
    assert json.loads(table.starting_offsets("g")) == {"t": {"0": -2, "1": 4}}


def test_starting_offsets_of_one_topic(table, topic):
    Topic(topic.root, "u").append(records(4))
    Own(table, "g", {"t": {1: 4}, "u": {0: 3}})
    assert json.loads(table.starting_offsets("g", "u")) == json.loads(table.starting_offsets("g", topic="u")) == {"u": {"0": 3}}
    topic.delete()
    assert json.loads(table.starting_offsets("g", "u")) == {"u": {"0": 3}}, "what happened to the other topic does not matter"
    assert table.starting_offsets("g", "v") == "{}"


@pytest.mark.parametrize(
    ("commit", "said"),
    [
        (("t", 0, -1), "offset -1 of topic t, partition 0 under .*root, which holds offsets 0 to 25"),
        (("t", 1, 11), "offset 11 of topic t, partition 1 under .*root, which holds offsets 0 to 10"),
        (("t", 2, 0), "partition 2 of topic t .* partitions 0 to 1"),
        (("u", 0, 0), "Topic u does not exist"),
        (("../t", 0, 0), "not a legal topic name"),
    ],
)
def test_a_position_outside_of_the_log(table, commit, said):
    topic, partition, offset = commit
    own, id = Own(table, "g"), identity("t")
    with pytest.raises(sparklog.CallError, match=said):
        own.commit([OffsetCommit("t", 0, id, 3), OffsetCommit(topic, partition, id, offset)])
    assert table.positions("g") == []


def test_a_topic_that_was_created_again(table, topic):
    generation = Own(table, "g", {"t": {0: 5, 1: 2}}).generation
    topic.delete()
    assert {each.note for each in table.positions("g")} == {"the topic does not exist"}
    topic.append(records(3))
    said = f"PARTLOG_GROUP_OF_OTHER_TOPIC.*topic t .*{identity('t')} and is now {topic.versions[-1]['topicId']}"
    for call in (lambda: table.starting_offsets("g"), lambda: add(table, "g", generation, {"t": {0: 1}})):
        with pytest.raises(sparklog.CallError, match=said):
            call()
    assert {each.note for each in table.positions("g")} == {f"the topic was created again, with the id {topic.versions[-1]['topicId']}"}
    assert places(table) == {("t", 0): 5, ("t", 1): 2}


def test_a_delta_table_of_another_schema(tmp_path, topic):
    import deltalake
    import pyarrow as pa

    deltalake.write_deltalake(tmp_path / "other", pa.table({"group": [1], "offset": ["x"], "more": [1.5]}))
    table = OffsetTable(topic.root, tmp_path / "other")
    for call in (lambda: table.positions("g"), lambda: Own(table, "g"), table.groups):
        said = "group is long, not string, offset is string, not long; missing: generation, topic, .*; unknown: more"
        with pytest.raises(sparklog.CallError, match=f"PARTLOG_OFFSETS_SCHEMA.*{said}"):
            call()
    assert deltalake.DeltaTable(tmp_path / "other").version() == 0


def test_a_table_without_a_root(table):
    Own(table, "g", {"t": {0: 5}})
    alone = OffsetTable(None, table.path)
    assert places(alone) == {("t", 0): 5}
    with pytest.raises(sparklog.CallError, match="PARTLOG_OFFSETS_ROOT"):
        alone.starting_offsets("g")


def test_a_table_that_cannot_be_read(table):
    from pathlib import Path

    Own(table, "g")
    commit = Path(table.path, "_delta_log", f"{1:020d}.json")
    commit.write_text(commit.read_text()[:-40])
    with pytest.raises(sparklog.RetryError, match="PARTLOG_OFFSETS_TABLE"):
        OffsetTable(None, table.path).groups()


def test_without_deltalake_the_error_says_what_to_install(tmp_path):
    script = (
        "import sys; sys.modules['deltalake'] = None\n"
        "import sparklog\n"
        f"try: sparklog.groups.OffsetTable(None, {str(tmp_path)!r})\n"
        "except sparklog.CallError as error: print(error)"
    )
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert "PARTLOG_OFFSETS_EXTRA" in said and "pip install 'sparklog[offsets]'" in said


def test_positions_are_shown_as_a_table(table):
    Own(table, "g").to({"t": {0: 5, 1: 2}}, metadata="<b>\x1b")
    lines = repr(table.positions("g")).splitlines()
    assert (lines[0], len(lines)) == ("Group g", 5)
    assert lines[3].split()[:4] == ["t", "0", "5", "1"]
    assert "&lt;b&gt;\\x1b" in html(table.positions("g"))


@pytest.mark.parametrize("seed", range(6))
def test_what_is_remembered_of_a_group_is_what_the_table_says(table, topic, seed):
    """After each commit of its own, beside those of another process, an owner knows the group without reading its rows."""
    random, other = Random(seed), OffsetTable(topic.root, table.path)
    print("seed", seed)
    generation = Own(table, "g").generation
    for _ in range(12):
        to = {"t": {random.randrange(2): random.randrange(10)}}
        call = random.choice(["append", "append", "heartbeat", "begin", "move", "reset", "end", "elsewhere"])
        if call == "begin":
            generation = Own(table, "g").generation
        elif call == "move":
            generation = Own(table, "g", to).generation
        elif call == "reset":
            table.reset("g", to, dry_run=False, force=True)
            generation = table.generations.group("g").generation
        elif call == "end":
            table.generations.end("g", generation)
        elif call == "elsewhere":
            add(other, "g", generation, to)
            continue
        elif call == "heartbeat":
            table.generations.add("g", generation, lambda _, at=generation: [rows.note("g", at, rows.RUNNING)])
        else:
            add(table, "g", generation, to)
        said = other.generations.group("g")
        assert table.generations.remembered("g", generation) == said.at, call
        assert table.generations.remembered("g", generation + 1) == {}


def test_a_group_that_begins_between_two_looks_is_found(table, topic, monkeypatch):
    """GROUP_NOT_FOUND said that it does not exist, and listed it."""
    look = table.generations.group

    def looked(name):
        found = look(name)
        if not found.exists:
            Own(OffsetTable(topic.root, table.path), name)
        return found

    monkeypatch.setattr(table.generations, "group", looked)
    assert table.positions("g") == []
