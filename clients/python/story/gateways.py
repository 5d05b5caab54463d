"""The gateways of the story, which end with it whatever ends it, and the commands of their operator."""

import json
import subprocess
import time
from contextlib import suppress

from story.tables import registry_of


class Failed(Exception):
    """A gateway or a command did not do what it must."""


class Gateway:
    """One `heatsink serve` before the store. It ends when its standard input does: so none outlives a story that is killed."""

    def __init__(self, site, number):
        self.log = site.scratch / f"gateway-{number}.log"
        self.command = [site.binary, "serve", "--listen", "127.0.0.1:0", "--end-with-stdin", "--output", "json", *site.at_store()]
        self.environment = site.target.environment() | {"XDG_RUNTIME_DIR": str(site.scratch)}
        self.start()

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, env=self.environment, start_new_session=True)
        line = self.process.stdout.readline()
        if not line:
            self.process.wait()
            raise Failed(f"a gateway did not start: {self.log.read_text()[-2000:]}")
        self.endpoint = json.loads(line)["endpoint"]

    def carries(self, intent):
        """Whether it is the one that an intent of `reshard status` names."""
        return bool(intent.get("gateway")) and f"process {self.process.pid}" in intent["gateway"]["name"]

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        """Its end, by force if need be."""
        with suppress(OSError):
            self.process.stdin.close()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.kill()


class Site:
    """What gateways and commands have in common: binary, store, rules, table."""

    def __init__(self, binary, target, table, scratch):
        self.binary, self.target, self.table, self.scratch = binary, target, table, scratch
        self.rules = scratch / "heatsink.toml"
        # A registry of its own: nothing that the account may have is touched, and it can be deleted.
        self.rules.write_text(f'[fence]\nregistry = "{registry_of(table)}"\n')

    def at_store(self):
        return ["--upstream", self.target.endpoint, "--rules", str(self.rules)]

    def run(self, *arguments, timeout=60, codes=(0,)):
        """Runs a command of Heatsink and gives its document."""
        command = [self.binary, *arguments, *self.at_store(), "--output", "json"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=self.target.environment(), stdin=subprocess.DEVNULL)
        if done.returncode not in codes:
            raise Failed(f"heatsink {' '.join(arguments)}: exit {done.returncode}: {done.stderr[-2000:]}")
        return json.loads(done.stdout)

    def reshard(self, what, *arguments):
        return self.run("reshard", what, self.table, *arguments)

    def verify(self):
        return self.run("verify", self.table, timeout=300, codes=(0, 1))

    def intent(self, key):
        """What is on record of the reshard of a key, or of a value of an index."""
        told = self.run("reshard", "status", self.table)
        return next((one for one in told["reshards"] if one["key"] == key), None)

    def until(self, key, what, so, patience):
        """Waits until a reshard is so far, and gives the intent of then."""
        deadline = time.monotonic() + patience
        while True:
            intent = self.intent(key)
            if intent and so(intent):
                return intent
            if intent and intent["ended"] and intent["ended"]["as"] != "moved":
                raise Failed(f"the reshard of {key} ended: {intent['ended']['text']}")
            if time.monotonic() > deadline:
                raise Failed(f"the reshard of {key}: not {what} within {patience} s: {intent}")
            time.sleep(0.5)
