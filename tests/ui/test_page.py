"""The page in a real browser."""

import re
import threading
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from broken_reroutes import grown
from handmade import Record, Topic, batch, batches, featured, records
from logtool import LogTool
from ui.hostile_root import HOSTILE
from ui.large_root import large_root

from sparklog import Log
from sparklog.ui.groups import GroupPages

VIEWS = {
    "/": ".topics tbody tr",
    "/topics/t": ".chart",
    "/topics/t/records": ".records tbody tr",
    "/topics/json/records?partition=1&from=1:3&order=oldest&open=1:4": ".json-name",
    "/topics/hostile/records?contains=e": ".records tbody tr",
    "/topics/t/tail": ".light[data-state=live]",
    "/topics/gaps/segments": ".map rect",
    "/topics/gaps/segments?partition=0": "tbody tr",
    "/topics/hostile/commits": ".operation",
    "/topics/hostile/slots": ".bar",
    "/topics/routed": ".chart",
    "/topics/routed/slots": ".facts",
    "/groups": "tbody tr",
    "/group?group=billing": ".chart path",
    "/servers": "tbody .state",
    "/topics/nothing": None,
    "/nowhere": "main a.button",
}
BACKGROUND = "return getComputedStyle(document.body).backgroundColor"


def visible_bad(browser):
    """The traces that hostile texts would leave."""
    return browser.run(
        "return [window.owned, document.title, document.querySelectorAll('main img, main iframe, main script, main svg [onload]').length,"
        " [...document.querySelectorAll('main *')].flatMap((each) => [...each.attributes])"
        ".filter((each) => each.name.startsWith('on')).length]"
    )


@pytest.mark.parametrize(
    "look",
    [
        pytest.param({}, id="light"),
        pytest.param({"dark": True}, id="dark", marks=pytest.mark.slow),
        pytest.param({"phone": True}, id="phone", marks=pytest.mark.slow),
    ],
)
def test_each_view(browser, serve, root, table, server_heartbeats, look):
    browser.look(**look)
    grown(Topic(root, "routed", partitions=2))
    url = serve(root, table.path)
    for path, selector in VIEWS.items():
        browser.open(url + path, selector or "main .failed")
        assert browser.run("return document.documentElement.scrollWidth <= innerWidth"), f"{path} scrolls sideways"
        assert (browser.run(BACKGROUND) == "rgb(255, 255, 255)") == (not look.get("dark")), path
        owned, title, elements, handlers = visible_bad(browser)
        assert (owned, elements, handlers) == (None, 0, 0), path
        assert title.endswith(" – sparklog")
        # Each control has a name, and there is one main heading.
        nameless = (
            "return [...document.querySelectorAll('main input, main select, main button, main a')]"
            ".filter((each) => !(each.textContent.trim() || each.ariaLabel || each.labels?.length)).length"
        )
        assert browser.run(nameless) == 0, path
        assert len(browser.all("h1")) == 1, path
        if not look.get("phone"):
            assert browser.barriers() == [], path
        complaints = [each for each in browser.complaints() if not re.search("/topics/nothing|/nowhere", each)]
        assert complaints == [], path
    assert browser.hosts() == {urlsplit(url).netloc}
    browser.look()


def test_hostile_texts_are_texts(browser, serve, root, table, server_heartbeats):
    browser.look()
    url = serve(root, table.path)
    browser.open(f"{url}/topics/hostile/records?order=oldest", ".records tbody tr")
    values = browser.texts(".records tbody .value")
    assert values[:2] == list(HOSTILE[:2])
    assert values[5] == "left\\u202eright\\u2066 \\u200bzero"
    assert values[6] == "\\x1b[31mred\\x1b[0m\\x1b]0;title\\x07 \\x00 \\r\\n"
    for number in (0, 5, 6):
        browser.open(f"{url}/topics/hostile/records?partition=0&open=0:{number}", ".record .headers")
        for way in ("Text", "Hex"):
            browser.press(".record section:nth-of-type(2) button", way)
        assert visible_bad(browser)[::2] == [None, 0]
        assert not re.search("[\x00-\x08\x0b-\x1f\u200b\u202a-\u202e\u2066-\u2069]", browser.run("return document.body.textContent"))
    browser.open(f"{url}/topics/hostile/commits", ".operation")
    assert HOSTILE[0] in browser.run("return document.querySelector('main').textContent")
    browser.open(f"{url}/groups", "tbody tr")
    browser.press("tbody a", HOSTILE[1])
    browser.find(".chart path")
    assert HOSTILE[0] in browser.texts("td .clip")
    assert visible_bad(browser)[0] is None
    browser.open(f"{url}/servers", "tbody .state")
    assert browser.texts("th .clip") == [*HOSTILE[:5], "left\\u202eright\\u2066 \\u200bzero", values[6], HOSTILE[7]]
    assert visible_bad(browser)[::2] == [None, 0]
    # Were a text to become an element, the browser would refuse it.
    refused = "try { document.querySelector('main').innerHTML = '<b>x</b>'; return 'done' } catch (error) { return error.name }"
    assert browser.run(refused) == "TypeError"
    assert any("TrustedHTML" in each for each in browser.complaints())


