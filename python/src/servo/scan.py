"""Print what a project declares: `python -m servo.scan [--project DIR] [--pretty] [--no-report] [--record]`.

On stdout is one line, `{"digest","manifest"}`, with `"record"` of what it depends on if asked for, or
`{"errors"}` if there are any; on stderr is whatever modules print while they are imported, and the errors for
people to read. The exit code is 0, or 1 for errors in the code of the project, or 2 for a wrong use of this
program or a wrong `servo.toml`.

Nothing but this file is imported before the version of Python is known to be new enough.
"""

from __future__ import annotations

import os
import sys

# Not imported from `typing`, which is slow to import: type checkers know the name.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

    from servo.code_version import CodeVersions
    from servo.failures import Failure
    from servo.project import Project
    from servo.registry import Registry

EXIT_OK = 0
EXIT_CODE_ERRORS = 1
EXIT_CONFIG_ERRORS = 2

_OLDEST_PYTHON = (3, 11)
_USAGE = """\
usage: python -m servo.scan [--project DIR] [--pretty] [--no-report] [--record]

Print what a project declares as one line of JSON.

  --project DIR  a directory of the project (default: the current one); servo.toml is there or above
  --pretty       on many lines, for people
  --no-report    do not repeat errors on stderr: whoever reads stdout shows them
  --record       add which files, directories and variables were read, for whoever keeps the answer
"""


def main(arguments: list[str], write: Callable[[bytes], object]) -> int:
    """Scan a project, write the outcome, and give the exit code.

    It imports the project into this process: its directories stay on `sys.path`, its modules stay loaded, and
    the directory of the project becomes the current one, so that it does not matter where a scan is started.

    >>> written = []
    >>> main(["--project", "/nowhere"], written.append)
    2
    >>> written[0][:44]
    b'{"errors":[{"file":"/nowhere/servo.toml","fr'
    """
    try:
        options = _Options(arguments)
    except ValueError as error:
        return _fail_config(f"{error}\n\n{_USAGE}", write)
    if options.is_help:
        _say(_USAGE)
        return EXIT_OK
    from servo.project import Project, ProjectError  # noqa: PLC0415 - after the check of Python, as below

    record = None
    if options.records:
        from servo.scan_record import Record  # noqa: PLC0415 - only when asked for

        record = Record()
        record.start()
    try:
        project = Project.find(options.project)
    except ProjectError as error:
        from servo.failures import failures_of_file  # noqa: PLC0415 - only when needed, as below

        return _fail(failures_of_file(error), EXIT_CONFIG_ERRORS, write, reports=options.reports)
    os.chdir(project.root)
    digest, manifest, failures = scan(project)
    if failures:
        return _fail(failures, EXIT_CODE_ERRORS, write, reports=options.reports)
    text = f'{{"digest":"{digest}","manifest":{manifest}}}'
    if record is not None:
        import json  # noqa: PLC0415

        text = f'{text[:-1]},"record":{json.dumps(record.as_json())}}}'
    if options.is_pretty:
        import json  # noqa: PLC0415

        text = json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    write(text.encode() + b"\n")
    return EXIT_OK


def scan(project: Project) -> tuple[str, str, list[Failure]]:
    """Import a project; give the digest and the canonical text of its manifest, or what is wrong with it."""
    from servo.loading import load  # noqa: PLC0415
    from servo.registry import collecting  # noqa: PLC0415

    with collecting() as registry:
        broken = load(project)
    if broken:
        from servo.failures import failures_of  # noqa: PLC0415

        return "", "", failures_of(broken, project)
    return describe(registry, project)


def describe(
    registry: Registry, project: Project, versions: CodeVersions | None = None
) -> tuple[str, str, list[Failure]]:
    """Give the digest and the canonical text of the manifest of what a project has declared."""
    from servo.canonical import canonical_json  # noqa: PLC0415
    from servo.code_version import CodeVersions, Scope  # noqa: PLC0415
    from servo.errors import CanonicalError  # noqa: PLC0415
    from servo.manifest import ManifestContext, build  # noqa: PLC0415
    from servo.sha256 import sha256_hex  # noqa: PLC0415

    wrong = _wrong_settings(registry, project)
    if wrong:
        return "", "", wrong
    versions = versions or CodeVersions(Scope(project.root, list(project.modules)))
    manifest: dict[str, object] = {}
    try:
        manifest = build(registry, project.name, ManifestContext(project.relative, versions.of))
        text = canonical_json(manifest)
    except (ExceptionGroup, CanonicalError) as error:
        from servo.failures import failures_of_manifest  # noqa: PLC0415

        return "", "", failures_of_manifest(error, manifest, project)
    except Exception as error:  # noqa: BLE001 - whatever it is, the outcome is written
        import traceback  # noqa: PLC0415

        from servo.failures import failure_of  # noqa: PLC0415

        traceback.print_exc()
        return "", "", [failure_of(None, error, project)]
    return f"sha256:{sha256_hex(text.encode())}", text, []


