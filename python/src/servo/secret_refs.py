"""Where secrets are found. A reference never has the value: it is read by the worker, for one task."""

from __future__ import annotations

from collections.abc import Mapping

from servo.arguments import text, wrong
from servo.frozen import Frozen


class SecretRef(Frozen):
    """A reference to a secret, in the environment or in a file of the worker.

    >>> SecretRef.env("WAREHOUSE_TOKEN")
    SecretRef(provider='env', path='WAREHOUSE_TOKEN')
    """

    __slots__ = ("path", "provider")
    provider: str
    path: str

    def __init__(self, provider: str, path: str) -> None:
        """Take the provider, `env` or `file`, and the path there; `SecretRef.env` and `.file` read better."""
        if provider not in {"env", "file"}:
            raise wrong("SecretRef(provider)", provider, '"env" or "file"')
        self._set(provider=provider, path=text("SecretRef(path)", path, "TOKEN"))

    @classmethod
    def env(cls, variable: str) -> SecretRef:
        """Refer to an environment variable of the worker."""
        return cls("env", variable)

    @classmethod
    def file(cls, path: str) -> SecretRef:
        """Refer to the content of a file on the worker."""
        return cls("file", path)


def secret_refs(argument: str, value: object) -> dict[str, SecretRef]:
    """Check the secrets of an asset: references by name.

    >>> secret_refs("secrets=", {"TOKEN": "hunter2"})
    Traceback (most recent call last):
    TypeError: secrets= takes a dict of references, such as {"TOKEN": SecretRef.env("TOKEN")}, not a str \
under 'TOKEN': never write a secret into code
    """
    wanted = 'a dict of references, such as {"TOKEN": SecretRef.env("TOKEN")}'
    if not isinstance(value, Mapping):
        raise TypeError(f"{argument} takes {wanted}, not a {type(value).__name__}")
    for name, reference in value.items():
        text(f"a name in {argument}", name, "TOKEN")
        if not isinstance(reference, SecretRef):
            # The value may be the secret itself, so it is not shown.
            kind = type(reference).__name__
            raise TypeError(
                f"{argument} takes {wanted}, not a {kind} under {name!r}: never write a secret into code"
            )
    return dict(value)
