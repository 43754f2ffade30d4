from __future__ import annotations

import asyncio
import inspect
import os
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, Awaitable, Callable, List, Tuple
from unittest import mock

import remit
from network import (
    DROP, LOSE, PASS, URL, Answer, Listener, Proxy, Reaction, Request, ServiceTest, answer_bytes, idle, read_request, refusal,
)
from remit import url
from remit.aio.connection import Connection
from remit.exchange import EXCHANGE, REFRESH
from remit.transport import Failure, Kind

SOURCE = Path(__file__).resolve().parent.parent / "src"
CHARGES, AT_ONCE = (10_000 if os.environ.get("REMIT_LONG") else 1_000), 500

MANY_CHARGES = f"""
import asyncio, os, threading, remit

async def main():
    session = remit.AsyncSession.from_env()

    async def some():
        for _ in range({CHARGES // AT_ONCE}):
            await session.charge("llm.call", "0.001")

    await asyncio.gather(*(some() for _ in range({AT_ONCE})))
    print(threading.active_count(), (await session.get()).action_count)

asyncio.run(main())
"""


class AsyncTest(ServiceTest):
    """Runs each test's coroutines in an event loop of its own, without threads beside those of the test."""

    def run_async(self, steps: Callable[[remit.AsyncRemit], Awaitable[None]], url: str = URL, **options: Any) -> None:
        async def main() -> None:
            async with remit.AsyncRemit(url, **options) as client:
                await steps(client)

        asyncio.run(main(), debug=False)

    def proxy(self, react: Callable[[Request, int], Reaction] = lambda _r, _n: PASS) -> Proxy:
        return Proxy(self, react)

    def async_session(self, client: remit.AsyncRemit, **limits: Any) -> remit.AsyncSession:
        made = self.new_session(**limits)
        secret = self.organization.rotate_agent_secret(self.agent.id).secret
        self.async_agent = client.agent(self.agent.id, secret)
        return self.async_agent.session(made.id)


class Calls(AsyncTest):
    def test_every_call_has_a_counterpart(self) -> None:
        """Each public method of the synchronous classes exists, with the same parameters. Leases need a thread."""
        for one, other, missing in (
            (remit.Client, remit.AsyncRemit, set()),
            (remit.Organization, remit.AsyncOrganization, set()),
            (remit.Agent, remit.AsyncAgent, set()),
            (remit.Session, remit.AsyncSession, {"lease"}),
            (remit.Transaction, remit.AsyncTransaction, set()),
        ):
            has, wants = ({n for n in dir(c) if not n.startswith("_")} for c in (other, one))
            self.assertEqual(has ^ wants, missing)
            for name in has - {"info"}:
                same = [list(inspect.signature(getattr(c, name)).parameters) for c in (other, one)]
                self.assertEqual(same[0], same[1], name)

class Blocks(AsyncTest):
    def test_a_block_commits_or_rolls_back(self) -> None:
        async def steps(client: remit.AsyncRemit) -> None:
            session = self.async_session(client)
            async with session.transaction("payment", value=2) as held:
                self.assertEqual(held.info.value_held, 2)
            async with session.transaction("payment", value=2) as cheaper:
                await cheaper.commit(value="0.5")
            with self.assertRaises(remit.TransactionDone):
                await cheaper.rollback()
            with self.assertRaises(ZeroDivisionError):
                async with await session.begin("payment", value=2) as failed:
                    raise ZeroDivisionError
            self.assertEqual([t.info.status for t in (held, cheaper, failed)], ["committed", "committed", "rolled_back"])
            self.assertEqual((await cheaper.reverse("wrong")).status, "rolled_back")
            self.assertEqual(((await session.get()).value_used, (await session.get()).value_held), (2, 0))
            with self.assertRaises(RuntimeError):
                self.async_agent.transaction(held.id).info

        self.run_async(steps)

    def test_a_group_of_tasks_that_fails_or_is_late_rolls_back_all_its_blocks(self) -> None:
        async def steps(client: remit.AsyncRemit) -> None:
            session, held = self.async_session(client), asyncio.Event()

            async def waits() -> None:
                async with session.transaction("payment", value=1):
                    held.set()
                    await asyncio.sleep(60)

            async def fails() -> None:
                await held.wait()
                raise ZeroDivisionError

            async def group() -> None:
                async with session.transaction("all", value=1):
                    if sys.version_info >= (3, 11):
                        async with asyncio.TaskGroup() as tasks:
                            tasks.create_task(waits())
                            tasks.create_task(fails())
                    else:
                        await waits()

            failures = asyncio.create_task(group())
            if sys.version_info >= (3, 11):
                with self.assertRaises(ExceptionGroup):
                    await failures
            else:
                with self.assertRaises(asyncio.TimeoutError):
                    await asyncio.wait_for(failures, 0.2)
            held.clear()
            late = asyncio.create_task(asyncio.wait_for(waits(), 0.2))
            with self.assertRaises(asyncio.TimeoutError):
                await late
            statuses = [t.status async for t in self.async_agent.transactions()]
            self.assertEqual(set(statuses), {"rolled_back"})
            self.assertEqual(((await session.get()).value_used, (await session.get()).value_held), (0, 0))

        self.run_async(steps)

    def test_the_synchronous_session_has_the_same_block(self) -> None:
        session = self.new_session()
        with session.transaction("payment", value=2) as tx:
            tx.commit(value=1)
        with self.assertRaises(ZeroDivisionError):
            with session.transaction("payment", value=2):
                raise ZeroDivisionError
        self.assertEqual((session.get().value_used, session.get().value_held), (1, 0))


