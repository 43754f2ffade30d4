"""JSON as it goes over the wire: every number exact, every answer read field by field."""

from __future__ import annotations

import json
import re
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from math import ceil, isfinite
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Tuple, TypeVar, Union

from . import money
from .credential import Credential, Sealed

# A length of time: seconds or a timedelta. The service counts whole seconds; what lies between is rounded up.
Seconds = Union[int, float, timedelta]

_LONGEST_INT = 4300  # digits that every Python reads
_DEEPEST = 100  # far more than the service takes, and less than Python's stack

T = TypeVar("T")


class Malformed(Exception):
    """An answer that does not follow the contract."""


def encode(value: Any) -> Sealed:
    """The JSON text of a request. Decimals stay exact numbers, which the json module cannot write, and a Credential is
    revealed here and nowhere before."""
    parts: List[str] = []
    _write(value, parts, _DEEPEST)
    return Sealed("".join(parts).encode())


def _write(value: Any, parts: List[str], depth: int) -> None:
    if depth == 0:
        raise ValueError("a JSON value is nested too deeply, or contains itself")
    if isinstance(value, Decimal):
        if not value.is_finite():
            raise ValueError("NaN and infinity are not JSON")
        parts.append(Decimal.__str__(value))
    elif isinstance(value, Credential):
        parts.append(json.dumps(value.reveal()))
    elif isinstance(value, Mapping):
        parts.append("{")
        for i, (name, member) in enumerate(value.items()):
            if not isinstance(name, str):
                raise TypeError(f"the names in a JSON object are str, not {type(name).__name__}")
            parts.append(("," if i else "") + json.dumps(name) + ":")
            _write(member, parts, depth - 1)
        parts.append("}")
    elif isinstance(value, (list, tuple)):
        parts.append("[")
        for i, member in enumerate(value):
            if i:
                parts.append(",")
            _write(member, parts, depth - 1)
        parts.append("]")
    else:
        parts.append(json.dumps(value, allow_nan=False))


def decode(text: Sealed) -> Any:
    """The value of an answer; whatever is wrong with it, it is Malformed, and no traceback leads to the text."""
    try:
        return json.loads(text.open(), parse_float=_fraction, parse_int=_whole, parse_constant=_refuse)
    except (ValueError, RecursionError):
        pass
    raise Malformed("it is not JSON")


def _fraction(number: str) -> Union[Decimal, str]:
    """A number with a point or an exponent. Of one that is too large for a Decimal there is its text: somebody's metadata
    must not make a list of sessions unreadable. For an amount a text is none."""
    try:
        value = Decimal(number)
    except ArithmeticError:
        return number
    return value if value.is_finite() else number


def _whole(number: str) -> Union[int, str]:
    """A number without. Python takes very long for very long ones, or refuses them."""
    return int(number) if len(number) <= _LONGEST_INT else number


def _refuse(constant: str) -> Any:
    raise ValueError(constant)


def present(**members: Any) -> Dict[str, Any]:
    """A JSON object of what is not None."""
    return {name: value for name, value in members.items() if value is not None}


