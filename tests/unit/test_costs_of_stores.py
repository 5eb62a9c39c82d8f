"""The requests that questions take at a store over a network: how many, and how many at once."""

import json
from collections import Counter

import pytest
from handmade import Topic, records
from owners import Own
from typer.testing import CliRunner
from unit.far_store import FarStore

from sparklog import CallError, Log, RetryError
from sparklog.cli.app import app
from sparklog.groups import OffsetTable
from sparklog.log.summary import Summary
from sparklog.ondisk.root import Root
from sparklog.ondisk.topic_log import TopicLog
from sparklog.ondisk.topic_logs import TopicLogs
from sparklog.prometheus import Exporter
from sparklog.store.remote import RemoteStore
from sparklog.verify import verify

TOPICS = 30


@pytest.fixture
def many(tmp_path) -> FarStore:
    """Topics of one version each, and a topic that was deleted."""
    for number in range(TOPICS):
        Topic(tmp_path, f"t{number:02}", partitions=2).append(records(3))
    deleted = Topic(tmp_path, "deleted")
    deleted.append(records(1))
    deleted.delete()
    return FarStore(str(tmp_path), 0.01)


def test_an_answer_that_is_no_listing_is_not_an_absent_root(tmp_path):
    """A page of a proxy looks like a listing without names. The note of a writer shows that the root is there."""

    class Nothing(FarStore):
        has_empty_folders = False

        def look(self, name):
            return super().look(name) if name.endswith(".json") else None

    root = Root(Nothing(str(tmp_path)))
    with pytest.raises(CallError, match="ROOT_NOT_FOUND"):
        root.require()
    (tmp_path / "_probe").mkdir()
    (tmp_path / "_probe" / "passed.json").touch()
    with pytest.raises(RetryError, match="the answer was not a listing"):
        root.require()


def asked(store: FarStore, ask) -> tuple[object, Counter]:
    store.asked.clear()
    return ask(), store.asked.counts()


def test_whether_a_topic_is_there_takes_one_listing(many):
    log = Log(Root(many))
    for name, there in (("t00", True), ("none", False), ("deleted", False)):
        assert asked(many, lambda name=name: name in log) == (there, Counter(LIST=1)), name
    for name in ("../t00", "", 3, None):
        assert asked(many, lambda name=name: name in log) == (False, Counter())


def test_names_take_a_listing_for_each_topic_at_once(many):
    log = Log(Root(many))
    names, counts = asked(many, log.topics)
    assert (names, counts) == ([f"t{number:02}" for number in range(TOPICS)], Counter(LIST=TOPICS + 2))
    assert 1 < many.asked.most_at_once <= 16
    assert many.asked.rows() < TOPICS


def test_summaries_take_four_requests_for_a_topic_of_one_version(many):
    log = Log(Root(many))
    found, counts = asked(many, lambda: list(log.summaries()))
    assert [(each.topic, each.offsets) for each in found] == [(f"t{number:02}", 3) for number in range(TOPICS)]
    assert counts == Counter(LIST=2 + 2 * TOPICS, HEAD=TOPICS, GET=TOPICS), "one for the root, and one for the deleted topic"
    assert 1 < many.asked.most_at_once <= 16
    assert many.asked.rows() < 2 * TOPICS
    assert "30 topics" in repr(log)


def test_summaries_of_known_topics_take_two_looks(many):
    logs = TopicLogs(Root(many))
    few = [f"t{number:02}" for number in range(8)]
    of = {name: logs.log(name) for name in few}
    before = [Summary.of(each) for each in of.values()]
    again, counts = asked(many, lambda: [Summary.of(each) for each in of.values()])
    assert (again, counts) == (before, Counter(HEAD=2 * len(few)))


def test_metrics_ask_topics_at_once(many):
    text, counts = asked(many, Exporter(Root(many)).text)
    assert text.count(b"partlog_topic_partitions{") == TOPICS
    assert (counts["HEAD"], counts["GET"]) == (TOPICS + 1, TOPICS), "one for the root"
    assert many.asked.rows() < 3 * TOPICS


