"""The gateway that knows its clients, over TLS by a CA of its own, with a table that is sharded and one that is not."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from libraries import Boto3
from stage import certificates, serving

RULES = Path(__file__).resolve().parents[2] / "signed.toml"


@pytest.fixture(scope="session")
def gateway(tmp_path_factory):
    """Its `endpoint`, and the file of its `ca`."""
    folder = tmp_path_factory.mktemp("tls")
    certificates(folder)
    with serving(RULES, tls=folder) as endpoint:
        made = SimpleNamespace(endpoint=endpoint, ca=str(folder / "ca.pem"))
        admin = Boto3(made, "admin", "admin/+secret").client
        for name in ("Scores", "Plain"):
            admin.create_table(
                TableName=name, BillingMode="PAY_PER_REQUEST",
                KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
                AttributeDefinitions=[{"AttributeName": key, "AttributeType": "S"} for key in ("pk", "sk")])
        yield made