def seconds(length: Optional[Seconds]) -> Optional[int]:
    """Whole seconds, rounded up: nothing short turns into 0."""
    if length is None:
        return None
    if isinstance(length, timedelta):
        return -(-length // timedelta(seconds=1))
    if isinstance(length, bool) or not isinstance(length, (int, float)) or not isfinite(length):
        raise TypeError("a length of time is a number of seconds or a timedelta")
    return ceil(length)


def usd(amount: money.Amount) -> Decimal:
    """An amount as it is sent, checked. None is a TypeError: a price that was not found is not 0."""
    return money.usd(money.micro(amount))


def usd_or_none(amount: Optional[money.Amount]) -> Optional[Decimal]:
    """The same where an amount may be left out."""
    return None if amount is None else usd(amount)


def names(given: Iterable[str]) -> List[str]:
    """Scopes. A str is one, and not the list of its letters."""
    if isinstance(given, (str, bytes)):
        raise TypeError(f'scopes are a list of names, such as ["read"], and no {type(given).__name__}')
    return list(given)


class Fields:
    """A JSON object of an answer. Each reader gives one field by its type, or is Malformed; fields that nobody reads are
    ignored, so that the service may add some. It does not print what it holds."""

    __slots__ = ("_get",)

    def __init__(self, value: Any) -> None:
        if not isinstance(value, dict):
            raise Malformed("it is not an object")
        self._get: Callable[[str], Any] = value.get

    def text(self, name: str, default: Optional[str] = None) -> str:
        return self._typed(name, str, default)

    def integer(self, name: str, default: Optional[int] = None) -> int:
        return self._typed(name, int, default)

    def flag(self, name: str, default: Optional[bool] = None) -> bool:
        return self._typed(name, bool, default)

    def mapping(self, name: str) -> Optional[Dict[str, Any]]:
        value: Any = self._get(name)
        if value is not None and not isinstance(value, dict):
            raise Malformed(f"{name} is not an object")
        return value

    def texts(self, name: str) -> Tuple[str, ...]:
        values: List[Any] = self._typed(name, list, None)
        if not all(isinstance(v, str) for v in values):
            raise Malformed(f"{name} is not a list of texts")
        return tuple(values)

    def members(self, name: str) -> List[Any]:
        return self._typed(name, list, [])

    def usd(self, name: str, default: Optional[Decimal] = None) -> Decimal:
        value = self._get(name)
        if value is None and default is not None:
            return default
        try:
            return money.read(value)
        except ValueError:
            raise Malformed(f"{name} is not an amount") from None

    def usd_or_none(self, name: str) -> Optional[Decimal]:
        return None if self._get(name) is None else self.usd(name)

    def quantities(self, name: str) -> Dict[str, int]:
        """Whole numbers by name. What is none is left out, as is what is not there."""
        value: Any = self._get(name)
        members = value.items() if isinstance(value, dict) else ()
        return {kind: number for kind, number in members if type(number) is int}

    def credential(self, name: str) -> Optional[Credential]:
        if self._get(name) is None:
            return None
        try:
            return Credential(self._get(name))
        except ValueError:
            pass
        raise Malformed(f"{name} is not a credential")

    def moment(self, name: str) -> datetime:
        found = self.moment_or_none(name)
        if found is None:
            raise Malformed(f"{name} is missing")
        return found

    def moment_or_none(self, name: str) -> Optional[datetime]:
        value = self._get(name)
        return None if value is None else _moment(name, value)

    def _typed(self, name: str, kind: Callable[..., T], default: Optional[T]) -> T:
        value: Any = self._get(name)
        if value is None and default is not None:
            return default
        if type(value) is not kind:
            raise Malformed(f"{name} is missing" if value is None else f"{name} is of another type")
        found: T = value
        return found


_RFC3339 = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)", re.ASCII)


def _moment(name: str, value: Any) -> datetime:
    """Python reads RFC 3339 with Z and any number of decimals from 3.11 on only."""
    found = _RFC3339.fullmatch(value) if isinstance(value, str) else None
    if not found:
        raise Malformed(f"{name} is not a moment")
    moment, fraction, zone = found.groups()
    try:
        read = datetime.fromisoformat(f"{moment}.{(fraction or '0')[:6]:0<6}{'+00:00' if zone == 'Z' else zone}")
        return read.astimezone(timezone.utc)
    except (ValueError, OverflowError):  # in UTC it may be before the year 1
        raise Malformed(f"{name} is not a moment") from None


def each(value: Any, read: Callable[[Fields], T]) -> List[T]:
    """The elements of a list of objects."""
    if not isinstance(value, list):
        raise Malformed("it is not a list")
    return [read(Fields(element)) for element in value]
