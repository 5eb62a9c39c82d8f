"""A member of a group written from docs/reference/members.md alone: it shares no code with sparklog's, and knows the assignor `range`.

`other_member.py ROOT TABLE GROUP TOPIC SESSION_MS` prints a line `partition offset` for each record. It leaves when its input ends.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import random
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import CommitFailedError

import sparklog  # only for the records of the log

HEARTBEAT_S = 0.1
State = dict[str, Any]


class Fenced(Exception):
    """The group has another state than this member acts on."""


class Other:
    def __init__(self, root: str, path: str, group: str, topic: str, session_ms: str) -> None:
        self.session_ms = int(session_ms)
        self.log, self.path, self.group, self.topic = sparklog.Log(root), path, group, topic
        self.me = f"other-{uuid.uuid4().hex}"
        self.folder = Path(f"{path}.members") / hashlib.sha256(group.encode()).hexdigest()
        self.counter = self.version = 0
        self.positions: dict[int, int] = {}
        self.seen: dict[str, tuple[Any, float]] = {}
        self.live_until = 0.0

    # ---- the table

    def read(self) -> tuple[DeltaTable, int, int, State, dict[int, int]]:
        """The table, the number of the newest change, the generation, the state, and the positions in the topic."""
        table = DeltaTable(self.path)
        rows = table.to_pyarrow_table(filters=[("group", "=", self.group)]).to_pylist()
        generation = max((row["generation"] for row in rows), default=0)
        newest = [row for row in rows if row["generation"] == generation]
        note = max((row for row in newest if row["partition"] == -1), key=lambda row: row["seq"], default={"metadata": "{}"})
        id = self.log[self.topic].describe()["id"]
        positions: dict[int, int] = {}
        for row in newest:
            if row["partition"] >= 0 and row["topic_id"] == id:
                positions[row["partition"]] = max(row["offset"], positions.get(row["partition"], 0))
        number = table.transaction_version(f"sparklog.offsets/{self.group}") or 0
        return table, number, generation, json.loads(note["metadata"]), positions

    def add(self, table: DeltaTable, generation: int, seq: int, rows: Iterable[dict[str, Any]], versions: dict[str, int]) -> bool:
        """Adds rows in a commit with these versions of applications. False if another commit was first."""
        schema = pa.schema(table.schema().to_arrow())
        common = {"group": self.group, "generation": generation, "seq": seq, "committed_at": datetime.datetime.now(datetime.timezone.utc)}
        made = pa.Table.from_pylist([common | row for row in rows], schema)
        done = CommitProperties(app_transactions=[Transaction(*each) for each in versions.items()])
        try:
            write_deltalake(table, made, mode="append", commit_properties=done)
        except CommitFailedError:
            return False
        return True

    def change(
        self, why: str, step: Callable[[State], State | None], offsets: dict[int, int] | None = None, fence: Iterable[str] = ()
    ) -> None:
        """Changes the state by a step, by compare-and-set; nothing if the step gives None."""
        while True:
            table, number, generation, said, positions = self.read()
            begins = not said.get("members")
            state = step(json.loads(json.dumps(said)))
            if state is None:
                return
            versions = {f"sparklog.members/{each}": (table.transaction_version(f"sparklog.members/{each}") or 0) + 1 for each in fence}
            versions[f"sparklog.offsets/{self.group}"] = number + 1
            if offsets:
                versions[f"sparklog.members/{self.me}"] = self.version + 1
            state |= {"event": "begin" if state["members"] else "end", "id": uuid.uuid4().hex, "by": self.me, "why": why}
            rows = [{"topic": "", "topic_id": "", "partition": -1, "offset": -1, "metadata": json.dumps(state)}]
            rows += self.rows({**(positions if begins else {}), **(offsets or {})})
            if self.add(table, generation + begins, number + 1, rows, versions):
                self.version += bool(offsets)
                return
            time.sleep(random.random() * 0.2)

    def rows(self, offsets: dict[int, int]) -> list[dict[str, Any]]:
        id = self.log[self.topic].describe()["id"]
        return [{"topic": self.topic, "topic_id": id, "partition": number, "offset": offset} for number, offset in offsets.items()]

    # ---- the steps

    def planned(self, state: State) -> State:
        """`range` over the members, which are taken in the order of their ids; all of them read the one topic."""
        ids = [each["id"] for each in state["members"]]
        count = self.log[self.topic].partitions
        shares = state["shares"].get(self.topic) or [[None, None, 0] for _ in range(count)]
        each, extra = divmod(count, len(ids)) if ids else (0, 0)
        first = 0
        for share in shares:
            share[0] = None
        for place in range(len(ids)):
            for number in range(first, first := first + each + (place < extra)):
                shares[number][0] = place
        state["topics"] = {self.topic: {"id": self.log[self.topic].describe()["id"], "partitions": count}}
        state["shares"] = {self.topic: shares}
        return state

    def with_members(self, state: State, members: list[State]) -> State:
        """The state with these members; shares are of places in their list, which change."""
        before = [each["id"] for each in state.get("members", [])]
        members = sorted(members, key=lambda member: member["id"])
        ids = [each["id"] for each in members]
        state.setdefault("assignor", "range")
        state["members"] = members
        for share in state.setdefault("shares", {}).get(self.topic, []):
            for which in (0, 1):
                id = None if share[which] is None else before[share[which]]
                share[which] = ids.index(id) if id in ids else None
        return self.planned(state)

    def join(self) -> None:
        self.beat()
        mine = {"id": self.me, "topics": [self.topic], "capacity": 1, "session_ms": self.session_ms, "host": "elsewhere"}
        self.change("joins", lambda state: self.with_members(state, [*state.get("members", []), mine]))

    def given(self, state: State) -> State:
        """The state after each share without an owner, which had one before, was given to the member that wants it."""
        for share in state["shares"][self.topic]:
            if share[1] is None and share[0] is not None and share[2]:
                share[1:] = [share[0], share[2] + 1]
        return state

    def without(self, state: State, gone: Iterable[str]) -> State | None:
        kept = [each for each in state.get("members", []) if each["id"] not in gone]
        return None if len(kept) == len(state.get("members", [])) else self.given(self.with_members(state, kept))

    def look(self) -> None:
        """Takes up given shares, gives up shares that others want, takes free shares. Fenced if this member was expired."""
        _, _, _, state, positions = self.read()
        ids = [each["id"] for each in state.get("members", [])]
        if self.me not in ids:
            raise Fenced
        place = ids.index(self.me)
        shares = state["shares"][self.topic]
        self.positions = {number: at for number, at in self.positions.items() if shares[number][1] == place}
        for number, share in enumerate(shares):
            if share[1] == place:
                self.positions.setdefault(number, positions.get(number, 0))
        free = {number: self.positions[number] for number in self.positions if shares[number][0] != place}
        if free:

            def release(state: State) -> State:
                for number in free:
                    state["shares"][self.topic][number][1] = None
                return self.given(state)

            self.change("releases", release, free)
            for number in free:
                del self.positions[number]
        if any(share[:2] == [place, None] for share in shares):

            def take(state: State) -> State | None:
                now = [each["id"] for each in state["members"]].index(self.me)
                mine = [share for share in state["shares"][self.topic] if share[0] == now and share[1] is None]
                for share in mine:
                    share[1:] = [now, share[2] + 1]
                return state if mine else None

            self.change("takes", take)
            _, _, _, state, positions = self.read()
            place = [each["id"] for each in state["members"]].index(self.me)
            for number, share in enumerate(state["shares"][self.topic]):
                if share[1] == place:
                    self.positions.setdefault(number, positions.get(number, 0))

    def commit(self) -> None:
        """Commits all positions. Fenced if others fenced this member."""
        table, number, generation, _, _ = self.read()
        application = f"sparklog.members/{self.me}"
        if (table.transaction_version(application) or 0) != self.version:
            raise Fenced
        if self.positions and not self.add(table, generation, number, self.rows(self.positions), {application: self.version + 1}):
            raise Fenced
        self.version += bool(self.positions)

    # ---- heartbeats

    def beat(self) -> None:
        began = time.monotonic()
        self.counter += 1
        self.folder.mkdir(parents=True, exist_ok=True)
        part = self.folder / f".{self.me}"
        part.write_text(json.dumps({"member": self.me, "group": self.group, "counter": self.counter, "state": 0}))
        part.replace(self.folder / f"{self.me}.json")
        self.live_until = began + 0.8 * self.session_ms / 1000

    def expire(self) -> None:
        _, _, _, state, _ = self.read()
        now, silent = time.monotonic(), []
        for member in state.get("members", []):
            path = self.folder / f"{member['id']}.json"
            found = path.read_text() if path.exists() else None
            if self.seen.get(member["id"], (None, 0.0))[0] != found or member["id"] not in self.seen:
                self.seen[member["id"]] = (found, now)
            elif member["id"] != self.me and now - self.seen[member["id"]][1] > member["session_ms"] / 1000:
                silent.append(member["id"])
        if silent:
            self.change(f"expires {silent}", lambda state: self.without(state, silent), fence=silent)

    def run(self, ended: threading.Event) -> None:
        self.join()
        beaten = time.monotonic()
        while not ended.is_set():
            if time.monotonic() - beaten > HEARTBEAT_S:
                self.beat()
                self.expire()
                beaten = time.monotonic()
            self.look()
            for number in list(self.positions):
                end = self.log[self.topic].end_offsets()[number]
                if self.positions[number] < end and time.monotonic() < self.live_until:
                    read = self.log[self.topic].read(number, start=self.positions[number])
                    for offset in read["offset"].to_pylist():
                        print(number, offset, flush=True)
                    self.positions[number] = end
            self.commit()
            time.sleep(0.05)
        self.change("leaves", lambda state: self.without(state, [self.me]), dict(self.positions))
        (self.folder / f"{self.me}.json").unlink()


def main() -> None:
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    while not ended.is_set():
        try:
            Other(*sys.argv[1:]).run(ended)
        except Fenced:
            print("fenced", flush=True)
    sys.stdout.flush()
    os._exit(0)


main()
