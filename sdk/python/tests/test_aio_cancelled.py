from __future__ import annotations

import asyncio
import collections.abc
import enum
import inspect
import os
import socket
import unittest
from collections import deque
from decimal import Decimal
from typing import Any, Callable, Coroutine, Deque, Dict, Iterator, List, Optional, Set
from unittest import mock

import remit
from network import LOSE, PASS, URL, Proxy, Reaction, Request, ServiceTest, refusal
from remit.aio import connection
from remit.exchange import REFRESH

MOST_STEPS = 2_000
LONG = bool(os.environ.get("REMIT_LONG"))
# Where a program waits that is to be cancelled there, beside its own steps.
PLACES = {
    "_addresses", "Connection.open", "Connection._send", "Connection._head", "Connection._body", "AsyncTokens._wait", "AsyncRuntime.pause",
    "_ended", "AsyncTransaction.__aexit__", "AsyncBlock.__aenter__", "AsyncBlock.__aexit__", "Cancelled.cancel_once.<locals>.act",
}


class Counted(collections.abc.Coroutine):  # type: ignore[type-arg]
    """A task's coroutine. It tells each time that it suspends, and in which of its functions."""

    def __init__(self, steps: Any, suspends: Callable[[Set[str]], None]) -> None:
        self._steps, self._suspends = steps, suspends

    def send(self, value: Any) -> Any:
        future = self._steps.send(value)
        self._suspends(set(self._places()))
        return future

    def throw(self, *error: Any) -> Any:
        future = self._steps.throw(*error)
        self._suspends(set(self._places()))
        return future

    def _places(self) -> Iterator[str]:
        steps = self._steps
        while inspect.iscoroutine(steps):
            yield steps.__qualname__
            steps = steps.cr_await

    def close(self) -> None:
        self._steps.close()

    def __await__(self) -> Any:
        raise NotImplementedError


