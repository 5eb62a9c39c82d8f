"""Assignors: groups that Kafka's own classes shared out, and what must hold for any group."""

import json
import random
import tracemalloc
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from sparklog import CallError
from sparklog.groups.assignors import ASSIGNORS, Assignment, Member, Partition, assign, moved, owners_of

VECTORS: list[dict[str, Any]] = json.loads((Path(__file__).parents[1] / "vectors" / "assignors.json").read_text(encoding="utf-8"))


def partitions(text: str) -> set[Partition]:
    """`t0:0,1 t1:2` as partitions."""
    return {(topic, int(number)) for topic, _, numbers in (each.partition(":") for each in text.split()) for number in numbers.split(",")}


def given(vector: dict[str, Any]) -> tuple[dict[str, int], list[Member], dict[Partition, str], dict[Partition, list[str]]]:
    """The topics of a vector, its members, who owns what, and the racks of partitions."""
    described = vector["members"].items()
    members = [Member(id, of["topics"], of.get("instance"), rack=of.get("rack")) for id, of in described]
    claims: dict[Partition, dict[int, list[str]]] = {}
    for id, of in described:
        for partition in partitions(of.get("owned", "")):
            claims.setdefault(partition, {}).setdefault(of["generation"], []).append(id)
    # If two members claim a partition, the later generation has it; neither has it if they are of the same one.
    newest = {partition: by[max(by)] for partition, by in claims.items()}
    owners = {partition: of[0] for partition, of in newest.items() if len(of) == 1}
    racks = {(topic, number): on for topic, of in vector.get("replica_racks", {}).items() for number, on in enumerate(of)}
    return vector["topics"], members, owners, racks


def kept(owners: dict[Partition, str], assignment: Assignment) -> int:
    return sum(owners.get(each) == member for member, of in assignment.items() for each in of)


@pytest.mark.parametrize("vector", [each for each in VECTORS if "sticky" not in each["assignor"]], ids=lambda each: each["id"])
def test_a_group_is_shared_out_as_by_kafka(vector):
    topics, members, owners, racks = given(vector)
    found = assign(vector["assignor"].removesuffix("-848"), topics, members, owners=owners, racks=racks)
    assert {member: set(of) for member, of in found.items()} == {member: partitions(of) for member, of in vector["assignment"].items()}


@pytest.mark.parametrize("vector", [each for each in VECTORS if "sticky" in each["assignor"]], ids=lambda each: each["id"])
def test_members_keep_as_much_as_with_kafkas_sticky_assignors(vector):
    """Which members get what is the uniform assignor's rule here. How many each gets and keeps is the same."""
    topics, members, owners, _ = given(vector)
    found = assign(vector["assignor"], topics, members, owners=owners)
    lost = len({each for of in vector["members"].values() for each in partitions(of.get("owned", ""))} - owners.keys())
    assert vector.get("kept", 0) - lost <= kept(owners, found) <= vector.get("kept", 0)
    if vector["assignor"] == "sticky":  # the cooperative one does not give yet what another member must let go of first
        assert sorted(map(len, found.values())) == sorted(vector["sizes"])


def test_all_vectors_are_there():
    assert len(VECTORS) == 167
    assert {each["assignor"] for each in VECTORS} == {*ASSIGNORS, "range-848"}


class Group:
    """A group that changes at random: members join and leave, topics grow."""

    def __init__(self, seed: int, *, alike: bool) -> None:
        self.random = random.Random(seed)
        self.alike = alike
        self.topics = {f"t{number}": self.random.randint(1, 12) for number in range(self.random.randint(1, 5))}
        self.members = [self.member(number) for number in range(self.random.randint(1, 8))]
        self.joined = len(self.members)

    def member(self, number: int) -> Member:
        names = sorted(self.topics)
        topics = names if self.alike else self.random.sample(names, self.random.randint(0, len(names)))
        static = self.random.random() < 0.2
        return Member(f"m{self.random.randrange(100)}-{number}", topics, f"i{number}" if static else None)

    def change(self) -> None:
        act = self.random.randrange(3)
        if act == 0 and len(self.members) > 1:
            self.members.remove(self.random.choice(self.members))
        elif act == 1:
            self.joined += 1
            self.members.append(self.member(self.joined))
        else:
            self.topics[self.random.choice(sorted(self.topics))] += self.random.randint(1, 4)

    def shuffled(self, owners: dict[Partition, str]) -> tuple[dict[str, int], list[Member], dict[Partition, str]]:
        """The same group, written in another order."""

        def mixed(given: dict[Any, Any]) -> dict[Any, Any]:
            return dict(self.random.sample(list(given.items()), len(given)))

        members = [Member(each.id, self.random.sample(list(each.topics), len(each.topics)), each.instance) for each in self.members]
        return mixed(self.topics), self.random.sample(members, len(members)), mixed(owners)


