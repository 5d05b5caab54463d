"""A collector of OpenTelemetry that keeps what it gets: protobuf over HTTP. It can refuse, and it can hang.

Not here: what the spans should be (test_spans.py).
"""

import gzip
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)


@dataclass
class Seen:
    """One span."""

    name: str
    kind: int
    trace: bytes
    id: bytes
    parent: bytes
    failed: bool
    attributes: dict
    resource: dict = field(repr=False)


def values(attributes):
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in attributes}


class Collector:
    """Listens on loopback, on a free port unless one is named. `behave`: "take", "refuse" (503) or "hang" (an answer that does not come until the end)."""

    def __init__(self, behave="take", port=0):
        self.spans, self.bodies, self.faults = [], [], []
        self.over = threading.Event()
        collector = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                collector.bodies.append(len(body))
                if behave == "hang":
                    collector.over.wait()
                    self.close_connection = True
                    return
                if behave == "refuse":
                    return self.answer(503, b"")
                try:
                    collector.take(self.path, dict(self.headers), body)
                except Exception as fault:
                    collector.faults.append(repr(fault))
                    return self.answer(400, b"")
                self.answer(200, ExportTraceServiceResponse().SerializeToString())

            def answer(self, status, body):
                self.send_response(status)
                self.send_header("content-type", "application/x-protobuf")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server.server_port}"

    def take(self, path, headers, body):
        assert path == "/v1/traces", path
        headers = {name.lower(): value for name, value in headers.items()}
        assert headers["content-type"] == "application/x-protobuf", headers
        if headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        request = ExportTraceServiceRequest()
        request.ParseFromString(body)
        for resource in request.resource_spans:
            for scope in resource.scope_spans:
                for span in scope.spans:
                    self.spans.append(Seen(
                        span.name, span.kind, span.trace_id, span.span_id, span.parent_span_id,
                        span.status.code == span.status.STATUS_CODE_ERROR, values(span.attributes),
                        values(resource.resource.attributes),
                    ))

    def wait(self, enough, seconds=20):
        """The spans, once `enough` of them holds."""
        until = time.monotonic() + seconds
        while time.monotonic() < until and not enough(self.spans):
            time.sleep(0.05)
        assert not self.faults, self.faults
        assert enough(self.spans), self.spans
        return list(self.spans)

    def close(self):
        self.over.set()
        self.server.shutdown()
        self.server.server_close()
