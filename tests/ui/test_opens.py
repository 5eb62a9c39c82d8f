"""The page asks about a topic as often as browsers do, and opens it once."""

from ui.asking import got


def test_requests_open_a_topic_once(client_with_groups, opens):
    opens.clear()  # the table of groups looked at topics too
    for _ in range(2):
        for path in ("topics/t", "topics/t/records", "topics/t/segments", "topics/t/commits", "topics/t/slots", "groups"):
            got(client_with_groups, path)
        got(client_with_groups, "group", group="billing")
        assert b'"t"' in client_with_groups.get("/api/topics").content
    assert opens.count("t") == 1
