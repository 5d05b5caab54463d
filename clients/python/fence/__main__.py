"""Runs the scenarios one after the other and says of each in one line what came out. See `clients/fence` for what it takes."""

import argparse
import signal
import sys
import time
import traceback

from fence.cluster import Cluster
from fence.scenarios import ALL
from fence.stage import KINDS, Stage


def main():
    arguments = parse()
    # Everything is stopped at the end, whoever ends it.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    cluster = Cluster(arguments.binary, arguments.rust, arguments.jar, arguments.seed, arguments.short, arguments.store, arguments.keys)
    print(f"seed {arguments.seed}; {'fenced' if cluster.fenced else 'a build without a fence'}; {cluster.bounds}", flush=True)
    begun, faulty = time.monotonic(), []
    try:
        for number, name in enumerate(arguments.only):
            # The last one has what is left; the others what they need, and as much of the time as is theirs.
            last = number == len(arguments.only) - 1
            left = begun + arguments.seconds - time.monotonic()
            seconds = max(left, 10) if last else arguments.seconds / (2 * len(arguments.only))
            stage = Stage(cluster, name, seconds)
            try:
                ALL[name].run(stage)
            except Exception as problem:  # noqa: BLE001, the other scenarios tell more
                traceback.print_exc()
                stage.fault("failed", f"the scenario itself: {problem!r}")
                stage.clients.abandon()
            print("\n".join([stage.line(), *(f"    {line}" for line in stage.told)]), flush=True)
            for kind, examples in stage.oracle.examples.items():
                for example in examples:
                    print(f"    {kind} ({KINDS[kind]}): {example}", flush=True)
            if stage.is_faulty():
                faulty.append(name)
        took = time.monotonic() - begun
    finally:
        cluster.stop()
    if faulty:
        print(f"{len(faulty)} of {len(arguments.only)} scenarios with faults in {took:.0f} s: {', '.join(faulty)}. Logs: {cluster.scratch}")
        return 1
    cluster.forget_logs()
    print(f"{len(arguments.only)} scenarios without a fault in {took:.0f} s")
    return 0


def parse():
    parser = argparse.ArgumentParser(prog="clients/fence")
    parser.add_argument("--binary", required=True)
    parser.add_argument("--rust", required=True)
    parser.add_argument("--jar", required=True)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--store", choices=["local", "embedded", "own"], default="local")
    parser.add_argument("--keys", type=int, help="of the scenario table")
    parser.add_argument("--only", action="append", choices=ALL)
    arguments = parser.parse_args()
    arguments.keys = arguments.keys or (60 if arguments.short else 1000)
    # The other scenarios are about several gateways of a store that has no PartiQL.
    arguments.only = arguments.only or (None if arguments.store == "local" else ["reshard"])
    arguments.only = [name for name in ALL if name in arguments.only] if arguments.only else [name for name in ALL if name != "table"]
    if arguments.store != "local" and not set(arguments.only) <= {"reshard", "table"} or arguments.store == "own" and "table" in arguments.only:
        parser.error("--store is of the scenario reshard, and embedded of table, alone")
    return arguments


if __name__ == "__main__":
    sys.exit(main())
