"""Reads the flags, states the budget, tells the story, and deletes what it made whatever came of it. See `clients/aws/story`."""

import argparse
import shutil
import signal
import sys
import tempfile
import time
from datetime import datetime, timezone
from pathlib import Path

from botocore.exceptions import BotoCoreError, ClientError

from story import plan, report, tables
from story.blot import Blot
from story.gateways import Failed, Site
from story.meter import Meter, OverBudget
from story.steps import Story
from story.target import Refusal, choose

# What may be asked for: no more units a second than a new table on demand takes at once.
MOST_UNITS, MOST_SECONDS = 4_000, 600


def main(arguments=None):
    options = parse(arguments)
    try:
        target = choose(options.endpoint, options.aws, options.yes_spend, options.clean_up is not None)
        planned = plan.steps(options.units, options.seconds)
        cost = plan.total(planned).dollars(target.region)
        # A store on this machine costs nothing: there the budget is what was planned.
        budget = cost if options.yes_spend is None else options.yes_spend
        if options.clean_up is None and budget < cost:
            raise Refusal(f"it may take ${cost:.4f}, more than --yes-spend {budget:g}: allow more, or ask for less by --units and --seconds")
    except Refusal as refusal:
        print(f"story: {refusal}", file=sys.stderr)
        return 64
    blot = Blot.of(target)

    def say(line):
        print(blot(f"{time.strftime('%H:%M:%S')} {line}"), flush=True)

    # However it is ended, it cleans up first.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        if options.clean_up is not None:
            return clean_up(target.client(), options.clean_up, say)
        for line in plan.lines(planned, target.region):
            print(line)
        print(f"Budget: ${budget:.4f}. It stops there.", flush=True)
        return tell(options, target, planned, Meter(budget, target.region), blot, say)
    except (BotoCoreError, ClientError) as error:
        print(blot(f"story: {error}"), file=sys.stderr)
        return 69
    except KeyboardInterrupt:
        return 130


def tell(options, target, planned, meter, blot, say):
    """The story between the making and the deletion of its tables."""
    began, name, story = datetime.now(timezone.utc), tables.new_name(), None
    scratch = Path(tempfile.mkdtemp(prefix="heatsink-story-"))
    raw, outcome, code = target.client(), "as it should be", 0
    try:
        say(f"makes the table {name} at {target.endpoint}")
        tables.make(raw, name)
        story = Story(Site(options.binary, target, name, scratch), meter, options.units, options.seconds, say)
        story.tell()
        if story.faults:
            outcome, code = f"{len(story.faults)} faults", 1
    except KeyboardInterrupt:
        outcome, code = "interrupted", 130
    except (OverBudget, Failed, TimeoutError, BotoCoreError, ClientError) as error:
        outcome, code = f"stopped: {error}", 1
    finally:
        # A second Ctrl-C must not leave a table behind.
        for which in (signal.SIGINT, signal.SIGTERM):
            signal.signal(which, signal.SIG_IGN)
        say(f"{outcome}; stops the gateways and deletes the tables")
        try:
            if story:
                story.stop()
            tables.clean_up(raw, name, say)
        except Exception as error:  # noqa: BLE001, said with the way out
            outcome, code = f"{outcome}; not cleaned up: {error}", 1
            say(f"could not clean up: {error}. Run it again with --clean-up")
        told = report.document(target, name, planned, meter, story, outcome, began)
        say(f"report: {', '.join(report.write(told, options.report, blot))}")
        print(blot("\n".join(report.text(told))), flush=True)
        if code == 0:
            shutil.rmtree(scratch, ignore_errors=True)
        else:
            say(f"logs of the gateways: {scratch}")
    return code


def clean_up(client, only, say):
    found = [name for name in tables.left(client) if only in ("all", name)]
    for name in found:
        tables.clean_up(client, name, say)
    say(f"{len(found)} stories cleaned up" if found else "nothing is left of a story")
    return 0


class Parser(argparse.ArgumentParser):
    """Flags that are wrong end as Heatsink's own commands do."""

    def error(self, message):
        self.exit(64, f"story: {message}\n")


def parse(arguments):
    parser = Parser(prog="clients/aws/story")
    parser.add_argument("--binary", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--endpoint", help="the store's URL")
    parser.add_argument("--aws", metavar="REGION", help="DynamoDB itself, in this region")
    parser.add_argument("--yes-spend", type=float, metavar="DOLLARS", help="spend so much at most; needed for every store that is not on this machine")
    parser.add_argument("--clean-up", nargs="?", const="all", metavar="TABLE", help="delete what stories have left, or one of them, and do nothing else")
    parser.add_argument("--units", type=int, default=1500, help="write units a second on what is hot [1500]")
    parser.add_argument("--seconds", type=int, default=20, help="of load before and after each move [20]")
    parser.add_argument("--report", type=Path, default=Path("heatsink-story"), metavar="PATH", help="where the report goes, as PATH.json and PATH.txt [heatsink-story]")
    options = parser.parse_args(arguments)
    if not (100 <= options.units <= MOST_UNITS and 5 <= options.seconds <= MOST_SECONDS):
        parser.error(f"--units is 100 to {MOST_UNITS}, --seconds 5 to {MOST_SECONDS}")
    return options


if __name__ == "__main__":
    sys.exit(main())