@pytest.mark.parametrize("checkpoint", [False, True])
def test_a_topic_of_many_versions_is_opened_at_once(tmp_path, checkpoint):
    topic = Topic(tmp_path)
    for number in range(101):
        topic.append(records(1))
        if checkpoint and number == 0:
            topic.checkpoint()
    store = FarStore(str(tmp_path), 0.01)
    log = TopicLog(Root(store), "t")
    state, counts = asked(store, log.newest)
    assert (state.version, state.ends[0]) == (100, 101)
    if checkpoint:
        assert counts == Counter(LIST=1, HEAD=104, GET=102), "the checkpoint, each version, the version after them, and the first again"
    else:
        assert counts == Counter(LIST=2, HEAD=101, GET=101), "pyarrow asks for the length of a file before it reads"
    assert 1 < store.asked.most_at_once <= 16
    assert store.asked.rows() < 150
    state, counts = asked(store, log.newest)
    assert (state.version, counts) == (100, Counter(HEAD=2))


def test_a_checkpoint_and_the_file_of_its_version_are_read_at_once(tmp_path):
    topic = Topic(tmp_path)
    topic.append(records(1))
    topic.checkpoint()
    store = FarStore(str(tmp_path), 0.05)
    state, counts = asked(store, TopicLog(Root(store), "t").newest)
    assert (state.version, counts) == (0, Counter(LIST=1, HEAD=4, GET=2))
    assert store.asked.most_at_once == 2


@pytest.mark.parametrize("ask", [lambda log: log["t"], lambda log: log["t"].commits(), lambda log: log.verify()])
def test_the_failure_of_one_request_names_its_file(tmp_path, monkeypatch, ask):
    topic = Topic(tmp_path)
    for _ in range(40):
        topic.append(records(1))
    store = FarStore(str(tmp_path), 0.001)
    ask(Log(Root(store)))
    opened = FarStore.opened

    def fails(store: FarStore, name: str):
        if name.endswith("17.json"):
            raise OSError("access is denied")
        return opened(store, name)

    monkeypatch.setattr(FarStore, "opened", fails)
    try:
        report = ask(Log(Root(store)))
        assert report.findings == []
        found = [(each.problem, each.file) for each in report.unread]
    except RetryError as error:
        found = [(str(error.parameters["cause"]), error.parameters["file"].removeprefix(f"{store.root}/"))]
    assert found == [("access is denied", "_partlog/t/00000000000000000017.json")]


def test_versions_that_follow_a_known_one_are_read_at_once(tmp_path):
    topic = Topic(tmp_path)
    topic.append(records(1))
    store = FarStore(str(tmp_path), 0.01)
    log = TopicLog(Root(store), "t")
    log.newest()
    for new, absent in ((1, 1), (2, 2), (60, 16)):
        for _ in range(new):
            topic.append(records(1))
        state, counts = asked(store, log.newest)
        assert state.version == len(topic.versions) - 1
        assert counts["GET"] == new
        assert counts["HEAD"] <= new + absent + 1, "each version, absent versions after them, and the known version again"
    assert store.asked.most_at_once > 1


@pytest.mark.parametrize("kind", ["checkpoint", "version"])
def test_a_commit_while_a_topic_is_opened_is_seen_in_the_last_listing(tmp_path, kind):
    """The last listing takes the place of a look at the version after the last one."""
    topic = Topic(tmp_path)
    topic.append(records(1))
    store = FarStore(str(tmp_path))
    listed, names = [], store.names

    def with_a_commit(folder: str) -> list[str]:
        listed.append(folder)
        if len(listed) == 2:
            topic.append(records(1))
            if kind == "checkpoint":
                topic.checkpoint()
        return names(folder)

    store.names = with_a_commit
    assert TopicLog(Root(store), "t").newest().version == 1
    assert len(listed) == 3


def test_a_version_zero_that_a_slow_writer_put_is_not_taken_for_the_newest(tmp_path):
    """Versions were committed and deleted between the first listing and the read of version 0. The last listing has their checkpoint."""
    topic = Topic(tmp_path)
    topic.append(records(1))
    late = topic.version_file(0).read_bytes()
    store = FarStore(str(tmp_path))
    listed, names = [], store.names

    def with_a_clean_up(folder: str) -> list[str]:
        found = names(folder)
        if not listed:
            for _ in range(5):
                topic.append(records(1))
            topic.checkpoint()
            for version in range(5):
                topic.version_file(version).unlink()
            topic.version_file(0).write_bytes(late)
        listed.append(folder)
        return found

    store.names = with_a_clean_up
    assert TopicLog(Root(store), "t").newest().version == 5


def test_describe_asks_topics_at_once(many, monkeypatch):
    root = Root(many)
    monkeypatch.setattr("sparklog.arguments.named_root", lambda given, filesystem=None: root)
    shown, counts = asked(many, lambda: CliRunner().invoke(app, ["describe", "far", "--json"]))
    assert [each["records"] for each in json.loads(shown.stdout)] == [3] * TOPICS
    assert counts["GET"] == 2 * TOPICS, "the version, also for the files that wait for their deletion"
    assert 1 < many.asked.most_at_once <= 16
    assert many.asked.rows() < sum(counts.values()) / 2


