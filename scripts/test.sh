#!/usr/bin/env bash
# Checks and tests what a change needs: make test. CONTRIBUTING.md says what this leaves out.
#   test.sh all   everything: make test-all. It builds the tests with the tag long (test/suite), all with the race
#                 detector, and fuzzes every target.
# A test that skips fails the run: it would prove nothing.
set -euo pipefail
cd "$(dirname "$0")/.."
all=${1:-}
if [ $# -gt 1 ] || [[ ! $all =~ ^(all)?$ ]]; then
  echo "usage: test.sh [all]" >&2
  exit 2
fi

./scripts/install-tools.sh
. ./scripts/modules.sh
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# step says what comes, and when it came.
step() { printf '%3d:%02d  %s\n' $((SECONDS / 60)) $((SECONDS % 60)) "$1"; }

step formatting
unformatted=$(gofmt -l .)
if [ -n "$unformatted" ]; then
  echo "gofmt would change: $unformatted"
  exit 1
fi
step "go mod tidy"
for module in "${modules[@]}"; do (cd "$module" && go mod tidy -diff); done
step "known vulnerabilities"
touch "$work/unchecked" # what could not be checked, to be said once more at the end, where it is seen
UNCHECKED=$work/unchecked ./scripts/vulnerabilities.sh
# By the profile (default.pgo) go would compile all packages of the service a second time, for each kind of test. Without paths, what
# was compiled in one checkout serves the next.
export GOFLAGS="${GOFLAGS:-} -pgo=off -trimpath"

# The service that the tests run as their users do; make test-all runs the one that is released. Its path names its content, so that
# go test runs tests again, instead of taking their results from its cache, when the service has changed.
go build ${all:+-pgo=auto} -buildvcs=false -o "$work/remit" remit
go build -o "$work/testreport" ./test/testreport
services=${XDG_CACHE_HOME:-$HOME/.cache}/remit/tested
id=$(go tool buildid "$work/remit")
export REMIT_TEST_BINARY=$services/${id##*/}/remit
mkdir -p "$(dirname "$REMIT_TEST_BINARY")"
mv "$work/remit" "$REMIT_TEST_BINARY"
touch "$(dirname "$REMIT_TEST_BINARY")"
find "$services" -mindepth 1 -maxdepth 1 -mtime +7 -exec rm -rf {} +

limit=25m # of a package's tests: it ends what hangs, and must not end what is only slow
if [ -n "$all" ]; then limit=60m; fi

# run_tests tests packages, so many of them at once: run_tests COUNT [FLAG…] PACKAGE… Only make test-all shuffles them: go test
# takes no result of shuffled tests from its cache. The linter vets all packages.
run_tests() {
  local at_once=$1
  shift
  nice -n "${niceness:-0}" go test -json -vet=off -p "$at_once" ${all:+-shuffle=on} -timeout "$limit" "$@" || touch "$work/failed"
}
# Tests that measure run beside others, which give way to them in make test-all: there they are about time limits.
niceness=${all:+5}
measure() { niceness='' run_tests 1 "$@" >"$work/measured"; }
# beside runs a script beside a command: beside SCRIPT COMMAND…. Tests have the processors first. What the script says is in $work/SCRIPT.
beside() {
  local script=$1
  shift
  nice -n 15 "./scripts/$script" >"$work/$script" 2>&1 &
  local running=$!
  "$@"
  wait "$running" || { touch "$work/failed" && cat "$work/$script" >&2; }
}
# measuring packages measure, or compare times.
measuring='^remit/(bench|deploy/monitoring|test/browser)$'
# on_each_redis are packages whose tests make test-all runs on miniredis, redis-server and a Redis Cluster.
on_each_redis='^remit/(redisstore|server)$'
# processes are packages whose tests call the service as a process of its own. The race detector sees nothing of that.
processes='^remit/(sdk|test/(clients|faults))$'
# racing packages are about goroutines that share memory.
racing='^remit/(client|internal/redisclient|redisstore/.+|server/.+)$'
# The packages that take longest come first, so that none of them is left for the end.
longest=$(printf 'remit/%s\n' test/browser test/faults sdk redisstore internal/service loadtest/fleet server test/docs internal/cli console internal/webhook test/interop)
all_packages=$longest$'\n'$(go list "${packages[@]}" | grep -vxF "$longest")
# those prints the names that grep selects, from one name a line, on one line.
those() { grep -E "$@" <<<"$all_packages" | tr '\n' ' '; }
read -ra measuring_packages <<<"$(those "$measuring")"

if [ -n "$all" ]; then
  step "lint and all tests, with the race detector: every one of the store on miniredis, redis-server and a Redis Cluster"
  # The race detector makes the interpreter of Lua in miniredis ten times as slow. So what runs on each Redis runs with it but on
  # miniredis, and without it on miniredis. Tests that choose no Redis run in both; those of very many steps make fewer with it. What calls
  # processes or measures runs whole without it, and with it at the size of make test.
  read -ra together_packages <<<"$(those -v "$measuring|$on_each_redis|$processes")"
  read -ra each_redis_packages <<<"$(those "$on_each_redis")"
  # What measures has the processors first, and waits half of its time for a browser or the end of a pause. All else gives way to it, but
  # not so far that the Redis of the tests cannot answer in time.
  measure_and_each_redis() {
    measure -tags long "${measuring_packages[@]}" &
    local measures=$! niceness=10
    run_tests 2 -tags long -skip '/^(redis|cluster)$' "${each_redis_packages[@]}"
    run_tests 2 -race -tags long -skip '/^miniredis$' "${each_redis_packages[@]}"
    wait "$measures"
    cat "$work/measured"
  }
  # The linter is beside all of it, and may well take longer than one of its parts. The faults mostly wait, and would take longest: they
  # have the processors first. The tests of the clients build in their own directories, so they must not run twice at once.
  together_and_processes() {
    {
      niceness='' run_tests 1 -tags long remit/test/faults
      niceness='' run_tests 1 -race remit/test/faults "${measuring_packages[@]}"
    } >"$work/faults" &
    local faults=$!
    {
      run_tests 1 -tags long remit/sdk remit/test/clients
      run_tests 1 -race remit/sdk remit/test/clients
    } >"$work/clients" &
    local clients=$!
    run_tests 2 -race -tags long "${together_packages[@]}"
    wait "$faults" "$clients"
    cat "$work/faults" "$work/clients"
  }
  {
    beside lint.sh together_and_processes
    beside fuzz.sh measure_and_each_redis
  } | "$work/testreport"
else
  step "lint and tests"
  read -ra together_packages <<<"$(those -v "$measuring|$racing")"
  read -ra racing_packages <<<"$(those "$racing")"
  # In the store and the server the race detector watches the tests that are about concurrent callers, a second time, but for their
  # subtests on miniredis, whose interpreter of Lua it makes ten times as slow. Those that it skips have such a name for another reason,
  # or make very many calls. It watches one package at a time: a process with the race detector must answer in time.
  measure_and_race() {
    measure "${measuring_packages[@]}"
    run_tests 1 -race "${racing_packages[@]}"
    run_tests 1 -race -run 'AtOnce|Concurrent|Crowd|Flood|Linearizable|Many|Rac(e|ing)' \
      -skip 'AsMany|ManyHoldsThatAreDue|OldestOfMany|OtherProtocols|UnavailableAtOnce|/^miniredis$|//^miniredis$' \
      remit/redisstore remit/server
  }
  {
    measure_and_race >"$work/racing" &
    beside lint.sh run_tests 2 "${together_packages[@]}"
    wait
    cat "$work/racing" "$work/measured"
  } | "$work/testreport"
fi
if [ -e "$work/failed" ]; then exit 1; fi

if [ -n "$all" ]; then cat "$work/fuzz.sh"; fi
step "all is well"
cat "$work/unchecked" >&2