def require_whole(group: Group, found: Assignment, seed: int) -> None:
    """Each partition of a topic that a member reads has one owner, which reads it."""
    reads = {each.id: each.topics for each in group.members}
    wanted = Counter(
        (topic, number) for topic, count in group.topics.items() for number in range(count) if any(topic in of for of in reads.values())
    )
    assert Counter(each for of in found.values() for each in of) == wanted, seed
    assert all(topic in reads[member] for member, of in found.items() for topic, _ in of), seed
    assert found.keys() == reads.keys(), seed


def most_kept(group: Group, owners: dict[Partition, str]) -> int:
    """The most partitions that can stay where they are, if all members read the same topics and get the same number or one more."""
    least, extras = divmod(sum(group.topics.values()), len(group.members))
    owned = [sum(owner == each.id for owner in owners.values()) for each in group.members]
    return sum(min(each, least) for each in owned) + min(extras, sum(each > least for each in owned))


@pytest.mark.parametrize("assignor", ASSIGNORS)
@pytest.mark.parametrize("alike", [True, False], ids=["alike", "mixed"])
def test_any_group(assignor, alike):
    for seed in range(60):
        group = Group(seed, alike=alike)
        owners: dict[Partition, str] = {}
        for _ in range(8):
            found = assign(assignor, group.topics, group.members, owners=owners)
            require_whole(group, found, seed)
            topics, members, before = group.shuffled(owners)
            assert assign(assignor, topics, members, owners=before) == found, seed
            assert assign(assignor, group.topics, group.members, owners=owners_of(found)) == found, seed
            sizes = [len(of) for of in found.values()]
            if alike and assignor != "range":
                assert max(sizes) - min(sizes) <= 1, seed
            if alike and assignor not in ("range", "roundrobin"):
                assert kept(owners, found) == most_kept(group, owners), seed
                live = {each.id for each in group.members}
                assert len(moved({each: of for each, of in owners.items() if of in live}, found)) + kept(owners, found) <= len(owners), seed
            owners = owners_of(found)
            group.change()


def test_no_single_move_makes_members_of_other_subscriptions_more_even():
    """As far as the fullest reader of a topic could give to the emptiest."""
    for seed in range(200):
        group = Group(seed, alike=False)
        found = assign("sticky", group.topics, group.members)
        for topic in group.topics:
            readers = [each.id for each in group.members if topic in each.topics]
            holders = [each for each in readers if any(topic == name for name, _ in found[each])]
            if holders:
                assert max(len(found[each]) for each in holders) - min(len(found[each]) for each in readers) <= 1, seed


def test_members_are_about_as_heavy_with_weights():
    for seed in range(100):
        group = Group(seed, alike=True)
        weights = {(topic, number): group.random.randrange(1_000) for topic, count in group.topics.items() for number in range(count)}
        found = assign("sticky", group.topics, group.members, weights=weights)
        require_whole(group, found, seed)
        assert assign("sticky", group.topics, group.members, owners=owners_of(found), weights=weights) == found, seed
        heavy = {member: sum(weights[each] + 1 for each in of) for member, of in found.items()}
        fullest, emptiest = max(heavy, key=lambda each: heavy[each]), min(heavy, key=lambda each: heavy[each])
        lightest = min((weights[each] + 1 for each in found[fullest]), default=0)
        assert heavy[fullest] - heavy[emptiest] <= max(weights[each] + 1 for each in weights), seed
        assert heavy[fullest] == heavy[emptiest] or lightest >= heavy[fullest] - heavy[emptiest], seed


def test_partitions_without_weight_are_shared_too():
    found = assign("sticky", {"t": 9}, [Member(id, ["t"]) for id in "abc"], weights={("t", 4): 1_000})
    assert sorted(map(len, found.values())) == [1, 4, 4]
    assert [("t", 4)] in found.values()


def test_a_move_by_weight_is_made_only_if_it_helps():
    """a has 10 and 1, b has 9: with 1 moved they would be 10 and 10, with 10 moved 1 and 19."""
    members = [Member("a", ["t"]), Member("b", ["t"])]
    owners = {("t", 0): "a", ("t", 1): "a", ("t", 2): "b"}
    found = assign("sticky", {"t": 3}, members, owners=owners, weights={("t", 0): 9, ("t", 1): 0, ("t", 2): 8})
    assert moved(owners, found) == [("t", 1)]
    found = assign("sticky", {"t": 3}, members, owners=owners, weights={("t", 0): 9, ("t", 1): 0, ("t", 2): 9})
    assert moved(owners, found) == []


@pytest.mark.parametrize("assignor", ASSIGNORS)
def test_a_member_of_several_streams_counts_as_that_many(assignor):
    """Kafka 0.7: five partitions and two consumers of four streams each. The first five streams get one."""
    members = [Member("a", ["t"], capacity=4), Member("b", ["t"], capacity=4)]
    found = assign(assignor, {"t": 5}, members)
    assert {*map(len, found.values())} == ({1, 4} if assignor in ("range", "roundrobin") else {2, 3})
    found = assign(assignor, {"t": 30}, [Member("a", ["t"], capacity=2), Member("b", ["t"])])
    assert {member: len(of) for member, of in found.items()} == {"a": 20, "b": 10}
    assert assign(assignor, {"t": 30}, [Member("a", ["t"], capacity=2), Member("b", ["t"])], owners=owners_of(found)) == found


