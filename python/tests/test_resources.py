"""Resources with fields: set from files and the environment, given to functions and checks, closed."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING

import pydantic
import pytest

import servo
from running import Runner, error_of, stored
from scanning import scan, write
from servo.environment import Settings, settings_of
from servo.runner.configuration import ConfigError
from servo.runner.configured import configured, secrets_of
from servo.runner.pool import Pool

if TYPE_CHECKING:
    from pathlib import Path

TOML = """
[project]
modules = ["demo"]

[resources.warehouse]
url = "local.db"
most = 7
token = { env = "WAREHOUSE_TOKEN" }

[env.prod.resources.warehouse]
url = "prod.db"
"""
PROJECT = """
import dataclasses
import servo


@dataclasses.dataclass
class Warehouse(servo.Resource):
    url: str
    token: servo.Secret
    most: int = 5

    def setup(self):
        print("open", self.url)

    def teardown(self):
        print("close", self.url)


warehouse = servo.resource("warehouse", Warehouse)


@servo.asset
def used(warehouse: Warehouse) -> dict:
    print("token", str(warehouse.token))
    return {"url": warehouse.url, "most": warehouse.most, "token": len(warehouse.token)}


@servo.asset_check(asset=used)
def has_url(used: dict, store: Warehouse) -> bool:
    return used["url"] == store.url
"""
CHECK = {"name": "has_url", "type": "python", "function": "demo:has_url"}


@dataclasses.dataclass
class Warehouse(servo.Resource):
    """A resource with fields."""

    url: str
    most: int = 5
    hosts: list[str] = dataclasses.field(default_factory=list)


class Model(pydantic.BaseModel, servo.Resource):
    """A resource that is a model."""

    url: str
    password: pydantic.SecretStr


def loaded(project: Path, **environment: str) -> Runner:
    """Start a runner that has loaded a project."""
    runner = Runner(project, stdout=None, **environment)
    runner.wait_for("hello")
    assert runner.load()["errors"] == []
    return runner


def test_fields_are_set_by_servo_toml_by_its_environment_and_by_variables(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tables: dict[str, object] = {
        "resources": {"warehouse": {"url": "a", "most": 1}},
        "env": {"prod": {"resources": {"warehouse": {"url": "b"}}}, "dev": {}},
    }
    monkeypatch.delenv("SERVO_ENV", raising=False)
    settings, problems = settings_of(tables, "/")
    assert problems == []
    assert configured(Warehouse, "warehouse", settings) == Warehouse("a", 1)
    monkeypatch.setenv("SERVO_ENV", "prod")
    settings, _ = settings_of(tables, "/")
    assert configured(Warehouse, "warehouse", settings) == Warehouse("b", 1)
    monkeypatch.setenv("SERVO_RESOURCES_WAREHOUSE_MOST", "9")
    monkeypatch.setenv("SERVO_RESOURCES_WAREHOUSE_HOSTS", '["x", "y"]')
    monkeypatch.setenv("SERVO_RESOURCES_WAREHOUSE_URL", "12")
    assert configured(Warehouse, "warehouse", settings) == Warehouse("12", 9, ["x", "y"])
    monkeypatch.setenv("SERVO_ENV", "prd")
    assert settings_of(tables, "/")[1] == ["SERVO_ENV is prd, and there is no [env.prd]: there is prod, dev"]


def test_what_is_missing_or_wrong_is_told_with_where_to_set_it(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as missing:
        configured(Warehouse, "warehouse", Settings(resources={"warehouse": {"most": "many"}}))
    assert missing.value.problems == [
        "url is missing: set it under [resources.warehouse] in servo.toml, or SERVO_RESOURCES_WAREHOUSE_URL",
        "most takes an integer, not the text 'many'",
    ]
    settings = Settings(
        str(tmp_path), {"warehouse": {"url": {"file": "no.txt"}, "most": {"env": "NO_SUCH_VARIABLE"}}}
    )
    with pytest.raises(ConfigError) as absent:
        configured(Warehouse, "warehouse", settings)
    assert absent.value.problems == [
        f"url is in the file {tmp_path}/no.txt, which cannot be read: No such file or directory",
        "most is in the environment variable NO_SUCH_VARIABLE, which is not set",
    ]


def test_models_of_pydantic_are_resources_and_their_secrets_are_known() -> None:
    settings = Settings(resources={"model": {"url": "a", "password": "hunter2"}})
    made = configured(Model, "model", settings)
    assert isinstance(made, Model)
    assert made.name == "model"
    assert secrets_of(made) == ["hunter2"]


def test_a_resource_is_made_given_to_functions_and_checks_and_closed(tmp_path: Path) -> None:
    project = write(tmp_path, {"demo.py": PROJECT, "servo.toml": TOML, ".env": "WAREHOUSE_TOKEN=hunter2\n"})
    with loaded(project, SERVO_ENV="prod") as runner:
        finished = runner.run("used", options={"default/used": {"checks": [CHECK]}})
        assert finished["outcome"] == "SUCCEEDED", finished
        assert [check["passed"] for check in finished["outputs"][0]["checks"]] == [True]
        masks = runner.of_type("mask")
        assert "hunter2" in masks[-1]["values"]
        assert runner.exit() == 0
        assert runner.output.splitlines() == ["open prod.db", "token hunter2", "close prod.db"]
    assert stored(tmp_path, "default.used") == {"url": "prod.db", "most": 7, "token": 7}


def test_a_resource_that_cannot_be_made_fails_the_task_and_says_where_to_set_it(tmp_path: Path) -> None:
    text = TOML.replace('url = "local.db"\n', "")
    project = write(tmp_path, {"demo.py": PROJECT, "servo.toml": text, ".env": "WAREHOUSE_TOKEN=hunter2\n"})
    with loaded(project) as runner:
        error = error_of(runner.run("used"))
    assert error["code"] == "INVALID_DEFINITION"
    assert "url is missing: set it under [resources.warehouse] in servo.toml" in error["message"]
    assert error["suggested_action"].startswith("mend [resources.warehouse] in servo.toml")


def test_settings_of_no_resource_and_no_field_are_errors_of_the_project(tmp_path: Path) -> None:
    text = TOML + '\n[resources.werehouse]\nurl = "x"\n'
    project = write(tmp_path, {"demo.py": PROJECT, "servo.toml": text.replace("most = 7", "mots = 7")})
    messages = [error["message"] for error in scan(project).errors]
    assert messages == [
        "[resources.warehouse] has mots, which is no field: did you mean most?",
        "[resources.werehouse] is of no resource: did you mean warehouse?",
    ]


def test_a_check_with_a_parameter_that_is_given_nothing_is_an_error_of_the_definition() -> None:
    with servo.collecting() as found:

        @servo.asset
        def flights() -> list[int]:
            return []

        @servo.asset_check(asset=flights)
        def is_known(_flights: list[int], weather: object) -> bool:
            return weather is not None

    from servo.manifest import ManifestContext, build  # noqa: PLC0415

    with pytest.raises(ExceptionGroup) as raised:
        build(found, "demo", ManifestContext(str, lambda _function: ""))
    assert (
        "check is_known: a check is given the value, ctx and resources, and there is nothing for its"
        in str(raised.value.exceptions[0])
    )


def test_a_resource_of_a_task_lives_as_long_as_the_task() -> None:
    events: list[str] = []

    class Connection(servo.Resource):
        def setup(self) -> None:
            events.append("open")

        def teardown(self) -> None:
            events.append("close")

    with servo.collecting() as found:
        servo.resource("db", Connection(), scope="task")
        servo.resource("kept", Connection())
    pool = Pool({each.name: each for each in found.resources})
    for _ in range(2):
        assert pool["db"] is pool["db"]
        assert pool["kept"] is not None
        pool.tear_down("task")
    assert events == ["open", "open", "close", "open", "close"]
    pool.tear_down()
    assert events[-1] == "close"
    assert len(events) == 6


def test_setting_up_is_tried_again_after_what_a_policy_names() -> None:
    class Flaky(servo.Resource):
        tries = 0

        def setup(self) -> None:
            self.tries += 1
            if self.tries < 3:
                raise ConnectionRefusedError("not yet")

    policy = servo.Retry(max_attempts=3, delay="1ms", retry_on=[ConnectionError])
    with servo.collecting() as found:
        servo.resource("api", Flaky(), retry=policy)
    assert Pool({each.name: each for each in found.resources})["api"].tries == 3
    with servo.collecting() as found:
        servo.resource("api", Flaky(), retry=servo.Retry(max_attempts=3, delay="1ms", retry_on=[KeyError]))
    with pytest.raises(Exception, match="resource api could not be set up: ConnectionRefusedError: not yet"):
        Pool({each.name: each for each in found.resources})["api"]


def test_a_default_stores_what_does_not_say_otherwise(tmp_path: Path) -> None:
    text = """
