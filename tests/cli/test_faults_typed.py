"""What an annotation asks for, and what is given."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pytest

from lrsa.typed import conforms


@dataclass
class Sizes:
    width: int = 1
    names: tuple[str, ...] = ()


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        (int, [0, -3, np.int32(4)], [True, 1.0, "1", None, 2**63, -(2**63), [1]]),
        (float, [0, 1.5, np.float32(2), float("nan")], [True, "1", None, [1.0]]),
        (bool, [True, False], [1, 0, "True", None]),
        (str, ["", "a"], [1, None, ["a"]]),
        (int | None, [1, None], ["1", 1.5]),
        (Literal["a", "b"], ["a"], ["c", 1, None, ["a"]]),
        (tuple[int, int], [(1, 2), [1, 2]], [(1,), (1, 2, 3), (1, "2"), 1, "12"]),
        (tuple[float, ...], [(), [1, 2.5]], [("a",), 1.0, "12"]),
        (Sequence[str], [["a"], ()], ["a", [1]]),
        (Mapping[str, int], [{}, {"a": 1}], [{"a": "1"}, {1: 1}, [], None]),
        (Sizes, [Sizes(), Sizes(2, ("a",))], [Sizes("2"), Sizes(2, (1,)), {"width": 2}]),  # pyright: ignore[reportArgumentType]
        (Any, [1, None, "a", []], []),
        ("int", [1, "whatever an unresolved annotation means"], []),
    ],
)
def test_what_conforms_and_what_does_not(kind: Any, good: list[Any], bad: list[Any]) -> None:
    assert [value for value in good if not conforms(value, kind)] == []
    assert [value for value in bad if conforms(value, kind)] == []
