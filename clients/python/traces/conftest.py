"""Collectors and gateways that are stopped at the end of a test."""

import contextlib

import pytest
from collector import Collector
from gateway import Gateway


@pytest.fixture
def collector():
    with contextlib.ExitStack() as stack:
        def start(behave="take"):
            one = Collector(behave)
            stack.callback(one.close)
            return one
        yield start


@pytest.fixture
def gateway(tmp_path):
    started = []

    def start(otlp, **environment):
        started.append(Gateway(tmp_path, otlp, **environment))
        return started[-1]
    yield start
    for one in started:
        if one.process.poll() is None:
            one.process.kill()
            one.process.wait()
        one.log.close()
