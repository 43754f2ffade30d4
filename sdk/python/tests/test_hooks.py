from __future__ import annotations

import asyncio
import inspect
import json
import re
import unittest
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Callable, Coroutine, Dict, List, Tuple
from unittest import mock

import remit
from network import LOSE, PASS, Reaction, Request, refusal
from remit import hooks, metering
from remit.prices import Prices
from remit.pricetable import MOST_TOKENS
from test_aio import AsyncTest

RECORDED = Path(__file__).resolve().parent / "recorded"
PRICES = Prices.read(RECORDED / "prices.json")
Take = Callable[[Dict[str, Any], List[Any], Dict[str, Any]], Coroutine[Any, Any, None]]


def recordings(framework: str) -> Dict[str, Any]:
    found = {file.stem: json.loads(file.read_text()) for file in RECORDED.glob("*_*.json")}
    found = {name: recorded for name, recorded in found.items() if recorded["hooks"] == framework}
    assert len(found) > 4
    return found


class Made:
    """Makes the arguments of a recording."""

    def __init__(self, things: Dict[str, Any]) -> None:
        self._things = {name: self.of(thing) for name, thing in things.items()}

    def of(self, said: Any) -> Any:
        if isinstance(said, list):
            return [self.of(one) for one in said]
        if not isinstance(said, dict):
            return said
        if "same" in said:
            return self._things[said["same"]]
        if "error" in said:
            return self.error(**{("kind" if name == "error" else name): value for name, value in said.items()})
        members = {name: self.of(one) for name, one in said.items() if name != "object"}
        return type(said["object"], (SimpleNamespace,), {})(**members) if "object" in said else members

    def error(self, kind: str, bases: List[str] = [], cause: Any = None, **members: Any) -> BaseException:
        base = asyncio.CancelledError if "asyncio.CancelledError" in bases else Exception
        error: BaseException = type(kind, (base,), {})()
        vars(error).update(members)
        error.__cause__ = None if cause is None else self.of(cause)
        return error


class Replayed(AsyncTest):
    async def replay(self, recorded: Dict[str, Any], made: Made, books: remit.Organization, session_id: str, take: Take) -> None:
        for step in recorded["steps"]:
            args, given = made.of(step["args"]), made.of(step.get("given", {}))
            if "raises" in step:
                with self.assertRaises(getattr(remit, step["raises"])):
                    await take(step, args, given)
            else:
                await take(step, args, given)
            if step.get("holds"):
                self.assertGreater(books.get_session(session_id).value_held, 0)

    def check(self, recorded: Dict[str, Any], session_id: str) -> None:
        got, want = self.organization.get_session(session_id), recorded["books"]
        self.assertEqual((got.value_used, got.action_count), (Decimal(want["value_used"]), want["action_count"]), recorded["about"])
        self.assertEqual(got.value_held, 0, recorded["about"])

    def test_langchain(self) -> None:
        for name, recorded in recordings("langchain").items():
            async def steps(client: remit.AsyncRemit, recorded: Dict[str, Any] = recorded) -> None:
                limit, tools = recorded.get("max_value", 100), recorded.get("tools")
                session = self.new_session(max_value=limit)
                handler = hooks.RemitCallbackHandler(session, PRICES, tools=tools)

                async def take(step: Dict[str, Any], args: List[Any], given: Dict[str, Any]) -> None:
                    getattr(handler, step["call"])(*args, **given)

                await self.replay(recorded, Made({}), self.organization, session.id, take)
                self.check(recorded, session.id)
                self.assertEqual(handler._open, {})

                async_session = self.async_session(client, max_value=limit)
                async_handler = hooks.AsyncRemitCallbackHandler(async_session, PRICES, tools=tools)

                async def take_async(step: Dict[str, Any], args: List[Any], given: Dict[str, Any]) -> None:
                    await getattr(async_handler, step["call"])(*args, **given)

                await self.replay(recorded, Made({}), self.organization, async_session.id, take_async)
                self.check(recorded, async_session.id)

            with self.subTest(name):
                self.run_async(steps)

    def test_openai_agents(self) -> None:
        for name, recorded in recordings("openai-agents").items():
            async def steps(client: remit.AsyncRemit, recorded: Dict[str, Any] = recorded) -> None:
                session, made = self.async_session(client, max_value=recorded.get("max_value", 100)), Made(recorded["things"])
                ends_with = made.of(recorded.get("ends_with"))
                try:
                    async with hooks.RemitRunHooks(session, PRICES, tools=recorded.get("tools")) as run:
                        async def take(step: Dict[str, Any], args: List[Any], given: Dict[str, Any]) -> None:
                            await getattr(run, step["call"])(*args, **given)

                        await self.replay(recorded, made, self.organization, session.id, take)
                        if ends_with is not None:
                            raise ends_with
                except Exception as e:
                    if e is not ends_with:
                        raise
                self.check(recorded, session.id)

            with self.subTest(name):
                self.run_async(steps)