class Retries(AsyncTest):
    def test_a_lost_response_is_asked_for_again_with_the_same_key(self) -> None:
        proxy = self.proxy(lambda r, n: LOSE if r.path.endswith("/actions") and n <= 2 else PASS)

        async def steps(client: remit.AsyncRemit) -> None:
            session = self.async_session(client)
            self.assertEqual((await session.charge("llm.call", 1)).action_count, 1)
            sent = [r.headers["Idempotency-Key"] for r in proxy.requests if r.path.endswith("/actions")]
            self.assertEqual((len(sent), len(set(sent))), (3, 1))

        self.run_async(steps, proxy.url)

    def test_what_is_not_answered_is_unknown(self) -> None:
        proxy = self.proxy(lambda r, _: DROP if r.path.endswith("/actions") else PASS)

        async def steps(client: remit.AsyncRemit) -> None:
            with self.assertRaises(remit.OutcomeUnknown):
                await self.async_session(client).charge()
            client = remit.AsyncRemit(proxy.url, idempotency_keys=False)
            before = len(proxy.requests)
            with self.assertRaises(remit.OutcomeUnknown):
                await self.async_session(client).charge()
            self.assertEqual(len([r for r in proxy.requests[before:] if r.path.endswith("/actions")]), 1)
            await client.close()

        self.run_async(steps, proxy.url)

    def test_retry_after_is_honoured_within_the_timeout(self) -> None:
        proxy = self.proxy(lambda _r, _n: Answer(429, "", {"Retry-After": "20"}))

        async def steps(client: remit.AsyncRemit) -> None:
            begun = time.monotonic()
            with self.assertRaises(remit.RateLimited):
                await client.organization("rmk_some").get_session("s1", timeout=5)
            self.assertLess(time.monotonic() - begun, 4)

        self.run_async(steps, proxy.url)


class Tokens(AsyncTest):
    def test_concurrent_tasks_share_one_exchange(self) -> None:
        proxy = self.proxy()

        async def steps(client: remit.AsyncRemit) -> None:
            session = self.async_session(client)
            await asyncio.gather(*(session.charge() for _ in range(50)))
            self.assertEqual((len(proxy.to(EXCHANGE)), (await session.get()).action_count), (1, 50))
            await asyncio.gather(*(self.async_agent.refresh() for _ in range(50)))
            self.assertEqual((len(proxy.to(EXCHANGE)), len(proxy.to(REFRESH))), (1, 1))

        self.run_async(steps, proxy.url)

    def test_the_exchange_survives_the_task_that_started_it(self) -> None:
        held, arrived = threading.Event(), threading.Event()

        def react(_: Request, n: int) -> Reaction:
            arrived.set()
            held.wait(30)
            return PASS

        proxy = self.proxy(react)

        async def steps(client: remit.AsyncRemit) -> None:
            self.async_session(client)
            first, *others = [asyncio.create_task(self.async_agent.token()) for _ in range(5)]
            while not arrived.is_set():
                await asyncio.sleep(0.001)
            first.cancel()
            with self.assertRaises(remit.Unavailable):
                await self.async_agent.token(timeout=0.01)
            held.set()
            self.assertEqual(len({(await one).reveal() for one in others}), 1)
            self.assertTrue(first.cancelled())
            self.assertEqual(len(proxy.to(EXCHANGE)), 1)

        self.run_async(steps, proxy.url)

    def test_a_refused_token_is_replaced_and_the_call_sent_once_more(self) -> None:
        proxy = self.proxy(lambda r, n: refusal(401, "invalid_token") if r.path.endswith("/actions") and n <= 1 else PASS)

        async def steps(client: remit.AsyncRemit) -> None:
            self.assertEqual((await self.async_session(client).charge()).action_count, 1)

        self.run_async(steps, proxy.url, max_attempts=1)


