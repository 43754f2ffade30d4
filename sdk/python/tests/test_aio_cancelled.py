from __future__ import annotations

import asyncio
import collections.abc
import enum
import unittest
from decimal import Decimal
from typing import Any, Callable, Coroutine, List, Set

import remit
from network import LOSE, PASS, URL, Proxy, Reaction, Request, ServiceTest

MOST_STEPS = 400


class Counted(collections.abc.Coroutine):  # type: ignore[type-arg]
    """A task's coroutine. It tells each time that it suspends."""

    def __init__(self, steps: Any, suspends: Callable[[], None]) -> None:
        self._steps, self._suspends = steps, suspends

    def send(self, value: Any) -> Any:
        future = self._steps.send(value)
        self._suspends()
        return future

    def throw(self, *error: Any) -> Any:
        future = self._steps.throw(*error)
        self._suspends()
        return future

    def close(self) -> None:
        self._steps.close()

    def __await__(self) -> Any:
        raise NotImplementedError


class Stops(enum.Enum):
    ONCE = "the task is cancelled"
    TWICE = "the task is cancelled, and again while it settles"
    ALL = "every task is cancelled, as asyncio.run does at its end"


def cancelled_at(
    at: int, scenario: Callable[[], Coroutine[Any, Any, None]], how: Stops, after: Callable[[], Coroutine[Any, Any, None]]
) -> bool:
    """Runs the scenario in a task and cancels it the moment that some task suspends for the at-th time. Waits for the end of all
    tasks. Returns whether the scenario took so many steps."""
    left = at

    async def main() -> None:
        def suspends() -> None:
            nonlocal left
            left -= 1
            if left == 0:
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
    return left <= 0


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

    def cancel_everywhere(self, how: Stops, url: str, every: int = 1) -> int:
        organization = self.new_organization()
        made = organization.create_agent("scout", ["read"])
        for at in range(1, MOST_STEPS, every):
            if not self.cancel_once(at, how, url, organization, made):
                return at
        self.fail("it does not end")

    def cancel_once(self, at: int, how: Stops, url: str, organization: remit.Organization, made: remit.AgentInfo) -> bool:
        assert made.secret is not None
        secret, budget = made.secret, organization.create_session(made.id, max_actions=100, max_value=100)
        client, marks = remit.AsyncRemit(url), []  # type: remit.AsyncRemit, List[str]
        session = client.agent(made.id, secret).session(budget.id)

        async def scenario() -> None:
            async with session.transaction("first", value=2) as tx:
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

        async def after() -> None:
            """The client still works, and each answer belongs to its question."""
            self.assertEqual((await session.get()).id, budget.id)
            await client.close()

        is_cancelled = cancelled_at(at, scenario, how, after)
        books = organization.get_session(budget.id)
        committed = Decimal("1.5") * ("first commits" in marks) + 1 * ("second commits" in marks)
        settled = {t.action_type: t for t in organization.transactions(session_id=budget.id)}
        where = (at, marks, {name: t.status for name, t in settled.items()})
        self.assertEqual(books.value_held, 0, where)
        self.assertEqual([t.id for t in settled.values() if t.status == "pending"], [], where)
        used = {committed, committed + Decimal("0.25")} if marks[-1:] == ["charges"] else {
            committed + Decimal("0.25") * ("charged" in marks)
        }
        self.assertIn(books.value_used, used, where)
        self.assertEqual(sum(t.value for t in settled.values() if t.status == "committed"), committed, where)
        for name in ("first", "second"):
            if f"{name} holds" in marks:
                self.assertEqual(settled[name].status, "committed" if f"{name} commits" in marks else "rolled_back", where)
        return is_cancelled
