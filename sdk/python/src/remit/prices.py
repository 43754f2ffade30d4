"""What a call of a language model costs, by a price table in the form that LiteLLM keeps and many tools read:

    {"gpt-4.1": {"input_cost_per_token": 2e-06, "output_cost_per_token": 8e-06, "max_input_tokens": 1047576}}

Costs are exact decimals, never floats. The cost of a call is one exact sum, rounded up to the micro-dollar once. docs/prices.md has
the whole format.
"""

from __future__ import annotations

import os
from dataclasses import astuple, dataclass
from decimal import Decimal
from typing import Dict, Optional, Union

from . import money, pricetable
from .modelerrors import InvalidPrices, UnknownModel
from .pricetable import MOST_TOKENS, SCALE, Model

__all__ = ["InvalidPrices", "Limits", "Prices", "UnknownModel", "Usage"]

_LARGEST_TABLE = 16 << 20  # bytes: ten times LiteLLM's
_MICRO_USD = 10 ** (SCALE - 6)


@dataclass(frozen=True)
class Usage:
    """What a call used, in tokens. Each token counts in one field only, and each field is from 0 to 2^53-1."""

    input: int = 0  # neither read from a cache nor written to one
    cached_input: int = 0  # read from a cache
    cache_creation_input: int = 0  # written to a cache, but not for an hour
    output: int = 0  # without reasoning
    reasoning: int = 0
    hour_cache_creation_input: int = 0  # written to a cache for an hour


@dataclass(frozen=True)
class Limits:
    """What a model takes and produces at most, in tokens. None: the table does not say."""

    max_input_tokens: Optional[int]
    max_output_tokens: Optional[int]


class Prices:
    """The prices of models. parse and read make it. It does not change, and threads and tasks can share it."""

    def __init__(self, models: Dict[str, Model]) -> None:
        self._models = models

    @classmethod
    def parse(cls, text: Union[str, bytes]) -> Prices:
        """Reads a table of at most 16 MiB. Raises InvalidPrices, which names the model and the member at fault."""
        if isinstance(text, str):
            text = text.encode("utf-8", "replace")
        if len(text) > _LARGEST_TABLE:
            raise InvalidPrices._of("", "", "must be at most 16 MiB")
        return cls(pricetable.read(text.decode("utf-8", "replace")))

    @classmethod
    def read(cls, path: Union[str, os.PathLike[str]]) -> Prices:
        """Reads a table from a file. Raises InvalidPrices and OSError."""
        with open(path, "rb") as file:
            return cls.parse(file.read(_LARGEST_TABLE + 1))

    def cost(
        self, model: str, usage: Usage, *, requested_tier: Optional[str] = "default", served_tier: Optional[str] = None
    ) -> Decimal:
        """Returns what a call of the model cost, in USD, by the service_tier of its request and of its answer (None: it has none).
        Without a tier of the answer that it knows, that is the dearest tier that the request can get. Raises UnknownModel, and ValueError
        for a count of tokens below 0 or above 2^53-1, for a cost above 1,000,000,000 USD, and for a cache of an hour that has no price."""
        prices = self._model(model)
        _check(*astuple(usage))
        _check_hour_cache(prices, usage.hour_cache_creation_input > 0)
        prompt = usage.input + usage.cached_input + usage.cache_creation_input + usage.hour_cache_creation_input
        rates = [astuple(prices.at(tier, prompt)) for tier in pricetable.served(served_tier, requested_tier)]
        return _rounded_up(max(sum(tokens * price for tokens, price in zip(astuple(usage), at)) for at in rates))

    def worst(
        self, model: str, input_tokens: int, output_tokens: int, *, requested_tier: Optional[str] = None, hour_cache: bool = False
    ) -> Decimal:
        """Returns the most that a call of the model can cost with so many tokens, in USD: all of them of the kinds that cost most,
        at the thresholds that cost most, and in the dearest tier that a request with this service_tier (None: it has none) can get.
        Only with hour_cache it may write to a cache for an hour. Raises the errors of cost."""
        prices = self._model(model)
        _check(input_tokens, output_tokens)
        _check_hour_cache(prices, hour_cache)
        worst = 0
        for tier in pricetable.requested(requested_tier):
            for prompt in prices.prompts_within(input_tokens):
                at = prices.at(tier, prompt)
                dearest_input = max(at.input, at.cached_input, at.cache_creation_input, at.hour_cache_creation_input if hour_cache else 0)
                worst = max(worst, input_tokens * dearest_input + output_tokens * max(at.output, at.reasoning))
        return _rounded_up(worst)

    def has_tier(self, model: str, service_tier: str) -> bool:
        """Returns whether a tier, "priority" or "flex", has its own base price of input, and of output unless that costs nothing in the
        standard tier. Raises UnknownModel."""
        return service_tier in pricetable.OWN_TIERS and self._model(model).has(service_tier)

    def has_hour_cache(self, model: str) -> bool:
        """Returns whether tokens that are written to a cache for an hour have a base price, in the standard tier. Raises UnknownModel."""
        return self._model(model).has_hour_cache

    def reasons(self, model: str) -> bool:
        """Returns whether the model can reason: its entry has supports_reasoning, or a price of reasoning. Raises UnknownModel."""
        return self._model(model).reasons

    def limits(self, model: str) -> Limits:
        """Returns the limits of the model. Raises UnknownModel."""
        prices = self._model(model)
        return Limits(prices.max_input, prices.max_output)

    def _model(self, name: str) -> Model:
        try:
            return self._models[name]
        except KeyError:
            raise UnknownModel._of(name) from None


def _check(*counts: int) -> None:
    for count in counts:
        if type(count) is not int or not 0 <= count <= MOST_TOKENS:
            raise ValueError("a count of tokens is an int from 0 to 2^53-1")


def _check_hour_cache(prices: Model, is_used: bool) -> None:
    if is_used and not prices.has_hour_cache:
        raise ValueError("a cache of an hour has no price: add cache_creation_input_token_cost_above_1hr to the price table")


def _rounded_up(total: int) -> Decimal:
    micros = -(-total // _MICRO_USD)
    if micros > money.MAX:
        raise ValueError("a cost is at most 1000000000 USD")
    return money.usd(micros)