class Connections(AsyncTest):
    def read(self, serve: Callable[[socket.socket, int], None], calls: int = 2, **options: Any) -> Tuple[List[Any], int]:
        """Returns the status or the error of each call, one after the other, and how many connections they took."""
        listener, got = Listener(self, serve), []  # type: Listener, List[Any]

        async def steps(client: remit.AsyncRemit) -> None:
            for _ in range(calls):
                try:
                    got.append((await client.organization("rmk_some").checkpoint(timeout=2)))
                except remit.RemitError as error:
                    got.append(error)

        self.run_async(steps, listener.url, **{"max_attempts": 1, **options})
        return got, listener.connections

    def test_connections_are_kept_and_responses_read_in_all_forms(self) -> None:
        for response, connections in (
            (answer_bytes(b"text"), 1),
            (b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + answer_bytes(b"text"), 1),
            (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\nte\r\n2\r\nxt\r\n0\r\nTrailer: a\r\n\r\n", 1),
            (b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\ntext", 2),
            (b"HTTP/1.0 200 OK\r\nContent-Length: 4\r\n\r\ntext", 2),
            (answer_bytes(b"text") + answer_bytes(b"of nobody"), 2),  # nobody asked for the second one
        ):
            def serve(connection: socket.socket, number: int, response: bytes = response) -> None:
                while read_request(connection):
                    connection.sendall(response)

            with self.subTest(response):
                self.assertEqual(self.read(serve), (["text", "text"], connections))

    def test_a_response_without_a_length_ends_with_its_connection(self) -> None:
        def serve(connection: socket.socket, number: int) -> None:
            read_request(connection)
            connection.sendall(b"HTTP/1.1 200 OK\r\n\r\ntext")

        self.assertEqual(self.read(serve), (["text", "text"], 2))

    def test_what_is_no_response_is_an_error_and_never_reused(self) -> None:
        for response, said in (
            (b"", "no answer"), (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\ntext", "no answer"), (b"SSH-2.0\r\n\r\n", "no answer"),
            (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-2\r\nte", "no answer"),
            (b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 20_000 + b"\r\n", "no answer"),
            (b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n", "longer than 1 MiB"),
            (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffff\r\n", "longer than 1 MiB"),
            (b"HTTP/1.1 100 Continue\r\n\r\n" * 20, "no answer"),
        ):
            def serve(connection: socket.socket, number: int, response: bytes = response) -> None:
                read_request(connection)
                connection.sendall(response)

            with self.subTest(response[:60]):
                got, connections = self.read(serve)
                self.assertEqual(connections, 2)
                for error in got:
                    self.assertIn(said, str(error))

    def test_a_silent_service_is_left_at_the_deadline(self) -> None:
        def serve(connection: socket.socket, number: int) -> None:
            read_request(connection)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n")
            connection.recv(1)  # until the client hangs up

        listener = Listener(self, serve)

        async def steps(client: remit.AsyncRemit) -> None:
            with self.assertRaises(remit.Unavailable) as caught:
                await client.organization("rmk_some").checkpoint(timeout=0.05)
            self.assertIn("the time is over", str(caught.exception))

        self.run_async(steps, listener.url)

    def test_nothing_is_sent_without_a_connection(self) -> None:
        async def steps(client: remit.AsyncRemit) -> None:
            for call in (client.create_organization("acme"), client.create_organization("acme", timeout=0.000001)):
                with self.assertRaises(remit.Unavailable):
                    await call

        self.run_async(steps, "http://127.0.0.1:1", max_attempts=2)

    def test_a_connection_whose_answer_was_not_read_is_never_used_again(self) -> None:
        arrived = threading.Event()

        def serve(connection: socket.socket, number: int) -> None:
            request = read_request(connection)
            arrived.set()
            connection.sendall(answer_bytes(b"first") if number else b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwr")
            connection.recv(1)

        listener = Listener(self, serve)

        async def steps(client: remit.AsyncRemit) -> None:
            call = asyncio.create_task(client.organization("rmk_some").checkpoint())
            while not arrived.is_set():
                await asyncio.sleep(0.001)
            call.cancel()
            self.assertEqual(await client.organization("rmk_some").checkpoint(), "first")
            with self.assertRaises(asyncio.CancelledError):
                await call

        self.run_async(steps, listener.url)
        self.assertEqual(listener.connections, 2)

    def test_idle_connections_are_bounded_in_number_and_time(self) -> None:
        proxy = self.proxy(lambda _r, _n: Answer(200, "text"))

        async def steps(client: remit.AsyncRemit) -> None:
            organization, kept = client.organization("rmk_some"), idle(client._service)
            with mock.patch("remit.aio.transport.IDLE_CONNECTIONS", 3):
                await asyncio.gather(*(organization.checkpoint() for _ in range(8)))
            self.assertEqual(len(kept), 3)
            with mock.patch("remit.aio.connection.IDLE_LIMIT", -1.0):
                await organization.checkpoint()
            self.assertEqual(len({r.connection for r in proxy.requests}), 9)

        self.run_async(steps, proxy.url)

    def test_a_request_on_a_broken_connection_was_not_sent(self) -> None:
        def serve(connection: socket.socket, number: int) -> None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # closing it resets it
            opened.wait(5)

        listener, opened = Listener(self, serve), threading.Event()

        async def main() -> None:
            connection = await Connection.open(url.parse(listener.url), "127.0.0.1", None)
            opened.set()
            while not connection._writer.is_closing():
                await asyncio.sleep(0)
            got = await connection.exchange("POST", "/", {}, None, time.monotonic() + 5, 100)
            assert isinstance(got, Failure)
            self.assertIs(got.kind, Kind.NOT_SENT)
            connection.drop()

        asyncio.run(main())

    def test_event_loops_of_two_threads_share_a_client(self) -> None:
        proxy = self.proxy(lambda _r, _n: Answer(200, "text"))
        client = remit.AsyncRemit(proxy.url)
        organization = client.organization("rmk_some")

        async def elsewhere() -> None:
            await organization.checkpoint()
            idle(client._service).pop().drop()

        async def main() -> None:
            await organization.checkpoint()
            await asyncio.to_thread(lambda: asyncio.run(elsewhere()))
            await organization.checkpoint()
            await client.close()

        asyncio.run(main())
        first, other, again = (r.connection for r in proxy.requests)
        self.assertEqual((first == again, first == other), (True, False))

    def test_a_client_that_nobody_closed_ends_with_its_process(self) -> None:
        program = """
import asyncio, remit
client = remit.AsyncRemit.from_env()
asyncio.run(client.create_organization("acme"))
print("done")
"""
        run = subprocess.run(
            [sys.executable, "-W", "always", "-c", program], env={**os.environ, "PYTHONPATH": str(SOURCE)}, capture_output=True,
            text=True, timeout=30,
        )
        self.assertEqual((run.returncode, run.stdout), (0, "done\n"), run.stderr)
        self.assertRegex(run.stderr, "ResourceWarning: unclosed transport")

    def test_each_event_loop_has_connections_and_tokens_of_its_own(self) -> None:
        client = remit.AsyncRemit(URL)
        session = self.async_session(client)
        for n in (1, 2, 3):
            async def main() -> int:
                try:
                    return (await session.charge()).action_count
                finally:
                    await client.close()

            self.assertEqual(asyncio.run(main()), n)

    def test_a_trusted_service_is_used_and_an_untrusted_one_gets_nothing(self) -> None:
        context = ssl.create_default_context(cafile=os.environ["REMIT_TLS_CA"])

        async def trusted(client: remit.AsyncRemit) -> None:
            session = self.async_session(client)
            for n in range(1, 6):
                self.assertEqual((await session.charge()).action_count, n)
            self.assertEqual(len(idle(client._service)), 1)

        async def untrusted(client: remit.AsyncRemit) -> None:
            with mock.patch("remit.retry.wait") as wait, self.assertRaises(remit.Unavailable) as caught:
                await client.create_organization("acme")
            self.assertIn("certificate", str(caught.exception))
            wait.assert_not_called()

        self.run_async(trusted, os.environ["REMIT_TLS_URL"], tls=context)
        self.run_async(untrusted, os.environ["REMIT_TLS_URL"])


class Many(ServiceTest):
    def test_many_charges_at_once_need_no_thread(self) -> None:
        session = self.new_session(max_actions=CHARGES)
        secret = self.organization.rotate_agent_secret(self.agent.id).secret
        settings = {
            "REMIT_ADDR": URL, "REMIT_AGENT": self.agent.id, "REMIT_SECRET": secret.reveal(), "REMIT_SESSION": session.id,
            "PYTHONPATH": str(SOURCE),
        }
        run = subprocess.run(
            [sys.executable, "-c", MANY_CHARGES], env={**os.environ, **settings}, capture_output=True, text=True, timeout=110,
        )
        self.assertEqual(run.stdout, f"1 {CHARGES}\n", run.stderr)