class Piecemeal(connection._Reader):
    """Reads each response in pieces, which end within its status line, its headers and its body."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self._pieces: Deque[Optional[bytes]] = deque()

    def feed_data(self, data: Any) -> None:
        head = data.find(b"\r\n\r\n") + 4
        cuts = sorted({0, min(9, len(data)), head // 2, head, (head + len(data)) // 2, len(data)})
        for start, end in zip(cuts, cuts[1:]):
            self._feed(data[start:end])

    def feed_eof(self) -> None:
        self._feed(None)

    def _feed(self, piece: Optional[bytes]) -> None:
        self._pieces.append(piece)
        if len(self._pieces) == 1:
            self._next()

    def _next(self) -> None:
        piece, loop = self._pieces[0], asyncio.get_running_loop()
        super().feed_eof() if piece is None else super().feed_data(piece)
        loop.call_soon(loop.call_soon, self._after)  # when the reader waits for more

    def _after(self) -> None:
        self._pieces.popleft()
        if self._pieces:
            self._next()


class Narrow(connection.Connection):
    """Takes large requests in pieces."""

    @classmethod
    async def open(cls, *given: Any) -> connection.Connection:
        made = await super().open(*given)
        made._writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
        return made


class Stops(enum.Enum):
    ONCE = "the task is cancelled"
    TWICE = "the task is cancelled, and again while it settles"
    ALL = "every task is cancelled, as asyncio.run does at its end"


def cancelled_at(
    at: int, place: str, scenario: Callable[[], Coroutine[Any, Any, None]], how: Stops, after: Callable[[], Coroutine[Any, Any, None]]
) -> bool:
    """Runs the scenario in a task and cancels it the moment that some task suspends for the at-th time within this function, or
    anywhere for "". Waits for the end of all tasks. Returns whether it was cancelled, rather than over before."""
    left, stopped = at, False

    async def main() -> None:
        def suspends(where: Set[str]) -> None:
            nonlocal left, stopped
            left -= place in where or not place
            if left == 0 and not stopped:
                stopped = True
                stop()

        def stop() -> None:
            for one in others() if how is Stops.ALL else {task}:
                one.cancel()
            if how is Stops.TWICE:
                loop.call_soon(loop.call_soon, task.cancel)

        def others() -> Set[asyncio.Task[Any]]:
            return asyncio.all_tasks(loop) - {this}

        loop, this = asyncio.get_running_loop(), asyncio.current_task()
        loop.set_task_factory(lambda loop, steps, **given: asyncio.Task(Counted(steps, suspends), loop=loop, **given))
        task = loop.create_task(scenario())
        while others():
            await asyncio.wait(others())
        loop.set_task_factory(None)
        if not task.cancelled():
            task.result()
        await after()

    asyncio.run(main())
    return stopped


class Cancelled(ServiceTest):
    """Cancels a program at each of its suspension points, and compares the service's books with what they should be."""

    def test_a_program_that_is_cancelled_leaves_exact_books(self) -> None:
        for how in Stops:
            with self.subTest(how):
                self.assertGreater(self.cancel_everywhere(how, URL), 15)

    def test_a_program_that_is_cancelled_while_answers_are_lost_leaves_exact_books(self) -> None:
        def react(request: Request, n: int) -> Reaction:
            settles = request.path.startswith("/v1/transactions")
            return LOSE if settles and len(proxy.to(request.path)) % 2 else PASS

        proxy = Proxy(self, react)
        self.assertGreater(self.cancel_everywhere(Stops.ONCE, proxy.url, every=3), 20)

    def test_a_program_that_is_cancelled_wherever_it_waits_leaves_exact_books(self) -> None:
        """Requests are taken and responses arrive in pieces, some responses are lost, and some tokens are refused."""

        def react(request: Request, n: int) -> Reaction:
            if not request.path.startswith("/v1/transactions"):
                return PASS
            key = request.headers["Idempotency-Key"]
            seen[key] = seen.get(key, 0) + 1
            is_refused = seen[key] == 2 and request.path == "/v1/transactions"
            return LOSE if seen[key] == 1 else refusal(401, "invalid_token") if is_refused else PASS

        proxy, seen = Proxy(self, react), {}  # type: Proxy, Dict[str, int]
        url = proxy.url.replace("127.0.0.1", "localhost")
        with mock.patch("remit.aio.connection._Reader", Piecemeal), mock.patch("remit.aio.transport.Connection", Narrow):
            for how, every in ((Stops.ONCE, 1 if LONG else 5), (Stops.ALL, 1 if LONG else 7)):
                with self.subTest(how):
                    self.assertGreater(self.cancel_everywhere(how, url, every, "." * 60_000), 40)
            organization = self.new_organization()
            made = organization.create_agent("scout", ["read"])
            for place in PLACES:  # how many steps come before one differs between runs, so some were perhaps not met
                with self.subTest(place):
                    self.assertTrue(self.cancel_once(1, place, Stops.ONCE, url, organization, made, "." * 60_000))
        self.assertGreater(len(proxy.to(REFRESH)), 2)

    def cancel_everywhere(self, how: Stops, url: str, every: int = 1, state: str = "") -> int:
        """Returns how many steps the program takes."""
        organization = self.new_organization()
        made = organization.create_agent("scout", ["read"])
        for at in range(1, MOST_STEPS, every):
            if not self.cancel_once(at, "", how, url, organization, made, state):
                return at
        self.fail("it does not end")

    def cancel_once(
        self, at: int, place: str, how: Stops, url: str, organization: remit.Organization, made: remit.AgentInfo, state: str
    ) -> bool:
        assert made.secret is not None
        secret, budget = made.secret, organization.create_session(made.id, max_actions=100, max_value=100)
        client, marks = remit.AsyncRemit(url), []  # type: remit.AsyncRemit, List[str]
        session = client.agent(made.id, secret).session(budget.id)

        @session.action("fourth", value="0.125")
        async def act() -> None:
            marks.append("fourth holds")
            await asyncio.sleep(0)
            marks.append("fourth commits")

        async def scenario() -> None:
            async with session.transaction("first", value=2, pre_state={"was": state}) as tx:
                marks.append("first holds")
                await asyncio.sleep(0)
                marks.append("first commits")
                await tx.commit(value="1.5")
                marks.append("first committed")
            marks.append("second begins")
            tx = await session.begin("second", value=1)
            marks.append("second holds")
            async with tx:
                await asyncio.sleep(0)
                marks.append("second commits")
            marks.append("charges")
            await session.charge("third", "0.25")
            marks.append("charged")
            await act()

        async def after() -> None:
            """The client still works, and each answer belongs to its question."""
            self.assertEqual((await session.get()).id, budget.id)
            await client.close()

        cancelled = cancelled_at(at, place, scenario, how, after)
        books = organization.get_session(budget.id)
        committed = Decimal("1.5") * ("first commits" in marks) + 1 * ("second commits" in marks)
        committed += Decimal("0.125") * ("fourth commits" in marks)
        settled = {t.action_type: t for t in organization.transactions(session_id=budget.id)}
        where = (at, place, marks, {name: t.status for name, t in settled.items()})
        self.assertEqual(books.value_held, 0, where)
        self.assertEqual([t.id for t in settled.values() if t.status == "pending"], [], where)
        used = {committed, committed + Decimal("0.25")} if marks[-1:] == ["charges"] else {
            committed + Decimal("0.25") * ("charged" in marks)
        }
        self.assertIn(books.value_used, used, where)
        self.assertEqual(sum(t.value for t in settled.values() if t.status == "committed"), committed, where)
        for name in ("first", "second", "fourth"):
            if f"{name} holds" in marks:
                self.assertEqual(settled[name].status, "committed" if f"{name} commits" in marks else "rolled_back", where)
        return cancelled
