"""The answer about servers, and the view of it."""

import shutil

import heartbeats
from ui.asking import got
from ui.hostile_root import HOSTILE


def test_servers_and_their_clients(client, root, server_heartbeats):
    found = got(client, "servers")
    alive, silent = found["servers"]
    assert (found["more"], found["unreadable"]) == (0, 0)
    assert (alive["node"], alive["alive"], alive["since"], alive["program"]) == (7, True, 1_700_000_000_000, "sparklog 0.1.0")
    assert alive["listeners"] == [{"name": "PLAINTEXT", "host": "127.0.0.1", "port": 9092, "kind": "PLAINTEXT on box"}]
    assert [each["name"] for each in alive["clients"]] == list(HOSTILE)
    assert (alive["connections"], alive["others"]) == (sum(range(1, 9)) + 3, 3)
    assert (silent["node"], silent["alive"], silent["clients"], silent["others"], silent["connections"]) == (8, False, [], 0, None)
    heartbeats.put(root, "a", 10, b"{}")
    found = got(client, "servers")
    assert ([each["node"] for each in found["servers"]], found["unreadable"]) == ([8], 1)


def test_answers_remember_what_changed(client, root):
    """The clock of the server is wrong."""
    for number, expected in ((1, False), (2, True)):
        heartbeats.put(root, "a", number, heartbeats.content(session=600_000), age_s=100_000)
        [server] = got(client, "servers")["servers"]
        assert server["alive"] == expected


def test_a_root_that_is_gone(client, root):
    assert got(client, "servers") == {"servers": [], "more": 0, "unreadable": 0}
    shutil.rmtree(root)
    assert got(client, "servers", 404)["error"]["condition"] == "PARTLOG_ROOT_NOT_FOUND"


def test_the_view_shows_who_is_alive_and_who_is_connected(browser, serve, root):
    url = serve(root)
    browser.open(f"{url}/servers", ".notice")
    assert browser.texts(".notice code") == ["sparklog serve ROOT"]
    client = heartbeats.content()["clients"][0]
    listeners = {
        "A": {"host": "::1", "port": 9092, "kind": "PLAINTEXT"},
        "B": {"host": "log.example.com", "port": 9093, "kind": "SASL_SSL"},
    }
    clients = [client | {"listener": "B"}, client | {"listener": "A", "name": "", "software": " "}, client | {"listener": "C"}]
    heartbeats.put(root, "a", 1, heartbeats.content(session=600_000, listeners=listeners, clients=clients, others=1_000))
    heartbeats.put(root, "b", 1, heartbeats.content(), age_s=100)
    browser.press("header nav a", "Topics")
    browser.press("header nav a", "Servers")
    browser.find("tbody .state")
    assert browser.texts("header nav a[aria-current=page]") == ["Servers"]
    assert browser.texts(".sums") == ["1 server alive, 1,006 connections"]
    servers, connected = (browser.texts(f"[aria-label={name}] tbody tr") for name in ("Servers", "Clients"))
    assert [row.split("sparklog")[0].count("alive") for row in servers] == [1, 0]
    assert servers[0].startswith("[::1]:9092 Alog.example.com:9093 Balive")
    assert servers[1].startswith("127.0.0.1:9092 PLAINTEXTsilent")
    assert connected == ["tilllibrdkafka 2.1610.0.0.7log.example.com:90932", "––10.0.0.7[::1]:90922", "tilllibrdkafka 2.1610.0.0.7–2"]
    assert "1,000 connections more" in browser.texts("section .notice")[0]
    assert browser.complaints() == []


def test_the_view_does_not_say_that_no_server_serves_if_a_heartbeat_cannot_be_read(browser, serve, root):
    heartbeats.put(root, "a", 1, b"")
    browser.open(f"{serve(root)}/servers", ".notice")
    assert browser.texts(".notice") == ["1 file in _servers/ cannot be read as a heartbeat of a server."]
