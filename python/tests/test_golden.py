"""The golden vectors that Rust and Python share."""

from __future__ import annotations

import datetime as dt
import json
import uuid
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from servo import canonical, ids
from servo.civil import from_micros, to_micros
from servo.errors import CanonicalError, ParseError
from servo.keys import AssetKey, PartitionKey, PartitionValue, TaskKey

if TYPE_CHECKING:
    from collections.abc import Callable

GOLDEN = Path(__file__).parents[2] / "crates" / "servo-core" / "tests" / "golden"
CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def load(name: str) -> Any:  # noqa: ANN401 - the shape of each file is plain from its test
    return json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))


def cases(name: str, *path: str) -> list[Any]:
    found = load(name)
    for step in path:
        found = found[step]
    assert found
    return list(found)


def refuses(parse: Callable[[str], object], case: dict[str, Any]) -> None:
    with pytest.raises(ParseError) as refusal:
        parse(case["input"])
    assert refusal.value.at == case["at"], refusal.value
    assert case["reason"] in refusal.value.problem


@pytest.mark.parametrize("case", cases("canonical_json", "valid"), ids=lambda case: case["name"])
def test_canonical_json_is_what_json_dumps_writes(case: dict[str, str]) -> None:
    value = json.loads(case["input"])
    dumped = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert dumped == case["canonical"]
    assert canonical.canonical_json(value) == case["canonical"]
    assert canonical.canonicalize(case["input"]) == case["canonical"]
    assert canonical.canonicalize(case["canonical"]) == case["canonical"]


@pytest.mark.parametrize("case", cases("canonical_json", "invalid"), ids=lambda case: case["name"])
def test_texts_without_canonical_form_are_refused(case: dict[str, str]) -> None:
    with pytest.raises(CanonicalError) as refusal:
        canonical.canonicalize(case["input"])
    # json.loads accepts half a surrogate pair, so Python refuses it later and calls it by its name.
    reason = "syntax" if refusal.value.reason == "unicode" else refusal.value.reason
    assert reason == case["reason"], refusal.value
    assert refusal.value.path == case.get("path", refusal.value.path)


@pytest.mark.parametrize(
    ("value", "path", "reason"),
    [
        (1.0, "$", "float"),
        (float("nan"), "$", "float"),
        ({"a": [0, {"b": -0.0}]}, "$.a[1].b", "float"),
        ([2**64], "$[0]", "integer_range"),
        (-(2**63) - 1, "$", "integer_range"),
        ({"a": {1: 2}}, "$.a", "key"),
        ([{1, 2}], "$[0]", "type"),
        (b"bytes", "$", "type"),
        ("\ud800", "$", "unicode"),
        ({"\ud800": 1}, "$", "unicode"),
    ],
)
def test_values_without_canonical_form_are_refused(value: object, path: str, reason: str) -> None:
    with pytest.raises(CanonicalError) as refusal:
        canonical.canonical_json(value)
    assert (refusal.value.path, refusal.value.reason) == (path, reason)


def test_a_very_deep_document_is_refused_without_exhausting_the_stack() -> None:
    with pytest.raises(CanonicalError) as refusal:
        canonical.canonicalize("[" * 100_000 + "]" * 100_000)
    assert refusal.value.reason == "depth"


def test_tuples_are_arrays() -> None:
    assert canonical.canonical_json((1, (2, True))) == "[1,[2,true]]"


@pytest.mark.parametrize("case", cases("fingerprints", "valid"), ids=lambda case: case["fingerprint"][10:18])
def test_fingerprints(case: dict[str, str]) -> None:
    assert canonical.fingerprint(json.loads(case["input"])) == case["fingerprint"]
    assert canonical.parse_fingerprint(case["fingerprint"]) == case["fingerprint"]


@pytest.mark.parametrize("text", cases("fingerprints", "refused"))
def test_floats_have_no_fingerprint(text: str) -> None:
    with pytest.raises(CanonicalError):
        canonical.fingerprint(json.loads(text))


@pytest.mark.parametrize("case", cases("fingerprints", "invalid"), ids=lambda case: case["input"][:20])
def test_texts_that_are_not_fingerprints(case: dict[str, Any]) -> None:
    refuses(canonical.parse_fingerprint, case)


@pytest.mark.parametrize("case", cases("asset_keys", "valid"), ids=lambda case: case["input"][:20])
def test_asset_keys(case: dict[str, str]) -> None:
    key = AssetKey.parse(case["input"])
    assert (key.canonical, str(key)) == (case["canonical"], case["shown"])
    assert AssetKey.parse(key.canonical) == AssetKey.parse(str(key)) == key


@pytest.mark.parametrize("case", cases("asset_keys", "invalid"), ids=lambda case: case["input"][:20])
def test_texts_that_are_not_asset_keys(case: dict[str, Any]) -> None:
    refuses(AssetKey.parse, case)


def test_asset_keys_sort_by_canonical_text() -> None:
    keys = [AssetKey.parse(text) for text in cases("asset_keys", "sorted")]
    assert all(left < right for left, right in pairwise(keys))


def typed(tag: str, value: Any) -> PartitionValue:  # noqa: ANN401 - it comes from JSON
    typed_value: PartitionValue = value
    if tag == "d":
        typed_value = dt.date.fromisoformat(value)
    if tag == "t":
        typed_value = from_micros(value)
        assert to_micros(typed_value) == value
    return typed_value


