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


class Troubles:
    """Plays the schedules, and remembers which gateway was gone when."""

    def __init__(self, stage, gateways):
        self.stage, self.gateways = stage, gateways
        self.gone = {gateway.number: [] for gateway in gateways}  # [begin, end or None]
        self.counts, self.longest = {}, 0.0
        self.over = False
        self.threads = []
        self.log = open(stage.cluster.scratch / "troubles.log", "a", buffering=1)

    def begin(self):
        for gateway in self.gateways:
            rng = self.stage.random("troubles", gateway.number)
            plan = schedule(rng, self.stage.cluster.bounds, len(self.gateways))
            self.threads.append(self.stage.clients.run(self._play, gateway, plan))

    def end(self):
        """Waits until all of them run again."""
        self.over = True
        for thread in self.threads:
            thread.join()

    def touched(self, number, begin, end):
        """Whether a gateway was gone, or had just come back, at some time between these moments."""
        return any(since < end and (until is None or until + 1 > begin) for since, until in list(self.gone[number]))

    def text(self):
        counted = ", ".join(f"{times} × {kind}" for kind, times in sorted(self.counts.items()))
        return f"{counted} (longest {self.longest:.1f} s)"

    def _play(self, gateway, plan):
        for trouble in plan:
            if not self._wait(trouble.after):
                return
            self.counts[trouble.kind] = self.counts.get(trouble.kind, 0) + 1
            self.log.write(f"{time.monotonic() - self.stage.begun:8.2f} {gateway.name} {trouble.kind} {trouble.length:.2f} s\n")
            stretch = [time.monotonic(), None]
            self.gone[gateway.number].append(stretch)
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

    def _wait(self, seconds):
        until = time.monotonic() + seconds
        while not self.over and time.monotonic() < until:
            time.sleep(min(0.02, max(0, until - time.monotonic())))
        return not self.over
