from __future__ import annotations

import json
import unittest
from datetime import timedelta
from decimal import Decimal
from typing import Any, Dict, List

import remit
from network import ServiceTest
from remit import wire
from remit.credential import Sealed


class Wire(unittest.TestCase):
    def test_json_matches_the_json_module(self) -> None:
        value: Any
        for value in (
            None, True, False, 0, -1, 10**30, 0.1, "", 'a"\\\n\u20ac\U0001f600\ud800', [], {}, [1, [2, {"a": None}]],
            {"": {"b": ()}},
        ):
            self.assertEqual(json.loads(wire.encode(value).open()), json.loads(json.dumps(value)))

    def test_decimals_stay_exact_numbers(self) -> None:
        for text in ("0.1", "999999999.999999", "1E+30", "0E-7", "-0", "1.50", "123456789012345678901234567890.1"):
            self.assertEqual(wire.decode(wire.encode({"a": Decimal(text)})), {"a": Decimal(text)})

    def test_values_that_are_not_json_are_refused(self) -> None:
        loop: List[Any] = []
        loop.append(loop)
        for value in (float("nan"), Decimal("NaN"), Decimal("Infinity"), loop):
            with self.assertRaises(ValueError):
                wire.encode(value)
        for value in (object(), {1: 2}, {None: 1}, b"bytes", {1, 2}):
            with self.assertRaises(TypeError):
                wire.encode(value)
        for text in (b"", b"{", b"NaN", b"[1,]", b"\xff", b"1" * 100_000 + b"x", b"[" * 100_000):
            with self.subTest(text[:10]), self.assertRaises(wire.Malformed):
                wire.decode(Sealed(text))

    def test_a_number_too_large_for_python_becomes_text(self) -> None:
        beyond = ("1e1000000000000000000", "-1.5E+9999999999999999999", "1e-9999999999999999999", "1" * 5000)
        for text in beyond:
            with self.subTest(text[:30]):
                value = wire.decode(Sealed(f'{{"metadata":{{"a":[{text},1]}}}}'.encode()))
                self.assertEqual(value, {"metadata": {"a": [text, 1]}})
                with self.assertRaises(wire.Malformed):
                    wire.Fields({"value_usd": text}).usd("value_usd")
        self.assertEqual(wire.decode(Sealed(b"1" * 4300)), int("1" * 4300))

    def test_a_time_outside_utc_is_refused(self) -> None:
        for text in ("0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59-01:00", "2026-02-30T00:00:00Z"):
            with self.subTest(text), self.assertRaises(wire.Malformed):
                wire.Fields({"created_at": text}).moment("created_at")

    def test_durations_are_rounded_up(self) -> None:
        length: Any
        days, short = timedelta(days=30), timedelta(milliseconds=1)
        for length, want in ((0, 0), (1, 1), (0.001, 1), (short, 1), (days, 2_592_000), (2.0, 2)):
            self.assertEqual(wire.seconds(length), want)
        for length in (True, "5", float("inf"), float("nan")):
            with self.assertRaises(TypeError):
                wire.seconds(length)


class States(ServiceTest):
    def test_a_state_survives_a_round_trip(self) -> None:
        state: Dict[str, Any] = {
            "price": Decimal("0.10"), "big": 2**60, "text": "<&>\u20ac\U0001f600\n", "list": [None, True, {"a": []}],
        }
        tx = self.new_session().begin("payment", pre_state=state)
        self.assertEqual(tx.info.pre_state, state)
        again = self.agent.begin("payment", pre_state=tx.info.pre_state)
        self.assertEqual(str(again.info.pre_state), str(tx.info.pre_state))
        with self.assertRaises(remit.RemitError):
            self.agent.begin("payment", pre_state={"deep": json.loads("[" * 50 + "]" * 50)})
