"""The scheduler finds the order of acts that breaks a rule, and gives it again."""

from __future__ import annotations

from model.scheduler import Process, Scheduler, Violation, alone, first_violation


class Counter:
    """A number in a store, which processes raise by one each."""

    def __init__(self, *, is_compared: bool) -> None:
        self.value = 0
        self.raised = 0
        self._is_compared = is_compared

    def put(self, seen: int, value: int) -> bool:
        if self._is_compared and self.value != seen:
            return False
        self.value = value
        return True

    def raise_it(self) -> Process:
        while True:
            seen = self.value
            yield
            if self.put(seen, seen + 1):
                self.raised += 1
                return seen


def order(seed: int, *, is_compared: bool, deaths: int = 3) -> list[object]:
    """One run of four processes; a violation if a number was lost."""
    scheduler = Scheduler(seed, deaths=deaths)
    counter = Counter(is_compared=is_compared)
    seen: list[object] = []
    for n in range(4):
        scheduler.start(f"p{n}", counter.raise_it())
    scheduler.run(5_000, lambda: seen.append((scheduler.step, counter.value)))
    if counter.value != counter.raised:
        raise Violation(f"{counter.raised} were counted, and the number is {counter.value}")
    return seen


def test_a_lost_update_is_found() -> None:
    found = first_violation(lambda seed: order(seed, is_compared=False), range(20))
    assert found is not None
    assert "were counted" in found[1]


def test_a_right_protocol_has_no_violation() -> None:
    assert first_violation(lambda seed: order(seed, is_compared=True), range(300)) is None


def test_one_seed_is_one_order() -> None:
    orders = [order(seed, is_compared=True) for seed in range(20)]
    assert orders == [order(seed, is_compared=True) for seed in range(20)]
    assert len({str(each) for each in orders}) > 10


def test_processes_sleep_and_stop_for_ever() -> None:
    """A process that only counts its steps: asleep for some, and in some runs ended before the others."""
    lasted = set()
    for seed in range(40):
        scheduler = Scheduler(seed, deaths=1)
        steps = {"a": 0, "b": 0}

        def count(name: str, steps: dict[str, int] = steps) -> Process:
            while True:
                steps[name] += 1
                yield 0

        for name in steps:
            scheduler.start(name, count(name))
        scheduler.run(2_000)
        assert sum(steps.values()) < 2_000
        lasted.add(sum(scheduler.is_running(name) for name in steps))
    assert lasted == {1, 2}


def test_a_process_alone_runs_to_its_end() -> None:
    assert alone(Counter(is_compared=True).raise_it()) == 0
