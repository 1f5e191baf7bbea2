"""Checks of what users pass: is it of the right type, and if not, what to write instead.

Only types are checked here. Whether names exist and texts make sense is decided by the `servo` binary, which
reports every problem at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable
    from zoneinfo import ZoneInfo

    Zone: TypeAlias = str | ZoneInfo

T = TypeVar("T")


def wrong(argument: str, value: object, wanted: str) -> TypeError:
    """Make the error for an argument of the wrong type.

    >>> raise wrong("owners=", 7, 'a list of texts, such as ["ops@example.org"]')
    Traceback (most recent call last):
    TypeError: owners= takes a list of texts, such as ["ops@example.org"], not the int 7
    """
    shown = repr(value)
    if len(shown) > 60:
        shown = shown[:60] + "…"
    kind = "" if value is None else f"the {type(value).__name__} "
    return TypeError(f"{argument} takes {wanted}, not {kind}{shown}")


def text(argument: str, value: object, example: str) -> str:
    """Check a text.

    >>> text("group=", "ops", "ops")
    'ops'
    >>> text("group=", 1, "ops")
    Traceback (most recent call last):
    TypeError: group= takes a text, such as "ops", not the int 1
    """
    if isinstance(value, str):
        return value
    raise wrong(argument, value, f'a text, such as "{example}"')


def texts(argument: str, value: object, example: str) -> tuple[str, ...]:
    """Check a list of texts; a lone text is refused, since it would be a list of letters.

    >>> texts("owners=", "ops", "ops")
    Traceback (most recent call last):
    TypeError: owners= takes a list of texts, such as ["ops"], not the str 'ops'
    """
    found = sequence(argument, value, f'a list of texts, such as ["{example}"]')
    for item in found:
        text(f"each of {argument}", item, example)
    return found  # type: ignore[return-value]


def sequence(argument: str, value: object, wanted: str) -> tuple[object, ...]:
    """Check a list, a tuple or another collection that has an order.

    >>> sequence("deps=", ["raw.flights"], "a list of assets")
    ('raw.flights',)
    """
    if isinstance(value, list | tuple):
        return tuple(value)
    # Sets have no order, so a manifest made of one would differ from process to process.
    if isinstance(value, str | bytes | Mapping | set | frozenset) or not hasattr(value, "__iter__"):
        raise wrong(argument, value, wanted)
    return tuple(value)


def text_map(argument: str, value: object) -> dict[str, str]:
    """Check a dict of texts.

    >>> text_map("tags=", {"team": 7})
    Traceback (most recent call last):
    TypeError: tags= takes a dict of texts, such as {"team": "ops"}, not the int 7 under 'team': \
write it as a text
    """
    if not isinstance(value, Mapping):
        raise wrong(argument, value, 'a dict of texts, such as {"team": "ops"}')
    for key, item in value.items():
        if not (isinstance(key, str) and isinstance(item, str)):
            culprit = item if isinstance(key, str) else key
            error = wrong(argument, culprit, 'a dict of texts, such as {"team": "ops"}')
            raise TypeError(f"{error} under {key!r}: write it as a text")
    return dict(value)


def text_keys(argument: str, value: object) -> dict[str, object]:
    """Check a dict whose keys are texts; None is an empty one.

    >>> text_keys("config=", {"limit": 3})
    {'limit': 3}
    """
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise wrong(argument, value, 'a dict of values by name, such as {"limit": 3}')
    return dict(value)


def integer(argument: str, value: object, least: int = -(2**31), most: int = 2**31 - 1) -> int:
    """Check an integer that a manifest can hold; booleans are none.

    >>> integer("priority=", True)
    Traceback (most recent call last):
    TypeError: priority= takes an integer, not the bool True
    >>> integer("day=", 300, 0, 255)
    Traceback (most recent call last):
    ValueError: day= takes an integer between 0 and 255, not 300
    """
    if not isinstance(value, int) or isinstance(value, bool):
        raise wrong(argument, value, "an integer")
    return within(argument, value, least, most, "an integer")


def within(argument: str, value: int, least: int, most: int, what: str) -> int:
    """Check the size of a number.

    >>> within("cpu=", -500, 0, 10**9, "thousandths of a core")
    Traceback (most recent call last):
    ValueError: cpu= takes thousandths of a core between 0 and 1000000000, not -500
    """
    if least <= value <= most:
        return value
    shown = str(value) if value.bit_length() < 256 else "one of that size"
    raise ValueError(f"{argument} takes {what} between {least} and {most}, not {shown}")


def boolean(argument: str, value: object) -> bool:
    """Check True or False.

    >>> boolean("quarantine=", "yes")
    Traceback (most recent call last):
    TypeError: quarantine= takes True or False, not the str 'yes'
    """
    if isinstance(value, bool):
        return value
    raise wrong(argument, value, "True or False")


def parts_per_million(argument: str, value: object) -> int:
    """Check a number, and give it in parts per million.

    >>> parts_per_million("jitter=", 0.1)
    100000
    """
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e12:
        return within(argument, round(value * 1_000_000), 0, 10**18, "parts per million")
    raise wrong(argument, value, "a number")


def timezone(argument: str, value: object) -> str:
    """Check the name of a time zone, or a `ZoneInfo`, which has one.

    >>> import zoneinfo
    >>> timezone("timezone=", zoneinfo.ZoneInfo("UTC"))
    'UTC'
    """
    if isinstance(value, str):
        return value
    name = getattr(value, "key", None)
    if isinstance(name, str):
        return name
    raise wrong(argument, value, 'the name of a time zone, such as "Europe/Amsterdam"')


def instance_of(kind: type[T], example: str) -> Callable[[str, object], T]:
    """Make a check for instances of a class.

    >>> instance_of(range, "range(3)")("over=", 3)
    Traceback (most recent call last):
    TypeError: over= takes range(3) or the like, not the int 3
    """

    def check(argument: str, value: object) -> T:
        if isinstance(value, kind):
            return value
        raise wrong(argument, value, f"{example} or the like")

    return check


def unexpected(what: str, name: str, known: tuple[str, ...]) -> TypeError:
    """Make the error for an argument that does not exist.

    >>> raise unexpected("asset()", "partition", ("partitions", "deps"))
    Traceback (most recent call last):
    TypeError: asset() has no argument partition=: did you mean partitions=?
    """
    import difflib  # noqa: PLC0415 - only needed to explain a mistake

    near = difflib.get_close_matches(name, known, n=1)
    fix = f"did you mean {near[0]}=?" if near else "it has " + ", ".join(f"{each}=" for each in sorted(known))
    return TypeError(f"{what} has no argument {name}=: {fix}")
