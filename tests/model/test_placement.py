"""How long records wait where new keys are placed by shares, by the lowest lag, or by their hash: a model of partitions and consumers.

Eight partitions, each with a consumer that reads 1,000 records a second. 20 keys come each second, live for 120 s on average, send at
rates that differ widely (lognormal, σ = 1.3), and stay where they are placed. That is 80 % of all that the consumers can read.
Rates and lag are known as they were at the last refresh. The shares and the places are found by the functions that the product uses.
A record waits for as long as its consumer takes to read all that is unread before it.
"""

import math
import random
import statistics
from collections import defaultdict
from collections.abc import Callable, Sequence

import pytest

from sparklog.queries.placement import Load, shares_of
from sparklog.router import race

PARTITIONS, SPEED, BIRTHS, LIFE_S, SIGMA = 8, 1000.0, 20, 120.0, 1.3
RATE = 0.8 * PARTITIONS * SPEED / (BIRTHS * LIFE_S)
STEPS, WARM = 3600, 600
Policy = Callable[[Sequence[Load], float, float], list[int]]


def lowest_lag(loads: Sequence[Load]) -> list[int]:
    """All new load for the partition with the least lag; of equal ones, the lowest."""
    lowest = min(range(len(loads)), key=lambda number: loads[number].lag)
    return [int(number == lowest) for number in range(len(loads))]


POLICIES: dict[str, Policy | None] = {"hash": None, "lowest_lag": lambda loads, *_: lowest_lag(loads), "shares": shares_of}
_races: dict[int, list[int]] = {}


def home(slot: int, shares: Sequence[int]) -> int:
    """The same as `place`, which test_the_model_places_as_the_product_does shows: the numbers of a slot are kept."""
    its = _races.get(slot)
    if its is None:
        its = _races[slot] = [race(slot, partition) for partition in range(PARTITIONS)]
    best = next(partition for partition, share in enumerate(shares) if share)
    for partition, share in enumerate(shares):
        if share and its[partition] * shares[best] < its[best] * share:
            best = partition
    return best


def waits(policy: Policy | None, refresh_s: int, slow: bool, seed: int, slots: int) -> tuple[float, float]:
    """The seconds that records wait: the mean, and those that 99 of 100 do not exceed. With `slow`, a consumer is slow for 15 minutes."""
    chance = random.Random(seed)
    rates, lags = [0.0] * PARTITIONS, [0.0] * PARTITIONS
    ends: defaultdict[int, list[tuple[int, float]]] = defaultdict(list)
    bound: dict[int, int] = {}
    shares, new = [1] * PARTITIONS, 0.0
    waited: list[tuple[float, float]] = []
    for now in range(STEPS):
        speeds = [SPEED] * PARTITIONS
        if slow and 1200 <= now < 2100:
            speeds[3] /= 2
        if policy and now % refresh_s == 0:
            shares = policy([Load(*each) for each in zip(rates, lags, speeds, strict=True)], new, max(60, refresh_s))
            new = 0.0
        for _ in range(BIRTHS):
            rate = chance.lognormvariate(math.log(RATE) - SIGMA**2 / 2, SIGMA)
            life, slot = chance.expovariate(1 / LIFE_S), chance.randrange(slots)
            if policy is None:
                partition = slot % PARTITIONS
            else:
                if slot not in bound:
                    bound[slot] = home(slot, shares)
                    new += rate
                partition = bound[slot]
            rates[partition] += rate
            ends[now + 1 + int(life)].append((partition, rate))
        for partition, rate in ends.pop(now, ()):
            rates[partition] -= rate
        for partition, speed in enumerate(speeds):
            lags[partition] = max(0.0, lags[partition] + rates[partition] - speed)
            if now >= WARM:
                waited.append((lags[partition] / speed, rates[partition]))
    waited.sort()
    total = sum(rate for _, rate in waited)
    left = 0.99 * total
    for longest, rate in waited:  # noqa: B007
        left -= rate
        if left <= 0:
            break
    return sum(seconds * rate for seconds, rate in waited) / total, longest


def table(refreshes: Sequence[int], seeds: Sequence[int], slots: int) -> dict[tuple[str, int, bool], tuple[float, float]]:
    """By policy, refresh interval and whether a consumer is slow: the mean of the seeds."""
    found = {}
    for slow in (False, True):
        for name, policy in POLICIES.items():
            for refresh_s in refreshes if policy else refreshes[:1]:
                runs = [waits(policy, refresh_s, slow, seed, slots) for seed in seeds]
                found[name, refresh_s, slow] = statistics.mean(run[0] for run in runs), statistics.mean(run[1] for run in runs)
                print(f"{slots} slots, {'slow' if slow else 'steady'}, {name}, every {refresh_s} s: {found[name, refresh_s, slow]}")
    return found


def test_the_model_places_as_the_product_does() -> None:
    from sparklog.router import place

    chance = random.Random(5)
    for slot in range(500):
        shares = [chance.choice([0, 1, 7, 1000]) for _ in range(PARTITIONS - 1)] + [1]
        assert home(slot, shares) == place(slot, shares)


@pytest.mark.soak
@pytest.mark.parametrize("slots", [2**16, 2**20])
def test_shares_let_records_wait_the_least(slots: int) -> None:
    refreshes = [1, 10, 60]
    found = table(refreshes, range(1, 3), slots)
    for slow in (False, True):
        hashed = found["hash", refreshes[0], slow]
        for refresh_s in refreshes:
            filled, lowest = found["shares", refresh_s, slow], found["lowest_lag", refresh_s, slow]
            assert filled[0] < 1
            assert filled[0] < hashed[0] / 2
            assert filled[1] < hashed[1] / 2
            assert filled[0] < lowest[0] / 2
    assert found["lowest_lag", 60, False][0] > 10 * found["hash", 1, False][0]
