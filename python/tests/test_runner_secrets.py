"""Secrets reach the function that declares them, and nobody else."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import pytest

from running import started, stored
from servo.runner.masking import Mask

if TYPE_CHECKING:
    from pathlib import Path

TOKEN = 'hunter2&"co"/é'  # noqa: S105 - nobody's
ENV = {"name": "TOKEN", "provider": "env", "path": "DEMO_TOKEN"}


def texts(value: object) -> list[str]:
    """Give all texts in a frame, which is where a secret could be."""
    if isinstance(value, dict):
        return [text for pair in value.items() for each in pair for text in texts(each)]
    if isinstance(value, list):
        return [text for each in value for text in texts(each)]
    return [value] if isinstance(value, str) else []


def test_a_secret_is_given_and_told_before_the_call(tmp_path: Path) -> None:
    text = """
@servo.asset
def login(ctx):
    ctx.log.info("go")
    return [len(ctx.secrets["TOKEN"]), list(ctx.secrets), repr(ctx.secrets)]
"""
    with started(tmp_path, text, DEMO_TOKEN=TOKEN) as runner:
        assert runner.run("login", secrets=[ENV])["outcome"] == "SUCCEEDED"
        assert stored(tmp_path, "default.login") == [len(TOKEN), ["TOKEN"], "<secrets TOKEN>"]
        kinds = [frame["type"] for frame in runner.frames[2:]]
        assert kinds == ["mask", "log", "finished"]
        assert TOKEN in runner.of_type("mask")[0]["values"]


def test_no_frame_has_a_secret(tmp_path: Path) -> None:
    text = """
import base64, json, urllib.parse
@servo.asset
def leaks(ctx):
    token = ctx.secrets["TOKEN"]
    forms = [
        token, urllib.parse.quote(token), urllib.parse.quote_plus(token), json.dumps(token), repr(token),
        base64.b64encode(token.encode()).decode(), base64.urlsafe_b64encode(b"me:" + token.encode()).decode(),
    ]
    for form in forms:
        ctx.log.info("with %s", form, extra={"token": form, form: 1})
        ctx.metadata(**{form: form, "nested": [{"in": form}]})
    ctx.progress(0.5, token)
    raise ValueError(" ".join(forms)) from KeyError(token)
@servo.asset
def leaks_and_returns(ctx):
    token = ctx.secrets["TOKEN"]
    ctx.metadata(token=token, **{token: 1})
    return servo.Materialization(uri="s3://lake", metadata={"other": token})
"""
    with started(tmp_path, text, DEMO_TOKEN=TOKEN) as runner:
        error = runner.run("leaks", secrets=[ENV])["error"]
        assert "***" in error["message"]
        assert "***" in error["traceback"]
        finished = runner.run("leaks_and_returns", secrets=[ENV])
        assert finished["outcome"] == "SUCCEEDED"
        shown = texts([frame for frame in runner.frames if frame["type"] != "mask"])
        encoded = base64.b64encode(TOKEN.encode()).decode()[:12]
        assert not [text for text in shown if "hunter2" in text or encoded in text]
        metadata = tmp_path / "lake/final/default.leaks_and_returns/_commit.json"
        assert "hunter2" not in metadata.read_text()


def test_a_task_of_its_own_process_keeps_its_secrets_too(tmp_path: Path) -> None:
    text = """
import os
@servo.asset
def leaks(ctx):
    token = ctx.secrets["TOKEN"]
    ctx.log.warning("with %s", token)
    ctx.progress(0.5, token)
    ctx.metadata(token=token)
    raise ValueError(token)
@servo.asset
def dies(ctx):
    ctx.log.warning("with %s", ctx.secrets["TOKEN"])
    os._exit(3)
"""
    with started(tmp_path, text, DEMO_TOKEN=TOKEN) as runner:
        assert runner.run("leaks", secrets=[ENV], isolation="process")["error"]["message"] == "***"
        error = runner.run("dies", secrets=[ENV], isolation="process")["error"]
        assert error["code"] == "WORKER_CRASH"
        # Told before anything is printed.
        assert [frame["type"] for frame in runner.frames[2:4]] == ["mask", "log"]
        shown = texts([frame for frame in runner.frames if frame["type"] != "mask"])
        assert not [text for text in shown if "hunter2" in text]


def test_what_checks_say_has_no_secrets(tmp_path: Path) -> None:
    text = """
@servo.asset
def flights(ctx):
    return [{"token": ctx.secrets["TOKEN"]}]
@servo.asset_check(asset="default.flights")
def leaks(ctx, flights):
    return servo.CheckResult(False, {"of": flights}, flights[0]["token"])