def test_the_commits_of_a_topic_are_read_at_once(tmp_path):
    topic = Topic(tmp_path)
    for _ in range(40):
        topic.append(records(1))
    store = FarStore(str(tmp_path), 0.01)
    log = TopicLog(Root(store), "t")
    log.newest()
    for limit, files in ((None, 40), (5, 5), (1, 1)):
        found, counts = asked(store, lambda limit=limit: log.history(limit))
        assert [each.version for each in found] == list(range(40 - files, 40))
        assert counts == Counter(HEAD=2 + files, GET=files)
    assert len(asked(store, log.history)[0]) == 40
    assert 1 < store.asked.most_at_once <= 16
    assert store.asked.rows() < 60


def test_the_topics_of_groups_are_looked_at_once(many, tmp_path):
    table = OffsetTable(Root(many), tmp_path.with_name(f"{tmp_path.name}-offsets"))
    Own(table, "g", {f"t{number:02}": {0: 1, 1: 0} for number in range(TOPICS)})
    again = OffsetTable(Root(many), table.path)
    group, counts = asked(many, lambda: again.group("g"))
    assert counts == Counter(LIST=2 * TOPICS, HEAD=TOPICS, GET=TOPICS)
    assert 1 < many.asked.most_at_once <= 16
    assert many.asked.rows() < 2 * TOPICS
    answers, counts = asked(many, lambda: (group.summary.lag, len(group.positions()), sum(each.records for each in group.unread())))
    assert answers == (2 * TOPICS, 2 * TOPICS, 2 * TOPICS)
    assert counts == Counter()


# ---- verify


@pytest.fixture
def segments(tmp_path) -> FarStore:
    """A topic of 60 versions with a data file each."""
    topic = Topic(tmp_path)
    for number in range(60):
        topic.append(records(3, f"v{number}"))
    return FarStore(str(tmp_path), 0.01)


@pytest.mark.parametrize("quick", [True, False])
def test_verify_lists_all_data_folders_at_once(segments, quick):
    log = Log(Root(segments))
    report, counts = asked(segments, lambda: log.verify(quick=quick))
    assert (report.findings, report.checked.segments, report.checked.records) == ([], 60, 0 if quick else 180)
    of_files = Counter(request.call for request in segments.asked.requests if request.name.endswith(".log"))
    assert of_files == (Counter() if quick else Counter(HEAD=60, GET=60))
    assert Counter(request.name for request in segments.asked.requests if request.call == "LIST") == {
        "": 2,
        "_partlog": 1,
        "_partlog/t": 1,
        "_partlog/t/data": 1,
    }
    assert counts["GET"] == 60 + of_files["GET"], "the version files"
    assert segments.asked.rows() < 80 + of_files["GET"]


@pytest.mark.parametrize("quick", [True, False])
def test_verify_finds_by_a_listing_what_it_finds_by_a_look(segments, quick):
    files = sorted((path for path in segments.folder.rglob("*.log")), key=lambda path: path.parent.name)
    files[3].unlink()
    files[5].write_bytes(files[5].read_bytes()[:-1])
    files[9].unlink()
    files[9].mkdir()
    (files[9] / "within").touch()
    here, there = (verify(root, quick=quick, settles_s=()).findings for root in (Root.at(str(segments.folder)), Root(segments)))
    assert there == here
    assert Counter(each.condition for each in there)["SEGMENT_MISSING"] == 1
    assert "SEGMENT_CORRUPT" in {each.condition for each in there}


@pytest.mark.parametrize("quick", [True, False])
def test_verify_names_the_folder_that_cannot_be_listed(segments, quick, monkeypatch):
    bad = sorted(folder.name for folder in (segments.folder / "_partlog" / "t" / "data").iterdir())[4]
    entries = FarStore.entries

    def fails(store: FarStore, folder: str):
        if folder.endswith(bad):
            raise OSError("access is denied")
        return entries(store, folder)

    monkeypatch.setattr(FarStore, "entries", fails)
    monkeypatch.setattr(FarStore, "tree", RemoteStore.tree)
    report = verify(Root(segments), quick=quick, settles_s=())
    assert report.findings == []
    assert [(each.what, each.file) for each in report.unread] == [("folder", f"_partlog/t/data/{bad}")]
