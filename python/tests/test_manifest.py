"""The manifest of a project that declares one of everything, byte for byte."""

from __future__ import annotations

import importlib
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import servo
from servo.canonical import canonical_json
from servo.errors import DeclarationError
from servo.manifest import ManifestContext, build
from servo.registry import Registry, collecting

if TYPE_CHECKING:
    from collections.abc import Callable

PROJECTS = Path(__file__).parent / "projects"
GOLDEN = PROJECTS / "flights.manifest.json"


def stub_version(function: Callable[..., object]) -> str:
    return f"sha256:{function.__qualname__}"


def context() -> ManifestContext:
    def relative(file: str) -> str:
        return Path(file).relative_to(PROJECTS).as_posix() if file.startswith(str(PROJECTS)) else "test.py"

    return ManifestContext(relative_path=relative, code_version=stub_version)


def scanned(monkeypatch: pytest.MonkeyPatch, modules: list[str]) -> dict[str, Any]:
    monkeypatch.syspath_prepend(PROJECTS)
    for loaded in [name for name in sys.modules if name.partition(".")[0] == "flights"]:
        monkeypatch.delitem(sys.modules, loaded)
    with collecting() as found:
        for module in modules:
            importlib.import_module(module)
    return build(found, "flights", context())


def manifest_of(found: Registry) -> dict[str, Any]:
    return build(found, "test", context())


def test_a_project_with_everything_has_the_manifest_in_the_golden_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    manifest = scanned(monkeypatch, ["flights.analytics", "flights.automation"])
    text = json.dumps(manifest, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    if "UPDATE_GOLDEN" in os.environ:
        GOLDEN.write_text(text, encoding="utf-8")
    assert text == GOLDEN.read_text(encoding="utf-8")


def test_the_order_of_imports_does_not_change_the_manifest(monkeypatch: pytest.MonkeyPatch) -> None:
    one = scanned(monkeypatch, ["flights.analytics", "flights.automation"])
    other = scanned(monkeypatch, ["flights.automation", "flights.stores", "flights.raw", "flights.analytics"])
    assert canonical_json(one) == canonical_json(other)


def test_no_dataframe_library_is_imported_for_its_annotations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)
    scanned(monkeypatch, ["flights.analytics"])


def test_assets_are_sorted_by_key_and_duplicates_are_kept() -> None:
    with collecting() as found:
        servo.external("b.b")
        servo.external("b.a")
        servo.external("b.b", group="again")
    assets = manifest_of(found)["assets"]
    assert [asset["key"] for asset in assets] == ["b/a", "b/b", "b/b"]
    assert [asset.get("group") for asset in assets] == [None, None, "again"]


def test_a_check_joins_the_checks_of_its_asset() -> None:
    with collecting() as found:

        @servo.asset_check(asset="raw.flights")
        def are_known() -> None:
            """Declared before its asset."""

        servo.external("raw.flights", checks=[servo.row_count(min=1)])
    (asset,) = manifest_of(found)["assets"]
    assert [check["name"] for check in asset["checks"]] == ["row_count", "are_known"]
    assert asset["checks"][1]["function"].endswith("are_known")


def test_everything_that_has_no_place_in_a_manifest_is_reported_at_once() -> None:
    with collecting() as found:
        servo.schedule(cron="0 6 * * *")

        @servo.asset
        def unconfigured(config: dict[str, int]) -> None:
            raise NotImplementedError(config)

        @servo.asset_check(asset="raw.flights")
        def lost() -> None: ...

    with pytest.raises(ExceptionGroup) as raised:
        manifest_of(found)
    problems = {
        error.problem: error for error in raised.value.exceptions if isinstance(error, DeclarationError)
    }
    assert sorted(problem.split(":")[0] for problem in problems) == [
        "a schedule has no name",
        "the check lost is of raw.flights, which is not declared",
        (
            f"the parameter config of {unconfigured.__qualname__} has no configuration class "
            "that can be found at run time"
        ),
    ]
    assert {error.location.file for error in problems.values()} == {__file__}


def test_a_check_of_an_asset_that_is_itself_a_problem_is_not_another_one() -> None:
    with collecting() as found:

        @servo.asset
        def unconfigured(config: int) -> None:
            raise NotImplementedError(config)

        @servo.asset_check(asset=unconfigured)
        def fine() -> None: ...

    with pytest.raises(ExceptionGroup) as raised:
        manifest_of(found)
    assert len(raised.value.exceptions) == 1


def test_paths_are_asked_for_once_for_each_file() -> None:
    asked: list[str] = []

    def relative(file: str) -> str:
        asked.append(file)
        return "test.py"

    with collecting() as found:
        servo.external("a.a")
        servo.external("a.b")
    build(found, "test", ManifestContext(relative, stub_version))
    assert asked == [__file__]