@servo.asset_check(asset="default.flights")
def raises(flights):
    raise ValueError(flights[0]["token"])
"""
    own = [{"name": name, "type": "python", "function": f"demo:{name}"} for name in ("leaks", "raises")]
    values = {"column": "token", "values": ["1"]}
    own.append({"name": "accepted", "type": "accepted_values", "spec": values, "blocking": True})  # type: ignore[dict-item]
    options = {"default/flights": {"checks": own, "quarantine": True}}
    with started(tmp_path, text, DEMO_TOKEN=TOKEN) as runner:
        finished = runner.run("flights", secrets=[ENV], options=options)
        assert [check["message"] for check in finished["outputs"][0]["checks"]] == [
            "***",
            "ValueError: ***",
            "1 row has another token: ***",
        ]
        # What a function returns is its own affair.
        assert "hunter2" in finished["outputs"][0].pop("data")["text"]
        shown = texts([frame for frame in runner.frames if frame["type"] != "mask"])
        assert not [text for text in shown if "hunter2" in text]
        reason = (tmp_path / "lake/quarantine/default.flights/_reason.json").read_text()
        assert "hunter2" not in reason


def test_the_next_task_does_not_know_the_secret(tmp_path: Path) -> None:
    text = """
@servo.asset
def knows(ctx): ...
@servo.asset
def other(ctx):
    return ctx.secrets["TOKEN"]
"""
    with started(tmp_path, text, DEMO_TOKEN=TOKEN) as runner:
        assert runner.run("knows", secrets=[ENV])["outcome"] == "SUCCEEDED"
        error = runner.run("other")["error"]
        assert "there is no secret TOKEN: add it to secrets= of the asset, which has none" in error["message"]
        assert len(runner.of_type("mask")) == 1


def test_a_secret_in_a_file_of_the_project(tmp_path: Path) -> None:
    (tmp_path / "key.pem").write_text("-----BEGIN-----\nabcdefgh\n-----END-----\n")
    text = """
@servo.asset
def signs(ctx):
    for line in ctx.secrets["KEY"].splitlines():
        ctx.log.info(line)
    return ctx.secrets["KEY"].endswith("-----END-----")
"""
    with started(tmp_path, text) as runner:
        secret = {"name": "KEY", "provider": "file", "path": "key.pem"}
        assert runner.run("signs", secrets=[secret])["outcome"] == "SUCCEEDED"
        assert stored(tmp_path, "default.signs") is True
        assert [log["message"] for log in runner.of_type("log")] == ["***"] * 3


@pytest.mark.parametrize(
    ("provider", "path", "message", "advice"),
    [
        (
            "env",
            "NO",
            "secret S is not there: the environment variable NO is not set",
            "set the environment var",
        ),
        (
            "file",
            "nowhere",
            "secret S cannot be read from {}/nowhere: No such file or directory",
            "put the file",
        ),
        ("file", "binary", "secret S in {}/binary is not UTF-8", "encode it, in base64 for example"),
        ("vault", "a#b", "secret S is kept by vault, which is not available here: use SecretRef.env", ""),
    ],
)
def test_secrets_that_are_not_there(
    tmp_path: Path, provider: str, path: str, message: str, advice: str
) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with started(tmp_path, "@servo.asset\ndef made(ctx):\n    print('called')\n") as runner:
        error = runner.run("made", secrets=[{"name": "S", "provider": provider, "path": path}])["error"]
        assert error["code"] == "INVALID_DEFINITION"
        assert message.format(tmp_path) in error["message"]
        assert advice in (error["suggested_action"] or "")
        assert runner.output == ""


@pytest.mark.parametrize(
    ("secret", "text", "masked"),
    [
        ("abc", "abc YWJj", "*** YWJj"),
        ("", "nothing", "nothing"),
        ("12345678", "n=12345678", "n=***"),
        ("pa ss", "pa+ss pa%20ss", "*** ***"),
        ("longer secret", "a longer secret", "a ***"),
    ],
)
def test_masks(secret: str, text: str, masked: str) -> None:
    assert Mask([secret]).text(text) == masked


def test_a_secret_inside_of_another_is_replaced_last() -> None:
    assert Mask(["pass", "password"]).text("password pass") == "*** ***"


@pytest.mark.parametrize(
    ("value", "masked"),
    [
        ({"a": [1, 12345678, True]}, {"a": [1, "***", True]}),
        ({"12345678": None}, {"***": None}),
        (1.5, 1.5),
    ],
)
def test_masks_of_json(value: Any, masked: Any) -> None:  # noqa: ANN401 - JSON
    assert Mask(["12345678"]).json(value) == masked
