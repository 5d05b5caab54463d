"""Which store the story runs against, and what it refuses to run against."""

import ipaddress
import math
import os
from dataclasses import dataclass
from urllib.parse import urlparse

import boto3
from botocore.config import Config

# What SDKs and gateways would read an endpoint, a proxy or credentials from.
ELSEWHERE = ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_DYNAMODB", "AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_SECURITY_TOKEN")
MADE_UP = {"aws_access_key_id": "local", "aws_secret_access_key": "local"}


class Refusal(Exception):
    """It does not run like this. Nothing was made or sent."""


@dataclass(frozen=True)
class Target:
    endpoint: str
    region: str
    is_loopback: bool

    def client(self, endpoint=None, **config):
        """boto3 at the store, or at a gateway before it, which needs no credentials. It never tries again, and never goes by a proxy of this machine to
        a loopback address."""
        local = endpoint is not None or self.is_loopback
        session = boto3.Session(region_name=self.region, **(MADE_UP if local else {}))
        more = {"proxies": {}} if local else {}
        return session.client("dynamodb", endpoint_url=endpoint or self.endpoint, config=Config(retries={"total_max_attempts": 1}, **more, **config))

    def environment(self):
        """That of gateways and commands: of a loopback store with credentials that are made up."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_ENDPOINT_URL")}
        if self.is_loopback:
            kept = {name: value for name, value in kept.items() if name not in ELSEWHERE}
            kept |= {"AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local", "AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null"}
            kept |= {"AWS_EC2_METADATA_DISABLED": "true"}
        return kept | {"AWS_REGION": self.region, "HEATSINK_LAME_DUCK": "0"}


def choose(endpoint, aws, dollars, cleans_up=False):
    """The target that the flags name, or a refusal: money is spent only where `--yes-spend` says how much."""
    if endpoint and aws:
        raise Refusal("name one of --endpoint and --aws")
    if not endpoint and not aws:
        raise Refusal("name a store: --endpoint URL, or --aws REGION with --yes-spend DOLLARS. Nothing is assumed, since no endpoint means real AWS")
    if dollars is not None and (not math.isfinite(dollars) or dollars < 0 or dollars == 0 and not cleans_up):
        raise Refusal("--yes-spend takes a number of dollars above 0")
    if aws:
        if not aws.replace("-", "").isalnum():
            raise Refusal(f"--aws takes the name of a region, not {aws!r}")
        target = Target(f"https://dynamodb.{aws}.amazonaws.com", aws, False)
    else:
        target = at(endpoint)
    if not target.is_loopback and dollars is None:
        raise Refusal(f"{target.endpoint} is not on this machine and may cost money: say how much by --yes-spend DOLLARS")
    return target


def at(endpoint):
    parsed = urlparse(endpoint)
    if parsed.scheme not in ("http", "https") or not parsed.hostname or parsed.username is not None:
        raise Refusal("--endpoint takes a URL such as http://127.0.0.1:8000, without credentials")
    if is_loopback(parsed.hostname):
        return Target(endpoint, "us-east-1", True)
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    if not region:
        raise Refusal("an endpoint beyond this machine needs AWS_REGION")
    return Target(endpoint, region, False)


def is_loopback(host):
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
