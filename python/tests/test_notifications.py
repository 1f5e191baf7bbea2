"""Notification rules as the manifest has them, and what is refused."""

from __future__ import annotations

import pytest

import servo
from servo.manifest import ManifestContext, build
from servo.registry import Registry, collecting


def entries(found: Registry) -> list[dict[str, object]]:
    context = ManifestContext(relative_path=lambda _file: "project.py", code_version=lambda _function: "1")
    manifest = build(found, "demo", context)
    rules = manifest["notifications"]
    assert isinstance(rules, list)
    for rule in rules:
        del rule["location"]
    return rules


def test_a_rule_is_written_with_references_instead_of_secrets() -> None:
    with collecting() as found:
        servo.notify(
            "oncall",
            when=["run_failed", "recovered"],
            selection="group:finance",
            title="{asset} of {owner}",
            to=[
                servo.Slack(servo.SecretRef.env("SLACK")),
                servo.Webhook(
                    "https://example.org/hook",
                    headers={"X-Team": "data", "Authorization": servo.SecretRef.file("token")},
                    json={"routing_key": servo.SecretRef.env("KEY"), "payload": {"summary": "{summary}"}},
                    secret=servo.SecretRef.env("SIGN"),
                ),
                servo.Email(
                    host="smtp.example.org",
                    security="tls",
                    sender="servo@example.org",
                    to=["ops@example.org"],
                    username="servo",
                    password=servo.SecretRef.env("SMTP"),
                ),
                servo.Command(["logger", "-t", "servo"], timeout="10s"),
            ],
        )
    (rule,) = entries(found)
    assert rule == {
        "name": "oncall",
        "when": ["run_failed", "recovered"],
        "selection": "group:finance",
        "title": "{asset} of {owner}",
        "to": [
            {"type": "slack", "url": {"name": "url", "provider": "env", "path": "SLACK"}},
            {
                "type": "webhook",
                "url": "https://example.org/hook",
                "headers": {
                    "X-Team": "data",
                    "Authorization": {"name": "Authorization", "provider": "file", "path": "token"},
                },
                "json": {
                    "routing_key": {"$secret": {"provider": "env", "path": "KEY"}},
                    "payload": {"summary": "{summary}"},
                },
                "secret": {"name": "secret", "provider": "env", "path": "SIGN"},
            },
            {
                "type": "email",
                "host": "smtp.example.org",
                "from": "servo@example.org",
                "to": ["ops@example.org"],
                "security": "tls",
                "username": "servo",
                "password": {"name": "password", "provider": "env", "path": "SMTP"},
            },
            {"type": "command", "command": ["logger", "-t", "servo"], "timeout_ms": 10_000},
        ],
    }


def test_a_project_without_rules_has_the_manifest_that_it_had() -> None:
    with collecting() as found:
        servo.external("raw.flights")
    context = ManifestContext(relative_path=lambda _file: "project.py", code_version=lambda _function: "1")
    assert "notifications" not in build(found, "demo", context)


@pytest.mark.parametrize(
    ("declare", "message"),
    [
        (lambda: servo.Slack("https://hooks.slack.com/secret"), "not a str: never write a secret"),  # type: ignore[arg-type]
        (lambda: servo.notify("a", when="failed", to=servo.Command(["x"])), "takes one of run_failed"),  # type: ignore[arg-type]
        (lambda: servo.notify("a", when="run_failed", to="ops@example.org"), "takes Slack, Webhook"),  # type: ignore[arg-type]
        (lambda: servo.notify("a", when="run_failed", to=["x"]), "takes Slack, Webhook"),  # type: ignore[list-item]
        (
            lambda: servo.Email(host="h", sender="a@b", to="ops@example.org"),
            "a list of texts",
        ),
        (
            lambda: servo.Email(host="h", sender="a@b", to=["c@d"], password="hunter2"),  # type: ignore[arg-type]  # noqa: S106
            "not a str: never write a secret",
        ),
        (lambda: servo.Webhook(7), "takes a text"),  # type: ignore[arg-type]
    ],
)
def test_what_makes_no_sense_is_refused_and_secrets_are_not_shown(declare: object, message: str) -> None:
    assert callable(declare)
    with collecting(), pytest.raises(TypeError, match=message) as raised:
        declare()
    assert "hunter2" not in str(raised.value)
    assert "hooks.slack.com" not in str(raised.value)