def _wrong_settings(registry: Registry, project: Project) -> list[Failure]:
    """Describe what `servo.toml` sets of resources or fields that there are not."""
    if not project.settings.resources:
        return []
    from servo.failures import failures_of_file  # noqa: PLC0415
    from servo.project import Problem, ProjectError  # noqa: PLC0415
    from servo.runner.configured import unknown_settings  # noqa: PLC0415

    kinds = {each.name: each.kind for each in registry.resources}
    problems = [Problem(None, problem) for problem in unknown_settings(kinds, project.settings)]
    return failures_of_file(ProjectError(project.file, problems)) if problems else []


def too_old(version: tuple[int, ...], executable: str) -> str | None:
    """Say that a Python is too old, if it is.

    >>> too_old((3, 10, 4), "/usr/bin/python3")
    'Servo needs Python 3.11 or newer, /usr/bin/python3 is 3.10.4: set python under [project] in servo.toml'
    >>> too_old((3, 13, 0), "/usr/bin/python3")
    """
    if version >= _OLDEST_PYTHON:
        return None
    oldest = ".".join(map(str, _OLDEST_PYTHON))
    found = ".".join(map(str, version[:3]))
    return (
        f"Servo needs Python {oldest} or newer, {executable} is {found}: "
        "set python under [project] in servo.toml"
    )


class _Options:
    """The command line. By hand, since `argparse` takes longer to import than the rest of this file."""

    def __init__(self, arguments: list[str]) -> None:
        self.project = "."
        self.is_pretty = False
        self.is_help = False
        self.reports = True
        self.records = False
        rest = iter(arguments)
        for argument in rest:
            name, equals, value = argument.partition("=")
            if name == "--project":
                self.project = value if equals else next(rest, "")
                if not self.project:
                    raise ValueError("--project needs a directory")
            elif argument == "--pretty":
                self.is_pretty = True
            elif argument == "--no-report":
                self.reports = False
            elif argument == "--record":
                self.records = True
            elif argument in {"--help", "-h"}:
                self.is_help = True
            else:
                raise ValueError(f"unknown argument {argument!r}")


def _fail(
    failures: list[Failure], code: int, write: Callable[[bytes], object], *, reports: bool = True
) -> int:
    from servo.canonical import canonical_json  # noqa: PLC0415

    if reports:
        from servo.failures import report  # noqa: PLC0415

        _say(report(failures) + "\n")
    write(canonical_json({"errors": failures}).encode() + b"\n")
    return code


def _say(text: str) -> None:
    """Write to people; what is on stdout counts, even where nobody listens."""
    try:
        sys.stderr.write(text)
    except (OSError, ValueError, AttributeError):
        return


def _fail_config(message: str, write: Callable[[bytes], object]) -> int:
    from servo.failures import config_failure  # noqa: PLC0415

    return _fail([config_failure(message)], EXIT_CONFIG_ERRORS, write)


def _program() -> NoReturn:
    """Be the program: set up the process, scan, and end it."""
    problem = too_old(sys.version_info[:3], sys.executable)
    if problem is not None:
        import json  # noqa: PLC0415

        sys.stderr.write(f"error: {problem}\n")
        sys.stdout.write(json.dumps({"errors": [{"type": "ConfigError", "message": problem}]}) + "\n")
        sys.exit(EXIT_CONFIG_ERRORS)
    import gc  # noqa: PLC0415

    from servo.process import end  # noqa: PLC0415

    # Nearly all that a scan makes lives until its end.
    gc.disable()
    output = _take_stdout()
    # The current directory is no part of the project unless servo.toml says so.
    if not sys.flags.safe_path:
        del sys.path[0]
    arguments = sys.argv[1:]
    del sys.argv[1:]
    code = main(arguments, lambda data: _write_all(output, data))
    end(code)


def _take_stdout() -> int:
    """Keep stdout for the outcome: whatever modules and their processes print goes to stderr.

    It stays so until the end, for the sake of threads.
    """
    from servo.process import give_no_input, show_everything  # noqa: PLC0415

    give_no_input()
    output = os.dup(1)
    os.dup2(2, 1)
    show_everything()
    return output


def _write_all(output: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(output, rest) :]


if __name__ == "__main__":
    _program()