@pytest.mark.parametrize("assignor", ["range", "roundrobin"])
def test_a_member_of_a_great_capacity_gets_as_much_as_so_many_members(assignor):
    """Random groups with racks, and capacities far above the number of partitions."""
    for seed in range(300):
        chance = random.Random(seed)
        topics = {name: chance.randrange(1, 6) for name in chance.sample("tuv", chance.randrange(1, 4))}
        racks = {(name, number): chance.sample("qrs", chance.randrange(3)) for name, of in topics.items() for number in range(of)}
        members = [
            Member(f"m{number}", chance.sample("tuv", chance.randrange(1, 4)), None, chance.choice((1, 2, 9, 40)), chance.choice("qr"))
            for number in range(chance.randrange(1, 5))
        ]
        many = [Member(f"{each.id}-{at:02}", each.topics, rack=each.rack) for each in members for at in range(each.capacity)]
        together: dict[str, set[Partition]] = {each.id: set() for each in members}
        for id, of in assign(assignor, topics, many, racks=racks).items():
            together[id.partition("-")[0]] |= set(of)
        assert {id: set(of) for id, of in assign(assignor, topics, members, racks=racks).items()} == together


@pytest.mark.parametrize("assignor", ASSIGNORS)
def test_memory_does_not_grow_with_capacities(assignor):
    def shares(capacity: int) -> Assignment:
        members = [Member("a", ["t", "u"]), Member("b", ["t"], capacity=capacity), Member("c", ["u"], capacity=3)]
        return assign(assignor, {"t": 7, "u": 5}, members)

    tracemalloc.start()
    try:
        assert shares(1_000_000) == shares(10_000)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_range_goes_to_near_members_first_and_stays_cut_alike():
    """Random racks: as many partitions each as without racks, and topics of one size that have the same racks are cut alike."""
    for seed in range(100):
        group = Group(seed, alike=True)
        chance = random.Random(seed)
        members = [Member(each.id, each.topics, each.instance, rack=chance.choice([None, "r0", "r1", "r2"])) for each in group.members]
        on = [chance.sample(["r0", "r1", "r2"], chance.randint(0, 2)) for _ in range(20)]
        racks = {(topic, number): on[number] for topic, count in group.topics.items() for number in range(count)}
        found = assign("range", group.topics, members, racks=racks)
        require_whole(group, found, seed)
        plain = assign("range", group.topics, members)
        for topic in group.topics:
            sizes = [[sum(topic == name for name, _ in of) for of in each.values()] for each in (found, plain)]
            assert sorted(sizes[0]) == sorted(sizes[1]), seed
        for one, other in pairwise(sorted(group.topics)):
            if group.topics[one] == group.topics[other]:
                for of in found.values():
                    assert [number for name, number in of if name == one] == [number for name, number in of if name == other], seed


def test_members_and_topics_are_sorted_as_java_sorts():
    """U+FFFF is before U+10000 for Python, and after it for Java, whose units of UTF-16 are below it."""
    found = assign("range", {"t": 1}, [Member("\uffff", ["t"]), Member("\U00010000", ["t"])])
    assert found["\U00010000"] == [("t", 0)]
    assert assign("range", {"t": 1}, [Member("c2", ["t"]), Member("c10", ["t"])])["c10"] == [("t", 0)]


def test_owners_that_are_gone_and_topics_that_are_gone_do_not_count():
    members = [Member("a", ["t", "gone"]), Member("b", ["t", "u"])]
    owners = {("t", 0): "left", ("t", 7): "a", ("gone", 0): "a", ("u", 0): "a"}
    found = assign("sticky", {"t": 2, "u": 1, "unread": 3}, members, owners=owners)
    assert owners_of(found).keys() == {("t", 0), ("t", 1), ("u", 0)}
    assert assign("sticky", {}, members) == {"a": [], "b": []} == assign("range", {"t": 1}, [Member("a", []), Member("b", ["x"])])
    assert assign("roundrobin", {"t": 1}, []) == {}


@pytest.mark.parametrize(
    ("wrong", "option"),
    [
        (lambda: assign("fair", {"t": 1}, []), "assignor"),
        (lambda: assign("range", {"t": 1}, [Member("a", ["t"]), Member("a", ["t"])]), "id"),
        (lambda: assign("range", {"t": 1}, [Member("a", ["t"], "i"), Member("b", ["t"], "i")]), "instance"),
        (lambda: assign("range", {"t": 1}, [Member("a", ["t"], capacity=0)]), "capacity"),
        (lambda: assign("range", {"t": 0}, [Member("a", ["t"])]), "topics"),
        (lambda: assign("sticky", {"t": 1}, [Member("a", ["t"])], weights={("t", 0): -1}), "weights"),
    ],
)
def test_what_cannot_be_shared_out_is_refused(wrong, option):
    with pytest.raises(CallError) as error:
        wrong()
    assert f"`{option}`" in str(error.value)
