"""Values of secrets, found on the worker for one task."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

from servo.runner.errors import INVALID_DEFINITION, TaskError


class Secrets(Mapping[str, str]):
    """Secrets by name. Neither printing nor logging it shows any.

    >>> secrets = Secrets({"TOKEN": "hunter2"})
    >>> secrets["TOKEN"], secrets
    ('hunter2', <secrets TOKEN>)
    >>> secrets["KEY"]
    Traceback (most recent call last):
    KeyError: 'there is no secret KEY: add it to secrets= of the asset, which has TOKEN'
    """

    def __init__(self, values: Mapping[str, str]) -> None:
        """Take the values by name."""
        self._values = dict(values)

    def __getitem__(self, name: str) -> str:
        if name in self._values:
            return self._values[name]
        known = ", ".join(self._values) or "none"
        raise KeyError(f"there is no secret {name}: add it to secrets= of the asset, which has {known}")

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"<secrets {', '.join(self._values) or 'none'}>"


def resolve(references: list[dict[str, Any]], root: str) -> Secrets:
    """Find the values of secrets; `root` is the directory of the project.

    >>> resolve([{"name": "TOKEN", "provider": "env", "path": "ABSENT"}], "/")
    Traceback (most recent call last):
    servo.runner.errors.TaskError: secret TOKEN is not there: the environment variable ABSENT is not set
    """
    return Secrets({each["name"]: _value(each, root) for each in references})


def _value(reference: dict[str, Any], root: str) -> str:
    name, provider, path = reference["name"], reference["provider"], reference["path"]
    if provider == "env":
        found = os.environ.get(path)
        if found is None:
            advice = f"set the environment variable {path} where workers run, or in .env beside servo.toml"
            problem = f"secret {name} is not there: the environment variable {path} is not set"
            raise TaskError(INVALID_DEFINITION, problem, advice)
        return found
    if provider == "file":
        return _content(name, os.path.join(root, path))
    raise TaskError(
        INVALID_DEFINITION,
        f"secret {name} is kept by {provider}, which is not available here: use SecretRef.env or "
        "SecretRef.file, or run it on a worker that has it",
    )


def _content(name: str, file: str) -> str:
    """Read a file. The line break that editors put at the end is no part of the secret."""
    try:
        with open(file, encoding="utf-8", newline="") as opened:
            text = opened.read()
    except OSError as error:
        problem = f"cannot be read from {file}: {error.strerror}"
        advice = "put the file there where workers run, and let them read it"
    except UnicodeDecodeError:
        problem, advice = f"in {file} is not UTF-8", "encode it, in base64 for example"
    else:
        return text.removesuffix("\n").removesuffix("\r")
    raise TaskError(INVALID_DEFINITION, f"secret {name} {problem}", advice)
