from __future__ import annotations

import asyncio
import inspect
from decimal import Decimal
from typing import Any, AsyncIterator, Callable, Iterator, List, Optional

import remit
from network import ServiceTest
from test_aio import AsyncTest


class Functions(ServiceTest):
    def test_a_call_is_charged_or_rolled_back(self) -> None:
        session = self.new_session(max_value=5)

        @session.action("search", value="0.5")
        def search(query: str, *, fails: bool = False) -> List[str]:
            """Searches."""
            self.assertEqual(session.get().value_held, Decimal("0.5"))
            if fails:
                raise LookupError(query)
            return [query]

        self.assertEqual((search("a"), search.__doc__, search.__name__), (["a"], "Searches.", "search"))
        with self.assertRaises(LookupError):
            search("b", fails=True)
        books = session.get()
        self.assertEqual((books.value_used, books.value_held, books.action_count), (Decimal("0.5"), 0, 2))

    def test_a_function_may_commit_what_it_cost(self) -> None:
        session = self.new_session()

        @session.action("search", value=2)
        def search(pages: int, transaction: Optional[remit.Transaction] = None) -> int:
            assert transaction is not None
            return int(transaction.commit(value=pages).value)

        self.assertEqual((search(1), session.get().value_used), (1, 1))

    def test_a_call_that_does_not_fit_is_not_made(self) -> None:
        session, ran = self.new_session(max_value=1, scopes=["admin"]), []  # type: remit.Session, List[int]
        with self.assertRaises(remit.LimitReached):
            session.action("search", value=2)(ran.append)(1)
        with self.assertRaises(remit.InsufficientScope):
            session.action("search", scope="search")(ran.append)(1)
        session.action("search", value=1, scope="admin")(ran.append)(2)
        self.assertEqual((ran, session.get().value_used, session.get().action_count), ([2], 1, 1))

    def test_what_cannot_be_charged_is_refused_where_it_is_decorated(self) -> None:
        session, other = self.new_session(), remit.AsyncRemit("http://127.0.0.1:1").agent("a1", "rms_1").session("s1")

        def plain() -> None: ...

        def generator() -> Iterator[int]:
            yield 1

        async def coroutine() -> None: ...

        async def async_generator() -> AsyncIterator[int]:
            yield 1

        wrong: List[Any] = [generator, coroutine, async_generator]
        for function in wrong:
            with self.subTest(function.__name__), self.assertRaises(TypeError):
                session.action("search")(function)
        wrong = [generator, plain, async_generator]
        for function in wrong:
            with self.subTest(function.__name__), self.assertRaises(TypeError):
                other.action("search")(function)
        with self.assertRaises(TypeError):
            session.action("search", 0.5)  # type: ignore[arg-type]
        with self.assertRaises(TypeError):
            returns: Callable[[], object] = lambda: coroutine()  # noqa: E731
            session.action("search", 1)(returns)()
        self.assertEqual(session.get().value_used, 0)

        class Generates:
            def __call__(self) -> Iterator[int]:
                yield 1

        class Later:
            def __await__(self) -> Iterator[int]:
                yield 1

        wrong = [Generates(), staticmethod(plain), classmethod(lambda _: None)]
        for function in wrong:
            decorators: List[Any] = [session.action("search"), other.action("search")]
            for decorate in decorators:
                with self.subTest(type(function).__name__), self.assertRaisesRegex(TypeError, "generator|method goes above"):
                    decorate(function)
        with self.assertRaises(TypeError):
            session.action("search", 1)(Later)()
        self.assertEqual((session.get().value_used, session.get().value_held), (0, 0))

    def test_methods_are_charged_too(self) -> None:
        session = self.new_session()

        class Searcher:
            found = "owls"

            @session.action("search", value=1)
            def search(self, more: str) -> str:
                return self.found + more

            @staticmethod
            @session.action("search", value=1)
            def plain(more: str) -> str:
                return more

            @classmethod
            @session.action("search", value=1)
            def of_all(cls, more: str) -> str:
                return cls.found + more

        searcher = Searcher()
        self.assertEqual([searcher.search("!"), searcher.plain("?"), Searcher.of_all(".")], ["owls!", "?", "owls."])
        self.assertEqual((session.get().value_used, Searcher.search.__qualname__[-15:]), (3, "Searcher.search"))


class CoroutineFunctions(AsyncTest):
    def test_a_call_is_charged_or_rolled_back(self) -> None:
        async def steps(client: remit.AsyncRemit) -> None:
            session = self.async_session(client, max_value=5)

            @session.action("search", value="0.5", scope="admin")
            async def search(query: str, transaction: Optional[remit.AsyncTransaction] = None) -> List[str]:
                if query == "wait":
                    await asyncio.sleep(60)
                if query == "cheap":
                    assert transaction is not None
                    await transaction.commit(value="0.125")
                return [query]

            self.assertTrue(inspect.iscoroutinefunction(search))
            self.assertEqual([await search("a"), await search("cheap")], [["a"], ["cheap"]])
            waiting = asyncio.create_task(search("wait"))
            while (await session.get()).value_held == 0:
                pass
            waiting.cancel()
            await asyncio.wait({waiting})
            self.assertTrue(waiting.cancelled())
            books = await session.get()
            self.assertEqual((books.value_used, books.value_held, books.action_count), (Decimal("0.625"), 0, 3))

        self.run_async(steps)