import servo, servo.io
lake = servo.resource("lake", servo.io.DuckDB("lake.duckdb"), default_io=True)
models = servo.resource("models", servo.io.Bytes(dump=str.encode, load=bytes.decode))

@servo.asset
def one(): ...

@servo.asset(io="files")
def two(): ...

@servo.asset(io=models)
def three(): ...

out = servo.external("raw.out")
"""
    manifest = scan(write(tmp_path, {"demo.py": text})).manifest
    stores = {asset["key"]: asset.get("io") for asset in manifest["assets"]}
    assert stores == {"default/one": "lake", "default/two": None, "default/three": "models", "raw/out": None}


def test_env_files_do_not_override_the_environment(tmp_path: Path) -> None:
    text = "import os, servo\n@servo.asset\ndef seen():\n    return {k: os.environ.get(k) for k in 'ABC'}\n"
    project = write(tmp_path, {"demo.py": text, ".env": "A=1\nB=1\n", ".env.prod": "B=2\nC=2\n"})
    with loaded(project, A="0", SERVO_ENV="prod") as runner:
        runner.run("seen")
    assert stored(tmp_path, "default.seen") == {"A": "0", "B": "2", "C": "2"}
    (tmp_path / ".env").write_text("what\n", encoding="utf-8")
    assert "'what' is no line NAME=value" in json.dumps(scan(project).errors)
