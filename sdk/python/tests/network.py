"""The service under test, and proxies between it and the SDK that lose, delay and break messages."""

from __future__ import annotations

import http.client
import json
import os
import socket
import threading
import unittest
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Callable, Dict, List, Optional, Tuple, Union
from unittest import mock
from urllib.parse import urlsplit

import remit

URL = os.environ["REMIT_ADDR"]


@dataclass
class Request:
    """A request as it arrived."""

    method: str
    path: str
    query: str
    headers: Any
    body: bytes
    connection: Tuple[str, int]


@dataclass
class Answer:
    """A response that the proxy sends by itself."""

    status: int
    body: str = ""
    headers: Dict[str, str] = field(default_factory=dict)
    chunked: bool = False


PAIR = '{"access_token":"a","refresh_token":"b","token_type":"bearer","expires_in":3600}'

PASS = "pass it on"
LOSE = "pass it on and lose the answer"
DROP = "close the connection without passing it on"

Reaction = Union[str, Answer]


def refusal(status: int, code: str, **members: Any) -> Answer:
    """Returns a problem response."""
    said = {"status": status, "code": code, "detail": "words", "request_id": "r-1", **members}
    return Answer(status, json.dumps(said))


class Proxy:
    """A proxy in front of the service. react decides what happens to the nth request with the same method and path, from 1."""

    def __init__(self, test: unittest.TestCase, react: Callable[[Request, int], Reaction]) -> None:
        self.react = react
        self.requests: List[Request] = []
        self._lock = threading.Lock()
        service, proxy = urlsplit(URL), self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def log_message(self, format: str, *args: Any) -> None:
                pass

            def handle_one(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                path, _, query = self.path.partition("?")
                does = proxy._see(Request(self.command, path, query, self.headers, body, self.client_address))
                if isinstance(does, Answer):
                    self.give(does.status, does.headers, does.body.encode(), does.chunked)
                    return
                if does in (PASS, LOSE):
                    onward = http.client.HTTPConnection(service.hostname or "", service.port or 80, timeout=40)
                    try:
                        onward.request(self.command, self.path, body or None, dict(self.headers.items()))
                        answer = onward.getresponse()
                        text = answer.read()
                    finally:
                        onward.close()
                    if does == PASS:
                        kept = {n: v for n, v in answer.getheaders() if n.lower() not in ("content-length", "date")}
                        self.give(answer.status, kept, text, False)
                        return
                self.close_connection = True

            def give(self, status: int, headers: Dict[str, str], body: bytes, chunked: bool) -> None:
                self.send_response_only(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                if chunked:
                    self.send_header("Transfer-Encoding", "chunked")
                    body = f"{len(body):x}\r\n".encode() + body + b"\r\n0\r\n\r\n"
                else:
                    self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_one

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 256

            def handle_error(self, *_: Any) -> None:  # a client that disconnects is not an error
                pass

        server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{server.server_address[1]}"
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        test.addCleanup(server.server_close)
        test.addCleanup(server.shutdown)

    def _see(self, request: Request) -> Reaction:
        with self._lock:
            self.requests.append(request)
            same = [r for r in self.requests if (r.method, r.path) == (request.method, request.path)]
        return self.react(request, len(same))

    def to(self, path: str) -> List[Request]:
        with self._lock:
            return [r for r in self.requests if r.path == path]


class Listener:
    """A server of raw bytes. It passes each connection in turn to serve, with its number from 0."""

    def __init__(self, test: unittest.TestCase, serve: Callable[[socket.socket, int], None]) -> None:
        listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        self.connections = 0

        def accept() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:  # closed: the test is over
                    return
                number, self.connections = self.connections, self.connections + 1
                with connection:
                    try:
                        serve(connection, number)
                    except OSError:
                        pass

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        test.addCleanup(thread.join, 5)
        test.addCleanup(listening.close)
        test.addCleanup(lambda: listening.shutdown(socket.SHUT_RDWR))


def read_request(connection: socket.socket) -> bytes:
    """Returns one request with a short body, or nothing at the end of the connection."""
    text = b""
    while b"\r\n\r\n" not in text:
        piece = connection.recv(65536)
        if not piece:
            return text
        text += piece
    head, _, body = text.partition(b"\r\n\r\n")
    length = 0
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    while len(body) < length:
        body += connection.recv(65536)
    return text


def answer_bytes(body: bytes, status: str = "200 OK") -> bytes:
    return b"HTTP/1.1 " + status.encode() + b"\r\nContent-Length: " + str(len(body)).encode() + b"\r\n\r\n" + body


def idle(service: Any) -> Any:
    """Returns the connections that a client keeps."""
    return service.transport._idle


class ServiceTest(unittest.TestCase):
    """A test with a client of the service, without backoff."""

    def setUp(self) -> None:
        patched = mock.patch("remit.retry.FIRST_BACKOFF", 0.0)
        patched.start()
        self.addCleanup(patched.stop)
        self.client = self.client_of(URL)

    def client_of(self, url: str, **options: Any) -> remit.Client:
        client = remit.Client(url, **options)
        self.addCleanup(client.close)
        return client

    def proxied(
        self, react: Callable[[Request, int], Reaction] = lambda _r, _n: PASS, **options: Any
    ) -> Tuple[remit.Client, Proxy]:
        proxy = Proxy(self, react)
        return self.client_of(proxy.url, **options), proxy

    def answering(self, said: Any) -> Tuple[remit.Client, Callable[[], List[Request]]]:
        """Returns a client of a service that sends this response after losing two, and the requests except those for tokens."""

        def react(request: Request, n: int) -> Reaction:
            if request.path == "/v1/auth/token":
                return Answer(200, PAIR)
            return Answer(503, "<html>") if n <= 2 else Answer(200, json.dumps(said))

        client, proxy = self.proxied(react)
        return client, lambda: [r for r in proxy.requests if r.path != "/v1/auth/token"]

    def new_organization(self) -> remit.Organization:
        made = self.client.create_organization("acme")
        assert made.api_key is not None
        self.organization_id = made.id
        return self.client.organization(made.api_key)

    def new_session(
        self,
        client: Optional[remit.Client] = None,
        organization: Optional[remit.Organization] = None,
        **limits: Any,
    ) -> remit.Session:
        """Returns a session of an agent with the scope admin, which uses the given client; all other calls go directly."""
        self.organization = organization or self.new_organization()
        made = self.organization.create_agent("scout", ["admin"])
        assert made.secret is not None
        self.agent = (client or self.client).agent(made.id, made.secret)
        return self.agent.session(self.organization.create_session(made.id, **limits).id)
