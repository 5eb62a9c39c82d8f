"""Requests that the server refuses, and headers that each of its responses has."""

import re
from pathlib import Path

import pytest
from handmade import sample
from starlette.testclient import TestClient

from sparklog.ui import application
from sparklog.ui.guard import HEADERS
from sparklog.ui.server import is_local


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("guard") / "root"
    sample(path)
    return path


PATHS = (
    "/",
    "/topics/t/records",
    "/web/app.js",
    "/api/about",
    "/api/topics",
    "/api/topics/absent",
    "/nothing",
    "/api/topics/t/records/0/0/bytes",
)


def test_each_response_has_the_headers(client):
    for path in PATHS:
        response = client.get(path)
        for name, value in HEADERS.items():
            assert response.headers[name] == value, path
        assert "server" not in response.headers
        assert not any(name.startswith("access-control-") for name in response.headers)
    policy = HEADERS["content-security-policy"]
    assert "unsafe" not in policy
    assert policy.startswith("default-src 'none';")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_it_only_reads(client, method):
    for path in PATHS:
        response = client.request(method, path)
        assert response.status_code == 405
        assert response.json()["error"]["condition"] == "GET_ONLY"


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.0.0.1:8470", "localhost", "LOCALHOST:1", "[::1]:8470", "[::1]", "10.1.2.3:80", "named.example:80"]
)
def test_hosts_that_it_answers_for(root, host):
    client = TestClient(application(root, hosts=["named.example"]))
    assert client.get("/api/about", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8470",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "",
        "127.0.0.1:80:80",
        "[::1",
        "::1]",
        "x@127.0.0.1",
        "127.0.0.1/",
    ],
)
def test_a_name_that_an_attacker_binds_to_this_machine_is_refused(root, host):
    client = TestClient(application(root))
    response = client.get("/api/about", headers={"host": host})
    assert response.status_code == 421
    assert response.json()["error"]["condition"] == "HOST_UNKNOWN"


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_another_site_may_link_to_the_page_but_not_ask_for_data(client, site):
    asked = {"sec-fetch-site": site, "sec-fetch-mode": "no-cors"}
    for path in PATHS:
        assert client.get(path, headers=asked).status_code == 403
        # Neither in a frame, nor in a window: the answer would be saved as a file, or followed.
        if path.startswith("/api/"):
            assert client.get(path, headers=asked | {"sec-fetch-mode": "navigate"}).status_code == 403
    assert client.get("/topics/t", headers={"sec-fetch-site": site, "sec-fetch-mode": "navigate"}).status_code == 200
    assert client.get("/api/about", headers={"sec-fetch-site": "same-origin", "sec-fetch-mode": "cors"}).status_code == 200


def test_an_old_browser_says_only_the_origin(client):
    assert client.get("/api/about", headers={"origin": "http://127.0.0.1"}).status_code == 200
    for origin in ("http://evil.example", "null", "http://127.0.0.1:80", "http://127.0.0.1.evil.example", ""):
        response = client.get("/api/about", headers={"origin": origin})
        assert (response.status_code, response.json()["error"]["condition"]) == (403, "OTHER_SITE"), origin


@pytest.mark.parametrize(
    "topic", ["%2e%2e", "..%2f..%2fetc", "%2fetc%2fpasswd", "t%00", "a%20b", "x" * 250, "%ff", "..%5c..", "_partlog%2ft", "t-0%2f.."]
)
def test_no_path_of_a_request_is_one_of_a_file(client, topic):
    for path in (f"/api/topics/{topic}", f"/api/topics/{topic}/records", f"/api/topics/{topic}/segments"):
        response = client.get(path)
        assert response.status_code in (400, 404), path
        assert "root:" not in response.text
    for path in (f"/web/{topic}", "/web/%2e%2e/server.py", "/web/..%2fserver.py", "/web/"):
        assert client.get(path).status_code == 404


def test_what_is_not_there_is_told_by_the_page(client):
    for path in ("/nowhere", "/index.html", "/a/b"):
        response = client.get(path)
        assert (response.status_code, response.headers["content-type"]) == (404, "text/html; charset=utf-8"), path
        assert response.text == client.get("/").text
    for path in ("/api/nowhere", "/web/nowhere.js"):
        assert (client.get(path).status_code, client.get(path).text) == (404, "Not Found")


def test_what_is_too_long_is_refused(client):
    assert client.get(f"/api/topics/t/records?contains={'x' * 20_000}").status_code == 414
    assert client.get(f"/{'x' * 2_000}").status_code == 414


def test_which_hosts_are_local():
    assert [is_local(host) for host in ("127.0.0.1", "127.8.0.1", "::1", "localhost")] == [True] * 4
    assert [is_local(host) for host in ("0.0.0.0", "::", "10.0.0.1", "example.org", "")] == [False] * 5


def test_the_page_makes_no_html_and_names_no_other_host(repository):
    files = sorted((repository / "sparklog" / "ui" / "web").iterdir())
    assert {file.suffix for file in files} == {".css", ".html", ".js", ".svg"}
    for file in files:
        text = file.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|Function\(|//\w+\.\w+|@import|url\(", text
        ), file.name
        assert not re.search(r"<script(?! type=\"module\" src=\"/web/)|\son\w+=\"|style=\"", text), file.name