def test_topics_are_sorted_and_filtered_and_the_address_says_how(browser, serve, root):
    url = serve(root)
    browser.open(url, ".topics tbody tr")
    assert "PARTLOG_VERSION_CORRUPT" in browser.find("tr.damaged").text
    browser.press("th .sort", "Records")
    browser.until(lambda: browser.texts(".topics tbody th")[:2] == ["json", "gaps"])
    assert urlsplit(browser.driver.current_url).query == "sort=records&dir=down"
    assert browser.find("th[aria-sort=descending]").text.startswith("Records")
    browser.find("input[type=search]").send_keys("ga")
    browser.until(lambda: browser.texts(".topics tbody th") == ["gaps"])
    again = browser.driver.current_url
    browser.open(again, ".topics tbody tr")
    assert browser.texts(".topics tbody th") == ["gaps"]


def test_pages_and_the_back_button(browser, serve, root):
    many = Topic(root, "many")
    many.commit(many.data(batches(records(250))))
    url = serve(root)
    browser.open(f"{url}/topics/many/records", ".records tbody tr")

    def offsets() -> list[int]:
        return [int(text) for text in browser.texts(".records tbody .link")]

    assert offsets() == list(range(249, 149, -1))
    browser.press(".over a", "Older")
    browser.until(lambda: offsets()[:1] == [149])
    browser.press(".over a", "Older")
    browser.until(lambda: offsets() == list(range(49, -1, -1)))
    assert not [each for each in browser.all(".over a.button") if each.text == "Older"]
    browser.press(".over a", "Newer")
    browser.until(lambda: offsets() == list(range(149, 49, -1)))
    browser.driver.back()
    browser.until(lambda: offsets() == list(range(49, -1, -1)))
    browser.driver.back()
    browser.until(lambda: offsets() == list(range(149, 49, -1)))
    # A record opens where it is, and the address says so.
    browser.press(".records .link", "120")
    browser.find(".record pre")
    assert "open=0%3A120" in browser.driver.current_url
    assert browser.texts(".record pre") == ["k1", "r-120"]
    deep = browser.driver.current_url
    browser.open(deep, ".record pre")
    assert browser.texts(".record pre") == ["k1", "r-120"]
    browser.driver.back()


def test_a_search_by_key_and_by_what_is_contained(browser, serve, root):
    url = serve(root)
    browser.open(f"{url}/topics/t", ".tabs")
    browser.press(".tabs a", "Records")
    browser.find("input[name=key]").send_keys("k3\n")
    expected = Log(root)["t"].read(key="k3", columns=["offset"])["offset"].to_pylist()
    browser.until(lambda: browser.texts(".records tbody .link") == [str(offset) for offset in expected[::-1]])
    assert "key=k3" in browser.driver.current_url
    assert browser.texts(".sums")[0].endswith(f"of partition {Log(root)['t'].partition_for('k3')}")
    browser.open(f"{url}/topics/t/records?contains=hex:652d", ".records tbody tr")
    assert browser.texts(".records tbody .value") == ["e-2", "e-1", "e-0"]
    browser.open(f"{url}/topics/json/records?partition=0&order=oldest&open=0:7", ".json-name")
    pretty = browser.texts(".record pre")[1]
    assert '"big": 12345678901234567890,' in pretty  # as it is written, not as JavaScript reads it
    assert '"list": [\n      1,\n      2.50,' in pretty
    assert browser.texts(".record pre")[0].startswith("00000000  ff 00 6b 65 79 30")


