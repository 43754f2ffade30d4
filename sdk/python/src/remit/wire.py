"""JSON encoding and decoding. Numbers stay exact, and responses are read field by field."""

from __future__ import annotations

import json
import re
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from math import ceil, isfinite
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, TypeVar, Union
from urllib.parse import urlencode

from . import money
from .credential import Credential, Sealed

# A duration: seconds or a timedelta. The SDK rounds it up to whole seconds, because the service takes nothing finer.
Seconds = Union[int, float, timedelta]

_LONGEST_INT = 4300  # digits that every Python version parses
_DEEPEST = 100  # more than the service accepts, and less than Python's recursion limit

# The members of a form, of which some repeat.
Form = Sequence[Tuple[str, Union[str, Credential]]]

T = TypeVar("T")


class Malformed(Exception):
    """A response that violates the API description."""


def encode(value: Any) -> Sealed:
    """Returns the JSON of a request. It writes Decimals as exact numbers, which the json module cannot do."""
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


def encode_form(members: Form) -> Sealed:
    """Returns a form (application/x-www-form-urlencoded)."""
    return Sealed(urlencode([(n, v.reveal() if isinstance(v, Credential) else v) for n, v in members]).encode())


def decode(text: Sealed) -> Any:
    """Returns the value of a response. Raises Malformed on any fault, outside the except block, so that no traceback leads to
    the text."""
    try:
        return json.loads(text.open(), parse_float=_fraction, parse_int=_whole, parse_constant=_refuse)
    except (ValueError, RecursionError):
        pass
    raise Malformed("it is not JSON")


def _fraction(number: str) -> Union[Decimal, str]:
    """Reads a number with a point or an exponent. If it is too large for a Decimal, it returns the text, so that one object's
    metadata cannot make a whole list unreadable. Amounts refuse a text later."""
    try:
        value = Decimal(number)
    except ArithmeticError:
        return number
    return value if value.is_finite() else number


def _whole(number: str) -> Union[int, str]:
    """Reads an integer. It returns very long ones as text, because Python parses them slowly or refuses them."""
    return int(number) if len(number) <= _LONGEST_INT else number


def _refuse(constant: str) -> Any:
    raise ValueError(constant)


def present(**members: Any) -> Dict[str, Any]:
    """Returns a JSON object of the members that are not None."""
    return {name: value for name, value in members.items() if value is not None}


def seconds(length: Optional[Seconds]) -> Optional[int]:
    """Returns whole seconds, rounded up so that a short duration does not become 0."""
    if length is None:
        return None
    if isinstance(length, timedelta):
        return -(-length // timedelta(seconds=1))
    if isinstance(length, bool) or not isinstance(length, (int, float)) or not isfinite(length):
        raise TypeError("a length of time is a number of seconds or a timedelta")
    return ceil(length)


def usd(amount: money.Amount) -> Decimal:
    """Returns a checked amount to send. None raises TypeError, because a missing price is not 0."""
    return money.usd(money.micro(amount))


def usd_or_none(amount: Optional[money.Amount]) -> Optional[Decimal]:
    """Like usd, for an optional amount."""
    return None if amount is None else usd(amount)


def names(given: Iterable[str]) -> List[str]:
    """Returns a list of scopes. It refuses a str, which would be a list of letters."""
    if isinstance(given, (str, bytes)):
        raise TypeError(f'scopes are a list of names, such as ["read"], and no {type(given).__name__}')
    return list(given)


def uris(what: str, given: Iterable[str]) -> List[str]:
    """Returns a list of resources or audiences. It refuses a str, which would be a list of letters."""
    if isinstance(given, (str, bytes)):
        raise TypeError(f'{what} is a list of URIs, such as ["https://mcp.example.com"], and no {type(given).__name__}')
    return list(given)


class Fields:
    """A JSON object of a response. Each method reads one field by its type, or raises Malformed. Unknown fields are ignored, so
    the service may add some. Its repr does not show the content."""

    __slots__ = ("_get",)

    def __init__(self, value: Any) -> None:
        if not isinstance(value, dict):
            raise Malformed("it is not an object")
        self._get: Callable[[str], Any] = value.get

    def text(self, name: str, default: Optional[str] = None) -> str:
        return self._typed(name, str, default)

    def text_or_none(self, name: str) -> Optional[str]:
        return None if self._get(name) is None else self.text(name)

    def integer(self, name: str, default: Optional[int] = None) -> int:
        return self._typed(name, int, default)

    def integer_or_none(self, name: str) -> Optional[int]:
        return None if self._get(name) is None else self.integer(name)

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

    def texts_or_none(self, name: str) -> Optional[Tuple[str, ...]]:
        return None if self._get(name) is None else self.texts(name)

    def text_or_texts(self, name: str) -> Tuple[str, ...]:
        """Returns one text or several; a missing field is empty."""
        value = self._get(name)
        return () if value is None else (value,) if isinstance(value, str) else self.texts(name)

    def integers_or_none(self, name: str) -> Optional[Tuple[int, ...]]:
        if self._get(name) is None:
            return None
        values: List[Any] = self._typed(name, list, None)
        if not all(type(v) is int for v in values):
            raise Malformed(f"{name} is not a list of integers")
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
        """Returns integers by name. It skips members that are not integers; a missing object is empty."""
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
    """Parses RFC 3339. datetime.fromisoformat accepts Z and any number of decimals only since Python 3.11."""
    found = _RFC3339.fullmatch(value) if isinstance(value, str) else None
    if not found:
        raise Malformed(f"{name} is not a moment")
    moment, fraction, zone = found.groups()
    try:
        read = datetime.fromisoformat(f"{moment}.{(fraction or '0')[:6]:0<6}{'+00:00' if zone == 'Z' else zone}")
        return read.astimezone(timezone.utc)
    except (ValueError, OverflowError):  # converted to UTC it may fall before the year 1
        raise Malformed(f"{name} is not a moment") from None


def each(value: Any, read: Callable[[Fields], T]) -> List[T]:
    """Returns the elements of a list of objects."""
    if not isinstance(value, list):
        raise Malformed("it is not a list")
    return [read(Fields(element)) for element in value]
