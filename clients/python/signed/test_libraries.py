"""Each library that signs, over TLS: with a long-term key and a session token, on a table that is sharded and on one that is not."""

from itertools import product
from types import SimpleNamespace

import pytest

from libraries import Aiodynamo, Boto3, Cli, Pydynox
from stage import certificates

LIBRARIES = [Boto3, Cli, Aiodynamo, Pydynox]
CREDENTIALS = {"key": ("admin", "admin/+secret"), "token": ("team1", "team", "token/+==")}
# Each process of the AWS CLI takes half a second: one credential for each table.
PLAYS = [
    (library, credentials, table) for library, credentials, table in product(LIBRARIES, CREDENTIALS, ["Scores", "Plain"])
    if library is not Cli or (credentials, table) in [("key", "Scores"), ("token", "Plain")]]
# What some say in place of the error's type.
MISMATCH = (
    "The request signature we calculated does not match the signature you provided. Check your AWS Secret Access Key and signing "
    "method. Consult the service documentation for details.")
SAID = {
    Aiodynamo: {"UnrecognizedClientException": "UnrecognizedClient", "AccessDeniedException": "AccessDenied"},
    Pydynox: {"UnrecognizedClientException": "CredentialsException", "InvalidSignatureException": MISMATCH},
}


def key(item):
    return {"pk": item["pk"], "sk": item["sk"]}


@pytest.mark.parametrize(("library", "credentials", "table"), PLAYS)
def test_what_is_signed_is_served(gateway, library, credentials, table):
    client = library(gateway, *CREDENTIALS[credentials])
    # Answers are long enough to be compressed for those who take that.
    items = [
        {"pk": f"team1#{library.__name__}/{credentials}", "sk": f"{number:02d}", "n": number, "text": "ä  ☃\t" * 50}
        for number in range(20)]
    keys = [key(item) for item in items]
    client.put(table, {**items[0], "n": -1})
    assert client.get(table, keys[0]) == {**items[0], "n": -1}
    assert client.add(table, keys[0]) == items[0]
    client.put_many(table, items[1:15])
    client.put_all(table, items[15:])
    assert list(client.pages(table, items[0]["pk"], 7)) == [items[:7], items[7:14], items[14:]]
    assert sorted(client.get_many(table, keys), key=lambda item: item["sk"]) == items
    assert client.get_all(table, keys) == items


@pytest.mark.parametrize("library", LIBRARIES)
def test_what_is_signed_wrongly_is_refused_by_its_type(gateway, library):
    mine, another = ({"pk": f"team{number}#x", "sk": "x"} for number in (1, 2))
    for credentials, item, expected in [
        (("admin", "wrong"), mine, "InvalidSignatureException"),
        (("team1", "wrong", "token/+=="), mine, "InvalidSignatureException"),
        (("team1", "team"), mine, "UnrecognizedClientException"),
        (("team1", "team", "another"), mine, "UnrecognizedClientException"),
        (("nobody", "admin/+secret"), mine, "UnrecognizedClientException"),
        (("team1", "team", "token/+=="), another, "AccessDeniedException"),
    ]:
        client = library(gateway, *credentials)
        with pytest.raises(Exception) as failed:
            client.put("Scores", item)
        assert client.name(failed.value) == SAID.get(library, {}).get(expected, expected), credentials


# Not pydynox: a process reads the file of CAs once for all its clients.
@pytest.mark.parametrize("library", [Boto3, Cli, Aiodynamo])
def test_a_gateway_of_another_ca_is_not_spoken_to(gateway, library, tmp_path):
    certificates(tmp_path)
    client = library(SimpleNamespace(endpoint=gateway.endpoint, ca=str(tmp_path / "ca.pem")), *CREDENTIALS["key"])
    with pytest.raises(Exception, match="(?i)certificate.verify.failed"):
        client.put("Scores", {"pk": "team1#x", "sk": "x"})
