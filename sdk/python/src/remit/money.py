"""Exact amounts of US dollars: Decimals for whoever uses the SDK, whole micro-dollars within, and no floats anywhere."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any, Union

# What an amount may be given as: Decimal("0.37"), "0.37" or 3.
Amount = Union[Decimal, int, str]

MICRO = 1_000_000  # of a dollar
MAX = 1_000_000_000 * MICRO

_DECIMALS = 6
_NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?", re.ASCII)  # as prices are written; Decimal() would take more


def micro(amount: Amount) -> int:
    """The amount in millionths of a dollar.

    It is a TypeError for a float, which cannot hold a cent, and a ValueError for what is no amount from 0 to
    1,000,000,000 with at most 6 decimals.
    """
    if isinstance(amount, bool) or not isinstance(amount, (Decimal, int, str)):
        raise TypeError(f"an amount is a Decimal, an int or a str, and no {type(amount).__name__}: a float is never exact")
    if isinstance(amount, str):
        if not _NUMBER.fullmatch(amount):
            raise ValueError('an amount is written as "12.5"')
        amount = Decimal(amount)
    exact = _exact(amount)
    if not 0 <= exact <= MAX:
        raise ValueError("an amount is from 0 to 1000000000 USD")
    return exact


def usd(micros: int) -> Decimal:
    """The amount in dollars, without zeros at the end. No context of the decimal module can round it."""
    whole, fraction = divmod(abs(micros), MICRO)
    text = f"{whole}.{fraction:06d}".rstrip("0").rstrip(".")
    return Decimal("-" + text if micros < 0 else text)


def read(value: Any) -> Decimal:
    """An amount as it stands in an answer, read by json with parse_float=Decimal."""
    if isinstance(value, bool) or not isinstance(value, (Decimal, int)):
        raise ValueError("not an amount")
    return usd(_exact(value))


def _exact(amount: Union[Decimal, int]) -> int:
    if isinstance(amount, int):
        return amount * MICRO
    sign, digits, exponent = amount.as_tuple()
    if not isinstance(exponent, int):  # NaN, infinity
        raise ValueError("an amount is a finite number")
    if not any(digits):
        return 0
    if amount.adjusted() > 18:  # before its zeros are written out
        raise ValueError("an amount is from 0 to 1000000000 USD")
    number, shift = int("".join(map(str, digits))), exponent + _DECIMALS
    if shift < 0:
        if amount.adjusted() < -_DECIMALS or number % 10**-shift:
            raise ValueError("an amount has at most 6 decimals")
        number //= 10**-shift
    else:
        number *= 10**shift
    return -number if sign else number
