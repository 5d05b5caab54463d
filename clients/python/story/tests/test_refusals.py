"""What the story refuses: nothing is made, and nothing is sent, where money might be spent that nobody has named."""

import socket

import pytest

from story.__main__ import main
from story.blot import Blot
from story.target import Refusal, choose

BINARY = ["--binary", "/bin/false"]


@pytest.fixture(autouse=True)
def nothing_is_sent(monkeypatch):
    """A connection, or a look at a name, is a fault."""
    def refuse(*_, **__):
        raise AssertionError("it went to the network")
    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)


@pytest.mark.parametrize("flags", [
    [],
    ["--yes-spend", "5"],
    ["--clean-up"],
    ["--aws", "us-east-1"],
    ["--aws", "us-east-1", "--clean-up"],
    ["--aws", "us-east-1", "--yes-spend", "0"],
    ["--aws", "us-east-1", "--yes-spend", "nan"],
    ["--aws", "us-east-1", "--yes-spend", "-1"],
    ["--aws", "us-east-1", "--yes-spend", "much"],
    ["--aws", "us-east-1", "--yes-spend", "0.01"],  # less than it may take
    ["--aws", "evil.example/", "--yes-spend", "5"],
    ["--aws", "us-east-1", "--endpoint", "http://127.0.0.1:1", "--yes-spend", "5"],
    ["--endpoint", "https://dynamodb.us-east-1.amazonaws.com"],
    ["--endpoint", "http://10.0.0.1:8000"],
    ["--endpoint", "http://0.0.0.0:8000"],
    ["--endpoint", "http://127.0.0.1.example.com"],
    ["--endpoint", "http://127.0.0.1@example.com"],
    ["--endpoint", "127.0.0.1:8000"],
    ["--endpoint", "http://127.0.0.1:1", "--units", "100000"],
])
def test_refused(flags, monkeypatch, capsys):
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")  # does not stand for the flag
    try:
        code = main([*BINARY, *flags])
    except SystemExit as end:
        code = end.code
    assert code == 64
    assert capsys.readouterr().err.startswith("story: ")


@pytest.mark.parametrize("endpoint", ["http://127.0.0.1:8000", "http://127.9.9.9", "http://[::1]:8000", "http://localhost:8000"])
def test_this_machine_costs_nothing(endpoint):
    assert choose(endpoint, None, None).is_loopback


def test_aws_is_what_the_region_says_with_dollars_alone():
    target = choose(None, "eu-west-1", 2)
    assert (target.endpoint, target.region, target.is_loopback) == ("https://dynamodb.eu-west-1.amazonaws.com", "eu-west-1", False)
    assert choose(None, "eu-west-1", 0, cleans_up=True).region == "eu-west-1"


def test_an_endpoint_beyond_this_machine_needs_a_region(monkeypatch):
    monkeypatch.delenv("AWS_REGION", raising=False)
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    with pytest.raises(Refusal, match="AWS_REGION"):
        choose("http://10.0.0.1:8000", None, 1)


def test_real_credentials_do_not_go_to_this_machine(monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.setenv(name, "real-and-secret-value")
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", "https://elsewhere.example")
    local, aws = choose("http://127.0.0.1:8000", None, None), choose(None, "eu-west-1", 2)
    assert "real-and-secret-value" not in local.environment().values()
    assert aws.environment()["AWS_SECRET_ACCESS_KEY"] == "real-and-secret-value"
    assert not any(name.startswith("AWS_ENDPOINT_URL") for target in (local, aws) for name in target.environment())
    client = local.client()
    assert client._request_signer._credentials.secret_key == "local"
    assert client.meta.endpoint_url == "http://127.0.0.1:8000"


def test_credentials_are_blotted_out(monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI/K7MDENG")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "a-token-of-some-length==")
    said = Blot.of(choose(None, "eu-west-1", 2))(
        "the Canonical String is x-amz-security-token:other-token Credential=ASIAIOSFODNN7OTHERS/2026, Signature=00ff; wJalrXUtnFEMI/K7MDENG "
        "AKIAIOSFODNN7EXAMPLE a-token-of-some-length== table heatsink-story-0123456789ab")
    assert said == ("the Canonical String is x-amz-security-token:*** Credential=***/2026, Signature=***; *** *** *** table heatsink-story-0123456789ab")
