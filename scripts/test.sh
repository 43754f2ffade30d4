#!/usr/bin/env bash
# Checks and tests everything. A test that skips fails the run: it would prove nothing.
set -euo pipefail
cd "$(dirname "$0")/.."

./scripts/install-tools.sh
. ./scripts/modules.sh

echo "formatting"
unformatted=$(gofmt -l .)
if [ -n "$unformatted" ]; then
  echo "gofmt would change: $unformatted"
  exit 1
fi
echo "go vet"
go vet "${packages[@]}"
echo "go mod tidy"
for module in "${modules[@]}"; do (cd "$module" && go mod tidy -diff); done
unchecked=$(mktemp) # what could not be checked, to be said once more at the end, where it is seen
log=$(mktemp)
trap 'rm -f "$log" "$unchecked"' EXIT
UNCHECKED=$unchecked ./scripts/vulnerabilities.sh
echo "lint"
./scripts/lint.sh

echo "tests, with the race detector: every store test on miniredis, on redis-server and on a Redis Cluster"
# One package at a time: they start servers of their own, and the calls of the service under test are bounded.
if ! go test -p 1 -race -shuffle=on -timeout 10m -v "${packages[@]}" >"$log" 2>&1; then
  grep -vE '^\s*(=== |--- PASS)|^redis: ' "$log" | tail -n 200
  grep -E '^(FAIL|\s*--- FAIL)' "$log"
  exit 1
fi
grep -E '^(ok|\?|-test.shuffle)' "$log" || true
if grep -E '^\s*--- SKIP' "$log"; then
  echo "the tests above skipped; here nothing may"
  exit 1
fi
echo "the store beside its model, in 200,000 steps"
go test -count=1 -run '^TestStoreMatchesModel$' ./redisstore # without the race detector, which plays a tenth of it
./scripts/fuzz.sh
cat "$unchecked" >&2
