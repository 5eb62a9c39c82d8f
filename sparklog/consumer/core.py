"""The whole state of a consumer, and its next step: a state machine without a clock, a file, a thread or a table.

A call of the program is a generator of requests (`requests.py`), which the caller answers; its result is the answer to the program.
The state has four parts. `Core` runs them, and follows the group. docs/decisions/0014-the-consumer-is-one-state-machine.md has the rules.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence

import pyarrow as pa

from sparklog.consumer import requests as ask
from sparklog.consumer.callbacks import Callbacks
from sparklog.consumer.committing import Committing
from sparklog.consumer.fetching import Decode, Fetching, Taken
from sparklog.consumer.records import ConsumerRecord, TopicPartition
from sparklog.consumer.requests import View
from sparklog.consumer.reroutes import Reroutes
from sparklog.consumer.settings import Settings
from sparklog.consumer.shares import Shares
from sparklog.consumer.subscription import Subscription, text_of
from sparklog.errors import GenerationFencedError, SparklogError
from sparklog.ondisk.state import State
from sparklog.steps import Request, Steps

ROUND_S = 0.1
"""In a program that polls, poll rounds are at most so many seconds apart. A round polls the group, and makes the commits that are due."""


class Core:
    """One consumer. Its methods that return `Steps` are run by the shell; the others ask for nothing.

    * The group, the program and `shares` learn of a change in this order, and each learns of it once: see `_adopt` and `_hand_over`.
    * Once `closed`, no part changes, and nothing is returned.
    """

    CLOSE_ATTEMPTS = 3
    """After an interrupt, and once its membership has ended, `close` does the rest."""
    GOING = (("lost", False), ("revoked", True))
    """The events of shares that go: a share of a topic that no longer exists is lost, another share is revoked."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.callbacks = Callbacks()
        self.subscription = Subscription(settings)
        self.shares = Shares(settings, self.subscription)
        self.commits = Committing(settings, self.shares, self.callbacks)
        self._reroutes = Reroutes(settings, self.subscription, self.shares, self.commits)
        self.fetching = Fetching(settings, self.subscription, self.shares, self._reroutes)
        self.waiting = self._reroutes.waiting
        seconds = (ROUND_S, settings.interval_s, settings.list_again_s, settings.commit_s)
        self.round_s = min(each for each in seconds if each is not None)
        """The seconds from one poll round to the next while nothing is found."""
        self.woken = False
        """Whether `wakeup` was called, and no call has ended by it yet."""
        self.closed = False
        self._is_joined = True
        """Whether the group knows the subscription."""
        self._generation = 0
        """The generation of the group at the last poll of it."""
        self._gone: dict[str, list[int]] = {}
        """The partitions of topics that were deleted or created again while they were read. A poll round raises the error of one topic."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to read, and nothing that could come."""
        return not self.shares.held and not self.subscription.is_by_topic

    # ---- topics and partitions

    def subscribe(self, names: Collection[str], pattern: re.Pattern[str] | None) -> Steps[None]:
        """Reads topics, or topics whose names begin with a match, in place of its topics before. CallError TOPIC_NOT_FOUND."""
        states = yield from self.subscription.find(names)
        if pattern is not None:
            states = yield from self.subscription.find_matching(pattern)
        going = [each for each in self.shares.held if each.topic not in states]
        yield from self._hand_over(going)
        commits = self.shares.not_committed(going) if self.settings.auto_commits else []
        if self.subscription.is_member:
            self._is_joined = False
            yield from self.commits.request(ask.Join(sorted(names), None if pattern is None else text_of(pattern), going, commits))
            self._is_joined = True
        self._change_subscription(states, names, pattern)
        self.callbacks.raise_first()

    def assign(self, partitions: Sequence[TopicPartition]) -> Steps[None]:
        """Reads these partitions in place of its partitions before. CallError TOPIC_NOT_FOUND, PARTITION_NOT_FOUND."""
        yield from self.commits.make_due((yield from ask.Now()), at_once=True)
        states = yield from self.subscription.find({topic for topic, _ in partitions})
        for partition in partitions:
            self.subscription.require(states[partition.topic], partition)
        self._change_subscription(states, partitions=partitions)

    def unsubscribe(self) -> Steps[None]:
        """Stops reading, and leaves the group."""
        yield from self._hand_over(list(self.shares.held))
        if self.subscription.is_member:
            if self.settings.auto_commits:
                yield from self.commits.make_due((yield from ask.Now()), at_once=True)
            yield from self.commits.request(ask.Leave(for_good=False))
        self._change_subscription({})
        yield from self._drop_fetches()
        self.callbacks.raise_first()

    def _change_subscription(
        self,
        states: dict[str, State],
        names: Collection[str] | None = None,
        pattern: re.Pattern[str] | None = None,
        partitions: Iterable[TopicPartition] = (),
    ) -> None:
        self.subscription.change(states, names, pattern, list(dict.fromkeys(partitions)))
        self.shares.follow_subscription()

    def _drop_fetches(self) -> Steps[None]:
        """Drops the bytes of fetches that were requested before."""
        yield from ask.Expect([])

    # ---- records

    def poll(self, timeout_s: float, records_max: int, bytes_max: int, decode: Decode) -> Steps[dict[TopicPartition, list[ConsumerRecord]]]:
        """The next records, decoded."""
        self.callbacks.require_outside()
        self.fetching.raise_failed()
        return self.fetching.records_of((yield from self.take(timeout_s, records_max, bytes_max)), decode)

    def poll_batches(self, timeout_s: float, records_max: int, bytes_max: int) -> Steps[dict[TopicPartition, pa.RecordBatch]]:
        """The next records."""
        return self.fetching.batches((yield from self.take(timeout_s, records_max, bytes_max)))

    def take(self, timeout_s: float, records_max: int, bytes_max: int) -> Steps[list[Taken]]:
        """The next records as soon as there are any; the caller sets the positions after them. Empty after the timeout, or when woken."""
        self.callbacks.require_outside()
        now = yield from ask.Now()
        yield from self._round(now)
        end = (yield from ask.Now()) + timeout_s if timeout_s else 0.0
        while True:
            found = [] if self.closed else (yield from self.fetching.take(now, records_max, bytes_max))
            if found:
                if not self.subscription.is_member or (yield from ask.IsLive()):
                    self.fetching.count(found)
                    return found
                for each in found:  # it took so long that others may have its shares
                    each.share.batch = None
            left = end - (yield from ask.Now()) if timeout_s else 0.0
            if self.woken or self.closed or (left <= 0 and not found):
                self.woken = False
                return []
            if not found:
                yield from ask.Wait(min(self.settings.interval_s, left))
            now = yield from ask.Now()
            yield from self._round(now)

    def finds_nothing(self, now: float, newest: Callable[[str], State | SparklogError | None]) -> bool:
        """Whether a call that does not wait would find nothing, and has nothing else to do.

        `newest` gives the newest state of a topic; None if a refresh of it is due and takes long.

        All is read, topics are as they were, and no poll round is due: each tenth of a second has at least one round.
        """
        if not self.shares.is_idle or self.subscription.news or self.callbacks.event or self.commits.in_flight or self.woken:
            return False
        return not self._is_round_due(now) and all(newest(name) is state for name, state in self.subscription.states.items())

    def _is_round_due(self, now: float) -> bool:
        return now - self.shares.refreshed >= self.round_s

    # ---- the group

    def _round(self, now: float) -> Steps[None]:
        """Runs before records are returned, and while no records are there. It reports commits, takes and gives partitions, and commits
        positions.
        """
        if not self.settings.has_group:
            return
        yield from self.commits.notify()
        try:
            if self.subscription.is_member and not self.closed and self.subscription.is_by_topic:
                yield from self._follow()
            if not self.closed:
                yield from self.commits.make_due(now)
        except SparklogError as error:
            self.commits.notice(error)
            yield from self._lose_all()
            raise
        self.callbacks.raise_first()

    def _lose_all(self) -> Steps[None]:
        """If others ended its membership, it no longer holds shares, and the program learns that its shares are lost."""
        if self.commits.is_fenced and self.shares.held:
            topics = {each.topic: share.topic_id for each, share in self.shares.held.items()}
            yield from self._adopt(View({}, [], topics, {}))

    def _follow(self) -> Steps[None]:
        """Learns the changes of the group, gives up shares that others wait for, and takes free shares."""
        yield from self._join_again()
        view = yield from ask.PollGroup()
        if view is not None:
            yield from self._adopt(view)
            if view.asked_for and not self.closed:
                yield from self._hand_over([each for each in view.asked_for if each in self.shares.held])
                if not self.closed:
                    going = self._to_release(view)
                    commits = self.shares.not_committed(going) if self.settings.auto_commits else []
                    yield from self._adopt((yield from ask.Release(going, commits)))
            if not self.closed:
                yield from self._adopt((yield from ask.Take()))
        self.callbacks.raise_first()
        for topic in sorted(self._gone):  # one in each round
            its, partitions = self.settings, ", ".join(map(str, sorted(self._gone.pop(topic))))
            raise SparklogError("MEMBER_TOPIC_GONE", topic=topic, root=its.root, group=its.group, table=its.table, partitions=partitions)

    def _join_again(self) -> Steps[None]:
        """Names the subscription again if an interrupt came between the group and the answer."""
        if not self._is_joined:
            names, pattern = self.subscription.names, self.subscription.pattern
            yield from ask.Join(sorted(names or ()), None if pattern is None else text_of(pattern), [], [])
            self._is_joined = True

    def _to_release(self, view: View) -> list[TopicPartition]:
        """The shares to give up. Some were never read: the program changed the subscription before the consumer knew of them."""
        return list(view.asked_for)

    def _adopt(self, view: View) -> Steps[None]:
        """Holds the shares that a poll of the group showed, and notifies the program: first of lost shares, then of new shares."""
        if view.generation != self._generation:  # an operator, or a commit of another member, may have moved positions back
            self._generation = view.generation
            self._reroutes.forget_group()
            self.shares.changed(back=True)
        lost = yield from self._drop_lost(view)
        yield from self.callbacks.notify("lost", lost)
        if came := self._new(view):
            yield from self._add_topics({each.topic for each in came})
            yield from self.callbacks.notify("assigned", self.shares.take(came, view))

    def _drop_lost(self, view: View) -> Steps[list[TopicPartition]]:
        """Holds the shares no longer that the group gave to others. Returns the shares whose end the program does not expect."""
        held = self.shares.held
        # The program was notified that a share goes. If the hand-over fails and the plan changes, the share stays, and comes to the program
        # again.
        stays = {each for each, share in held.items() if share.is_going} - set(view.asked_for)
        lost = [each for each, share in held.items() if view.held.get(each) != share.holding or each in stays]
        yield from self._find_gone([each for each in lost if view.topics.get(each.topic) != held[each].topic_id])
        unknown = [each for each in lost if not held[each].is_going]
        self.shares.drop(lost)
        return unknown

    def _new(self, view: View) -> list[TopicPartition]:
        """The shares that the group gave to this consumer. A consumer that a callback closed takes no shares."""
        return [] if self.closed else [each for each in view.held if each not in self.shares.held]

    def _add_topics(self, names: Collection[str]) -> Steps[None]:
        for name, state in (yield from ask.RefreshTopics(sorted(names), surely=True)).items():
            if not isinstance(state, SparklogError) and self.subscription.reads(name):
                self.shares.add_topic(state)

    def _find_gone(self, lost: list[TopicPartition]) -> Steps[None]:
        """Notes the partitions whose topics were deleted, or created again, while they were read.

        A member that was expired may have been the only reader of a topic. The group then does not know the topic, although it exists.
        """
        read = [each for each in lost if self.subscription.reads(each.topic)]
        found = (yield from ask.RefreshTopics(sorted({each.topic for each in read}), surely=True)) if read else {}
        for each in read:
            state = found[each.topic]
            if state.id == "TOPIC_NOT_FOUND" if isinstance(state, SparklogError) else state.topic_id != self.shares.held[each].topic_id:
                self._gone.setdefault(each.topic, []).append(each.partition)

    def _hand_over(self, going: list[TopicPartition]) -> Steps[None]:
        """Before shares are given up: commits them, where it commits by itself, and notifies the program, once of each."""
        if not self.settings.has_group:
            return
        if self.settings.auto_commits and any(not self.shares.held[each].is_going for each in going):
            try:
                yield from self.commits.wait()
                yield from self._commit_going(going)
            except GenerationFencedError:
                raise
            except SparklogError as error:
                self.commits.warn(error)
        if self.subscription.is_member:
            yield from self._notify_going(going)
            yield from self.commits.wait()

    def _commit_going(self, going: list[TopicPartition]) -> Steps[None]:
        """Commits the positions of shares before the program learns that they go."""
        yield from self.commits.make(self.shares.not_committed(going))

    def _notify_going(self, going: list[TopicPartition]) -> Steps[None]:
        """The program learns that shares go."""
        for event, alive in self.GOING:
            untold = self._unknown(going, alive=alive)
            for each in untold:
                self.shares.held[each].is_going = True
            yield from self.callbacks.notify(event, untold)

    def _unknown(self, going: list[TopicPartition], *, alive: bool) -> list[TopicPartition]:
        """The shares among these whose end the program does not expect, if they are alive, or if they are not."""
        shares = ((each, self.shares.held[each]) for each in going if each in self.shares.held)
        return [each for each, share in shares if share.alive is alive and not share.is_going]

    # ---- the end

    def close(self, *, autocommit: bool) -> Steps[None]:
        """Ends it: commits, notifies the program that all partitions go, and leaves the group. A callback may call it too."""
        if self.closed:
            return
        failed: list[BaseException] = []
        committing = autocommit and self.settings.auto_commits
        for _ in range(self.CLOSE_ATTEMPTS):
            count = len(failed)
            yield from self._try(self._part(committing=committing), failed)
            if self.closed or len(failed) == count:
                break
        if not self.closed:
            self.closed = True
            for share in self.shares.held.values():
                share.alive = False
            yield from self._try(self._drop_fetches(), failed)
            if self.settings.has_group:
                yield from self._try(self.commits.wait(end=True), failed)
                yield from self._try(ask.Leave(for_good=True), failed)
        if failed:
            raise failed[0]
        self.callbacks.raise_first()

    def _try(self, steps: Steps[None] | Request[None], failed: list[BaseException]) -> Steps[None]:
        """A step of the end. The next one follows also if it fails or is interrupted."""
        try:
            yield from steps
        except GeneratorExit:
            raise
        except BaseException as error:
            failed.append(error)

    def _part(self, *, committing: bool) -> Steps[None]:
        """Commits, if it does so by itself, and notifies the program that all partitions go."""
        yield from self._lose_all()
        if self.subscription.is_member:
            if committing:
                yield from self._hand_over(list(self.shares.held))
            else:
                yield from self._notify_going(list(self.shares.held))
        if committing and not self.closed:
            yield from self.commits.make_due((yield from ask.Now()), at_once=True)
