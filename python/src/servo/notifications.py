"""Notification rules: when somebody is told, about which assets, and how."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Literal

from servo.arguments import boolean, sequence, text, texts, wrong
from servo.durations import milliseconds
from servo.frozen import Frozen
from servo.location import Location, here
from servo.registry import current
from servo.secret_refs import SecretRef

if TYPE_CHECKING:
    from collections.abc import Sequence

    from servo.durations import Duration
    from servo.manifest import ManifestContext

Trigger = Literal[
    "run_failed",
    "retries_exhausted",
    "check_failed",
    "check_blocked",
    "freshness_missed",
    "schedule_error",
    "sensor_error",
    "queue_without_worker",
    "recovered",
]
Security = Literal["starttls", "tls", "none"]

_TRIGGERS: Final = (
    "run_failed",
    "retries_exhausted",
    "check_failed",
    "check_blocked",
    "freshness_missed",
    "schedule_error",
    "sensor_error",
    "queue_without_worker",
    "recovered",
)
_PER_HOUR: Final = 60


class Destination(Frozen):
    """Where notifications go; made by `Slack`, `Webhook`, `Email` and `Command`."""

    __slots__ = ()

    def to_manifest(self) -> dict[str, object]:
        """Give its entry in the manifest."""
        raise NotImplementedError


class Slack(Destination):
    """A channel of Slack, or of anything that takes Slack's incoming webhooks.

    >>> Slack(SecretRef.env("SLACK_WEBHOOK")).to_manifest()["type"]
    'slack'
    """

    __slots__ = ("url",)
    url: SecretRef

    def __init__(self, url: SecretRef) -> None:
        """Take where the address of the webhook is found; whoever knows it may write to the channel."""
        self._set(url=_reference("Slack(url)", url))

    def to_manifest(self) -> dict[str, object]:
        """Give its entry in the manifest."""
        return {"type": "slack", "url": _place("url", self.url)}


class Webhook(Destination):
    """An address that is sent a JSON object with `POST`.

    >>> Webhook("https://example.org/hook").to_manifest()
    {'type': 'webhook', 'url': 'https://example.org/hook'}
    """

    __slots__ = ("headers", "json", "secret", "url")
    url: str | SecretRef
    headers: dict[str, str | SecretRef]
    json: dict[str, object] | None
    secret: SecretRef | None

    def __init__(
        self,
        url: str | SecretRef,
        *,
        headers: Mapping[str, str | SecretRef] | None = None,
        json: Mapping[str, object] | None = None,
        secret: SecretRef | None = None,
    ) -> None:
        """Take an address.

        Args:
            url: Where, as it is or as a secret.
            headers: Headers of the request, as they are or as secrets.
            json: The object to send instead of the usual one. Names in braces in its texts are filled in, and
                a `SecretRef` is replaced by its value.
            secret: Signs the body: `X-Servo-Signature-256: sha256=` and the HMAC of it.
        """
        if not isinstance(url, SecretRef):
            text("Webhook(url)", url, "https://example.org/hook")
        given = dict(headers or {})
        for name, value in given.items():
            if not isinstance(value, SecretRef):
                text(f"Webhook(headers=) of {name}", value, "ops")
        if json is not None and not isinstance(json, Mapping):
            raise wrong("Webhook(json=)", json, 'a dict, such as {"text": "{summary}"}')
        self._set(
            url=url,
            headers=given,
            json=None if json is None else dict(json),
            secret=None if secret is None else _reference("Webhook(secret=)", secret),
        )

    def to_manifest(self) -> dict[str, object]:
        """Give its entry in the manifest."""
        found: dict[str, object] = {"type": "webhook", "url": _text_or_secret("url", self.url)}
        if self.headers:
            found["headers"] = {name: _text_or_secret(name, value) for name, value in self.headers.items()}
        if self.json is not None:
            found["json"] = _filled(self.json)
        if self.secret is not None:
            found["secret"] = _place("secret", self.secret)
        return found


class Email(Destination):
    """An e-mail, by SMTP.

    >>> Email(host="smtp.example.org", sender="servo@example.org", to=["ops@example.org"]).to_manifest()["to"]
    ['ops@example.org']
    """

    __slots__ = ("host", "password", "port", "security", "sender", "to", "username")
    host: str
    port: int | None
    security: Security
    username: str | None
    password: SecretRef | None
    sender: str
    to: tuple[str, ...]

    def __init__(  # noqa: PLR0913 - each is named
        self,
        *,
        host: str,
        sender: str,
        to: Sequence[str],
        port: int | None = None,
        security: Security = "starttls",
        username: str | None = None,
        password: SecretRef | None = None,
    ) -> None:
        """Take a mail server and who reads.

        Args:
            host: The mail server.
            sender: The address that writes.
            to: The addresses that read.
            port: 587 unless given, 465 with `tls`, 25 with `none`.
            security: `starttls`, `tls` from the first byte, or `none` for a relay on the same machine.
            username: Whom to log in as.
            password: Where the password is found.
        """
        if security not in {"starttls", "tls", "none"}:
            raise wrong("Email(security=)", security, '"starttls", "tls" or "none"')
        if port is not None and (isinstance(port, bool) or not isinstance(port, int)):
            raise wrong("Email(port=)", port, "a number, such as 587")
        self._set(
            host=text("Email(host=)", host, "smtp.example.org"),
            port=port,
            security=security,
            username=None if username is None else text("Email(username=)", username, "servo"),
            password=None if password is None else _reference("Email(password=)", password),
            sender=text("Email(sender=)", sender, "servo@example.org"),
            to=texts("Email(to=)", to, "ops@example.org"),
        )

    def to_manifest(self) -> dict[str, object]:
        """Give its entry in the manifest."""
        found: dict[str, object] = {
            "type": "email",
            "host": self.host,
            "from": self.sender,
            "to": list(self.to),
        }
        if self.port is not None:
            found["port"] = self.port
        if self.security != "starttls":
            found["security"] = self.security
        if self.username is not None:
            found["username"] = self.username
        if self.password is not None:
            found["password"] = _place("password", self.password)
        return found


class Command(Destination):
    """A program on the machine of the server, which is given the notification as JSON on its standard input.

    >>> Command(["logger", "-t", "servo"]).to_manifest()
    {'type': 'command', 'command': ['logger', '-t', 'servo']}
    """

    __slots__ = ("command", "timeout")
    command: tuple[str, ...]
    timeout: Duration | None

    def __init__(self, command: Sequence[str], *, timeout: Duration | None = None) -> None:
        """Take the program and its arguments, and the longest that it may take; 30 seconds unless given."""
        self._set(command=texts("Command(command)", command, "logger"), timeout=timeout)

    def to_manifest(self) -> dict[str, object]:
        """Give its entry in the manifest."""
        found: dict[str, object] = {"type": "command", "command": list(self.command)}
        if self.timeout is not None:
            found["timeout_ms"] = milliseconds("Command(timeout=)", self.timeout)
        return found


class Notification:
    """A notification rule; made by `notify`."""

    def __init__(self, location: Location, name: str, **said: object) -> None:
        """Take the place, the name and the fields of the manifest that are given."""
        self.location = location
        self.name = name
        self._said = said

    def to_manifest(self, context: ManifestContext) -> dict[str, object]:
        """Give its entry in the manifest."""
        return {"name": self.name, "location": self.location.to_manifest(context), **self._said}

    def __repr__(self) -> str:
        return f"<notification {self.name}>"


def notify(  # noqa: PLR0913 - each is named
    name: str,
    *,
    when: Trigger | Sequence[Trigger],
    to: Destination | Sequence[Destination],
    selection: str | None = None,
    title: str | None = None,
    body: str | None = None,
    description: str | None = None,
    max_per_hour: int = _PER_HOUR,
    enabled: bool = True,
) -> Notification:
    """Declare whom to tell when something goes wrong, and when it is well again.

    Texts may name in braces what they tell: `{summary}`, `{asset}`, `{owner}`, `{error}`, `{link}`,
    `{partition}`, `{run_id}`, `{check}`, `{schedule}`, `{sensor}`, `{queue}`, `{rule}`, `{trigger}`, `{at}`.

    Args:
        name: The name of the rule.
        when: What it is about: `run_failed`, `retries_exhausted`, `check_failed`, `check_blocked`,
            `freshness_missed`, `schedule_error`, `sensor_error`, `queue_without_worker`, and `recovered` of
            any of these.
        to: Whom to tell: `Slack`, `Webhook`, `Email`, `Command`, one or several.
        selection: About which assets, such as `group:finance`; all unless given.
        title: The first line, with names in braces.
        body: The text, with names in braces.
        description: For people.
        max_per_hour: The most that is told within an hour; what is more is left out and counted.
        enabled: Whether it tells when first deployed.

    >>> from servo.registry import collecting
    >>> with collecting() as found:
    ...     oncall = notify("oncall", when="run_failed", to=Slack(SecretRef.env("SLACK_WEBHOOK")))
    >>> found.notifications
    [<notification oncall>]
    """
    text("notify(name)", name, "oncall")
    triggers = [when] if isinstance(when, str) else list(sequence("notify(when=)", when, "a list of texts"))
    for each in triggers:
        if each not in _TRIGGERS:
            raise wrong("notify(when=)", each, f"one of {', '.join(_TRIGGERS)}")
    one = isinstance(to, Destination)
    destinations = [to] if one else list(sequence("notify(to=)", to, "Slack, Webhook, Email or Command"))
    said: dict[str, object] = {"when": triggers, "to": [_destination(each) for each in destinations]}
    for field, value in (
        ("selection", selection),
        ("title", title),
        ("body", body),
        ("description", description),
    ):
        if value is not None:
            said[field] = text(f"notify({field}=)", value, "group:finance")
    if isinstance(max_per_hour, bool) or not isinstance(max_per_hour, int):
        raise wrong("notify(max_per_hour=)", max_per_hour, "a number, such as 60")
    if max_per_hour != _PER_HOUR:
        said["max_per_hour"] = max_per_hour
    if not boolean("notify(enabled=)", enabled):
        said["enabled"] = False
    found = Notification(here(), name, **said)
    current().notifications.append(found)
    return found


def _destination(value: object) -> dict[str, object]:
    if not isinstance(value, Destination):
        raise wrong("notify(to=)", value, 'Slack, Webhook, Email or Command, such as Command(["logger"])')
    return value.to_manifest()


def _reference(argument: str, value: object) -> SecretRef:
    if not isinstance(value, SecretRef):
        # The value may be the secret itself, so it is not shown.
        problem = f'takes a reference, such as SecretRef.env("SLACK_WEBHOOK"), not a {type(value).__name__}'
        raise TypeError(f"{argument} {problem}: never write a secret into code")
    return value


def _place(name: str, secret: SecretRef) -> dict[str, str]:
    return {"name": name, "provider": secret.provider, "path": secret.path}


def _text_or_secret(name: str, value: str | SecretRef) -> object:
    return _place(name, value) if isinstance(value, SecretRef) else value


def _filled(value: object) -> object:
    if isinstance(value, SecretRef):
        return {"$secret": {"provider": value.provider, "path": value.path}}
    if isinstance(value, Mapping):
        return {str(name): _filled(field) for name, field in value.items()}
    if isinstance(value, list | tuple):
        return [_filled(item) for item in value]
    return value
