#!/usr/bin/env bash
# The web UI: builds ui/dist, checks it, tests it. Node never runs inside cargo build; this is its own step.
#   ui.sh build      packages and ui/dist, if their sources changed since; fails without Node
#   ui.sh offer      the same where Node is there; otherwise says what is missing, and ends well
#   ui.sh lint       types and eslint        } where Node 20 cannot be had, both say so and end well
#   ui.sh test       units, and journeys     }
#   ui.sh bench      figures of the pages on SERVO_BIN, a release build; SERVO_BENCH_BIN makes a million runs for it
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../ui"

readonly NODE_FLOOR=20
say() { printf 'ui: %s\n' "$*" >&2; }

lacks_node() {
  if ! command -v npm >/dev/null 2>&1 || ! command -v node >/dev/null 2>&1; then
    echo "there is no Node with npm"
  elif [ "$(node -p 'process.versions.node.split(".")[0]')" -lt "$NODE_FLOOR" ]; then
    echo "Node $(node -p process.versions.node) is older than $NODE_FLOOR"
  fi
}

digest() { cat "$@" | sha256sum | cut -d' ' -f1; }

packages() {
  local state
  state=$(digest package-lock.json)
  [ "$(cat node_modules/.installed 2>/dev/null)" = "$state" ] && return
  say "installing npm packages"
  # Not npm ci: it refuses a lock without the optional packages of other systems.
  npm install --no-save --no-audit --no-fund --loglevel=error >&2
  printf '%s\n' "$state" >node_modules/.installed
}

build() {
  local state description=../crates/servo-api/openapi.json
  state=$(find src public scripts index.html package-lock.json package.json tsconfig.json vite.config.ts "$description" \
    -type f ! -path src/api/schema.ts -print0 | sort -z | xargs -0 sha256sum | sha256sum | cut -d' ' -f1)
  [ "$(cat dist/.built 2>/dev/null)" = "$state" ] && return
  packages
  say "building ui/dist"
  npm run --silent build >&2
  printf '%s\n' "$state" >dist/.built
}

missing=$(lacks_node)
case ${1:-build} in
  build)
    if [ -n "$missing" ]; then
      say "$missing; install Node $NODE_FLOOR or newer (https://nodejs.org) and run make ui again"
      exit 1
    fi
    build
    ;;
  offer)
    if [ -z "$missing" ]; then
      build
    elif [ -e dist/index.html ]; then
      say "$missing; the web UI stays as it was built before"
    else
      say "$missing, so the web UI is not built: servo dev will say so in place of its pages"
    fi
    ;;
  lint | test)
    if [ -n "$missing" ]; then
      say "$1 of the web UI is skipped: $missing, and it cannot be installed here"
      exit 0
    fi
    build
    packages
    npm run --silent "$1"
    ;;
  bench)
    if [ -n "$missing" ]; then
      say "the figures of the web UI are not measured: $missing, and it cannot be installed here"
      exit 0
    fi
    build
    packages
    target=$(cd .. && cd "${CARGO_TARGET_DIR:-target}" && pwd)
    SERVO_BIN=${SERVO_BIN:-$target/release/servo} SERVO_BENCH_BIN=${SERVO_BENCH_BIN:-$target/release/servo-bench} \
      npm run --silent bench
    ;;
  *)
    say "there is no step ${1}"
    exit 2
    ;;
esac
