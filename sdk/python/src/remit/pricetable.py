"""Reads the entries of a price table, with exact decimals."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Tuple

from .modelerrors import InvalidPrices

# Prices are whole multiples of 10^-30 USD, so that sums of them are exact.
SCALE = 30
MOST_TOKENS = (1 << 53) - 1

_USD = 10**SCALE
_NUMBER = re.compile(r"(-?)(0|[1-9][0-9]*)(?:\.([0-9]+))?(?:[eE]([+-]?)([0-9]+))?", re.ASCII)
_MOST_THRESHOLDS = 16  # of a price: every call goes through them
_LONGEST_EXPONENT = 12  # digits; longer ones are beyond every number of digits that a table can have
# A price, and the tier before or after the threshold in thousands of tokens: LiteLLM writes both.
_MEMBER = re.compile(
    r"([a-z_]+?(?:_above_1hr)?)(?:_(priority|flex))?(?:_above_([1-9][0-9]{0,8})k_tokens)?(?:_(priority|flex))?", re.ASCII
)
STANDARD = "standard"
OWN_TIERS = ("priority", "flex")  # that a price may be of, by the end of its name
_MEMBERS = {
    "input_cost_per_token": "input",
    "output_cost_per_token": "output",
    "cache_read_input_token_cost": "cached_input",
    "cache_creation_input_token_cost": "cache_creation_input",
    "output_cost_per_reasoning_token": "reasoning",
    "cache_creation_input_token_cost_above_1hr": "hour_cache_creation_input",
}


class _Digits(str):
    """The text of a JSON number."""


@dataclass(frozen=True)
class Costs:
    """What a token of each kind costs in one call."""

    input: int
    cached_input: int
    cache_creation_input: int
    output: int
    reasoning: int
    hour_cache_creation_input: int


@dataclass(frozen=True)
class Rate:
    """The price of one kind of token in one service tier, by the threshold above which it applies, in order; -1: of all prompts."""

    steps: Tuple[Tuple[int, int], ...] = ()

    def at(self, prompt: int) -> Tuple[Optional[int], int]:
        """Returns the price with so many tokens in the prompt, and its threshold. None: none is given."""
        found: Tuple[Optional[int], int] = None, -1
        for above, price in self.steps:  # of two names for one threshold the dearer counts
            if prompt > above:
                found = price, above
        return found


_NO_RATE = Rate()


@dataclass(frozen=True)
class Model:
    """The prices of a model, and its limits in tokens."""

    rates: Dict[Tuple[str, str], Rate]  # by service tier and kind of token
    max_input: Optional[int]
    max_output: Optional[int]
    reasons: bool

    @property
    def is_priced(self) -> bool:
        return all(self._rate(STANDARD, kind).at(0)[0] is not None for kind in ("input", "output"))

    @property
    def has_hour_cache(self) -> bool:
        return self._rate(STANDARD, "hour_cache_creation_input").at(0)[0] is not None

    def has(self, tier: str) -> bool:
        """Returns whether a tier has its own base price of input, and of output unless that costs nothing in the standard tier."""
        input, output = (self._rate(tier, kind).at(0)[0] is not None for kind in ("input", "output"))
        return input and (output or self._rate(STANDARD, "output").at(0)[0] == 0)

    def at(self, tier: str, prompt: int) -> Costs:
        """Returns the prices of a call with so many tokens in its prompt in a tier."""
        input, output = self._or_standard(tier, "input", prompt) or 0, self._or_standard(tier, "output", prompt) or 0
        return Costs(
            input, self._part(tier, "cached_input", "input", prompt, input),
            self._part(tier, "cache_creation_input", "input", prompt, input),
            output, self._part(tier, "reasoning", "output", prompt, output),
            self._part(tier, "hour_cache_creation_input", "input", prompt, input),
        )

    def prompts_within(self, prompt: int) -> List[int]:
        """Returns a size for each threshold that a prompt of so many tokens can exceed: 0, and one above each."""
        return [0, *(above + 1 for rate in self.rates.values() for above, _ in rate.steps if 0 <= above < prompt)]

    def _rate(self, tier: str, kind: str) -> Rate:
        return self.rates.get((tier, kind), _NO_RATE)

    def _or_standard(self, tier: str, kind: str, prompt: int) -> Optional[int]:
        """Returns the price in a tier: the standard one where the tier has none, and above a threshold that only the standard price
        has if it is dearer."""
        own, above = self._rate(tier, kind).at(prompt)
        standard, standard_above = self._rate(STANDARD, kind).at(prompt)
        if own is None or standard is None:
            return standard if own is None else own
        return max(own, standard) if standard_above > above else own

    def _part(self, tier: str, kind: str, whole: str, prompt: int, cost_of_whole: int) -> int:
        """Returns the price of a part of input or output. Without one in the tier it is the standard one, or what input or output costs
        in this tier if that is dearer; without any, what input or output costs."""
        cost = self._or_standard(tier, kind, prompt)
        if cost is None:
            return cost_of_whole
        own, of_whole = self._rate(tier, kind).at(prompt)[0], self._rate(tier, whole).at(prompt)[0]
        return max(cost, cost_of_whole) if own is None and of_whole is not None else cost


def requested(service_tier: Any) -> Tuple[str, ...]:
    """Returns the tiers that a request with this service_tier can get. The provider decides on auto, on none and on other values."""
    if service_tier in ("default", "standard_only"):
        return (STANDARD,)
    return (service_tier, STANDARD) if service_tier in OWN_TIERS else (STANDARD, *OWN_TIERS)


def served(answered: Any, asked: Any) -> Tuple[str, ...]:
    """Returns the tiers in which a call can have been served: the one that its answer names, or those that the request can get."""
    if answered in ("default", STANDARD):
        return (STANDARD,)
    return (answered,) if answered in OWN_TIERS else requested(asked)


def read(text: str) -> Dict[str, Model]:
    """Reads a table. Raises InvalidPrices for the first fault in the order of names."""
    entries = _decoded(text)
    models: Dict[str, Model] = {}
    for name in sorted(entries):
        if name == "sample_spec":  # by which LiteLLM's table describes itself
            continue
        entry = entries[name]
        if not isinstance(entry, dict):
            raise InvalidPrices._of(name, "", "must be an object")
        model = _model(name, entry)
        if model.is_priced:
            models[name] = model
    return models


def _decoded(text: str) -> Dict[str, Any]:
    try:
        entries = json.loads(text, parse_int=_Digits, parse_float=_Digits, parse_constant=_refuse)
    except (ValueError, RecursionError) as e:
        said = f"must be JSON: {e}"
    else:
        if isinstance(entries, dict):
            return entries
        said = "must be an object"
    raise InvalidPrices._of("", "", said)


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no number")


def _model(name: str, entry: Dict[str, Any]) -> Model:
    steps: Dict[Tuple[str, str], List[Tuple[int, int]]] = {}
    for member in sorted(entry):
        found = _MEMBER.fullmatch(member)
        base, before, thousands, after = found.groups() if found else ("", None, None, None)
        kind = _MEMBERS.get(str(base))
        if kind is None or kind == "reasoning" and thousands or before and after or entry[member] is None:
            continue
        tier = before or after
        try:
            cost = _cost(entry[member])
        except ValueError as e:
            raise InvalidPrices._of(name, member, str(e)) from None
        of_kind = steps.setdefault((tier or STANDARD, kind), [])
        if thousands and sum(above >= 0 for above, _ in of_kind) == _MOST_THRESHOLDS:
            raise InvalidPrices._of(name, member, "must not be the seventeenth threshold of its price")
        of_kind.append((int(thousands) * 1000 if thousands else -1, cost))
    return Model(
        {key: Rate(tuple(sorted(of))) for key, of in steps.items()},
        _limit(entry, "max_input_tokens"), _limit(entry, "max_output_tokens") or _limit(entry, "max_tokens"),
        entry.get("supports_reasoning") is True or (STANDARD, "reasoning") in steps,
    )


def _number(value: Any) -> Tuple[str, int, bool]:
    """Reads the text of a number as digits × 10^exponent, without zeros at either end of the digits, and whether it is negative."""
    found = _NUMBER.fullmatch(value) if isinstance(value, str) else None
    if not found:
        raise ValueError("must be a number")
    sign, whole, fraction, exponent_sign, exponent = (part or "" for part in found.groups())
    exponent = exponent.lstrip("0") or "0"
    power = int(exponent) if len(exponent) <= _LONGEST_EXPONENT else 10**_LONGEST_EXPONENT
    digits = (whole + fraction).lstrip("0")
    power = (-power if exponent_sign == "-" else power) - len(fraction) + len(digits)
    digits = digits.rstrip("0")
    return digits, power - len(digits), sign == "-"


def _cost(value: Any) -> int:
    digits, exponent, is_negative = _number(value)
    if not digits:
        return 0
    if is_negative:
        raise ValueError("must not be negative")
    if len(digits) + exponent > 1:  # 10 or more
        raise ValueError("must be at most 1 USD per token")
    if exponent < -SCALE:
        raise ValueError("must have at most 30 decimals")
    cost: int = int(digits) * 10 ** (SCALE + exponent)
    if cost > _USD:
        raise ValueError("must be at most 1 USD per token")
    return cost


def _limit(entry: Dict[str, Any], member: str) -> Optional[int]:
    """Returns a limit in tokens: an integer from 1 to MOST_TOKENS. Any other value says nothing."""
    value = entry.get(member)
    if not isinstance(value, _Digits):
        return None
    digits, exponent, is_negative = _number(value)
    if not digits or is_negative or exponent < 0 or len(digits) + exponent > 16:
        return None
    limit: int = int(digits) * 10**exponent
    return limit if limit <= MOST_TOKENS else None