@pytest.mark.slow
def test_a_tail_beside_a_writer_shows_each_record_once(browser, serve, tmp_path: Path, java_classpath):
    log = LogTool(java_classpath, tmp_path / "root")
    log.run("append", topic="t", tag="before", commits=1, records=10)
    url = serve(log.root)
    browser.open(f"{url}/topics/t/tail", ".light[data-state=live]")
    writer = log.start("append", topic="t", tag="live", commits=15, tasks=2, records=10, pause=40)
    browser.until(lambda: browser.all("tr.new"), "the first record")
    # While it is paused, the log goes on. Afterwards the page goes on where it was.
    browser.press("button", "Pause")
    paused = len(browser.all("tr.new"))
    out, err = writer.communicate(timeout=300)
    assert writer.returncode == 0, out + err
    assert len(browser.all("tr.new")) == paused
    log.run("append", topic="t", tag="later", commits=1, tasks=2, records=10)
    browser.press("button", "Resume")
    table = Log(log.root)["t"].read(columns=["partition", "offset", "value"])
    expected = sorted(
        (str(row["partition"]), f"{row['offset']:,}", row["value"].decode())
        for row in table.to_pylist()
        if not row["value"].startswith(b"before")
    )
    browser.until(lambda: len(browser.all("tr.new")) >= len(expected), "all records")
    rows = browser.run(
        "return [...document.querySelectorAll('tr.new')].map((row) => [0, 1, 4].map((place) => row.cells[place].textContent))"
    )
    assert sorted(map(tuple, rows)) == expected
    assert len(expected) == 320
    # The newest is at the top, and each partition keeps its order.
    by_partition: dict[str, list[int]] = {}
    for partition, offset, _ in rows[::-1]:
        by_partition.setdefault(partition, []).append(int(offset.replace(",", "")))
    assert all(offsets == sorted(offsets) for offsets in by_partition.values())
    assert browser.complaints() == []
    # More than a page can show: it shows the last ones, says what it skipped, and stays small.
    log.run("append", topic="t", tag="flood", commits=1, tasks=2, records=5_000)
    browser.until(lambda: any("skipped" in text for text in browser.texts(".counts")), "what is skipped")
    assert len(browser.all(".records tbody tr")) <= 500
    browser.open(f"{url}/", ".topics")


def test_keys_of_the_keyboard(browser, serve, root):
    from selenium.webdriver.common.keys import Keys

    url = serve(root)
    browser.open(f"{url}/topics/t/records", ".records tbody tr")

    def focused() -> str:
        return str(browser.run("return document.activeElement.textContent"))

    body = browser.find("body")
    body.send_keys("j")
    first, second = browser.texts(".records tbody .link")[:2]
    assert focused() == first
    browser.driver.switch_to.active_element.send_keys("j")
    assert focused() == second
    browser.driver.switch_to.active_element.send_keys(Keys.ENTER)
    browser.find(".record")
    assert browser.run("return document.activeElement.ariaExpanded") == "true"
    browser.find("body").send_keys("/")
    assert browser.run("return document.activeElement.name") == "key"
    # After a step to another view, the focus is at its heading.
    browser.press(".tabs a", "Commits")
    browser.find(".operation")
    assert browser.run("return document.activeElement.tagName") == "H1"


@pytest.mark.slow
def test_a_large_root_shows_how_far_it_is_read(browser, serve, tmp_path: Path):
    large_root(tmp_path / "large")
    url = serve(tmp_path / "large")
    browser.open(url, "progress")
    seen: list[tuple[int, bool]] = []

    def is_read() -> bool:
        seen.append(tuple(browser.run("const bar = document.querySelector('progress'); return [bar.value, bar.hidden]")))
        return seen[-1][1]

    browser.until(is_read)
    values = [value for value, _ in seen]
    assert values == sorted(values)
    # It moves, unless it was all there at once.
    assert len(set(values)) > 3 or len(seen) < 5
    assert browser.texts(".sums")[0] == "1,000 topics · 10,000 partitions · 300,000 records · 9.7 MB"
    assert len(browser.all(".topics tbody tr")) == 500
    browser.find("input[type=search]").send_keys("topic-0777")
    browser.until(lambda: browser.texts(".topics tbody th") == ["topic-0777"])
    browser.press(".topics a", "topic-0777")
    browser.find(".chart")
    browser.driver.back()
    browser.until(lambda: browser.texts(".topics tbody th") == ["topic-0777"])


def test_a_large_value_is_looked_at_in_parts(browser, serve, root):
    text = "".join(f"{number:07}é" for number in range(20_000))
    topic = Topic(root, "large")
    topic.append([Record(text.encode(), bytes(range(256)))])
    url = serve(root)
    browser.open(f"{url}/topics/large/records?partition=0&open=0:0", ".record pre")
    key, value = browser.texts(".record pre")
    assert key.splitlines()[-1].startswith("000000f0  f0 f1 f2 f3 f4 f5 f6 f7  f8 f9 fa fb fc fd fe ff")
    assert text.startswith(value)
    parts = [value]
    for _ in range(2):
        before = parts[-1]
        browser.press(".windows button", "Next part")
        browser.until(lambda before=before: browser.texts(".record pre")[1:] not in ([], [before]))
        parts.append(browser.texts(".record pre")[1])
    # A character that is cut is shown in neither part.
    assert re.fullmatch("[0-9é]+", "".join(parts))
    assert len(text) - 2 <= len("".join(parts)) <= len(text)
    assert browser.texts(".range") == ["bytes 131,072 to 180,000 of 180,000"]
    assert browser.texts(".records .value .cut") == ["… 180 kB"]


