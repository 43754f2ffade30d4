from __future__ import annotations

import os
import select
import signal
import socket
import ssl
import struct
import threading
import unittest
import warnings
from unittest import mock

import remit
from network import Answer, Listener, ServiceTest, answer_bytes, idle, read_request
from remit import url

AGENT = (
    b'{"id":"a1","org_id":"o1","name":"scout","scopes":[],"status":"active","created_at":"2026-11-21T09:19:32Z",'
    b'"secret":"rms_new","something_new":{"x":[1.5]}}'
)


class Connections(ServiceTest):
    def test_connections_are_reused(self) -> None:
        client, proxy = self.proxied()
        session = self.new_session(client)
        for _ in range(5):
            session.charge()
        self.assertLessEqual(len({request.connection for request in proxy.requests}), 2)  # one for the tokens, one for the calls

    def test_a_dead_idle_connection_is_not_used(self) -> None:
        """The SDK sends the request once, without a retry, and it succeeds."""
        requests = []

        def serve(connection: socket.socket, number: int) -> None:
            requests.append(read_request(connection))
            connection.sendall(answer_bytes(AGENT, "201 Created"))  # HTTP/1.1 keeps the connection, but the server closes it

        server = Listener(self, serve)
        organization = self.client_of(server.url).organization("rmk_some")
        for n in range(1, 6):
            self.assertEqual(organization.create_agent("scout").id, "a1")
            self.assertEqual(len(requests), n)
            kept = idle(organization._caller.service)[-1]
            select.select([kept.wire.raw], [], [], 10)  # wait for the end of the connection

    def test_a_connection_that_dies_during_a_creation_without_a_key_leaves_its_outcome_unknown(self) -> None:
        requests = []

        def serve(connection: socket.socket, number: int) -> None:
            while True:
                requests.append(read_request(connection))
                if not requests[-1] or len(requests) == 2:
                    return
                connection.sendall(answer_bytes(AGENT, "201 Created"))

        organization = self.client_of(Listener(self, serve).url, idempotency_keys=False).organization("rmk_some")
        organization.create_agent("scout")
        with self.assertRaises(remit.OutcomeUnknown):
            organization.create_agent("scout")
        self.assertEqual(len(requests), 2)

    def test_a_request_that_was_not_sent_completely_is_retried(self) -> None:
        requests = []

        def serve(connection: socket.socket, number: int) -> None:
            if number == 0:  # reset, because a part of the request was not read
                connection.recv(1)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                return
            requests.append(read_request(connection))
            connection.sendall(answer_bytes(AGENT, "201 Created"))

        server = Listener(self, serve)
        made = self.client_of(server.url).organization("rmk_some").create_agent("scout", metadata={"x": "x" * (1 << 24)})
        self.assertEqual((made.id, len(requests), server.connections), ("a1", 1, 2))

    def test_an_unexpected_response_does_not_answer_the_next_call(self) -> None:
        answered = threading.Event()

        def serve(connection: socket.socket, number: int) -> None:
            read_request(connection)
            connection.sendall(answer_bytes(AGENT))
            if number == 0:
                answered.wait(10)
                connection.sendall(answer_bytes(AGENT.replace(b"a1", b"a2")))

        organization = self.client_of(Listener(self, serve).url).organization("rmk_some")
        self.assertEqual(organization.get_agent("a1").id, "a1")
        answered.set()
        kept = idle(organization._caller.service)[-1]
        select.select([kept.wire.raw], [], [], 10)
        self.assertEqual(organization.get_agent("a1").id, "a1")

    def test_interim_responses_are_skipped(self) -> None:
        """The SDK skips them, and leaves no response for the next call."""
        hint = b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n"
        for hints in (hint, b"HTTP/1.1 102 Processing\r\n\r\n" + hint, b"HTTP/1.1 100 Continue\r\n\r\n" + hint):
            def serve(connection: socket.socket, number: int) -> None:
                while True:
                    asked = read_request(connection)
                    if not asked:
                        return
                    connection.sendall(hints)
                    connection.sendall(answer_bytes(AGENT.replace(b'"a1"', b'"a2"') if b"/a2 " in asked else AGENT))

            server = Listener(self, serve)
            with self.subTest(hints), self.client_of(server.url, max_attempts=1) as client:
                organization = client.organization("rmk_some")
                for id in ("a1", "a2", "a1"):
                    self.assertEqual(organization.get_agent(id).id, id)
                self.assertEqual(server.connections, 1)

    def test_endless_interim_responses_and_a_switched_protocol_are_refused(self) -> None:
        for words, status in ((b"HTTP/1.1 103 Early Hints\r\n\r\n" * 1000, 0), (b"HTTP/1.1 101 Other\r\n\r\n", 101)):
            def serve(connection: socket.socket, number: int) -> None:
                read_request(connection)
                connection.sendall(words)

            organization = self.client_of(Listener(self, serve).url, max_attempts=1).organization("rmk_some")
            with self.subTest(words[:16]), self.assertRaises(remit.OutcomeUnknown) as caught:
                organization.create_agent("scout")
            self.assertEqual(caught.exception.status, status)
            self.assertEqual(len(idle(organization._caller.service)), 0)

    @unittest.skipUnless(hasattr(signal, "pthread_kill"), "it has no signals for a thread")
    def test_an_alarm_of_the_caller_propagates(self) -> None:
        """A signal handler that raises an OSError ends the call like any other exception, without a retry."""
        caller, raised = threading.main_thread().ident or 0, threading.Event()

        def handler(*_: object) -> None:
            if not raised.is_set():
                raised.set()
                raise TimeoutError("the caller's own")

        before = signal.signal(signal.SIGUSR1, handler)
        self.addCleanup(signal.signal, signal.SIGUSR1, before)

        def while_it_reads(connection: socket.socket, number: int) -> None:
            read_request(connection)
            until_raised()

        def while_it_sends(connection: socket.socket, number: int) -> None:
            connection.recv(1)
            until_raised()

        def until_raised() -> None:
            while not raised.wait(0.01):  # an alarm may fire just before the wait that it should interrupt
                signal.pthread_kill(caller, signal.SIGUSR1)

        for serve in (while_it_reads, while_it_sends):
            raised.clear()
            server = Listener(self, serve)
            organization = self.client_of(server.url).organization("rmk_some")
            with self.subTest(serve.__name__), self.assertRaisesRegex(TimeoutError, "the caller's own"):
                organization.create_session("a1", metadata={"x": "x" * (1 << 24 if serve is while_it_sends else 1)})
            self.assertEqual(server.connections, 1)

    def test_a_response_to_an_incomplete_request_counts(self) -> None:
        refused = b'{"status":413,"code":"body_too_large","detail":"words"}'

        def serve(connection: socket.socket, number: int) -> None:
            connection.recv(1)
            connection.sendall(answer_bytes(refused, "413 Content Too Large"))
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

        server = Listener(self, serve)
        with self.assertRaises(remit.RemitError) as caught:
            self.client_of(server.url).organization("rmk_some").create_agent("scout", metadata={"x": "x" * (1 << 24)})
        self.assertEqual((caught.exception.code, server.connections), ("body_too_large", 1))

    def test_the_size_of_responses_is_bounded(self) -> None:
        long = AGENT.decode().replace("scout", "x" * (1 << 20))
        for chunked in (False, True):
            client, _ = self.proxied(lambda _r, _n: Answer(200, long, {}, chunked))
            with self.assertRaises(remit.RemitError) as caught:
                client.organization("rmk_some").get_agent("a1")
            self.assertIn("longer than 1 MiB", str(caught.exception))

    def test_an_id_cannot_change_the_path(self) -> None:
        client, proxy = self.proxied()
        with self.assertRaises(remit.RemitError):
            client.organization("rmk_some").get_agent("../a?x=#\u00fc")
        self.assertEqual(proxy.requests[0].path, "/v1/agents/..%2Fa%3Fx%3D%23%C3%BC")

    def test_a_slow_response_ends_at_the_deadline(self) -> None:
        done = threading.Event()
        self.addCleanup(done.set)

        def serve(connection: socket.socket, number: int) -> None:
            read_request(connection)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
            while not done.wait(0.01):
                connection.sendall(b" ")

        client = self.client_of(Listener(self, serve).url, max_attempts=1)
        with self.assertRaises(remit.Unavailable):
            client.organization("rmk_some").get_agent("a1", timeout=0.2)
        self.assertFalse(done.is_set())

    def test_a_truncated_response_is_lost(self) -> None:
        def serve(connection: socket.socket, number: int) -> None:
            read_request(connection)
            connection.sendall(answer_bytes(AGENT)[:-1])

        client = self.client_of(Listener(self, serve).url, max_attempts=1)
        with self.assertRaises(remit.OutcomeUnknown):
            client.organization("rmk_some").create_agent("scout")

    def test_a_response_that_is_not_http_is_lost(self) -> None:
        many = b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 200 + b"\r\n"
        for words in (b"SSH-2.0-OpenSSH\r\n", b"HTTP/1.1 two hundred\r\n\r\n", many, b""):
            def serve(connection: socket.socket, number: int) -> None:
                read_request(connection)
                connection.sendall(words)

            client = self.client_of(Listener(self, serve).url, max_attempts=1)
            with self.subTest(words[:30]), self.assertRaises(remit.Unavailable):
                client.organization("rmk_some").get_agent("a1")

    def test_redirects_are_not_followed(self) -> None:
        other, elsewhere = self.proxied()
        client, _ = self.proxied(lambda _r, _n: Answer(307, "", {"Location": elsewhere.url + "/v1/agents/a1"}))
        with self.assertRaises(remit.RemitError) as caught:
            client.organization("rmk_some").get_agent("a1")
        self.assertEqual((caught.exception.status, elsewhere.requests), (307, []))

    def test_a_body_that_is_too_large_is_reported(self) -> None:
        with self.assertRaises(remit.RemitError) as caught:
            self.new_organization().create_agent("scout", metadata={"x": "x" * (1 << 19)})
        self.assertEqual(caught.exception.code, "body_too_large")

    @unittest.skipUnless(hasattr(os, "fork"), "it cannot fork")
    def test_a_forked_process_uses_no_connection_of_its_parent(self) -> None:
        organization = self.new_organization()
        organization.info(self.organization_id)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # a fork in a process with threads warns
            child = os.fork()
        if child == 0:
            status = 1
            try:
                organization.info(self.organization_id)
                mine = {c._process for c in idle(organization._caller.service)}
                status = 0 if mine == {os.getpid()} else 2
            finally:
                os._exit(status)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        organization.info(self.organization_id)


