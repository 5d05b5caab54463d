"""Starts the servers, makes the data and runs the load tools. Loopback only; everything started is stopped."""

import contextlib
import json
import os
import random
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HERE = ROOT / "benches"
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
ENVIRONMENT = {
    **os.environ, "AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local", "AWS_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true", "HEATSINK_LAME_DUCK": "0",
}
GAME, SHARDS, ITEMS = "game_x", 10, 20_000
# Scores are drawn evenly below 10^8: as many of them lie in each range.
SPLIT_AT = [f"{10**8 * nth // SHARDS:010d}" for nth in range(1, SHARDS)]
RULES = (f'[[rule]]\ntable = "Sharded"\nstrategy = "calculated"\nshards = {SHARDS}\n'
         f'[[rule]]\ntable = "Ranges"\nstrategy = "range"\nsplit_at = {SPLIT_AT}\n')


def say(text):
    print(text, file=sys.stderr, flush=True)


def need(*programs):
    missing = [program for program in programs if not shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin")]
    if missing:
        raise SystemExit(f"missing: {', '.join(missing)}; on Debian: apt-get install {' '.join(missing)}")


def built(names):
    """Paths of binaries of this repository, by the variables that name one which is built already."""
    wanted = [name for name, variable in names.items() if variable not in os.environ]
    if wanted:
        packages = [word for name in wanted for word in ("-p", name)]
        subprocess.run(["cargo", "build", "--quiet", "--release", *packages], cwd=ROOT, check=True)
    return [os.environ.get(variable) or TARGET / "release" / name for name, variable in names.items()]


def load_client():
    """Path of the load client, built if no variable names one."""
    return built({"heatsink-load": "HEATSINK_LOAD_BIN"})[0]


def build():
    """Paths of heatsink, the load client, and the engine's own HTTP server, which stands for a third party's.

    HEATSINK_BIN, HEATSINK_LOAD_BIN and DYNOXIDE name binaries that are built already.
    """
    say("building")
    ours = built({"heatsink": "HEATSINK_BIN", "heatsink-load": "HEATSINK_LOAD_BIN"})
    engine = os.environ.get("DYNOXIDE") or TARGET / "tools/bin/dynoxide"
    if not Path(engine).exists():
        subprocess.run(
            ["cargo", "install", "--quiet", "dynoxide-rs", "--version", "=3.2.0", "--root", str(TARGET / "tools"),
             "--target-dir", str(TARGET / "tools/build")], check=True)
    return *ours, engine


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Rate(float):
    """Requests per second, and the server's processor time for one of them in microseconds."""

    def __new__(cls, rate, cpu):
        self = super().__new__(cls, rate)
        self.cpu = cpu
        return self


def processor_seconds(process):
    """User and system time of a process and its workers so far."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = stat.read_text().rsplit(")", 1)[1].split()
            if process.pid in (int(stat.parent.name), int(fields[1])):
                ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


class Bench:
    """Servers and tools for one run. Use as a context manager."""

    def __init__(self, heatsink, load, engine, seconds, rounds):
        self.heatsink, self.load_client, self.engine_server = heatsink, load, engine
        self.seconds, self.rounds = seconds, rounds
        self.servers = {}

    def __enter__(self):
        self.stack = contextlib.ExitStack()
        self.scratch = Path(self.stack.enter_context(tempfile.TemporaryDirectory()))
        return self

    def __exit__(self, *_):
        self.stack.close()

    def start(self, name, command, port):
        log = open(self.scratch / f"{name}-{port}.log", "w")
        process = subprocess.Popen(list(map(str, command)), stdout=log, stderr=log, env=ENVIRONMENT, cwd=self.scratch)
        self.stack.callback(stop, process)
        for _ in range(300):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                self.servers[port] = process
                return port
            if process.poll() is not None:
                break
            time.sleep(0.1)
        raise SystemExit(f"{name} did not start:\n{Path(log.name).read_text()}")

    def engine(self):
        port = free_port()
        return self.start("dynoxide", [self.engine_server, "--port", port], port)

    def nginx(self, upstream, tls=None):
        """`tls`: certificate and key."""
        port = free_port()
        home = self.scratch / f"nginx-{port}"
        home.mkdir()
        encrypted = " ssl; ssl_certificate {}; ssl_certificate_key {}".format(*tls) if tls else ""
        text = (HERE / "nginx.conf").read_text()
        (home / "nginx.conf").write_text(text.replace("UPSTREAM_PORT", str(upstream)).replace("LISTEN_PORT", f"{port}{encrypted}"))
        nginx = shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin")
        return self.start("nginx", [nginx, "-p", home, "-c", home / "nginx.conf", "-e", "stderr"], port)

    def heatsink_serve(self, *arguments, rules=False, binary=None):
        port = free_port()
        if rules:
            file = self.scratch / f"rules-{port}.toml"
            file.write_text(RULES if rules is True else rules)
            arguments = (*arguments, "--rules", file)
        return self.start("heatsink", [binary or self.heatsink, "serve", "--listen", f"127.0.0.1:{port}", *arguments], port)

    def bodies(self, name, requests):
        path = self.scratch / f"{name}.jsonl"
        path.write_text("".join(json.dumps(request, separators=(",", ":")) + "\n" for request in requests))
        return path

    def load(self, port, operation, bodies, *arguments):
        """heatsink-load's report. Fails on any failed request."""
        done = subprocess.run(
            [str(self.load_client), "--target", f"127.0.0.1:{port}", "--op", operation, "--bodies", str(bodies),
             *map(str, arguments)], capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"load of {operation} failed: {done.stdout}{done.stderr}")
        return json.loads(done.stdout)

    def wrk(self, port, operation, bodies, scheme="http", signatures=None):
        """The rate over 16 keep-alive connections. Fails on any error. `signatures`: a file with date and authorization of each body."""
        before = processor_seconds(self.servers[port])
        command = wrk_command(self.seconds, port, operation, bodies, scheme, signatures)
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        report = json.loads(done.stdout.strip().splitlines()[-1])
        if report["errors"]:
            raise SystemExit(f"{operation} on port {port}: {report['errors']} errors")
        cpu = processor_seconds(self.servers[port]) - before
        return Rate(report["requests"] / report["seconds"], cpu * 1e6 / report["requests"])

    def rates(self, contenders):
        """contenders: name -> the arguments of `wrk`. Interleaved rounds in changing order; name -> all rates."""
        found = {name: [] for name in contenders}
        order = list(contenders)
        random.Random(1).shuffle(order)
        for contender in contenders.values():
            self.warm(*contender)
        for turn in range(self.rounds):
            for name in order[turn % len(order):] + order[: turn % len(order)]:
                found[name].append(self.wrk(*contenders[name]))
                say(f"  {name}: {found[name][-1]:,.0f}/s, {found[name][-1].cpu:.1f} µs")
        return found

    def warm(self, *contender):
        """Warms caches and connections, not counted."""
        subprocess.run(wrk_command(1, *contender), capture_output=True, check=True)

    def pairs(self, old, new):
        """Two contenders as of `rates`: runs one after the other, the first of a pair in turn. The pairs of rates."""
        found = []
        self.warm(*old)
        self.warm(*new)
        for turn in range(self.rounds):
            runs = [self.wrk(*contender) for contender in ((old, new) if turn % 2 == 0 else (new, old))]
            found.append(tuple(runs if turn % 2 == 0 else reversed(runs)))
            say(f"  {found[-1][0].cpu:.1f} µs, {found[-1][1].cpu:.1f} µs")
        return found


def wrk_command(seconds, port, operation, bodies, scheme="http", signatures=None):
    """The command of one run."""
    return ["wrk", "-t1", "-c16", f"-d{seconds}s", "-s", str(HERE / "requests.lua"), f"{scheme}://127.0.0.1:{port}",
            "--", operation, str(bodies), *([str(signatures)] if signatures else ())]


def stop(process):
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def ratio(over, under):
    """Median of the rounds' ratios, with the extremes."""
    each = sorted(a / b for a, b in zip(over, under))
    return statistics.median(each), each[0], each[-1]


def items():
    """20,000 scores of 400 B each (names and values counted as DynamoDB does)."""
    rng = random.Random(7)
    for number in range(ITEMS):
        item = {"pk": GAME, "sk": f"{rng.randrange(10**8):010d}#player_{number:06d}", "player": f"player_{number:06d}"}
        size = sum(len(name) + len(value) for name, value in item.items())
        yield {**item, "note": "x" * (400 - size - len("note"))}


def wire(item):
    return {name: {"S": value} for name, value in item.items()}


def key(item):
    return {name: {"S": item[name]} for name in ("pk", "sk")}


def create(bench, port, table):
    names = ("pk", "sk")
    request = {
        "TableName": table, "BillingMode": "PAY_PER_REQUEST",
        "KeySchema": [{"AttributeName": n, "KeyType": k} for n, k in zip(names, ("HASH", "RANGE"))],
        "AttributeDefinitions": [{"AttributeName": n, "AttributeType": "S"} for n in names],
    }
    bench.load(port, "CreateTable", bench.bodies("create", [request]), "--requests", 1, "--connections", 1)


def post(port, operation, request):
    headers = {
        "Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": f"DynamoDB_20120810.{operation}",
        "X-Amz-Date": "20260101T000000Z",
        "Authorization": "AWS4-HMAC-SHA256 Credential=local/20260101/us-east-1/dynamodb/aws4_request, "
                         f"SignedHeaders=host;x-amz-date;x-amz-target, Signature={'0' * 64}",
    }
    message = urllib.request.Request(f"http://127.0.0.1:{port}", json.dumps(request).encode(), headers)
    with urllib.request.urlopen(message, timeout=60) as answer:
        return json.load(answer)


def fill(bench, port, table, rows):
    """Creates a table and stores the rows. Counts them, for a read of a missing item would look fast and be no error."""
    create(bench, port, table)
    puts = [{"PutRequest": {"Item": wire(row)}} for row in rows]
    batches = [{"RequestItems": {table: puts[at : at + 25]}} for at in range(0, len(puts), 25)]
    bench.load(port, "BatchWriteItem", bench.bodies("fill", batches), "--requests", len(batches),
               "--seconds", 300, "--connections", 4)
    scan, stored = {"TableName": table, "Select": "COUNT"}, 0
    while True:
        page = post(port, "Scan", scan)
        stored += page["Count"]
        if "LastEvaluatedKey" not in page:
            break
        scan["ExclusiveStartKey"] = page["LastEvaluatedKey"]
    if stored != len(rows):
        raise SystemExit(f"{table} holds {stored} items, not {len(rows)}")
