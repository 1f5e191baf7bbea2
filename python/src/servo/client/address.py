"""Which server is asked, and what it is shown.

The first of these that says something decides, as for commands: arguments, the environment (`SERVO_URL`,
`SERVO_KEY`), the context that `servo context use` chose, the server that has the workspace of this directory.
"""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import SplitResult, urlsplit

from servo.client.errors import AddressError


class Address(NamedTuple):
    """A server, and what it is shown as bearer."""

    url: str
    key: str | None

    def split(self) -> SplitResult:
        """Give the parts of the address."""
        return urlsplit(self.url)


def find(
    url: str | None = None, key: str | None = None, directory: str | os.PathLike[str] | None = None
) -> Address:
    """Find the server to ask.

    >>> find("http://localhost:8741/", "secret")
    Address(url='http://localhost:8741', key='secret')
    >>> find("ftp://localhost")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    servo.client.errors.AddressError: 'ftp://localhost' is not the address of a server: it begins with ...
    """
    named = url or os.environ.get("SERVO_URL")
    key = key or os.environ.get("SERVO_KEY") or os.environ.get("SERVO_TOKEN")
    if named:
        checked = _checked(named)
        return Address(checked, key or _key_of_context(checked) or _key_of_local(checked, directory))
    context = _current_context() if directory is None else None
    if context is not None:
        return Address(_checked(str(context.get("url", ""))), key or context.get("key"))
    local = _local_server(directory)
    if local is None or not local.get("url"):
        raise AddressError(
            f"no server has the workspace in {_state_directory(directory)}; start one with servo dev, "
            "or name one: Client(url, key), SERVO_URL and SERVO_KEY, or servo login"
        )
    return Address(_checked(str(local["url"])), key or local.get("token"))


def _checked(url: str) -> str:
    def wrong(reason: str) -> AddressError:
        return AddressError(f"{url!r} is not the address of a server: {reason}")

    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 - raises if it is none
    except ValueError as error:
        raise wrong(str(error)) from None
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise wrong("it begins with http:// or https:// and the name of a host")
    if any(letter <= " " or letter == "\x7f" for letter in url):
        raise wrong("it has spaces or line breaks")
    if parts.username is not None or parts.query or parts.fragment:
        raise wrong("it has no user, query or fragment; the key is shown apart from it")
    return url.rstrip("/")


def config_path() -> Path:
    """Where contexts are kept."""
    named = os.environ.get("SERVO_CONFIG")
    if named:
        return Path(named)
    home = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(home) / "servo" / "config.toml"


def _contexts() -> dict[str, Any]:
    path = config_path()
    try:
        found = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise AddressError(f"{path} cannot be read: {error}") from None
    return found


def _current_context() -> dict[str, Any] | None:
    found = _contexts()
    name = os.environ.get("SERVO_CONTEXT") or found.get("current")
    if not name or name == "local":
        return None
    context = found.get("contexts", {}).get(name)
    if not isinstance(context, dict):
        raise AddressError(f"there is no context {name!r} in {config_path()}; servo context list shows them")
    return context


def _key_of_context(url: str) -> str | None:
    """Give the key that is kept for a server."""
    for context in _contexts().get("contexts", {}).values():
        if isinstance(context, dict) and str(context.get("url", "")).rstrip("/") == url:
            key: str | None = context.get("key")
            return key
    return None


def _state_directory(directory: str | os.PathLike[str] | None) -> Path:
    if directory is None and os.environ.get("SERVO_DIR"):
        return Path(os.environ["SERVO_DIR"])
    start = Path(directory or os.environ.get("SERVO_PROJECT") or ".").absolute()
    for each in (start, *start.parents):
        if (each / "servo.toml").is_file():
            return each / ".servo"
    return start / ".servo"


def _local_server(directory: str | os.PathLike[str] | None) -> dict[str, Any] | None:
    """Read `server.json` of the process that has the workspace, if it is alive."""
    try:
        found = json.loads((_state_directory(directory) / "server.json").read_bytes())
        os.kill(int(found["pid"]), 0)
    except PermissionError:
        return None
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return found if isinstance(found, dict) else None


def _key_of_local(url: str, directory: str | os.PathLike[str] | None) -> str | None:
    local = _local_server(directory)
    if local is None or _plain(str(local.get("url", ""))) != _plain(url):
        return None
    token: str | None = local.get("token")
    return token


def _plain(url: str) -> str:
    """Give one name to the loopback."""
    return url.rstrip("/").replace("//localhost", "//127.0.0.1")
