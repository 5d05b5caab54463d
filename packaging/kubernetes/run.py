#!/usr/bin/env python3
"""Runs the binary as the rendered manifests say, on 127.0.0.1, and asks what the probes ask.

    packaging/kubernetes/run.py BINARY FOLDER

FOLDER has central.yaml and example.yaml. Paths of the containers become paths in FOLDER, and the upstream a server of this program. Selectors
and security contexts are compared with what they should be.
"""

import http.client
import os
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import yaml

USE = Path(__file__).resolve().parent.parent / "use.py"
# Pod Security Standards: restricted.
RESTRICTED = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local", "AWS_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true",
    "HEATSINK_LAME_DUCK": "0", "HEATSINK_ADMIN_TOKEN": "0123456789abcdef0123456789abcdef", "PATH": os.environ["PATH"],
}


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def until(what, seconds=15):
    """The first true answer of `what`."""
    end = time.monotonic() + seconds
    while not (answer := what()):
        if time.monotonic() > end:
            raise SystemExit(f"run.py: {what.__name__} was not reached in {seconds} s")
        time.sleep(0.1)
    return answer


def deployment(folder, form):
    documents = list(yaml.safe_load_all((folder / f"{form}.yaml").read_text()))
    for document in documents:
        for selector in (document["spec"].get("selector"), document["spec"].get("podSelector")) if "spec" in document else ():
            assert selector is None or selector, f"{document['kind']} selects every pod"
    return next(document for document in documents if document["kind"] == "Deployment")["spec"]["template"]["spec"]


def check_restricted(pod, container):
    context = {**pod.get("securityContext", {}), **container["securityContext"]}
    assert context["runAsNonRoot"] is True and context["seccompProfile"] == {"type": "RuntimeDefault"}, context
    assert {name: context[name] for name in RESTRICTED} == RESTRICTED, context
    assert context["readOnlyRootFilesystem"] is True and pod["terminationGracePeriodSeconds"] == 45


def certificates(folder):
    """A CA, and a certificate of it for the server and for a client."""
    def openssl(*arguments):
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)

    folder.mkdir()
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    openssl("req", "-x509", *key, "-keyout", "ca.key", "-out", "clients.pem", "-subj", "/CN=Tried")
    for name, usage in ("tls", "serverAuth"), ("client", "clientAuth"):
        openssl("req", "-x509", *key, "-keyout", f"{name}.key", "-out", f"{name}.crt", "-subj", f"/CN={name}", "-CA", "clients.pem",
                "-CAkey", "ca.key", "-addext", "basicConstraints=critical,CA:FALSE", "-addext", f"extendedKeyUsage={usage}",
                "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1")
    (folder / "tls.key").chmod(0o440)


def status(url):
    try:
        return urllib.request.urlopen(url, timeout=5).status
    except urllib.error.HTTPError as error:
        return error.code
    except (OSError, http.client.HTTPException):
        return None


def run(binary, container, folder, replaced):
    """The container's command on this machine."""
    arguments = []
    for argument in container["args"]:
        for old, new in replaced.items():
            argument = argument.replace(old, new)
        arguments.append(argument)
    return subprocess.Popen([binary, *arguments, "--only-gateway"], env=ENVIRONMENT, stdout=subprocess.DEVNULL)


def try_central(binary, folder, upstream):
    pod = deployment(folder, "central")
    container, = pod["containers"]
    check_restricted(pod, container)
    certificates(folder / "certificates")
    port, admin = free_port(), free_port()
    gateway = run(binary, container, folder, {
        "0.0.0.0:8443": f"127.0.0.1:{port}", "0.0.0.0:8001": f"127.0.0.1:{admin}", "/tls/": f"{folder}/certificates/",
        "/rules/": f"{folder}/central/", "https://dynamodb.us-east-1.amazonaws.com": upstream})
    try:
        for probe in "startupProbe", "livenessProbe", "readinessProbe":
            path = container[probe]["httpGet"]["path"]
            until(lambda: status(f"http://127.0.0.1:{admin}{path}") == 200)
        context = ssl.create_default_context(cafile=folder / "certificates/clients.pem")
        assert not answers(port, context), "it serves a client without a certificate"
        context.load_cert_chain(folder / "certificates/client.crt", folder / "certificates/client.key")
        assert answers(port, context), "it does not serve a client with a certificate"
        gateway.terminate()
        assert gateway.wait(10) == 0
    finally:
        gateway.kill()
    print("central: ready, alive, serves clients with a certificate alone, and ends at SIGTERM")


def answers(port, context):
    connection = http.client.HTTPSConnection("localhost", port, context=context, timeout=5)
    try:
        connection.request("GET", "/")
        return connection.getresponse().status < 500
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def try_sidecar(binary, folder, upstream):
    pod = deployment(folder, "example")
    container, = (each for each in pod["initContainers"] if each["name"] == "heatsink")
    check_restricted(pod, container)
    assert container["restartPolicy"] == "Always"
    port = free_port()
    container["args"].append(f"--listen=127.0.0.1:{port}")
    gateway = run(binary, container, folder, {"/rules/": f"{folder}/sidecar/", "https://dynamodb.us-east-1.amazonaws.com": upstream})
    try:
        for probe in "startupProbe", "readinessProbe", "livenessProbe":
            _, *command = container[probe]["exec"]["command"]
            until(lambda: subprocess.run([binary, *command, "--server", f"127.0.0.1:{port}"], capture_output=True).returncode == 0)
        subprocess.run([USE, f"http://127.0.0.1:{port}"], check=True)
        gateway.terminate()
        assert gateway.wait(10) == 0
    finally:
        gateway.kill()
    print("sidecar: ready, alive, serves, and ends at SIGTERM")


def main():
    binary, folder = sys.argv[1], Path(sys.argv[2])
    port = free_port()
    store = subprocess.Popen([binary, "serve", "--listen", f"127.0.0.1:{port}"], stdout=subprocess.DEVNULL, env=ENVIRONMENT)
    try:
        upstream = f"http://127.0.0.1:{port}"
        until(lambda: status(upstream) is not None)
        try_central(binary, folder, upstream)
        try_sidecar(binary, folder, upstream)
    finally:
        store.kill()


if __name__ == "__main__":
    main()
