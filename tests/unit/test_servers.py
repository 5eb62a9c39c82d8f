"""Servers of a root by their heartbeats, which are made by hand."""

import json
from pathlib import Path

import heartbeats
import pytest
from handmade import sample

from sparklog import SparklogError
from sparklog.ondisk.root import Root
from sparklog.ondisk.servers import ConnectedClient, Listener, ServerLooks, Servers
from sparklog.store.local import LocalStore
from sparklog.store.store import Entry

LONG_MS = 600_000


@pytest.fixture
def root(tmp_path: Path) -> Path:
    sample(tmp_path / "root")
    return tmp_path / "root"


def look(root: Path) -> Servers:
    return ServerLooks(Root.at(str(root))).look()


def alive(looks: ServerLooks) -> list[int]:
    """The numbers of the servers that are alive."""
    return [each.heartbeat.node for each in looks.look().shown if each.is_alive]


def test_a_server_tells_its_listeners_and_its_clients(root):
    assert look(root) == Servers([], 0, 0)
    file = heartbeats.put(root, "a", 3, heartbeats.content(others=4))
    found = look(root)
    [server] = found.shown
    assert (found.more, found.unreadable, server.is_alive) == (0, 0, True)
    assert server.written == round(file.stat().st_mtime * 1_000)
    heartbeat = server.heartbeat
    assert (heartbeat.node, heartbeat.session_ms, heartbeat.since, heartbeat.program, heartbeat.others) == (
        7,
        9_000,
        1_700_000_000_000,
        "sparklog 0.1.0",
        4,
    )
    assert heartbeat.listeners == (Listener("PLAINTEXT", "127.0.0.1", 9092, "PLAINTEXT on box"),)
    assert heartbeat.clients == (ConnectedClient("PLAINTEXT", "till", "librdkafka 2.16", "10.0.0.7", 2),)
    heartbeats.put(root, "a", 4, heartbeats.written(heartbeats.content(format=2, others=4, rules={})) + b"more of a later format")
    assert look(root).shown[0].heartbeat == heartbeat


def test_a_heartbeat_may_lack_what_is_for_people(root):
    said = {name: value for name, value in heartbeats.content().items() if name in ("format", "node", "session", "listeners")}
    heartbeats.put(root, "a", 0, said | {"later": [{}]})
    [server] = look(root).shown
    assert server.is_alive
    assert server.heartbeat[3:] == (None, "", (), 0)


def test_files_of_other_names_are_not_looked_at(root):
    heartbeat = heartbeats.put(root, "a", 2, heartbeats.content())
    for name in (
        "cluster.json",
        "x.json",
        heartbeat.name.replace("-0", "-"),
        heartbeat.name + ".tmp",
        f"{'A' * 22}-{1:020d}.json",
        heartbeat.name.upper(),
    ):
        (heartbeat.parent / name).write_text("{}")
    found = look(root)
    assert (len(found.shown), found.more, found.unreadable) == (1, 0, 0)


def test_a_server_is_alive_for_a_session_after_its_heartbeat(root):
    looks = ServerLooks(Root.at(str(root)), iter((0, 8.9, 9.1, 17, 25.9, 26.1)).__next__)
    heartbeats.put(root, "a", 1, heartbeats.content(), age_s=-5)  # the clock of the place is ahead, so the age alone would not do
    assert [alive(looks) for _ in range(3)] == [[7], [7], []]
    heartbeats.put(root, "a", 2, heartbeats.content(), age_s=-5)
    assert [alive(looks) for _ in range(3)] == [[7], [7], []]


def test_a_look_that_is_the_first_compares_clocks(root):
    for node, age_s in enumerate((500, 700, -700, -500)):
        heartbeats.put(root, f"s{node}", 1, heartbeats.content(node=node, session=LONG_MS), age_s)
    assert sorted(alive(ServerLooks(Root.at(str(root))))) == [0, 3]


