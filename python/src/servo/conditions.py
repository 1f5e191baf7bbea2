"""Automation conditions: when an asset is made without anybody asking.

A condition is an expression that Servo evaluates for each partition of its asset, whenever something has
changed that it looks at. `eager`, `on_cron` and `on_missing` are whole ones; the others are parts to build
with:

>>> import servo
>>> with servo.collecting():
...     @servo.asset(automation=servo.eager() & servo.during("22:00", "06:00", timezone="Europe/Amsterdam"))
...     def report(orders):
...         return orders

Within `any_upstream` and `all_upstream` a part is about the upstream asset; elsewhere it is about the asset
itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from servo.arguments import text, texts, timezone, within, wrong
from servo.dependencies import key_of
from servo.durations import milliseconds
from servo.frozen import Frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from servo.arguments import Zone
    from servo.dependencies import AssetLike
    from servo.durations import Duration

_MOST_PARTS = 200


class Condition(Frozen):
    """A condition; combined with `&`, `|` and `~`, never changed.

    >>> (missing() & ~in_progress()) | code_changed()
    (missing() & ~in_progress()) | code_changed()
    >>> missing() and code_changed()
    Traceback (most recent call last):
    TypeError: a condition is neither true nor false before Servo evaluates it: write &, | and ~ instead of \
