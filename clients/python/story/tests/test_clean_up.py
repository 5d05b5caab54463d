"""Nothing that a story makes outlives it: not after Ctrl-C, nor at the end of its budget. What a kill leaves is found by its tag."""

import json
import os
import signal
import socket
import time
from urllib.parse import urlparse

import pytest

from store import store, story
from story import __main__, plan, tables
from story.prices import Use
from story.target import choose


@pytest.fixture
def site(tmp_path):
    with store(tmp_path) as endpoint:
        yield tmp_path, endpoint, choose(endpoint, None, None).client()


def all_tables(raw):
    return sorted(raw.list_tables()["TableNames"])


def until_registry(raw, running):
    """Until the story has both of its tables, which is in the middle of its first move."""
    deadline = time.monotonic() + 60
    while not any(name.endswith(tables.REGISTRY) for name in all_tables(raw)):
        assert running.poll() is None and time.monotonic() < deadline, running.stdout.read()
        time.sleep(0.1)


def listens(endpoint):
    at = urlparse(endpoint)
    try:
        socket.create_connection((at.hostname, at.port), 1).close()
    except OSError:
        return False
    return True


def begun(folder, endpoint, raw):
    running = story(folder, endpoint, "--seconds", "5", "--units", "200")
    until_registry(raw, running)
    return running


def test_a_story_that_is_killed_is_found_and_cleaned_up(site):
    folder, endpoint, raw = site
    # A table of somebody else, with the form of the name and without the tag, and one with neither.
    others = [tables.new_name(), "heatsink.registry-of-others"]
    for name in others:
        raw.create_table(
            TableName=name, BillingMode="PAY_PER_REQUEST", AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}])
    running = begun(folder, endpoint, raw)
    made = [name for name in all_tables(raw) if name not in others]
    assert len(made) == 2
    registry = next(name for name in made if name.endswith(tables.REGISTRY))
    assert raw.describe_table(TableName=registry)["Table"]["DeletionProtectionEnabled"]
    running.kill()
    running.wait()
    # Its gateways end with it: else they would make the registry anew.
    cleaned = story(folder, endpoint, "--clean-up")
    said = cleaned.communicate(timeout=120)[0]
    assert cleaned.returncode == 0 and all(f"deleted {name}" in said for name in made), said
    time.sleep(3)
    assert all_tables(raw) == sorted(others)
    again = story(folder, endpoint, "--clean-up")
    assert "nothing is left" in again.communicate(timeout=60)[0]


@pytest.mark.parametrize("which", [signal.SIGINT, signal.SIGTERM])
def test_a_story_that_is_interrupted_cleans_up(site, which):
    folder, endpoint, raw = site
    running = begun(folder, endpoint, raw)
    running.send_signal(which)
    said = running.communicate(timeout=120)[0]
    assert running.returncode == 130, said
    assert all_tables(raw) == []
    assert json.loads((folder / "report.json").read_text())["outcome"] == "interrupted"


def test_a_story_that_fails_cleans_up(site):
    """Here a stranger deletes its table."""
    folder, endpoint, raw = site
    running = story(folder, endpoint, "--seconds", "5", "--units", "200")
    until_registry(raw, running)
    name = next(name for name in all_tables(raw) if not name.endswith(tables.REGISTRY))
    raw.delete_table(TableName=name)
    said = running.communicate(timeout=180)[0]
    assert running.returncode == 1 and "stopped: " in said, said
    assert all_tables(raw) == []


def test_the_budget_stops_a_story(tmp_path, monkeypatch):
    """A plan that says too little: the story stops at the budget, says so, and cleans up."""
    monkeypatch.setattr(plan, "steps", lambda *_: [plan.Step("too little", Use(writes=19_000))])
    with store(tmp_path) as endpoint:
        raw = choose(endpoint, None, None).client()
        code = __main__.main([
            "--binary", os.environ["HEATSINK_BIN"], "--endpoint", endpoint, "--seconds", "5", "--units", "2000", "--report", str(tmp_path / "report")])
        told = json.loads((tmp_path / "report.json").read_text())
        assert code == 1 and "the budget is" in told["outcome"], told["outcome"]
        assert told["taken"]["dollars"] < 1.2 * told["taken"]["budget_dollars"]
        assert all_tables(raw) == []
