"""Runs the events application before and after its rules, against `heatsink serve` behind its partitions, and checks both.

    clients/run --alone        builds what is needed and runs this among others

An event is 98 KB here, so one write costs 98 units and 36 a second are 3,500: a busy machine is enough to overrun one key.
"""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent.parent / "clients/python"))

from events import Events, Scores  # noqa: E402
from stage import connect, offer, serving, table  # noqa: E402

RATE, SECONDS = 36, 3
DETAILS = "x" * 100_000
LOADS = ("user-12345", "tenant-456", "leaderboard#game-1")


def at(number):
    return f"2024-01-15T10:00:{number // 1000:02}.{number % 1000:03}Z"


def run(rules):
    """The share of each load that was throttled. What the application is answered is checked on the way."""
    shares = []
    with serving(rules) as endpoint:
        table(endpoint, "Events", "owner", "at")
        table(endpoint, "Scores", "game")
        patient, hasty = connect(endpoint, attempts=12), connect(endpoint, attempts=1)
        events, scores = Events(hasty), Scores(hasty)
        for owner in LOADS[:2]:
            accepted, share = offer(RATE, SECONDS, lambda n: events.record(owner, at(n), f"event-{n}", details=DETAILS))
            shares.append(share)
            reader = Events(patient)
            # A client that heard nothing records again.
            for number in accepted[:5]:
                reader.record(owner, at(number), f"event-{number}", details=DETAILS)
            expected = [f"{at(number)}#event-{number}" for number in accepted]
            assert list(reader.between(owner, "2024-01-15", "2024-01-16")) == expected
            half = len(expected) // 2
            assert list(reader.between(owner, expected[half], "2024-01-16")) == expected[half:]
            assert reader.one(owner, at(accepted[0]), f"event-{accepted[0]}")["details"] == DETAILS
        # Another tenant on another day, which nobody throttles.
        for day in (14, 15):
            reader.record("tenant-7", f"2024-01-{day}T00:00:00Z", "login")
        assert len(list(reader.between("tenant-7", "2024-01-01", "2024-02-01"))) == 2
        game = LOADS[2]
        Scores(patient).describe(game, rules=DETAILS)
        early, _ = offer(10, 2, lambda _: Scores(patient).add(game, 3))
        accepted, share = offer(RATE, SECONDS, lambda _: scores.add(game, 3))
        shares.append(share)
        assert Scores(patient).total(game) == 3 * (len(early) + len(accepted))
    return shares


def main():
    before, after = run(None), run(HERE / "heatsink.toml")
    for load, throttled, cooled in zip(LOADS, before, after):
        print(f"{load:<20} throttled {throttled:6.1%} before, {cooled:6.1%} after")
    assert all(share > 0.25 for share in before), before
    assert all(share < 0.01 for share in after), after


if __name__ == "__main__":
    main()