and, or and not
    """

    __slots__ = ("manifest", "text")
    manifest: dict[str, object]
    """The condition as the manifest has it."""
    text: str
    """The condition as it is written."""

    def __init__(self, manifest: dict[str, object], text: str) -> None:
        """Take both forms; made by the functions of this module."""
        self._set(manifest=manifest, text=text)

    def to_manifest(self) -> dict[str, object]:
        """Give the condition as the manifest has it.

        >>> missing().to_manifest()
        {'op': 'missing'}
        """
        return self.manifest

    def __and__(self, other: Condition) -> Condition:
        """Both.

        >>> (missing() & failed() & in_progress()).to_manifest()["of"]
        [{'op': 'missing'}, {'op': 'failed'}, {'op': 'in_progress'}]
        """
        return _join("and", "&", self, other)

    def __or__(self, other: Condition) -> Condition:
        """One of them.

        >>> missing() | stale()
        missing() | stale()
        """
        return _join("or", "|", self, other)

    def __invert__(self) -> Condition:
        """Not this. A negation keeps an asset back; it never is what makes it.

        >>> ~in_progress()
        ~in_progress()
        """
        return Condition({"op": "not", "of": self.manifest}, f"~{_inner(self)}")

    def since(self, other: Condition) -> Condition:
        """This, and it happened after the other did.

        >>> all_upstream(updated().since(cron_tick("0 6 * * *")))
        all_upstream(updated().since(cron_tick('0 6 * * *')))
        """
        manifest: dict[str, object] = {
            "op": "since",
            "of": self.manifest,
            "since": _of("since", other).manifest,
        }
        return Condition(manifest, f"{_inner(self)}.since({other.text})")

    def newly_true(self) -> Condition:
        """This became true since the partition was last made or requested: the change is what makes it.

        >>> any_upstream(~missing()).newly_true()
        any_upstream(~missing()).newly_true()
        """
        return Condition({"op": "newly_true", "of": self.manifest}, f"{_inner(self)}.newly_true()")

    def label(self, name: str) -> Condition:
        """Give it a name, which traces show.

        >>> (missing() & ~in_progress()).label("nobody makes it")
        (missing() & ~in_progress()).label('nobody makes it')
        """
        shown = text("label(name)", name, "nobody makes it")
        manifest: dict[str, object] = {"op": "named", "name": shown, "of": self.manifest}
        return Condition(manifest, f"{_inner(self)}.label({shown!r})")

    def during(
        self, start: str, end: str, *, days: Sequence[str] | None = None, timezone: Zone | None = None
    ) -> Condition:
        """This, while it is between two times of a day; see `during`.

        >>> eager().during("22:00", "06:00")
        eager() & during('22:00', '06:00')
        """
        return self & during(start, end, days=days, timezone=timezone)

    def at_most(self, times: int, *, per: Duration) -> Condition:
        """This, and not more often; see `at_most`.

        >>> eager().at_most(4, per="1h")
        eager() & at_most(4, per='1h')
        """
        return self & at_most(times, per=per)

    def __bool__(self) -> NoReturn:
        """Refuse `and`, `or` and `not`, which Python would evaluate at once."""
        raise TypeError(
            "a condition is neither true nor false before Servo evaluates it: "
            "write &, | and ~ instead of and, or and not"
        )

    def __hash__(self) -> int:
        """Hash what is written."""
        return hash(self.text)

    def __repr__(self) -> str:
        """Show the condition as it is written."""
        return self.text


def _of(argument: str, value: object) -> Condition:
    if not isinstance(value, Condition):
        raise wrong(argument, value, "a condition, such as servo.missing()")
    return value


def _inner(condition: Condition) -> str:
    joined = condition.manifest["op"] in {"and", "or"}
    return f"({condition.text})" if joined else condition.text


def _join(op: str, sign: str, left: Condition, right: object) -> Condition:
    if not isinstance(right, Condition):
        raise wrong(f"condition {sign}", right, "another condition, such as servo.missing(),")
    parts: list[object] = []
    shown = []
    for side in (left, right):
        inner = side.manifest["of"] if side.manifest["op"] == op else [side.manifest]
        if not isinstance(inner, list):
            inner = [side.manifest]
        parts.extend(inner)
        shown.append(side.text if side.manifest["op"] == op else _inner(side))
    within("parts of a condition", len(parts), 2, _MOST_PARTS, "parts")
    return Condition({"op": op, "of": parts}, f" {sign} ".join(shown))


def _named(name: str, condition: Condition) -> Condition:
    return Condition({"op": "named", "name": name, "of": condition.manifest}, name)


def missing() -> Condition:
    """The partition was never made. What has partitions and was missing before is left to a backfill.

    >>> missing()
    missing()
    """
    return Condition({"op": "missing"}, "missing()")


def new_partition() -> Condition:
    """The partition came into existence: its time has come, or its key was added.

    >>> new_partition()
    new_partition()
    """
    return Condition({"op": "new_partition"}, "new_partition()")


def updated() -> Condition:
    """The partition was made since the asset was last made or requested; for use within `any_upstream`.

    >>> any_upstream(updated())
    any_upstream(updated())
    """
    return Condition({"op": "updated"}, "updated()")


def stale() -> Condition:
    """The partition is not what the newest code and data would give, however far up the change was.

    >>> stale() & ~any_upstream(stale())
    stale() & ~any_upstream(stale())
    """
    return Condition({"op": "stale"}, "stale()")


def code_changed() -> Condition:
    """The partition was made by another version of the code than the one that is deployed.

    >>> code_changed()
    code_changed()
    """
    return Condition({"op": "code_changed"}, "code_changed()")


def in_progress() -> Condition:
    """A run that is not over makes the partition.

    >>> ~in_progress()
    ~in_progress()
    """
    return Condition({"op": "in_progress"}, "in_progress()")


def failed() -> Condition:
    """The last attempt at the partition failed. Needs a limit where it makes the asset itself.

    >>> failed() & at_most(3, per="1d")
    failed() & at_most(3, per='1d')
    """
    return Condition({"op": "failed"}, "failed()")


def cron_tick(cron: str, *, timezone: Zone | None = None) -> Condition:
    """A tick has passed since the partition was last made or requested.

    >>> cron_tick("0 6 * * *", timezone="Europe/Amsterdam").to_manifest()
    {'op': 'cron_tick', 'cron': '0 6 * * *', 'timezone': 'Europe/Amsterdam'}
    """
    manifest: dict[str, object] = {"op": "cron_tick", "cron": text("cron_tick(cron)", cron, "0 6 * * *")}
    zone = _zone("cron_tick", timezone)
    if zone is None:
        return Condition(manifest, f"cron_tick({cron!r})")
    manifest["timezone"] = zone
    return Condition(manifest, f"cron_tick({cron!r}, timezone={zone!r})")


def _zone(what: str, value: Zone | None) -> str | None:
    return None if value is None else timezone(f"{what}(timezone=)", value)


def _upstream(
    op: str,
    condition: Condition,
    only: Sequence[AssetLike] | None,
    ignore: Sequence[AssetLike] | None,
) -> Condition:
    manifest: dict[str, object] = {"op": op, "of": _of(f"{op}(condition)", condition).manifest}
    shown = condition.text
    for name, assets in (("only", only), ("ignore", ignore)):
        if assets is not None:
            keys = [key_of(f"{op}({name}=)", asset) for asset in assets]
            manifest[name] = keys
            shown += f", {name}={keys!r}"
    return Condition(manifest, f"{op}({shown})")


def any_upstream(
    condition: Condition,
    *,
    only: Sequence[AssetLike] | None = None,
    ignore: Sequence[AssetLike] | None = None,
) -> Condition:
    """Whether a condition is true of one of the upstream partitions that the partition is made from.

    >>> any_upstream(updated(), ignore=["raw.calendar"]).to_manifest()
    {'op': 'any_upstream', 'of': {'op': 'updated'}, 'ignore': ['raw/calendar']}
    """
    return _upstream("any_upstream", condition, only, ignore)


def all_upstream(
    condition: Condition,
    *,
    only: Sequence[AssetLike] | None = None,
    ignore: Sequence[AssetLike] | None = None,
) -> Condition:
    """Whether a condition is true of all of the upstream partitions that the partition is made from.

    >>> all_upstream(~missing())
    all_upstream(~missing())
    """
    return _upstream("all_upstream", condition, only, ignore)


def latest(windows: int = 1) -> Condition:
    """The partition is among the newest along its dimension of time; always true without one.

    >>> eager() & latest()
    eager() & latest()
    """
    if not isinstance(windows, int) or isinstance(windows, bool):
        raise wrong("latest(windows)", windows, "a number of windows, such as 7,")
    if windows == 1:
        return Condition({"op": "latest"}, "latest()")
    return Condition({"op": "latest", "windows": windows}, f"latest({windows})")


def during(
    start: str, end: str, *, days: Sequence[str] | None = None, timezone: Zone | None = None
) -> Condition:
    """It is between two times of a day; of the next day if the second is not later.

    `days` are those on which it begins.

    >>> during("22:00", "06:00", days=["mon", "tue"], timezone="UTC").to_manifest()
    {'op': 'during', 'from': '22:00', 'to': '06:00', 'days': ['mon', 'tue'], 'timezone': 'UTC'}
    """
    manifest: dict[str, object] = {
        "op": "during",
        "from": text("during(start)", start, "22:00"),
        "to": text("during(end)", end, "06:00"),
    }
    shown = f"{start!r}, {end!r}"
    if days is not None:
        names = list(texts("during(days=)", days, "mon"))
        manifest["days"] = names
        shown += f", days={names!r}"
    zone = _zone("during", timezone)
    if zone is not None:
        manifest["timezone"] = zone
        shown += f", timezone={zone!r}"
    return Condition(manifest, f"during({shown})")


def at_most(times: int, *, per: Duration) -> Condition:
    """The condition requested the partition fewer than so many times within the last `per`.

    >>> at_most(3, per="1d").to_manifest()
    {'op': 'at_most', 'times': 3, 'per_ms': 86400000}
    """
    if not isinstance(times, int) or isinstance(times, bool):
        raise wrong("at_most(times)", times, "a number of times, such as 3,")
    within("at_most(times)", times, 1, 100, "times")
    manifest: dict[str, object] = {
        "op": "at_most",
        "times": times,
        "per_ms": milliseconds("at_most(per=)", per),
    }
    return Condition(manifest, f"at_most({times}, per={per!r})")


def eager() -> Condition:
    """Make the asset as soon as an upstream asset was updated, or one of its partitions is new.

    Waits while an upstream partition is missing or is being made, or the asset itself is. An upstream asset
    that is requested in the same moment counts as updated, so that a chain of eager assets is one run.

    >>> eager()
    eager()
    """
    fresh = new_partition() | any_upstream(updated())
    held = ~any_upstream(missing()) & ~any_upstream(in_progress()) & ~in_progress()
    return _named("eager()", fresh & held)


def on_cron(cron: str, *, timezone: Zone | None = None) -> Condition:
    """Make the asset once after each tick, as soon as all upstream assets were updated since the tick.

    Of partitions of time it makes the newest. Without upstream assets it makes the asset at the tick.

    >>> on_cron("0 6 * * *", timezone="Europe/Amsterdam")
    on_cron('0 6 * * *', timezone='Europe/Amsterdam')
    """
    tick = cron_tick(cron, timezone=timezone)
    condition = latest() & tick & all_upstream(updated().since(tick)) & ~in_progress()
    return _named(tick.text.replace("cron_tick", "on_cron", 1), condition)


def on_missing() -> Condition:
    """Make what is missing as soon as everything upstream is there.

    An asset without partitions is made when it is deployed; of partitions those that come into existence from
    then on.

    >>> on_missing()
    on_missing()
    """
    condition = missing() & ~any_upstream(missing()) & ~any_upstream(in_progress()) & ~in_progress()
    return _named("on_missing()", condition)
