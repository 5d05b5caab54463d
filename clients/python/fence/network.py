"""The handle on the proxy: starts it, and tells it which requests are late, kept back or left without an answer."""

import json
import subprocess
import sys
import threading
from itertools import count
from pathlib import Path


class Hold:
    """Requests that the proxy keeps back. As a context it releases them at its end."""

    def __init__(self, network, number):
        self.network, self.number = network, number
        self.held = self.passed = 0
        self._changed = threading.Condition()

    def wait(self, timeout, held=1):
        """Waits until so many requests are kept back, or were. False when the time is up first."""
        with self._changed:
            return self._changed.wait_for(lambda: self.held >= held, timeout)

    def wait_passed(self, timeout):
        """Waits until everything that was kept back has reached the store."""
        with self._changed:
            return self._changed.wait_for(lambda: self.passed >= self.held, timeout)

    def stop_taking(self):
        """Keeps back what it holds, and nothing more."""
        self.network.send({"leave": self.number})

    def release(self):
        """Lets everything kept back through, and keeps nothing back from now on."""
        self.network.send({"release": self.number})

    def told(self, event):
        with self._changed:
            self.held += "held" in event
            self.passed += "passed" in event
            self._changed.notify_all()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.release()


class Network:
    """The proxy before one store, with a path of its own for every name."""

    def __init__(self, store_port, paths, seed, rename=()):
        command = [sys.executable, "-m", "fence.proxy", f"127.0.0.1:{store_port}", str(seed), ",".join(paths), *rename]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1, cwd=Path(__file__).parent.parent
        )
        self.ports = json.loads(self.process.stdout.readline())["listening"]
        self._numbers, self._holds, self._done = count(1), {}, {}
        self._sending = threading.Lock()
        threading.Thread(target=self._listen, daemon=True).start()

    def endpoint(self, path):
        return f"http://127.0.0.1:{self.ports[path]}"

    def hold(self, paths=None, operations=None, table=None, contains=(), answer=False, seconds=None, count=1 << 30):
        """Keeps matching requests back for so many seconds, or until released: before they reach the store, or with `answer` after
        it has answered. `paths` and `operations` are lists of names, `contains` of texts that a body has to hold."""
        number = next(self._numbers)
        hold = self._holds[number] = Hold(self, number)
        self.send({
            "hold": number, "paths": paths, "operations": operations, "table": table, "contains": list(contains),
            "answer": answer, "seconds": seconds, "count": count,
        })
        return hold

    def weather(self, delayed=0.0, longest=0.0, lost=0.0):
        """From now on this share of requests, and of answers, is late by up to `longest` seconds, and this share of answers is lost."""
        self.send({"delay": delayed, "longest": longest, "lost": lost})

    def send(self, command):
        number = next(self._numbers)
        done = self._done[number] = threading.Event()
        with self._sending:
            self.process.stdin.write(json.dumps({**command, "id": number}) + "\n")
            self.process.stdin.flush()
        if not done.wait(10):
            raise RuntimeError("the proxy does not answer")

    def stop(self):
        self.process.terminate()
        self.process.wait(10)

    def _listen(self):
        for line in self.process.stdout:
            event = json.loads(line)
            if "done" in event:
                self._done.pop(event["done"]).set()
            else:
                self._holds[event.get("held") or event["passed"]].told(event)
