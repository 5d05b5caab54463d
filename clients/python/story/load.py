"""Paced puts of known items through gateways, and what came of them, second by second."""

import threading
import time
from collections import Counter
from contextlib import suppress

from botocore.exceptions import ClientError, ConnectTimeoutError, EndpointConnectionError, HTTPClientError

from stage import THROTTLES
from story.plan import ITEM_KB

WORKERS = 24
# Seconds over which relief is judged.
SPAN = 5


class Load:
    """Puts `units` write units a second until it is stopped. Each worker has its items to itself, and changes the gateway when one does not answer."""

    def __init__(self, target, gateways, table, known, units, meter):
        self.clients = [target.client(gateway.endpoint, max_pool_connections=WORKERS, read_timeout=40) for gateway in gateways]
        self.table, self.known, self.meter = table, known, meter
        self.pause = WORKERS * ITEM_KB / units
        self.over, self.error, self.lock = threading.Event(), None, threading.Lock()
        self.seconds, self.times, self.refused = {}, [], Counter()
        self.begun = time.monotonic()
        self.threads = [threading.Thread(target=self.work, args=(number,), daemon=True) for number in range(WORKERS)]
        for thread in self.threads:
            thread.start()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.over.set()
        for thread in self.threads:
            thread.join()
        if self.error and kind is None:
            raise self.error

    def now(self):
        return time.monotonic() - self.begun

    def rest(self, seconds):
        """Lets it go on for so long, or until a worker fails."""
        if self.over.wait(seconds) and self.error:
            raise self.error

    def work(self, worker):
        try:
            mine, due = range(worker, len(self.known.acked), WORKERS), self.begun + worker * self.pause / WORKERS
            gateway, turn = worker, 0
            while not self.over.wait(max(0.0, due - time.monotonic())):
                due = max(due + self.pause, time.monotonic() - 1)
                free = [number for number in mine if self.known.maybe[number] is None]
                if not free:
                    return
                turn += 1
                if not self.put(free[turn % len(free)], self.clients[gateway % len(self.clients)]):
                    gateway += 1
        except Exception as error:  # noqa: BLE001, handed to the one that waits
            self.error = error
            self.over.set()

    def put(self, number, client):
        """One put. False where the gateway did not answer."""
        version, at = self.known.acked[number] + 1, time.monotonic()
        try:
            answer = client.put_item(TableName=self.table, Item=self.known.item(number, version), ReturnConsumedCapacity="TOTAL")
        except ClientError as error:
            code = error.response["Error"]["Code"]
            is_refused = error.response["ResponseMetadata"]["HTTPStatusCode"] < 500
            outcome = "throttled" if code in THROTTLES else "refused" if is_refused else "unknown"
            if outcome != "throttled":
                self.refused[code] += 1
            self.note(number, version, outcome, at)
            return True
        except (EndpointConnectionError, ConnectTimeoutError):
            self.note(number, version, "refused", at)
            return False
        except HTTPClientError:
            self.note(number, version, "unknown", at)
            return False
        self.note(number, version, "acknowledged", at)
        self.meter.write(answer)
        return True

    def note(self, number, version, outcome, at):
        if outcome == "acknowledged":
            self.known.acked[number] = version
        elif outcome == "unknown":
            self.known.maybe[number] = version
        with self.lock:
            self.seconds.setdefault(int(self.now()), Counter())[outcome] += 1
            if outcome == "acknowledged":
                self.times.append((self.now(), time.monotonic() - at))

    def between(self, begin, end):
        """What came of the puts between two moments of this load."""
        with self.lock:
            counts = sum((one for second, one in self.seconds.items() if begin <= second < end), Counter())
            times = sorted(took for at, took in self.times if begin <= at < end)
        asked = sum(counts.values())
        return {
            "seconds": round(end - begin, 1), "acknowledged": counts["acknowledged"], "throttled": counts["throttled"],
            "refused": counts["refused"], "unknown": counts["unknown"],
            "acknowledged_per_second": round(counts["acknowledged"] / max(end - begin, 1), 1),
            "throttled_share": round(counts["throttled"] / asked, 4) if asked else None,
            "p50_ms": milliseconds(times, 0.5), "p99_ms": milliseconds(times, 0.99),
        }

    def relieved(self, since):
        """Seconds from a moment to the first after which, for five seconds, fewer than one in twenty puts were throttled; None if that never came."""
        for second in range(int(since), int(self.now()) - SPAN):
            of = self.between(second, second + SPAN)
            if of["throttled_share"] is not None and of["throttled_share"] < 0.05:
                return round(max(0.0, second - since), 1)
        return None


def milliseconds(times, share):
    with suppress(IndexError):
        return round(1000 * times[int(share * len(times))], 1)
    return None
