"""Whether a value is of the type that an annotation asks for: what files and callers say is checked."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from numbers import Integral, Real
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints


def conforms(value: Any, kind: Any) -> bool:
    """Numbers, words, unions, literals, sequences (lists for tuples, as in JSON), mappings and dataclasses.

    An int is one of 64 bits, and no bool. To other annotations everything conforms.
    """
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return any(conforms(value, one) for one in inner)
    if origin is Literal:
        return any(type(value) is type(one) and value == one for one in inner)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return isinstance(value, Mapping) and all(
            conforms(k, inner[0]) and conforms(v, inner[1]) for k, v in value.items()
        )
    if isinstance(origin, type) and issubclass(origin, Sequence):
        some = origin is tuple and Ellipsis not in inner
        return (
            isinstance(value, list | tuple)
            and (not some or len(value) == len(inner))
            and all(conforms(v, inner[0]) for v in value)
        )
    if kind is int:
        return isinstance(value, Integral) and not isinstance(value, bool) and abs(int(value)) < 2**63
    if kind is float:
        return isinstance(value, Real) and not isinstance(value, bool)
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        return isinstance(value, kind) and all(  # pyright: ignore[reportArgumentType]
            conforms(getattr(value, f.name), hints[f.name]) for f in fields(kind)
        )
    return isinstance(value, kind) if isinstance(kind, type) and kind is not Any else True
