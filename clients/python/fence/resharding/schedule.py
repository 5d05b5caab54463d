"""What befalls each process, and when: a plain function of a seed, and the thread that plays it.

Each gateway has a schedule of its own, so several can be gone at once. A seed always gives the same schedule; which request is hit by it is chance.
"""

import time
from dataclasses import dataclass

KILL, RESTART, STAND_STILL = "kill", "restart", "stand still"


@dataclass(frozen=True)
class Trouble:
    """One event: seconds after the last one, what, and for how long the process is gone or stands still."""

    after: float
    kind: str
    length: float


def schedule(rng, bounds, gateways):
    """Yields troubles of one of so many gateways without an end."""
    # All gateways' troubles together: one every lease and a bit, for who takes a reshard over waits 5 s; under the default bounds every 15 s.
    gap = min(15.0, bounds.lease + 2) * gateways
    while True:
        kind = rng.choice([KILL, KILL, RESTART, STAND_STILL, STAND_STILL, STAND_STILL])
        if kind == STAND_STILL:
            length = standing_still(rng, bounds)
        else:
            # Mostly at once; now and then it stays away until its lease is over.
            length = rng.uniform(1.0, 1.3) * bounds.lease if rng.random() < 0.15 else rng.uniform(0, 1.5)
        yield Trouble(rng.uniform(0.3, 1.7) * gap, kind, length)


def standing_still(rng, bounds):
    """A length from 50 ms to longer than the lease, around each of the bounds."""
    least, most = rng.choice([(0.05, 0.3), (0.5 * bounds.short_lease, 2 * bounds.short_lease), (bounds.poll, 2 * bounds.poll),
                              (0.5 * bounds.lease, bounds.lease), (bounds.lease, 1.5 * bounds.lease)])
    return rng.uniform(least, most)


def kills(rng):
    """Yields kills of the store without an end. Between them a reshard can get on: what failed is tried again after 10 s, and a walk begins anew."""
    while True:
        yield Trouble(rng.uniform(30, 90), KILL, rng.uniform(0, 3))


STORE = "store"


class Troubles:
    """Plays the schedules, and remembers which gateway was gone when. A `store` that can be killed is, while `is_moving()` says that a key moves.
    `rarely`: a third as often, where many keys move, which whoever takes over begins anew."""

    def __init__(self, stage, gateways, store=None, is_moving=None, rarely=False):
        self.stage, self.gateways, self.store, self.is_moving = stage, gateways, store, is_moving
        self.seldom = 3 if store or rarely else 1
        self.gone = {number: [] for number in [*(gateway.number for gateway in gateways), STORE]}  # [begin, end or None]
        self.counts, self.longest = {}, 0.0
        self.over = False
        self.threads = []
        self.log = open(stage.cluster.scratch / "troubles.log", "a", buffering=1)

    def begin(self):
        for gateway in self.gateways:
            rng = self.stage.random("troubles", gateway.number)
            # A third as often where the store is killed too, for the same reason.
            plan = schedule(rng, self.stage.cluster.bounds, len(self.gateways) * self.seldom)
            self.threads.append(self.stage.clients.run(self._play, gateway, plan))
        if self.store:
            self.threads.append(self.stage.clients.run(self._play_store, kills(self.stage.random("troubles", STORE))))

    def end(self):
        """Waits until all of them run again."""
        self.over = True
        for thread in self.threads:
            thread.join()

    def touched(self, number, begin, end):
        """Whether a gateway or the store was gone, or had just come back, at some time between these moments."""
        gone = [*self.gone[number], *self.gone[STORE]]
        return any(since < end and (until is None or until + 1 > begin) for since, until in gone)

    def text(self):
        counted = ", ".join(f"{times} × {kind}" for kind, times in sorted(self.counts.items()))
        return f"{counted} (longest {self.longest:.1f} s)"

    def _play(self, gateway, plan):
        for trouble in plan:
            if not self._wait(trouble.after):
                return
            stretch = self._note(gateway.number, gateway.name, trouble)
            if trouble.kind == STAND_STILL:
                self.longest = max(self.longest, trouble.length)
                gateway.pause()
                self._wait(trouble.length)
                gateway.resume()
            else:
                gateway.kill() if trouble.kind == KILL else gateway.stop()
                self._wait(trouble.length)
                gateway.start()
            stretch[1] = time.monotonic()

    def _play_store(self, plan):
        for trouble in plan:
            if not self._wait(trouble.after) or not self._wait(120, self.is_moving):
                return
            stretch = self._note(STORE, STORE, trouble)
            self.store.kill()
            self._wait(trouble.length)
            self.store.start()
            stretch[1] = time.monotonic()

    def _note(self, number, name, trouble):
        """Counts and logs it. Returns the stretch of time that it begins."""
        kind = f"{trouble.kind} of the store" if number == STORE else trouble.kind
        self.counts[kind] = self.counts.get(kind, 0) + 1
        self.log.write(f"{time.monotonic() - self.stage.begun:8.2f} {name} {trouble.kind} {trouble.length:.2f} s\n")
        stretch = [time.monotonic(), None]
        self.gone[number].append(stretch)
        return stretch

    def _wait(self, seconds, condition=lambda: False):
        """Waits so long, or until the condition holds. False when all is over first."""
        until = time.monotonic() + seconds
        while not self.over and time.monotonic() < until and not condition():
            time.sleep(min(0.02, max(0, until - time.monotonic())))
        return not self.over