def test_a_server_with_a_wrong_clock_is_alive_after_its_next_heartbeat(root):
    looks = ServerLooks(Root.at(str(root)), iter((0, 5, 10, 15)).__next__)
    for number, expected in ((1, []), (2, [7]), (3, [7])):
        heartbeats.put(root, "a", number, heartbeats.content(), age_s=100_000)
        assert alive(looks) == expected
    assert alive(looks) == [7]


def test_a_change_since_a_look_that_is_long_ago_proves_nothing(root):
    looks = ServerLooks(Root.at(str(root)), iter((0, 100, 105)).__next__)
    for number, expected in ((1, []), (5, []), (6, [7])):
        heartbeats.put(root, "a", number, heartbeats.content(), age_s=100_000)
        assert alive(looks) == expected


def test_a_heartbeat_that_is_replaced_before_it_is_read_is_looked_for_again(root, monkeypatch):
    heartbeats.put(root, "a", 1, heartbeats.content())
    listed = LocalStore.entries
    numbers = iter((2, 3))

    def entries(store: LocalStore, folder: str) -> list[Entry]:
        found = listed(store, folder)
        if folder == "_servers" and (number := next(numbers, None)):
            heartbeats.put(root, "a", number, heartbeats.content())
        return found

    monkeypatch.setattr(LocalStore, "entries", entries)
    assert len(look(root).shown) == 1
    assert next(numbers, None) is None


def test_a_server_that_writes_its_next_heartbeat_is_shown_by_the_one_before(root):
    looks = ServerLooks(Root.at(str(root)), iter((0, 5, 8, 10, 15)).__next__)
    heartbeats.put(root, "a", 1, heartbeats.content())
    assert alive(looks) == [7]
    file = heartbeats.put(root, "a", 2, b"", keep=True)
    assert (alive(looks), looks.look().unreadable) == ([7], 0)
    assert alive(looks) == []  # A server that stops in the middle of a write is silent after its session.
    file.write_bytes(heartbeats.written(heartbeats.content()))
    assert alive(looks) == [7]


def test_a_server_that_makes_its_next_heartbeat_while_the_one_before_is_read_is_looked_for_again(root, monkeypatch):
    earlier = heartbeats.put(root, "a", 1, heartbeats.content())
    newest = heartbeats.put(root, "a", 2, b"", keep=True)
    read = LocalStore.read

    def reads(store: LocalStore, name: str, *most: int) -> bytes:
        content = read(store, name, *most)
        if name.endswith(newest.name):
            earlier.unlink(missing_ok=True)
            newest.write_bytes(heartbeats.written(heartbeats.content()))
        return content

    monkeypatch.setattr(LocalStore, "read", reads)
    found = look(root)
    assert (len(found.shown), found.unreadable) == (1, 0)


def test_a_heartbeat_after_one_that_cannot_be_read_is_a_change(root):
    looks = ServerLooks(Root.at(str(root)), iter((0, 3, 6)).__next__)
    for number, said, expected in ((1, heartbeats.content(), []), (2, b"", []), (3, heartbeats.content(), [7])):
        heartbeats.put(root, "a", number, said, age_s=100_000)
        assert alive(looks) == expected


def test_a_server_that_ends_meanwhile_is_not_shown(root, monkeypatch):
    file = heartbeats.put(root, "a", 1, heartbeats.content())
    found = LocalStore(str(root)).entries("_servers")
    file.unlink()
    monkeypatch.setattr(LocalStore, "entries", lambda *_: found)
    assert look(root) == Servers([], 0, 0)


def test_fifty_servers_are_shown_and_others_counted(root):
    for number in range(60):
        heartbeats.put(
            root, f"s{number}", 1, heartbeats.content(node=number, session=LONG_MS), age_s=number + (0 if number < 9 else 10_000)
        )
    found = look(root)
    assert sorted(each.heartbeat.node for each in found.shown) == list(range(50))
    assert (found.more, found.unreadable) == (10, 0)
    assert [each.is_alive for each in found.shown] == [True] * 9 + [False] * 41


