"""Shows the pages of Kaskade without a terminal, and prints their cells as JSON: `kaskade_pages.py ADDRESS TOPIC`.

The Python of `make kaskade` runs this program.
"""

import asyncio
import json
import sys

from kaskade.admin import KaskadeAdmin
from textual.app import App
from textual.widgets import DataTable

WAIT_S = 600
OF_A_TOPIC = ("partitions", "groups", "group-offsets", "group-members")


def cells(app: App[None], table: str) -> list[dict[str, str]]:
    shown = app.screen.query_one(f"#{table}-table", DataTable)
    names = [str(column.label) for column in shown.columns.values()]
    return [dict(zip(names, map(str, shown.get_row(row)), strict=True)) for row in shown.rows]


async def pages(address: str, topic: str) -> dict[str, list[dict[str, str]]]:
    app = KaskadeAdmin({"bootstrap.servers": address}, refresh_interval=0)
    async with app.run_test(size=(200, 50)) as pilot:
        # Kaskade shows names before it has offsets and groups, and opens no page of a topic before.
        while app.screen.query_one("ListTopics").last_updated_at is None:
            await pilot.pause(0.05)
        topics = cells(app, "topics")
        below_the_head = 1 + [row["Name"] for row in topics].index(topic)
        await pilot.click("#topics-table", offset=(2, below_the_head))
        await pilot.press("d")
        while not app.screen.query("#group-members-table"):
            await pilot.pause(0.05)
        return {"topics": topics} | {table: cells(app, table) for table in OF_A_TOPIC}


print(json.dumps(asyncio.run(asyncio.wait_for(pages(*sys.argv[1:]), WAIT_S))))
