"""Processor time of what a gateway on a network does besides: verifying signatures and signing anew, and TLS."""

import os

from cpu import line
from machinery import fill, items
from throughput import gets, puts

ID, SECRET = "bench", "bench/secret+of+no+account"
CLIENTS = f'[[client]]\nid = "{ID}"\nsecret_file = "bench.secret"\n'


def signed(bench, port, operation, bodies):
    """A file beside the bodies with a line for each: date and authorization. Holds for 15 minutes."""
    from botocore.auth import SigV4Auth
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials

    auth = SigV4Auth(Credentials(ID, SECRET), "dynamodb", "us-east-1")
    path = bodies.with_suffix(f".{port}.signed")
    with path.open("w") as file:
        for body in bodies.read_bytes().splitlines():
            request = AWSRequest("POST", f"http://127.0.0.1:{port}/", data=body, headers={
                "Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": f"DynamoDB_20120810.{operation}"})
            auth.add_auth(request)
            file.write(f"{request.headers['X-Amz-Date']}\t{request.headers['Authorization']}\n")
    return path


def run(bench):
    from stage import certificates

    rows = list(items())
    engine = bench.engine()
    secret = bench.scratch / "bench.secret"
    secret.write_text(SECRET)
    os.chmod(secret, 0o600)
    certificates(bench.scratch)
    cert, key = bench.scratch / "server.pem", bench.scratch / "server.key"
    behind = ("--only-gateway", "--upstream", f"http://127.0.0.1:{engine}")
    tls = ("--tls-cert", cert, "--tls-key", key)
    plain = bench.heatsink_serve(*behind, rules="")
    fill(bench, plain, "Plain", rows)
    known = bench.heatsink_serve(*behind, rules=CLIENTS)
    encrypted = bench.heatsink_serve(*behind, *tls, rules="")
    both = bench.heatsink_serve(*behind, *tls, rules=CLIENTS)
    nginx, nginx_tls = bench.nginx(engine), bench.nginx(engine, tls=(cert, key))
    for operation, make in (("GetItem", gets), ("PutItem", puts)):
        bodies = make(bench, "Plain", rows, f"front-{operation}")
        signatures = {port: signed(bench, port, operation, bodies) for port in (known, both)}
        rates = bench.rates({
            "nginx": (nginx, operation, bodies),
            "nginx, TLS": (nginx_tls, operation, bodies, "https"),
            "forwarded": (plain, operation, bodies),
            "verified": (known, operation, bodies, "http", signatures[known]),
            "TLS": (encrypted, operation, bodies, "https"),
            "TLS, verified": (both, operation, bodies, "https", signatures[both]),
        })
        for what, target, over, under in (
            ("verified and signed anew ÷ not verified", "≤ 1.10", "verified", "forwarded"),
            ("verified and signed anew ÷ nginx", "stated", "verified", "nginx"),
            ("TLS, kept alive ÷ plain", "≤ 1.25", "TLS", "forwarded"),
            ("TLS and verified ÷ nginx with TLS", "stated", "TLS, verified", "nginx, TLS"),
        ):
            yield line(f"{operation}: {what}, processor time", target, rates, over, under)