WRONG = {
    "nothing": b"",
    "no checksum": json.dumps(heartbeats.content()).encode(),
    "another checksum": heartbeats.written(heartbeats.content()).replace(b"till", b"tilt"),
    "a file that is not yet whole": heartbeats.written(heartbeats.content())[:-1],
    "no JSON": heartbeats.written(b"{"),
    "another encoding": heartbeats.written('{"node": "é"}'.encode("latin-1")),
    "a list": heartbeats.written([]),
    "deep": heartbeats.written(b"[" * 60_000),
    "too large": heartbeats.content(later="x" * 70_000),
    "a long text": heartbeats.content(program="x" * 1_025),
    "half a pair": heartbeats.written(json.dumps(heartbeats.content()).encode().replace(b"till", b"\\ud83d")),
    "no format": {name: value for name, value in heartbeats.content().items() if name != "format"},
    "a format below 1": heartbeats.content(format=0),
    "a node below 0": heartbeats.content(node=-1),
    "a node that is a text": heartbeats.content(node="7"),
    "a node that is a mark": heartbeats.content(node=True),
    "a node beyond int32": heartbeats.content(node=2**31),
    "a short session": heartbeats.content(session=99),
    "a long session": heartbeats.content(session=600_001),
    "no listener": heartbeats.content(listeners={}),
    "listeners in a list": heartbeats.content(listeners=[]),
    "many listeners": heartbeats.content(listeners={str(number): {"host": "h", "port": 1, "kind": "k"} for number in range(65)}),
    "a listener without a host": heartbeats.content(listeners={"P": {"host": " ", "port": 1, "kind": "k"}}),
    "a listener at port 0": heartbeats.content(listeners={"P": {"host": "h", "port": 0, "kind": "k"}}),
    "a listener with a long name": heartbeats.content(listeners={"P" * 1_025: {"host": "h", "port": 1, "kind": "k"}}),
    "a time before 1970": heartbeats.content(since=-1),
    "a time that is no integer": heartbeats.content(since=1.5),
    "clients in an object": heartbeats.content(clients={}),
    "many clients": heartbeats.content(clients=[heartbeats.content()["clients"][0]] * 51),
    "a client that is a text": heartbeats.content(clients=["till"]),
    "a client without a host": heartbeats.content(clients=[{"listener": "P", "name": "n", "software": "s", "connections": 1}]),
    "a client without a connection": heartbeats.content(clients=[heartbeats.content()["clients"][0] | {"connections": 0}]),
    "a client with a long name": heartbeats.content(clients=[heartbeats.content()["clients"][0] | {"name": "n" * 1_025}]),
    "fewer than no others": heartbeats.content(others=-1),
}


@pytest.mark.parametrize("said", WRONG.values(), ids=WRONG)
def test_a_file_that_is_no_heartbeat_is_counted_and_hides_no_other(root, said):
    heartbeats.put(root, "a", 1, said)
    heartbeats.put(root, "b", 1, heartbeats.content(node=5))
    found = look(root)
    assert [each.heartbeat.node for each in found.shown] == [5]
    assert (found.more, found.unreadable) == (0, 1)


def test_links_are_not_followed(root, tmp_path):
    heartbeat = heartbeats.put(root, "a", 1, heartbeats.content())
    heartbeat.rename(tmp_path / "elsewhere")
    heartbeat.symlink_to(tmp_path / "elsewhere")
    assert look(root).unreadable == 1
    heartbeat.unlink()
    (root / "_servers").rmdir()
    (tmp_path / "folder").mkdir()
    (root / "_servers").symlink_to(tmp_path / "folder")
    with pytest.raises(SparklogError, match="_servers") as refused:
        look(root)
    assert refused.value.id == "IO"
