"""The whole state of a consumer, and its next step: a state machine without a clock, a file, a thread or a table.

A call of the program is a generator of requests (`requests.py`), which the caller answers; its result is the answer to the program.
`beliefs.py` has the memory, `reading.py` how records are taken, and this module the subscription, the group and its commits.
docs/decisions/0014-the-consumer-is-one-state-machine.md has the rules.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Iterable, Sequence
from concurrent.futures import Future

from sparklog.consumer import requests as ask
from sparklog.consumer.beliefs import AssignedPartition
from sparklog.consumer.reading import Reading
from sparklog.consumer.records import TopicPartition
from sparklog.consumer.requests import Ats, Committed, Known, R, Refused, Request, Steps, View
from sparklog.errors import GenerationFenced, SparklogError
from sparklog.ondisk.state import State

_log = logging.getLogger(__name__)
_ENDS = ("GENERATION_FENCED", "INSTANCE_FENCED", "OFFSETS_TABLE_REPLACED")
"""The errors after which a member cannot go on: its group is another's, or is gone."""
_FLAGS = {re.ASCII: "a", re.IGNORECASE: "i", re.MULTILINE: "m", re.DOTALL: "s", re.VERBOSE: "x"}


class Core(Reading):
    """One consumer. Its methods that return `Steps` are run by the shell; the others ask for nothing."""

    # ---- topics and partitions

    def subscribe(self, names: Collection[str], pattern: re.Pattern[str] | None) -> Steps[None]:
        """Reads topics, or topics whose names begin with a match, in place of its topics before. CallError TOPIC_NOT_FOUND."""
        found = yield from ask.LookAtTopics(sorted(names), surely=True)
        for state in found.values():
            if isinstance(state, SparklogError):
                raise state
        if pattern is not None:
            now = yield from ask.Now()
            listed = yield from ask.ListTopics(lambda name: pattern.match(name) is not None)
            found = {name: each for name, each in (yield from ask.LookAtTopics(listed)).items() if not isinstance(each, SparklogError)}
            self._listed = now
        states = {name: state for name, state in found.items() if not isinstance(state, SparklogError)}
        going = [each for each in self.shares if each.topic not in states]
        yield from self._hand_in(going)
        ats = self._not_committed(going) if self.commits_by_itself else {}
        if self._settings.shares:
            self._is_joined = False
            yield from self._ask(ask.Join(sorted(names), None if pattern is None else text_of(pattern), going, ats))
            self._is_joined = True
        self.names, self.pattern, self.by_hand = None if pattern else frozenset(names), pattern, []
        self._become(states)
        yield from self._raise()

    def assign(self, partitions: Sequence[TopicPartition]) -> Steps[None]:
        """Reads these partitions in place of its partitions before. CallError TOPIC_NOT_FOUND, PARTITION_NOT_FOUND."""
        yield from self._auto_commit((yield from ask.Now()), at_once=True)
        found = yield from ask.LookAtTopics(sorted({topic for topic, _ in partitions}), surely=True)
        states: dict[str, State] = {}
        for name, state in found.items():
            if isinstance(state, SparklogError):
                raise state
            states[name] = state
        for partition in partitions:
            self._require(states[partition.topic], partition)
        self.names, self.pattern, self.by_hand = None, None, list(dict.fromkeys(partitions))
        self._become(states)

    def unsubscribe(self) -> Steps[None]:
        """Stops reading, and leaves the group."""
        yield from self._hand_in(list(self.shares))
        if self._settings.shares:
            if self.commits_by_itself:
                yield from self._auto_commit((yield from ask.Now()), at_once=True)
            yield from self._ask(ask.Leave(for_good=False))
        self.names, self.pattern, self.by_hand = None, None, []
        self._become({})
        yield from ask.Expect([])
        yield from self._raise()

    # ---- the group

    def _turn(self, now: float) -> Steps[None]:
        """Runs before records are returned, and while no records are there. It reports commits, takes and gives partitions, and commits
        positions.
        """
        if not self.has_group:
            return
        if self._beside:
            raised = yield from ask.TellCommits()
            self._raised += raised
        try:
            if self._settings.shares and not self.closed and self.subscribes:
                yield from self._follow()
            if not self.closed:
                yield from self._auto_commit(now)
        except SparklogError as error:
            self._fenced_by(error)
            yield from self._lose()
            raise
        yield from self._raise()

    def _ask(self, request: Request[R]) -> Steps[R]:
        """Asks the group outside of a turn. The program learns of the end of its membership in the next turn, or as it closes."""
        try:
            return (yield from request)
        except SparklogError as error:
            self._fenced_by(error)
            raise

    def _fenced_by(self, error: BaseException) -> None:
        if self._settings.shares and isinstance(error, SparklogError) and error.id in _ENDS:
            self._is_fenced = True

    def _lose(self) -> Steps[None]:
        """If others ended its membership, it no longer holds shares, and the program learns that its shares are lost."""
        if self._is_fenced and self.shares:
            yield from self._adopt(View({}, [], {each.topic: share.topic_id for each, share in self.shares.items()}, {}))

    def _follow(self) -> Steps[None]:
        """Learns the changes of the group, gives up shares that others wait for, and takes free shares."""
        if not self._is_joined:  # an interrupt came between the group and the answer
            yield from ask.Join(sorted(self.names or ()), None if self.pattern is None else text_of(self.pattern), [], {})
            self._is_joined = True
        view = yield from ask.LookAtGroup()
        if view is not None:
            yield from self._adopt(view)
            if view.asked_for and not self.closed:
                yield from self._hand_in([each for each in view.asked_for if each in self.shares])
                if not self.closed:
                    # Also shares that were never read: the program changed the subscription before the consumer knew of them.
                    going = list(view.asked_for)
                    yield from self._adopt((yield from ask.Release(going, self._not_committed(going) if self.commits_by_itself else {})))
            if not self.closed:
                yield from self._adopt((yield from ask.Take()))
        yield from self._raise()
        for topic in sorted(self._gone):  # one in each turn
            settings, partitions = self._settings, ", ".join(map(str, sorted(self._gone.pop(topic))))
            raise SparklogError(
                "MEMBER_TOPIC_GONE", topic=topic, root=settings.root, group=settings.group, table=settings.table, partitions=partitions
            )

    def _adopt(self, view: View) -> Steps[None]:
        """Holds the shares that a look at the group showed, and informs the program: first of lost shares, then of new shares."""
        held = view.held
        if view.generation != self._generation:  # an operator, or a commit of another member, may have moved positions back
            self._generation, self._asked = view.generation, float("-inf")
            self._moved(back=True)
        # The program was told that a share goes. If the hand-over fails and the plan changes, the share stays, and comes to the program
        # again.
        stays = {each for each, share in self.shares.items() if share.asked} - set(view.asked_for)
        lost = [each for each, share in self.shares.items() if held.get(each) != share.holding or each in stays]
        yield from self._find_gone([each for each in lost if view.topics.get(each.topic) != self.shares[each].topic_id])
        untold = [each for each in lost if not self.shares[each].asked]
        if lost:
            self._keep({partition: share for partition, share in self.shares.items() if partition not in set(lost)})
            self._moved(back=True)
        yield from self._tell("lost", untold)
        new = [each for each in held if each not in self.shares]
        if self.closed or not new:
            return
        for name, state in (yield from ask.LookAtTopics(sorted({each.topic for each in new}), surely=True)).items():
            if not isinstance(state, SparklogError) and self.reads(name):
                self.states[name] = state
                self._align(name, late=True)
        came = {}
        for each in new:
            known, holding = self.states.get(each.topic), held[each]
            if known is not None and known.topic_id == holding.topic_id and each.partition < known.partitions:
                came[each] = AssignedPartition(each, holding.topic_id, holding, known.ends[each.partition])
                at = view.positions.get(each)
                came[each].late = at is not None and at.topic_id != holding.topic_id
                if at is not None and at.topic_id == holding.topic_id:
                    came[each].position = came[each].committed = at.offset
        self._keep(dict(sorted((self.shares | came).items())))
        self._moved(back=True)
        yield from self._tell("assigned", list(came))

    def _find_gone(self, lost: list[TopicPartition]) -> Steps[None]:
        """Notes the partitions whose topics were deleted, or created again, while they were read.

        A member that was expired may have been the only reader of a topic. The group then does not know the topic, although it exists.
        """
        read = [each for each in lost if self.reads(each.topic)]
        found = (yield from ask.LookAtTopics(sorted({each.topic for each in read}), surely=True)) if read else {}
        for each in read:
            if self._is_gone(self.shares[each], found[each.topic]):
                self._gone.setdefault(each.topic, []).append(each.partition)

    def _is_gone(self, share: AssignedPartition, found: State | SparklogError) -> bool:
        """Whether the topic of a share was deleted, or created again."""
        return found.id == "TOPIC_NOT_FOUND" if isinstance(found, SparklogError) else found.topic_id != share.topic_id

    def _hand_in(self, going: list[TopicPartition]) -> Steps[None]:
        """Before shares are given up: commits them, where it commits by itself, and tells the program, each of them once."""
        if not self.has_group:
            return
        if self.commits_by_itself and any(not self.shares[each].asked for each in going):
            try:
                yield from self._settle()
                yield from self._commit(self._not_committed(going))
            except GenerationFenced:
                raise
            except SparklogError as error:
                self._warn(error)
        if self._settings.shares:
            yield from self._tell_of(going)
            yield from self._settle()

    def _tell_of(self, going: list[TopicPartition]) -> Steps[None]:
        """Tells the program of each share once: a share of a topic that is gone is lost, another one is revoked."""
        for event, alive in (("lost", False), ("revoked", True)):
            shares = ((each, self.shares[each]) for each in going if each in self.shares)
            untold = [each for each, share in shares if share.alive is alive and not share.asked]
            for each in untold:
                self.shares[each].asked = True
            yield from self._tell(event, untold)

    def _tell(self, event: str, partitions: list[TopicPartition]) -> Steps[None]:
        """Tells the program of it. An error that it raises is kept until the turn is done."""
        if not partitions:
            return
        within, self._within = self._within, event
        try:
            raised = yield from ask.Tell(event, sorted(partitions))
        finally:
            self._within = within
        if raised is not None:
            self._raised.append(raised)

    def _raise(self) -> Steps[None]:
        """Raises the first error of callbacks."""
        raised, self._raised = self._raised, []
        if raised and not self._within:
            raise raised[0]
        self._raised = raised
        return
        yield

    # ---- commits

    def _not_committed(self, partitions: Iterable[TopicPartition]) -> Ats:
        """The positions of these shares that are not committed, of topics that are still there."""
        shares = ((each, self.shares[each]) for each in partitions if each in self.shares)
        return {
            each: share.at
            for each, share in shares
            if share.position is not None and share.position != share.committed and each.topic in self.states
        }

    def commit(self, ats: Ats | None = None) -> Steps[None]:
        """Commits these positions, or all. Each partition is taken by itself: the error names a partition that could not be committed."""
        ats = yield from self.to_commit(ats)
        yield from self._settle()
        refused = yield from self._commit(ats)
        for error in refused.values():
            raise error
        yield from self._raise()

    def to_commit(self, ats: Ats | None) -> Steps[Ats]:
        """These positions, or all."""
        if ats is None:
            yield from self.settle()
            return self.positions()
        return ats

    def committed(self) -> Steps[Known]:
        """The offsets that the group has committed, by partition and topic id."""
        yield from self._settle()
        found = yield from ask.LookAtPositions()
        yield from self._raise()
        return found

    def commit_beside(self, ats: Ats | None, callback: Committed | None) -> Steps[Future[None]]:
        """Begins to commit these positions, or all, and does not wait for it."""
        ats = yield from self.to_commit(ats)
        self._beside += 1
        return (yield from ask.CommitAsync(ats, callback))

    def _commit(self, ats: Ats) -> Steps[Refused]:
        refused: Refused = {}
        if ats:
            refused = yield from self._ask(ask.CommitSync(ats))
            self._remember(ats, refused)
        return refused

    def _remember(self, ats: Ats, refused: Refused) -> None:
        for partition, at in ats.items():
            share = self.shares.get(partition)
            if partition not in refused and share is not None and share.topic_id == at.topic_id and at.holding in (None, share.holding):
                share.committed = at.offset

    def _auto_commit(self, now: float, *, at_once: bool = False) -> Steps[None]:
        """Commits those positions that are not committed, if that is due or asked for; and now and then says that the consumer is there.

        A commit that fails is tried again after an interval. GenerationFenced if the group is another's.
        """
        if not self.has_group:
            return
        self._tried = now if self._tried is None else self._tried
        try:
            if self._settings.commit_s is not None and (at_once or now - self._tried >= self._settings.commit_s):
                yield from self._settle()
                self._tried = now
                refused = yield from self._commit(self._not_committed(self.shares))
                for error in [each for each in refused.values() if each.id == "MEMBER_FENCED"][:1]:
                    self._warn(error)
            if not self._beside:
                yield from ask.Beat()
        except GenerationFenced:
            raise
        except SparklogError as error:
            self._warn(error)

    def _warn(self, error: SparklogError) -> None:
        _log.warning("The positions of group %s could not be committed: %s", self._settings.group, error)

    def ended(self, ats: Ats, refused: Refused | BaseException) -> None:
        """A commit that was begun has ended."""
        self._beside -= 1
        if isinstance(refused, BaseException):
            self._fenced_by(refused)
        else:
            self._remember(ats, refused)

    # ---- the end

    def close(self, *, autocommit: bool) -> Steps[None]:
        """Ends it: commits, tells the program that all partitions go, and leaves the group. A callback may call it too."""
        if self.closed:
            return
        failed: list[BaseException] = []
        committing = autocommit and self.commits_by_itself
        for _ in range(3):  # after an interrupt, and once its membership has ended, it does the rest
            count = len(failed)
            yield from self._try(self._part(committing=committing), failed)
            if self.closed or len(failed) == count:
                break
        if not self.closed:
            self.closed = True
            for share in self.shares.values():
                share.alive = False
            yield from self._try(ask.Expect([]), failed)
            if self.has_group:
                yield from self._try(self._settle(end=True), failed)
                yield from self._try(ask.Leave(for_good=True), failed)
        if failed:
            raise failed[0]
        yield from self._raise()

    def _try(self, steps: Steps[None] | Request[None], failed: list[BaseException]) -> Steps[None]:
        """A step of the end. The next one follows also if it fails or is interrupted."""
        try:
            yield from steps
        except GeneratorExit:
            raise
        except BaseException as error:
            failed.append(error)

    def _part(self, *, committing: bool) -> Steps[None]:
        """Commits, if it does so by itself, and tells the program that all partitions go."""
        yield from self._lose()
        if self._settings.shares:
            if committing:
                yield from self._hand_in(list(self.shares))
            else:
                yield from self._tell_of(list(self.shares))
        if committing and not self.closed:
            yield from self._auto_commit((yield from ask.Now()), at_once=True)


def text_of(pattern: re.Pattern[str]) -> str:
    """A pattern with its flags in its text, where other members read it."""
    flags = "".join(letter for flag, letter in _FLAGS.items() if pattern.flags & flag)
    return f"(?{flags}){pattern.pattern}" if flags else pattern.pattern
