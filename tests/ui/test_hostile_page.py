"""The page in a real browser, while the log and what is around it are against it."""

import shutil
from pathlib import Path

import pytest
from handmade import Record, Topic, batch, batches, identity, records
from ui.hostile_root import HOSTILE

pytestmark = pytest.mark.slow

FAR = 2**62 + 1
SAID = "return document.querySelector('main').textContent"


def test_numbers_that_a_browser_cannot_hold_are_exact(browser, serve, tmp_path: Path):
    topics = [Topic(tmp_path / "root", name, starts=[FAR + number]) for number, name in enumerate("ba")]
    for topic in topics:
        topic.commit(topic.data(batches(records(2)), records=2))
        topic.commit(topic.data(batch([Record(timestamp=2**62), Record(timestamp=-1)])))
    url = serve(tmp_path / "root")
    browser.open(f"{url}/topics/b/records?order=oldest", ".records tbody tr")
    assert browser.texts(".records tbody .link") == [f"{FAR + number:,}" for number in range(4)]
    assert browser.texts(".records tbody .t")[2:] == ["9999-12-31 09:59:59.999", "–"]
    browser.press(".records .link", f"{FAR + 1:,}")
    browser.find(".record pre")
    assert str(FAR + 1) in browser.driver.current_url
    assert browser.texts(".record pre") == ["k1", "r-1"]
    # A link to it, and the page after it.
    browser.open(f"{url}/topics/b/records?order=oldest&limit=1&from=0:{FAR + 1}", ".records tbody tr")
    browser.press(".over a", "Newer")
    browser.until(lambda: browser.texts(".records tbody .link") == [f"{FAR + 2:,}"])
    browser.open(f"{url}/topics/b/segments", ".map rect")
    assert f"from offset {FAR:,} to {FAR + 4:,}." in browser.texts(".sums")[0]
    assert browser.run("return [...document.querySelectorAll('.map rect')].map((each) => Number(each.getAttribute('x')))") == [0, 500]
    browser.open(f"{url}/topics/b", ".chart, .facts")
    assert f"{FAR + 4:,}" in browser.run(SAID)
    browser.open(f"{url}/topics/b/tail", ".light[data-state=live]")
    topics[0].append(records(1, "new"))
    browser.until(lambda: browser.texts("tr.new td:nth-child(2)") == [f"{FAR + 4:,}"])
    assert browser.complaints() == []


def test_sums_and_orders_of_large_numbers_are_exact(browser, serve, root):
    url = serve(root)
    browser.open(url, ".topics tbody tr")
    script = """const done = arguments[arguments.length - 1];
    import('/web/dom.js').then(({ compare, less, number, plural, size, sum }) => done([
      plural(sum(['9007199254740993', 2, '9007199254740992']), 'record'), number(sum([])), size(sum(['9007199254740993'])),
      compare('9007199254740993', '9007199254740992'), compare(null, 0), compare(7, 7), less('4611686018427387905', '4611686018427387904'),
    ]))"""
    found = browser.driver.execute_async_script(script)
    assert found == ["18,014,398,509,481,987 records", "0", "9.0 PB", 1, -1, 0, 1]


@pytest.mark.parametrize(
    "text",
    [
        '{"__proto__": {"owned": 1}, "constructor": {"prototype": {"owned": 1}}, "toString": 1}',
        "[" * 15_000 + "]" * 15_000,
        '{"a":' * 7_000 + "1" + "}" * 7_000,
        "[" + "9" * 60_000 + "]",
        '["' + "\\\\" * 30_000 + '"]',
        "[" + "1e999," * 9_000 + "-0.0]",
    ],
    ids=["names", "lists", "objects", "number", "escapes", "many"],
)
def test_json_that_attacks_the_page(browser, serve, tmp_path: Path, text):
    Topic(tmp_path / "root", "json").append([Record(text.encode(), b"k")])
    url = serve(tmp_path / "root")
    browser.open(f"{url}/topics/json/records?partition=0&open=0:0", ".record pre")
    pretty = browser.texts(".record pre")[1]
    assert browser.texts(".way[aria-pressed=true]") == ["Text", "JSON"]
    assert "".join(pretty.split()) == "".join(text.split())
    assert browser.run("return [({}).owned, window.owned]") == [None, None]
    assert browser.complaints() == []


def test_names_and_errors_that_turn_the_text(browser, serve, root):
    turned = "\u202egpj.exe\u2066 \x1b[2J"
    Topic(root, "set", config={turned: HOSTILE[1] + turned, "__proto__": "x", "constructor": "y"}).append(records(2))
    other = Topic(root, "other")
    other.append(records(1))
    other.commit(topic=turned)
    url = serve(root)
    for path, selector in (
        ("/topics/set", ".code"),
        ("/", ".topics tbody tr"),
        ("/topics/%E2%80%AEgpj", ".failed"),
        ("/group?group=%E2%80%AEgpj", ".failed"),
        ("/topics/%ff", ".failed"),
        ("/topics/%", ".failed"),
        ("/topics/%2e%2e%2f", ".failed"),
    ):
        browser.open(url + path, selector)
        said = browser.run("return document.body.textContent + document.title")
        assert not any(sign in said for sign in turned if not sign.isprintable()), path
        assert "undefined" not in said, path
    browser.open(f"{url}/topics/set", ".code")
    assert "\\u202egpj.exe\\u2066 \\x1b[2J" in browser.run(SAID)
    assert {"__proto__", "constructor"} <= set(browser.texts(".narrow tbody th"))


def test_a_topic_is_replaced_while_its_tail_is_paused(browser, serve, root):
    folder = Topic(root, "changing").folder
    Topic(root, "changing").append(records(5))
    url = serve(root)
    browser.open(f"{url}/topics/changing/tail", ".light[data-state=live]")
    browser.press("button", "Pause")
    # Its positions are those of another topic now.
    shutil.rmtree(folder)
    again = Topic(root, "changing")
    again.commit(again.data(batches(records(9))), topicId=identity("again"))
    browser.press("button", "Resume")
    browser.until(lambda: browser.texts(".failed strong") == ["PARTLOG_TOPIC_REPLACED"])
    assert browser.texts(".state") == ["stopped"]
    shutil.rmtree(folder)
    browser.press("button", "Resume")
    browser.until(lambda: browser.texts(".failed strong") == ["PARTLOG_TOPIC_NOT_FOUND"])


def test_a_tail_that_is_refused_says_why(browser, serve, root):
    url = serve(root)
    browser.open(f"{url}/topics/t/tail?partition=7", ".failed")
    assert browser.texts(".failed strong") == ["PARTLOG_PARTITION_NOT_FOUND"]


def test_pages_in_the_background_leave_the_connections_to_the_others(browser, serve, root):
    """A browser has six connections to a server, and each page that follows a topic would keep one."""
    url = serve(root)
    first = browser.driver.current_window_handle
    browser.open(f"{url}/topics/t/tail", ".light[data-state=live]")
    for _ in range(7):
        browser.driver.switch_to.new_window("tab")
        browser.open(f"{url}/topics/t/tail", ".light[data-state=live]")
    browser.open(f"{url}/topics/t/records", ".records tbody tr")
    for handle in browser.driver.window_handles:
        if handle != first:
            browser.driver.switch_to.window(handle)
            browser.driver.close()
    browser.driver.switch_to.window(first)
    browser.find(".light[data-state=live]")
