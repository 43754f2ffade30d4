"""Exact amounts of US dollars: Decimals in the API of the SDK, whole micro-dollars inside, no floats anywhere."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any, Union

# An amount as callers pass it: Decimal("0.37"), "0.37" or 3.
Amount = Union[Decimal, int, str]

MICRO = 1_000_000  # of a dollar
MAX = 1_000_000_000 * MICRO

_DECIMALS = 6
_NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?", re.ASCII)  # stricter than Decimal()


def micro(amount: Amount) -> int:
    """Returns the amount in millionths of a dollar.

    Raises TypeError for a float, which cannot represent a cent exactly, and ValueError unless the amount is from 0 to
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
    """Returns the amount in dollars, without trailing zeros. It is exact whatever the context of the decimal module."""
    whole, fraction = divmod(abs(micros), MICRO)
    text = f"{whole}.{fraction:06d}".rstrip("0").rstrip(".")
    return Decimal("-" + text if micros < 0 else text)


def read(value: Any) -> Decimal:
    """Returns the amount of a response, which json has read with parse_float=Decimal."""
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
    if amount.adjusted() > 18:  # check before writing out its zeros
        raise ValueError("an amount is from 0 to 1000000000 USD")
    number, shift = int("".join(map(str, digits))), exponent + _DECIMALS
    if shift < 0:
        if amount.adjusted() < -_DECIMALS or number % 10**-shift:
            raise ValueError("an amount has at most 6 decimals")
        number //= 10**-shift
    else:
        number *= 10**shift
    return -number if sign else number
