from __future__ import annotations

import decimal
import unittest
from decimal import Decimal
from typing import Any

from network import ServiceTest

from remit import money


class Money(unittest.TestCase):
    def test_amounts_keep_their_exact_value(self) -> None:
        given: Any
        for given, want in [
            (0, 0), (3, 3_000_000), ("0.37", 370_000), ("12.5", 12_500_000), (Decimal("0.000001"), 1),
            (Decimal("1e2"), 100_000_000), (Decimal("12.500000000"), 12_500_000), (Decimal("-0"), 0), ("0.0", 0),
            ("999999999.999999", 999_999_999_999_999), (1_000_000_000, money.MAX), (Decimal("0e-999999999"), 0),
            (Decimal("1" + "0" * 40 + "e-34"), 1_000_000_000_000),
        ]:
            with self.subTest(given=given):
                self.assertEqual(money.micro(given), want)

    def test_floats_and_other_types_are_a_type_error(self) -> None:
        for given in (0.1, 1.0, float("nan"), True, None, b"1", 1j):
            with self.subTest(given=given), self.assertRaises(TypeError):
                money.micro(given)  # type: ignore[arg-type]

    def test_an_invalid_amount_is_a_value_error(self) -> None:
        given: Any
        for given in (
            -1, "-1", Decimal("-0.000001"), "0.0000001", Decimal("1e-7"), Decimal("1e-999999999"),
            Decimal("1e999999999"), 1_000_000_001, "1000000000.000001", "", " 1", "1_0", "1.", ".5", "1e2", "NaN", "\u0663",
            Decimal("NaN"), Decimal("sNaN"), Decimal("-Infinity"), "1\n", 10**400,
        ):
            with self.subTest(given=given), self.assertRaises(ValueError):
                money.micro(given)

    def test_the_decimal_context_does_not_round_amounts(self) -> None:
        with decimal.localcontext() as context:
            context.prec = 3
            self.assertEqual(str(money.usd(money.micro("999999999.999999"))), "999999999.999999")
            self.assertEqual(str(money.read(Decimal("999999999.999999"))), "999999999.999999")

    def test_amounts_have_no_trailing_zeros(self) -> None:
        for micros, want in [(0, "0"), (1, "0.000001"), (12_500_000, "12.5"), (100_000_000, "100"), (-250_000, "-0.25")]:
            self.assertEqual(str(money.usd(micros)), want)


class MoneyThroughTheService(ServiceTest):
    def test_every_digit_survives_a_round_trip(self) -> None:
        session = self.new_session(max_value="999999999.999999")
        self.assertEqual(session.get().max_value, Decimal("999999999.999999"))
        usage = session.charge("purchase", Decimal("999999999.999998"))
        self.assertEqual((usage.value_used, usage.remaining_value), (Decimal("999999999.999998"), Decimal("0.000001")))
        self.assertEqual(session.charge(value="0.000001").value_used, Decimal("999999999.999999"))

    def test_a_hundred_dimes_are_ten_dollars(self) -> None:
        session = self.new_session(max_value=10)
        for _ in range(100):
            usage = session.charge(value="0.1")
        self.assertEqual((str(usage.value_used), str(usage.remaining_value)), ("10", "0"))

    def test_a_float_is_refused_before_anything_is_sent(self) -> None:
        client, proxy = self.proxied()
        session = self.new_session(client)
        with self.assertRaises(TypeError):
            session.charge(value=0.1)  # type: ignore[arg-type]
        with self.assertRaises(TypeError):
            session.begin("payment", value=1.5)  # type: ignore[arg-type]
        self.assertEqual(proxy.requests, [])
