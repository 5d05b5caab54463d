"""The control: all that `mixture` does but layout changes. Without a fence too nothing may go wrong, or the clients count wrongly."""

from fence.scenarios import mixture


def run(stage):
    mixture.play(stage, lambda played: played.troubles)