START = recordings("langchain")["langchain_chat"]["steps"][0]
END = recordings("langchain")["langchain_chat"]["steps"][1]


class Handlers(AsyncTest):
    def start(self, handler: hooks.RemitCallbackHandler, run_id: str = "r1") -> None:
        given: Dict[str, Any] = {**START["given"], "run_id": run_id}
        handler.on_chat_model_start(*Made({}).of(START["args"]), **given)

    def end(self, handler: hooks.RemitCallbackHandler) -> None:
        handler.on_llm_end(*Made({}).of(END["args"]), run_id="r1")

    def test_the_shape_is_that_of_the_frameworks(self) -> None:
        sync, later = hooks.RemitCallbackHandler, hooks.AsyncRemitCallbackHandler
        self.assertTrue(sync.raise_error and sync.run_inline and not (sync.ignore_llm or sync.ignore_chat_model or sync.ignore_agent))
        events = [name for name in dir(sync) if name.startswith("on_")]
        self.assertEqual(events, [name for name in dir(later) if name.startswith("on_")])
        for name in events:
            self.assertFalse(inspect.iscoroutinefunction(getattr(sync, name)))
            self.assertTrue(inspect.iscoroutinefunction(getattr(later, name)))
            parameters = [list(inspect.signature(getattr(kind, name)).parameters) for kind in (sync, later)]
            self.assertEqual(parameters[0], parameters[1])

        class Base:  # as the frameworks' own classes, of which some want an instance
            raise_error = False

            def on_llm_start(self, *_: Any, **__: Any) -> None:
                raise NotImplementedError

        class Budget(hooks.RemitCallbackHandler, Base):
            pass

        self.assertTrue(Budget(self.new_session(), PRICES).raise_error)

    def test_other_names_have_the_price_of_their_models(self) -> None:
        session = self.new_session()
        handler = hooks.RemitCallbackHandler(session, PRICES, models={"gpt-4.1": "tiny"})
        self.start(handler)
        self.end(handler)
        self.assertEqual(session.get().value_used, Decimal("0.0028"))  # which has no price of its own for what is cached

    def test_a_usage_beyond_all_budgets_is_paid_with_the_hold(self) -> None:
        for tokens, is_usage in ((MOST_TOKENS, True), (MOST_TOKENS + 1, False)):
            session = self.new_session()
            handler = hooks.RemitCallbackHandler(session, PRICES)
            self.start(handler)
            held = session.get().value_held
            told = {"token_usage": {"prompt_tokens": tokens, "completion_tokens": 1}}
            if is_usage:
                handler.on_llm_end({"generations": [], "llm_output": told}, run_id="r1")
            else:
                self.assertRaises(remit.UsageMissing, handler.on_llm_end, {"generations": [], "llm_output": told}, run_id="r1")
            self.assertEqual((session.get().value_used, session.get().value_held), (held, 0))

    def test_a_call_costs_the_tier_that_served_it(self) -> None:
        prices = Prices.parse("""{"m": {"input_cost_per_token": 1e-6, "output_cost_per_token": 1e-6, "max_output_tokens": 100,
            "input_cost_per_token_priority": 1e-3, "output_cost_per_token_priority": 1e-3, "output_cost_per_token_flex": 0}}""")
        usage: Dict[str, Any] = {"input_tokens": 10, "output_tokens": 5}
        cases: List[Tuple[Dict[str, Any], Dict[str, Any], str]] = [
            ({}, {"response_metadata": {"service_tier": "default"}}, "0.000015"),
            ({}, {"response_metadata": {"service_tier": "priority"}}, "0.015"),
            ({}, {"response_metadata": {"usage": {"service_tier": "standard"}}}, "0.000015"),
            ({}, {}, "0.015"),
            ({"service_tier": "default"}, {}, "0.000015"),
            ({"extra_body": {"service_tier": "flex"}}, {"response_metadata": {"service_tier": "flex"}}, "0.00001"),
            ({"service_tier": "auto"}, {"usage_metadata": {**usage, "input_token_details": {"flex": 10, "flex_cache_read": 0}}}, "0.00001"),
        ]
        for asked, message, used in cases:
            with self.subTest(asked=asked, message=message):
                session = self.new_session()
                handler = hooks.RemitCallbackHandler(session, prices)
                handler.on_llm_start({}, ["?"], run_id="r1", invocation_params={"model": "m", **asked})
                self.assertEqual(session.get().value_held > Decimal("0.1"), "default" not in asked.values() and "extra_body" not in asked)
                handler.on_llm_end({"generations": [[{"message": {"usage_metadata": usage, **message}}]]}, run_id="r1")
                self.assertEqual(session.get().value_used, Decimal(used))

    def test_what_cannot_be_read_is_refused(self) -> None:
        session = self.new_session()
        handler = hooks.RemitCallbackHandler(session, PRICES)
        cases: List[Dict[str, Any]] = [
            {"n": "3"}, {"n": 0}, {"best_of": 1.5}, {"extra_body": {"n": True}}, {"extra_body": "x"}, {"extra_body": {"model": "tiny"}},
            {"model_kwargs": {"service_tier": "priority"}}, {"service_tier": "scale"}, {"service_tier": 1}, {"tools": {"type": "web_search"}},
            {"extra_body": {"background": True}},
        ]
        for parameters in cases:
            with self.subTest(parameters), self.assertRaises(remit.UnboundedCall):
                handler.on_llm_start({}, ["?"], run_id="r1", invocation_params={"model": "gpt-4.1", "max_tokens": 5, **parameters})
        self.assertEqual(session.get().action_count, 0)
        for made in (
            lambda: handler.on_llm_end({"generations": []}, run_id="never began"),
            lambda: hooks.RemitCallbackHandler(session, PRICES, tools={}).on_tool_end("", run_id="never began"),
        ):
            self.assertRaisesRegex(remit.RemitError, "did not begin", made)
        hooks.RemitCallbackHandler(session, PRICES).on_tool_end("", run_id="is not charged")

    def test_the_agents_sdk_is_refused_what_cannot_be_read(self) -> None:
        async def steps(client: remit.AsyncRemit) -> None:
            session = self.async_session(client)
            run = hooks.RemitRunHooks(session, PRICES, model="gpt-4.1")
            for error, members in (
                (remit.UnknownModel, {"model": SimpleNamespace()}),
                (remit.UnboundedCall, {"model_settings": SimpleNamespace(max_tokens=5, extra_body="x")}),
                (remit.UnboundedCall, {"model_settings": SimpleNamespace(max_tokens=5, extra_args={"n": "2"})}),
                (remit.UnboundedCall, {"model_settings": SimpleNamespace(max_tokens=5, extra_body={"service_tier": "priority"})}),
                (remit.UnboundedCall, {"model_settings": SimpleNamespace(max_tokens=5, extra_body={"model": "tiny"})}),
            ):
                with self.subTest(members), self.assertRaises(error):
                    await run.on_llm_start(SimpleNamespace(), SimpleNamespace(**members), None, [])
            with self.assertRaisesRegex(remit.RemitError, "did not begin"):
                await run.on_llm_end(SimpleNamespace(), SimpleNamespace(), SimpleNamespace())
            self.assertEqual((await session.get()).action_count, 0)

        self.run_async(steps)

    def test_a_prompt_that_a_body_adds_is_held_at_the_most_of_the_model(self) -> None:
        prices = Prices.parse("""{"m": {"input_cost_per_token": 1e-6, "output_cost_per_token": 0, "max_input_tokens": 100000}}""")

        async def steps(client: remit.AsyncRemit) -> None:
            added: List[Dict[str, Any]] = [
                {"tools": [{"type": "web_search"}]}, {"input": [{"type": "input_image"}]}, {"messages": []}, {"plugins": [{"id": "web"}]},
            ]
            for body in added:
                for name in ("extra_body", "extra_args"):
                    session = self.async_session(client)
                    settings = SimpleNamespace(max_tokens=5, **{name: body})
                    agent = SimpleNamespace(model="m", model_settings=settings)
                    run = hooks.RemitRunHooks(session, prices)
                    await run.on_llm_start(SimpleNamespace(), agent, None, [])
                    self.assertEqual((await session.get()).value_held, Decimal("0.1"), body)

        self.run_async(steps)

    def test_an_answer_without_believable_usage_costs_the_hold(self) -> None:
        text = [[{"text": "hi", "message": {"content": "hi"}}]]
        usages: List[Any] = [None, {}, {"prompt_tokens": 0, "completion_tokens": 0}, {"prompt_tokens": 5, "completion_tokens": 0}, "5"]
        for usage in usages:
            with self.subTest(usage):
                session = self.new_session()
                handler = hooks.RemitCallbackHandler(session, PRICES)
                self.start(handler)
                held = session.get().value_held
                answer = {"generations": text, "llm_output": {"token_usage": usage}}
                self.assertRaises(remit.UsageMissing, handler.on_llm_end, answer, run_id="r1")
                self.assertEqual((session.get().value_used, session.get().value_held), (held, 0))

    def test_only_a_later_prompt_of_one_request_has_an_empty_usage(self) -> None:
        given: Dict[str, Any] = {"invocation_params": {"model": "gpt-4.1", "max_tokens": 5}, "batch_size": 2}
        of_all, empty = ({"generations": [], "llm_output": {"token_usage": told}} for told in ({"prompt_tokens": 9, "completion_tokens": 5}, {}))
        for first in (of_all, empty):
            session = self.new_session()
            handler = hooks.RemitCallbackHandler(session, PRICES)
            for run_id in "abc":
                handler.on_llm_start({}, ["?"], run_id=run_id, **given)
            if first is of_all:
                handler.on_llm_end(of_all, run_id="a")
                handler.on_llm_end(empty, run_id="b")
                self.assertEqual(session.get().value_used, Decimal("0.000058"))
            else:
                self.assertRaises(remit.UsageMissing, handler.on_llm_end, empty, run_id="b")
            self.assertRaises(remit.UsageMissing, handler.on_llm_end, empty, run_id="c")

    def test_a_request_that_stopped_has_no_usage_for_a_later_one(self) -> None:
        given: Dict[str, Any] = {"invocation_params": {"model": "gpt-4.1", "max_tokens": 5}, "batch_size": 3}
        of_all, empty = ({"generations": [], "llm_output": {"token_usage": told}} for told in ({"prompt_tokens": 9, "completion_tokens": 5}, {}))
        handler = hooks.RemitCallbackHandler(self.new_session(), PRICES)

        def start(*runs: str) -> None:
            for run_id in runs:
                handler.on_llm_start({}, ["?"], run_id=run_id, **given)

        start("a", "b", "c")
        handler.on_llm_end(of_all, run_id="a")  # and no other ends
        start("d", "e", "f")
        self.assertRaises(remit.UsageMissing, handler.on_llm_end, empty, run_id="d")
        handler.on_llm_end(empty, run_id="b")
        handler.on_llm_error(ValueError(), run_id="c")
        self.assertRaises(remit.UsageMissing, handler.on_llm_end, empty, run_id="e")
        handler.on_llm_error(ValueError(), run_id="f")
        start("g", "h")  # and the third is never begun
        handler.on_llm_end(of_all, run_id="g")
        start("i")
        self.assertRaises(remit.UsageMissing, handler.on_llm_end, empty, run_id="i")
        start("j", "k")  # of the request of i
        handler.on_llm_error(ValueError(), run_id="j")
        handler.on_llm_end(of_all, run_id="k")
        self.assertEqual(handler._batches, {})

    def test_a_stream_of_a_model_that_reasons_costs_all_its_output(self) -> None:
        prices = Prices.parse("""{"m": {"input_cost_per_token": 0, "output_cost_per_token": 1e-3, "supports_reasoning": true}}""")
        cases: List[Tuple[Dict[str, Any], str]] = [
            ({}, "0.1"), ({"reasoning": {"effort": "low"}}, "0.1"), ({"reasoning_effort": "none"}, "0.004"),
            ({"thinking": {"type": "disabled"}}, "0.004"), ({"thinking": {"type": "disabled"}, "reasoning": {"enabled": True}}, "0.1"),
            ({"reasoning": {"effort": "none", "max_tokens": 2000}}, "0.1"), ({"reasoning": {"effort": "none", "summary": None}}, "0.004"),
            ({"reasoning": SimpleNamespace(effort="none", summary=None)}, "0.004"), ({"thinking_config": {"budget": 9}, "thinking": False}, "0.1"),
        ]
        for asked, used in cases:
            session = self.new_session()
            handler = hooks.RemitCallbackHandler(session, prices)
            handler.on_llm_start({}, ["?"], run_id="r1", invocation_params={"model": "m", "max_tokens": 100, **asked})
            handler.on_llm_new_token("hi", run_id="r1")
            handler.on_llm_error(asyncio.CancelledError(), run_id="r1")
            self.assertEqual(session.get().value_used, Decimal(used), asked)

    def test_a_call_that_was_lost_while_an_earlier_one_was_handled_is_paid(self) -> None:
        for error, is_paid in ((TimeoutError(), True), (ValueError(), False)):
            session = self.new_session()
            handler = hooks.RemitCallbackHandler(session, PRICES)
            self.start(handler)
            error.__context__ = Made({}).error("RateLimitError", status_code=429)
            handler.on_llm_error(error, run_id="r1")
            self.assertEqual(session.get().value_used > 0, is_paid)

    def test_a_refusal_says_what_the_call_needs(self) -> None:
        handler = hooks.RemitCallbackHandler(self.new_session(max_value="0.0001"), PRICES)
        cases: List[Tuple[Dict[str, Any], str]] = [
            ({}, "32,768 tokens of output): set max_tokens"),
            ({"max_completion_tokens": 5000}, "5,000 tokens of output): lower max_completion_tokens, or send less"),
        ]
        for asked, says in cases:
            with self.assertRaises(remit.LimitReached) as refused:
                handler.on_llm_start({}, ["?"], run_id="r1", invocation_params={"model": "gpt-4.1", **asked})
            self.assertRegex(str(refused.exception), r"; the call may cost up to 0\.\d+ USD \(" + re.escape(says))

    def test_a_refusal_by_actions_does_not_say_how_to_cost_less(self) -> None:
        handler = hooks.RemitCallbackHandler(self.new_session(max_actions=1), PRICES)
        self.start(handler)
        with self.assertRaises(remit.LimitReached) as refused:
            handler.on_llm_start({}, ["?"], run_id="r2", invocation_params={"model": "gpt-4.1"})
        self.assertNotIn("tokens of output", str(refused.exception))

    def test_an_item_that_the_provider_keeps_is_not_bounded_by_its_bytes(self) -> None:
        for content, is_text in (
            ({"id": "msg_1"}, False), ([{"id": "msg_1"}], False), ({}, False), ({"role": "user", "content": "hi"}, True), ({"text": "hi"}, True),
            ({"role": "assistant", "audio": {"id": "1"}}, False), ({"type": "text", "text": "hi"}, True),
        ):
            self.assertEqual(metering.is_text(content), is_text, content)

    def test_the_hold_names_the_model_and_expires(self) -> None:
        session = self.new_session()
        handler = hooks.RemitCallbackHandler(session, PRICES, action_type="model", expires_in=60)
        self.start(handler)
        (listed,) = self.agent.transactions(session_id=session.id)
        held = self.agent.transaction(listed.id).get()
        self.assertEqual((held.action_type, held.metadata, held.reversible), ("model", {"model": "gpt-4.1"}, False))
        self.assertEqual((held.expires_at - held.created_at).total_seconds(), 60)

    def test_open_calls_are_bounded(self) -> None:
        session = self.new_session()
        handler = hooks.RemitCallbackHandler(session, PRICES)
        with mock.patch("remit.hooks.MOST_OPEN", 2):
            self.start(handler, "r1")
            self.start(handler, "r2")
            with self.assertRaises(remit.RemitError):
                self.start(handler, "r3")
            handler._open["model", "r1"].since -= 601  # its hold has expired
            self.start(handler, "r3")
        self.assertEqual(list(handler._open), [("model", "r2"), ("model", "r3")])

    def test_a_call_that_outlasts_its_hold_is_paid_while_others_begin(self) -> None:
        session = self.new_session()
        handler = hooks.RemitCallbackHandler(session, PRICES, expires_in=60)
        self.start(handler, "r1")
        handler._open["model", "r1"].since -= 61
        self.start(handler, "r2")
        self.end(handler)
        self.assertEqual(session.get().value_used, Decimal("0.0025"))

    def test_a_run_that_is_cancelled_at_its_end_settles_all_its_calls(self) -> None:
        def react(request: Request, n: int) -> Reaction:
            if request.path.endswith("/commit"):
                settling.append(request.path)
            return PASS

        settling: List[str] = []
        proxy = self.proxy(react)
        calls = recordings("openai-agents")["agents_run"]

        async def steps(client: remit.AsyncRemit) -> None:
            session, start = self.async_session(client), calls["steps"][1]
            assert start["call"] == "on_llm_start"

            async def run() -> None:
                async with hooks.RemitRunHooks(session, PRICES) as run:
                    for made in (Made(calls["things"]), Made(calls["things"])):
                        await run.on_llm_start(*made.of(start["args"]))
                    self.assertGreater((await session.get()).value_held, 0)
                    asyncio.get_running_loop().call_soon(task.cancel)  # which finds the run at its end

            task = asyncio.create_task(run())
            await asyncio.wait({task})
            self.assertTrue(task.cancelled())
            self.assertEqual(((await session.get()).value_held, len(settling)), (0, 2))

        self.run_async(steps, proxy.url)

    def test_the_answer_is_delivered_though_it_cannot_be_settled(self) -> None:
        client, _ = self.proxied(lambda r, _n: refusal(500, "internal_error") if r.path.endswith("/commit") else PASS)
        handler = hooks.RemitCallbackHandler(self.new_session(client), PRICES)
        self.start(handler)
        with self.assertLogs("remit") as logged:
            self.end(handler)
        self.assertIn("left to expire", logged.output[0])

    def test_a_lost_answer_settles_once(self) -> None:
        def react(request: Request, n: int) -> Reaction:
            return LOSE if request.path.startswith("/v1/transactions") and n == 1 else PASS

        client, _ = self.proxied(react)
        session = self.new_session(client)
        handler = hooks.RemitCallbackHandler(session, PRICES)
        self.start(handler)
        self.end(handler)
        self.assertEqual((session.get().value_used, session.get().action_count), (Decimal("0.0025"), 1))


if __name__ == "__main__":
    unittest.main()