def test_a_search_can_be_stopped_and_goes_on(browser, serve, root):
    topic = Topic(root, "searched")
    topic.commit(topic.data(batches(*[records(2_000, f"s{number}") for number in range(10)])))
    url = serve(root)
    browser.open(f"{url}/topics/searched/records?contains=-7", ".records tbody tr")
    browser.until(lambda: len(browser.all(".records tbody .link")) >= 100)
    assert browser.texts(".over .sums")[0].startswith("100 records found in ")
    browser.press(".over button", "Search on")
    browser.until(lambda: len(browser.all(".records tbody .link")) >= 200)
    offsets = [int(each.replace(",", "")) for each in browser.texts(".records tbody .link")]
    assert offsets == sorted(set(offsets), reverse=True)
    browser.open(f"{url}/topics/searched/records?contains=nothing-like-it", ".over .sums")
    browser.until(lambda: browser.texts(".over .sums")[0] == "0 records found in 20,000 of 20,000 offsets of all partitions")


def test_slots_and_reroutes_of_a_topic(browser, serve, root):
    routed = grown(Topic(root, "routed", partitions=2))
    for partition in (0, 2):
        added = routed.topic.data(batch([Record(key=HOSTILE[0].encode())] * 3), partition, routed=False)
        routed.topic.commit(added, features=featured("routing.slots"))
    url = serve(root)
    browser.open(f"{url}/topics/routed", ".chart")
    rows = browser.run(
        "return [...document.querySelectorAll('main section table')[0].tBodies[0].rows].map((row) => row.cells[3].textContent)"
    )
    assert rows == ["2,731", "closed", "1,365"]
    browser.press(".facts a", "2")
    browser.until(lambda: browser.texts(".facts dd") == ["2", "4,096", "3", "1"])
    tables = (
        "return [...document.querySelectorAll('main tbody')]"
        ".map((body) => [...body.rows].map((row) => [...row.cells].map((cell) => cell.textContent)))"
    )
    reroutes, (busiest, *_) = browser.run(tables)
    assert reroutes == [["4", "1,365", "0"], ["2", "1,365", "2"]]
    assert busiest[2:5] == ["3", "75.0 %", "1"], "one record is from before"
    assert busiest[5] == f"{HOSTILE[0]} (3)"
    browser.press(".tabs a", "Overview")
    browser.find(".chart")
    browser.open(f"{url}/topics/t/slots", ".bar")
    assert "modulo" in browser.texts(".notice")[0]


def test_errors_are_shown_and_the_rest_is(browser, serve, root):
    url = serve(root)
    browser.open(f"{url}/topics/broken/commits", "main .failed")
    assert browser.texts(".failed strong") == ["PARTLOG_VERSION_CORRUPT"]
    assert "its checksum is" in browser.find(".failed").text
    browser.press(".crumb", "Topics")
    browser.find(".topics tbody tr")
    browser.press(".topics a", "t")
    browser.find(".chart")
    # A root that goes away while it is looked at, and comes back.
    root.rename(root.with_name("away"))
    browser.press(".tabs a", "Segments")
    browser.until(lambda: browser.texts(".failed strong") == ["PARTLOG_ROOT_NOT_FOUND"])
    root.with_name("away").rename(root)
    browser.press("main button", "Try again")
    browser.find(".map rect")


def test_what_was_asked_wrongly_can_be_set_right(browser, serve, root):
    wide = Topic(root, "wide", partitions=300)
    wide.append(records(3), 299)
    url = serve(root)
    browser.open(f"{url}/topics/wide/records", ".notice")
    assert "300 partitions" in browser.texts(".notice")[0]
    browser.find("input[name=partition]").send_keys("299\n")
    browser.until(lambda: browser.texts(".records tbody .value") == ["r-2", "r-1", "r-0"])
    browser.find("input[name=since]").send_keys("yesterday\n")
    browser.until(lambda: browser.texts(".failed strong") == ["PARTLOG_OPTION_VALUE"])
    field = browser.find("input[name=since]")
    field.clear()
    field.send_keys("2023-11-14 22:13:20.001\n")
    browser.until(lambda: browser.texts(".records tbody .value") == ["r-2", "r-1"])
    browser.open(f"{url}/topics/wide/tail", ".notice")
    browser.run("const choice = document.querySelector('select'); choice.value = '7'; choice.dispatchEvent(new Event('change'))")
    browser.find(".light[data-state=live]")


def test_an_opened_page_says_that_it_loads(browser, serve, root, table, monkeypatch):
    answer, may_answer = GroupPages.groups, threading.Event()

    def late(pages, request):
        may_answer.wait(120)
        return answer(pages, request)

    monkeypatch.setattr(GroupPages, "groups", late)
    url = serve(root, table.path)
    try:
        browser.open(f"{url}/groups", ".wait")
        assert browser.texts("main .wait") == ["Loading …"]
    finally:
        may_answer.set()
    browser.find("main tbody tr")
    assert browser.all(".wait") == []
