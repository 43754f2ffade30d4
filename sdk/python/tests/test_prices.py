from __future__ import annotations

import json
import tempfile
import unittest
from decimal import Decimal, localcontext
from pathlib import Path
from typing import Any, Dict, List, Type

import remit
from remit import money
from remit.prices import Limits, Prices, Usage

VECTORS = Path(__file__).resolve().parent.parent.parent / "testdata" / "prices"
ERRORS: Dict[str, Type[Exception]] = {"UnknownModel": remit.UnknownModel, "InvalidUsage": ValueError}


def vectors(name: str) -> Any:
    found = json.loads((VECTORS / name).read_text())
    assert len(found) > 4
    return found


class Vectors(unittest.TestCase):
    """The files that the tests of every SDK read."""

    def setUp(self) -> None:
        self.prices = Prices.read(VECTORS / "table.json")

    def check(self, case: Any, got: Any) -> None:
        with self.subTest(case["name"]), localcontext() as context:
            context.prec = 3  # of the caller, which must not matter
            if "error" in case:
                with self.assertRaises(ERRORS[case["error"]]) as caught:
                    got()
                if isinstance(caught.exception, remit.UnknownModel):
                    self.assertIn(case["model"], str(caught.exception))
                    self.assertEqual(caught.exception.model, case["model"])
                return
            cost = got()
            self.assertIs(type(cost), Decimal)
            self.assertEqual(money.micro(cost), case["cost_micro_usd"])

    def test_costs(self) -> None:
        for case in vectors("cases.json"):
            self.check(case, lambda: self.prices.cost(case["model"], Usage(**case["usage"])))

    def test_worst_cases(self) -> None:
        for case in vectors("worst.json"):
            self.check(case, lambda: self.prices.worst(
                case["model"], case["input_tokens"], case["output_tokens"], hour_cache=case.get("hour_cache", False)))

    def test_service_tiers(self) -> None:
        vectors = json.loads((VECTORS / "tiers.json").read_text())
        prices = Prices.parse(json.dumps(vectors["prices"]))
        for case in vectors["worst"]:
            tokens = case["input_tokens"], case["output_tokens"]
            self.check(case, lambda: prices.worst(case["model"], *tokens, requested_tier=case.get("requested")))
        for case in vectors["cost"]:
            tiers = {"requested_tier": case.get("requested"), "served_tier": case.get("served")}
            self.check(case, lambda: prices.cost(case["model"], Usage(**case["usage"]), **tiers))
        for case in vectors["tiers"]:
            self.assertEqual(prices.has_tier(case["model"], case["tier"]), case["has"], case["name"])
        self.assertFalse(prices.has_tier("all", "standard"))

    def test_limits(self) -> None:
        for case in vectors("limits.json"):
            with self.subTest(case["name"]):
                want = Limits(case["max_input_tokens"], case["max_output_tokens"])
                self.assertEqual(self.prices.limits(case["model"]), want)

    def test_invalid_tables_are_refused_with_the_name_at_fault(self) -> None:
        for case in vectors("invalid.json"):
            for text in (case["text"], case["text"].encode()):
                with self.subTest(case["name"]), self.assertRaises(remit.InvalidPrices) as caught:
                    Prices.parse(text)
                at_fault = (case["model"] or "", case["member"] or "")
                self.assertEqual((caught.exception.model, caught.exception.member), at_fault)
                for name in at_fault:
                    self.assertIn(name, str(caught.exception))


class Tables(unittest.TestCase):
    def test_a_table_is_bounded(self) -> None:
        for text in ("[" * 100_000, "{" + " " * (16 << 20) + "}"):
            with self.assertRaises(remit.InvalidPrices):
                Prices.parse(text)
        with tempfile.NamedTemporaryFile() as file:
            file.truncate((16 << 20) + 1)
            with self.assertRaisesRegex(remit.InvalidPrices, "16 MiB"):
                Prices.read(file.name)

    def test_a_count_that_is_no_integer_is_refused(self) -> None:
        prices = Prices.read(VECTORS / "table.json")
        cases: List[Any] = [1.0, True, "1", None]
        for wrong in cases:
            with self.subTest(wrong), self.assertRaises(ValueError):
                prices.cost("plain", Usage(input=wrong))
            with self.subTest(wrong), self.assertRaises(ValueError):
                prices.worst("plain", 0, wrong)