class TLS(ServiceTest):
    """Tests with the HTTPS proxy that the Go test runs in front of the service."""

    def test_a_trusted_service_is_used(self) -> None:
        context = ssl.create_default_context(cafile=os.environ["REMIT_TLS_CA"])
        client = self.client_of(os.environ["REMIT_TLS_URL"], tls=context)
        session = self.new_session(client)
        for n in range(1, 6):
            self.assertEqual(session.charge().action_count, n)
        self.assertEqual(len(idle(client._service)), 1)

    def test_an_untrusted_service_gets_no_request_and_no_retry(self) -> None:
        client = self.client_of(os.environ["REMIT_TLS_URL"])
        with mock.patch("remit.retry.pause") as pause, self.assertRaises(remit.Unavailable) as caught:
            client.create_organization("acme")
        self.assertIn("certificate", str(caught.exception))
        pause.assert_not_called()


class Addresses(unittest.TestCase):
    def test_base_urls(self) -> None:
        for text, want in {
            "http://127.0.0.1:8080": (False, "127.0.0.1", 8080, "127.0.0.1:8080", ""),
            "https://remit.example.com": (True, "remit.example.com", 443, "remit.example.com", ""),
            "https://example.com/remit/": (True, "example.com", 443, "example.com", "/remit"),
            "http://[::1]:8080/": (False, "::1", 8080, "[::1]:8080", ""),
        }.items():
            self.assertEqual(url.parse(text), url.BaseURL(*want))

    def test_an_invalid_base_url_is_not_quoted(self) -> None:
        for text in (
            "", "example.com", "ftp://example.com", "http://", "http://me:passw0rd@example.com", "http://a/?b=passw0rd",
            "http://a/#passw0rd", "http://a:99999", "http://a:x", "http://[passw0rd", "http://a b", "http://a\r\nb",
        ):
            with self.subTest(text), self.assertRaises(ValueError) as caught:
                remit.Client(text)
            self.assertNotIn("passw0rd", str(caught.exception))
