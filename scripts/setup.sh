#!/usr/bin/env bash
# Installs what `make` needs and this machine lacks. Safe to run again: does nothing when all is there.
#   system packages   a C compiler, pkg-config, openssl, python3 with venv (apt-get, as root or with passwordless sudo)
#   cargo-nextest     with cargo install
#   .venv             the Python package of this repository and what its tests use
#   Node, chromium    for the web UI and its tests, where they can be had; without them those are skipped
# `setup.sh demo` leaves out what only tests and lints need, and installs what examples/flights needs.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly PYTHON_FLOOR="3.11"
venv=.venv
purpose=${1:-tests}

say() { printf 'setup: %s\n' "$*" >&2; }
die() { printf 'setup: %s\n' "$@" >&2; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }

# --- system packages ---------------------------------------------------------------------------------------

as_root() {
  if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo -n "$@"; fi
}

can_be_root() { [ "$(id -u)" -eq 0 ] || { have sudo && sudo -n true 2>/dev/null; }; }

install_packages() {
  if have apt-get && can_be_root; then
    say "installing $*"
    as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >&2
  else
    die "these system packages are missing: $*" \
      "cannot install them here (needs apt-get, and root or passwordless sudo); install them and run make again"
  fi
}

# The first interpreter that is new enough, or nothing.
find_python() {
  local candidate
  for candidate in python3 python3.14 python3.13 python3.12 python3.11; do
    if have "$candidate" && "$candidate" - "$PYTHON_FLOOR" <<'PY' 2>/dev/null; then
import sys
sys.exit(sys.version_info[:2] < tuple(int(part) for part in sys.argv[1].split(".")))
PY
      printf '%s\n' "$candidate"
      return
    fi
  done
}

missing=()
have cc || missing+=(build-essential)
have pkg-config || missing+=(pkg-config)
# Certificates of the tests of TLS.
if [ "$purpose" = tests ] && ! have openssl; then missing+=(openssl); fi
if ! have uv && [ ! -x "$venv/bin/python" ]; then
  python=$(find_python)
  if [ -z "$python" ]; then
    missing+=(python3 python3-venv)
  elif ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    missing+=(python3-venv)
  fi
fi
if [ "${#missing[@]}" -gt 0 ]; then install_packages "${missing[@]}"; fi

# The web UI is built with Node and tested in chromium. Neither is needed for anything else, so nothing ends here.
if [ "$purpose" = tests ]; then
  wanted_too=()
  have node && have npm || wanted_too+=(nodejs npm)
  have chromium || have google-chrome || wanted_too+=(chromium)
  if [ "${#wanted_too[@]}" -gt 0 ]; then
    if have apt-get && can_be_root; then
      (install_packages "${wanted_too[@]}") || say "could not install ${wanted_too[*]}: tests of the web UI are skipped"
    else
      say "tests of the web UI are skipped: cannot install ${wanted_too[*]} here"
    fi
  fi
fi

# The tests of OpenID Connect run a real provider, in Node. Without it they are skipped.
provider=crates/servo-oidc/tests/provider
if [ "$purpose" = tests ] && have npm && [ "$provider/package-lock.json" -nt "$provider/node_modules" ]; then
  say "installing the OpenID provider of the tests"
  (cd "$provider" && npm ci --no-audit --no-fund --loglevel=error >&2 && touch node_modules) ||
    say "could not install it: tests of OpenID Connect are skipped"
fi

# --- Rust --------------------------------------------------------------------------------------------------

have cargo || die "cargo is missing; install Rust from https://rustup.rs and run make again"

wanted=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
found=$(cargo --version | cut -d' ' -f2)
if [ "$(printf '%s\n%s\n' "$wanted" "$found" | sort -V | head -n 1)" != "$wanted" ]; then
  die "Rust $wanted or newer is needed, cargo is $found; run: rustup update stable"
fi
if [ "$purpose" = tests ]; then
  for component in fmt clippy; do
    cargo "$component" --version >/dev/null 2>&1 && continue
    have rustup || die "cargo $component is missing and there is no rustup to add it"
    rustup component add "${component/#fmt/rustfmt}"
  done
  cargo nextest --version >/dev/null 2>&1 || { say "installing cargo-nextest, once: about 5 minutes on two cores"; cargo install --locked cargo-nextest; }
fi

# --- Python ------------------------------------------------------------------------------------------------

if ! "$venv/bin/python" -c '' 2>/dev/null; then
  say "creating $venv"
  if have uv; then
    uv venv --quiet --clear --python ">=$PYTHON_FLOOR" "$venv"
  else
    python=$(find_python)
    [ -n "$python" ] || die "Python $PYTHON_FLOOR or newer is needed; this system's packages do not have it"
    "$python" -m venv --clear "$venv"
  fi
fi

# Installed once per content of these files. What the example needs is part of what tests need.
digest() { cat "$@" | sha256sum | cut -d' ' -f1; }
is_installed() { [ "$(cat "$venv/.installed-$1" 2>/dev/null)" = "$2" ]; }

of_tests=$(digest python/pyproject.toml python/requirements-test.txt examples/flights/requirements.txt)
if [ "$purpose" = demo ]; then
  state=$(digest python/pyproject.toml examples/flights/requirements.txt)
  packages=(-e python -r examples/flights/requirements.txt)
else
  state=$of_tests
  packages=(-e "python[dev]" -r python/requirements-test.txt)
fi
if ! is_installed tests "$of_tests" && ! is_installed "$purpose" "$state"; then
  say "installing Python packages, once: a minute or two"
  if have uv; then
    install=(uv pip install --quiet --python "$venv/bin/python")
  else
    "$venv/bin/python" -m pip --version >/dev/null 2>&1 || "$venv/bin/python" -m ensurepip >/dev/null
    install=("$venv/bin/python" -m pip install --quiet --disable-pip-version-check)
  fi
  "${install[@]}" "${packages[@]}" ||
    die "these Python packages cannot be installed: ${packages[*]}" \
      "they come from PyPI, or from the index that pip or uv is set up for; the reason is above"
  printf '%s\n' "$state" >"$venv/.installed-$purpose"
fi

# What Python compiles while it imports is kept even where the environment says not to: every runner starts with it.
"$venv/bin/python" -m compileall -q python/src || say "could not compile the Python package ahead: runners start slower"
