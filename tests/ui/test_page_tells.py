"""The page's words about charts and slips, in a real browser."""

import pytest
from handmade import Topic, batch, records
from owners import Own

pytestmark = pytest.mark.slow


def test_an_offset_without_a_partition_and_times_the_wrong_way_round_are_told(browser, serve, root):
    url = serve(root)
    browser.open(f"{url}/topics/t/records", ".records tbody tr")
    browser.find("input[name=offset]").send_keys("3\n")
    browser.until(lambda: browser.all("main .failed"))
    assert "an offset needs a partition" in browser.find("main .failed").text
    assert browser.find("input[name=offset]").get_attribute("value") == "3"
    browser.find("input[name=partition]").send_keys("1\n")
    browser.until(lambda: browser.texts(".records tbody .link")[-1:] == ["3"] or browser.texts(".records tbody .link")[:1] == ["3"])
    browser.open(f"{url}/topics/t/records?since=2024-05-02T00:00&until=2024-05-01T00:00", "main .failed")
    assert "it is not after the time to begin at" in browser.find("main .failed").text
    assert browser.find("main .failed").text.splitlines()[1].startswith("“Until time” has the value 2024-05-01T00:00:")
    for field, label in (("partition", "Partition"), ("offset", "From offset"), ("since", "From time"), ("key", "Key")):
        browser.open(f"{url}/topics/t/records", ".records tbody tr")
        browser.find(f"input[name={field}]").send_keys("hex:no\n")
        browser.until(lambda: browser.all("main .failed"))
        assert browser.find("main .failed").text.splitlines()[1].startswith(f"“{label}” has the value hex:no:"), label
    browser.open(f"{url}/topics/t/records?partition=2", "main .failed")
    assert browser.find("main .failed").text.splitlines()[1].startswith("“Partition” names partition 2 of topic t")
    browser.complaints()
    browser.open(f"{url}/topics/t/records?since=2034-05-02T00:00", ".records")
    assert browser.texts(".over .sums")[0].endswith("No record has such a time.")


def test_charts_show_what_they_say(browser, serve, root, table):
    """A group without a lag is at the axis; a commit that only rewrites is a mark, whatever its size; bars have their numbers."""
    rewritten = Topic(root, "rewritten")
    first, second = rewritten.append(records(500)), rewritten.append(records(20))
    whole = rewritten.data(batch(records(500)) + batch(records(20)), base=0, end=520)
    rewritten.commit(whole, removed=[first, second], operation="merge")
    rewritten.append(records(40))
    own = Own(table, "level", {"rewritten": {0: 100}})
    for offset in (300, 560):
        own.to({"rewritten": {0: offset}})
    url = serve(root, table.path)
    browser.open(f"{url}/topics/rewritten/commits", ".chart rect")
    heights = browser.run("return [...document.querySelectorAll('.chart rect')].map((each) => Number(each.getAttribute('height')))")
    assert heights == [100.0, 4.0, 5.0, 8.0]
    assert browser.texts(".legend .key-of") == ["merge"]
    assert "at most 500" in browser.find("figcaption").text
    browser.open(f"{url}/group?group=level", ".chart .stroke")
    path = browser.find(".chart .stroke").get_attribute("d")
    assert path.endswith("V100.00"), path  # the lag is 0 in the end
    assert browser.texts(".facts .state")[:1] == ["running"]
    own.end()
    browser.open(f"{url}/groups", "tbody .state")
    assert set(browser.texts("tbody .state")) >= {"running", "not running"}
    browser.open(f"{url}/group?group=level", ".facts .state")
    assert browser.texts(".facts .state") == ["not running"]
    browser.open(f"{url}/topics/t", ".labels")
    assert browser.texts(".labels.counts span") == ["25", "10"]
    assert browser.texts(".labels.places span") == ["partition 0", "partition 1"]
    Topic(root, "many", partitions=40).append(records(1), 7)
    browser.open(f"{url}/topics/many", ".labels")
    assert browser.texts(".labels span") == ["partition 0", "partition 39"]
    browser.open(f"{url}/topics/t/slots", ".notice")
    assert "was never re-routed. The slots below are those into which its first re-route would divide" in browser.texts(".notice")[0]
    browser.open(url, ".topics tbody tr")
    assert "View bytes" in browser.texts(".topics th")
