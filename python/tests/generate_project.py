"""Write a large project, for tests and measurements: `python generate_project.py DIR --assets 10000`.

A package of modules with a hundred assets each. Every asset but the first three of a module has three
dependencies, daily partitions, a check, and reads a constant, a helper of its module and one of another.
"""

from __future__ import annotations

import argparse
from pathlib import Path

ASSETS_PER_MODULE = 100
PACKAGE = "warehouse"

_SHARED = '''\
"""Days, limits and a function that every module uses."""

import servo

DAYS = servo.DailyPartitions(start="2013-01-01")
LIMITS = {"rows": 1_000_000, "columns": ("id", "day")}


def clean(*tables):
    """Put tables together."""
    return [row for table in tables for row in table if row is not None][: LIMITS["rows"]]
'''

_HEAD = '''\
"""Assets of {namespace}."""

import servo
from {package} import shared
from {package}.shared import DAYS

SCALE = {module}


def scaled(rows):
    return [row * SCALE for row in rows]
'''

_ASSET = '''

@servo.asset(
    namespace="{namespace}",
    partitions=DAYS,
    checks=[servo.not_null("id")],
    tags={{"team": "{namespace}"}},
)
def {name}({parameters}):
    """Compute {name}."""
    # Each asset has code of its own.
    return scaled(shared.clean({parameters})) + [{number}]
'''


def generate(directory: Path, assets: int) -> None:
    """Write the project into a directory, which need not exist."""
    package = directory / PACKAGE
    package.mkdir(parents=True, exist_ok=True)
    (directory / "servo.toml").write_text(f'[project]\nname = "{PACKAGE}"\nmodules = ["{PACKAGE}"]\n')
    (package / "__init__.py").write_text("")
    (package / "shared.py").write_text(_SHARED)
    for module, first in enumerate(range(0, assets, ASSETS_PER_MODULE)):
        count = min(ASSETS_PER_MODULE, assets - first)
        (package / f"module_{module:04}.py").write_text(_module(module, count))


def _module(module: int, count: int) -> str:
    namespace = f"layer_{module:04}"
    texts = [_HEAD.format(namespace=namespace, package=PACKAGE, module=module)]
    for number in range(count):
        parameters = [f"table_{number - back:03}" for back in (1, 2, 3) if number >= 3]
        texts.append(
            _ASSET.format(
                namespace=namespace,
                name=f"table_{number:03}",
                parameters=", ".join(parameters),
                number=module * ASSETS_PER_MODULE + number,
            )
        )
    return "".join(texts)


def _main() -> None:
    parser = argparse.ArgumentParser(description="Write a large project.")
    parser.add_argument("directory", type=Path)
    parser.add_argument("--assets", type=int, default=10_000)
    options = parser.parse_args()
    generate(options.directory, options.assets)


if __name__ == "__main__":
    _main()
