"""The stores that gateways can have: DynamoDB Local, the embedded store's own server, or a file of the gateway's own.

Not here: gateways, and what is between them and the store.
"""

import os
import socket
import socketserver
import subprocess
import tempfile
import threading
import time

# Where servers have the sockets of their user's commands.
RUNTIME = tempfile.mkdtemp(prefix="heatsink-run-")
ENVIRONMENT = {
    **os.environ, "AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local", "AWS_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true", "XDG_RUNTIME_DIR": RUNTIME, "HEATSINK_LAME_DUCK": "0",
}


class Store:
    """DynamoDB Local, in memory."""

    def __init__(self, jar, log):
        self.port = free_port()
        self.process = subprocess.Popen(
            ["java", "-XX:+UseSerialGC", "-Xms1g", "-Xmx1g", "-Xmn600m", f"-Djava.library.path={jar}/DynamoDBLocal_lib", "-jar", f"{jar}/DynamoDBLocal.jar",
             "-inMemory", "-sharedDb", "-port", str(self.port)],
            stdout=log, stderr=log,
        )
        wait_for_port(self.port, self.process, 60)

    @property
    def endpoint(self):
        return f"http://127.0.0.1:{self.port}"

    def stop(self):
        end(self.process)


class EmbeddedStore:
    """The embedded store's own server over a file: `heatsink serve` without rules. Its registry has another name, so it does not hide the gateways'
    own. It can be killed, and keeps what it has acknowledged."""

    def __init__(self, binary, scratch, log):
        self.port, self.log = free_port(), log
        rules = scratch / "store.toml"
        rules.write_text('[fence]\nregistry = "heatsink.of-the-store"\n')
        self.command = [
            binary, "serve", "--listen", f"127.0.0.1:{self.port}", "--rules", str(rules), "--quotas", "off", "--data", str(scratch / "store.db"),
        ]
        self.start()

    @property
    def endpoint(self):
        return f"http://127.0.0.1:{self.port}"

    def start(self):
        self.process = subprocess.Popen(self.command, stdout=self.log, stderr=self.log, env=ENVIRONMENT)
        wait_for_port(self.port, self.process, 60)

    def kill(self):
        """Ends it in the middle of whatever it does."""
        self.process.kill()
        self.process.wait()

    def stop(self):
        end(self.process)


class OwnStore:
    """The store of a gateway that has one of its own, a file. The gateway shows it to its user's commands, on a socket, while it runs."""

    def __init__(self, scratch):
        self.port, self.file = free_port(), scratch / "own.db"
        self.passage = Passage(f"{RUNTIME}/heatsink/127.0.0.1:{self.port}.sock")

    @property
    def endpoint(self):
        return f"http://127.0.0.1:{self.passage.server_address[1]}/_heatsink/physical"

    def stop(self):
        self.passage.shutdown()


class Passage(socketserver.ThreadingTCPServer):
    """A port of this machine that leads to a Unix socket: boto3 knows ports only."""

    daemon_threads = True

    def __init__(self, path):
        self.path = path
        super().__init__(("127.0.0.1", 0), Through)
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Through(socketserver.BaseRequestHandler):
    """One connection. It ends when either side ends."""

    def handle(self):
        with socket.socket(socket.AF_UNIX) as far:
            try:
                far.connect(self.server.path)
            except OSError:
                # The gateway does not run.
                return
            back = threading.Thread(target=pump, args=(far, self.request))
            back.start()
            pump(self.request, far)
            back.join()


def pump(source, target):
    """Passes on what comes, to its end."""
    try:
        while data := source.recv(1 << 16):
            target.sendall(data)
    except OSError:
        pass
    for end in (source, target):
        try:
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for_port(port, process, seconds):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise RuntimeError(f"no server on port {port}")


def end(process):
    """Ends a process and waits; at last by force."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(35)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