@pytest.mark.parametrize("case", cases("partition_keys", "valid"), ids=lambda case: case["name"])
def test_partition_keys(case: dict[str, Any]) -> None:
    dims = {dim: typed(tag, value) for dim, (tag, value) in case["dims"].items()}
    key = PartitionKey.of(dims)
    assert key.canonical == case["canonical"]
    assert PartitionKey.parse(case["canonical"]) == key
    assert key.dims() == dims
    assert {dim: type(value) for dim, value in key.dims().items()} == {d: type(v) for d, v in dims.items()}
    assert str(key) == case["shown"]


@pytest.mark.parametrize("case", cases("partition_keys", "invalid"), ids=lambda case: case["name"])
def test_texts_that_are_not_partition_keys(case: dict[str, Any]) -> None:
    refuses(PartitionKey.parse, case)


@pytest.mark.parametrize(
    "dims",
    [
        {},
        {"Date": 1},
        {"a=b": 1},
        {"": 1},
        {"n": 2**63},
        {"t": dt.datetime(2025, 1, 15)},  # noqa: DTZ001 - that it has no zone is the point
        {"f": 1.5},
    ],
)
def test_values_that_make_no_partition_key(dims: dict[str, PartitionValue]) -> None:
    with pytest.raises(ParseError):
        PartitionKey.of(dims)


@pytest.mark.parametrize("case", cases("task_keys", "valid"), ids=lambda case: case["canonical"])
def test_task_keys(case: dict[str, Any]) -> None:
    key = TaskKey.parse(case["canonical"])
    assert key.canonical == str(key) == case["canonical"]
    assert key.asset.canonical == case["asset"]
    assert (key.partition and key.partition.canonical) == case["partition"]
    assert key.operation.value == case["operation"]


@pytest.mark.parametrize("case", cases("task_keys", "invalid"), ids=lambda case: case["input"])
def test_texts_that_are_not_task_keys(case: dict[str, Any]) -> None:
    refuses(TaskKey.parse, case)


def test_task_keys_sort_by_asset_partition_and_operation() -> None:
    keys = [TaskKey.parse(text) for text in cases("task_keys", "sorted")]
    assert all(left < right for left, right in pairwise(keys))


@pytest.mark.parametrize("case", cases("ids", "run_ids", "valid"), ids=lambda case: case["run_id"])
def test_run_ids(case: dict[str, str]) -> None:
    secret = bytes.fromhex(case["secret"])
    derived = ids.run_id(secret, case["tenant"], case["workspace"], case["run_key"])
    assert derived == case["run_id"] == ids.parse_run_id(derived)


@pytest.mark.parametrize("text", cases("ids", "run_ids", "texts"))
def test_extreme_run_ids(text: str) -> None:
    assert ids.parse_run_id(text) == text


@pytest.mark.parametrize("case", cases("ids", "run_ids", "invalid"), ids=lambda case: case["input"])
def test_texts_that_are_not_run_ids(case: dict[str, Any]) -> None:
    refuses(ids.parse_run_id, case)


@pytest.mark.parametrize("case", cases("ids", "ulids", "valid"), ids=lambda case: case["text"])
def test_ulids(case: dict[str, Any]) -> None:
    value = 0
    for digit in ids.parse_ulid("event id", case["text"]):
        value = value << 5 | CROCKFORD.index(digit)
    assert value == case["ms"] << 80 | int(case["entropy"], 16)


@pytest.mark.parametrize("case", cases("ids", "ulids", "invalid"), ids=lambda case: case["input"])
def test_texts_that_are_not_ulids(case: dict[str, Any]) -> None:
    refuses(lambda text: ids.parse_ulid("event id", text), case)


@pytest.mark.parametrize("case", cases("ids", "asset_ids", "valid"), ids=lambda case: case["text"])
def test_asset_ids(case: dict[str, Any]) -> None:
    value = uuid.UUID(ids.parse_asset_id(case["text"]))
    assert (value.version, value.int >> 80, str(value)) == (7, case["ms"], case["text"])


@pytest.mark.parametrize("case", cases("ids", "asset_ids", "invalid"), ids=lambda case: case["input"])
def test_texts_that_are_not_asset_ids(case: dict[str, Any]) -> None:
    refuses(ids.parse_asset_id, case)


@pytest.mark.parametrize("text", cases("ids", "names", "valid"))
def test_names(text: str) -> None:
    assert ids.parse_name("tenant", text) == text


@pytest.mark.parametrize("case", cases("ids", "names", "invalid"), ids=lambda case: case["input"][:20])
def test_texts_that_are_not_names(case: dict[str, Any]) -> None:
    refuses(lambda text: ids.parse_name("tenant", text), case)


@pytest.mark.parametrize("case", cases("ids", "dispatches"), ids=lambda case: case["cloud"])
def test_dispatch_ids(case: dict[str, Any]) -> None:
    internal = ids.dispatch_id(case["run"], TaskKey.parse(case["task"]), case["attempt"])
    assert internal == case["internal"]
    assert ids.cloud_task_id("d", internal) == case["cloud"]


@pytest.mark.parametrize("case", cases("ids", "timers"), ids=lambda case: case["cloud"])
def test_timer_ids(case: dict[str, Any]) -> None:
    task = None if case["task"] is None else TaskKey.parse(case["task"])
    internal = ids.timer_id(case["kind"], case["run"], task, case["attempt"], case["fire_at_ms"])
    assert internal == case["internal"]
    assert ids.cloud_task_id("t", internal) == case["cloud"]
