#!/usr/bin/env bash
# Fuzzes every target of every module, two at a time, and fails with the input that a target fails on. The input is written to
# testdata/fuzz of the package: mend what it shows and keep it, for every test run tries it from then on.
#   FUZZTIME   how long each target is fuzzed; 20s unless given
#   TARGETS    a regexp of the targets; all unless given
set -euo pipefail
cd "$(dirname "$0")/.."

export FUZZTIME=${FUZZTIME:-20s}
binaries=$(mktemp -d)
trap 'rm -rf "$binaries"' EXIT
export CORPUS
CORPUS=$(go env GOCACHE)/fuzz/remit # where go test -fuzz keeps it, too

# time_was_over tells the end of the time from a failure. The engine calls its own deadline a failure when it comes while it
# waits for its worker (golang/go#75804): FAIL, that one line for a reason, and no input that the target fails on.
time_was_over() {
  [ "$(sed -n '/^--- FAIL: /,$p' "$1")" = "$(printf -- '%s\n    context deadline exceeded\nFAIL' "$(grep -m 1 "^--- FAIL: $2 (" "$1")")" ]
}
export -f time_was_over

# fuzz runs one target in its package's directory. It says one line, or all of what a failure says.
fuzz() {
  local binary=$1 package=$2 target=$3 log
  log=$(mktemp)
  # By default the engine would spend most of its time on making what it finds shorter.
  if (cd "$package" && "$binary" -test.run '^$' -test.fuzz "^$target\$" -test.fuzztime "$FUZZTIME" -test.parallel 1 \
    -test.fuzzminimizetime 50x -test.fuzzcachedir "$CORPUS/$package") >"$log" 2>&1 || time_was_over "$log" "$target"; then
    local tried
    tried=$(grep -oE 'execs: [0-9]+|[0-9]+/[0-9]+ completed' "$log" | tail -n 1 || true)
    if [ -z "$tried" ]; then # a binary that lacks the target succeeds and has tried nothing
      echo "$package $target was not fuzzed:"
      cat "$log"
      rm -f "$log"
      return 1
    fi
    echo "$package $target: ${tried/completed/of the seeds and no more, for want of time}, nothing found"
  else
    echo "$package $target fails:"
    cat "$log" "$package/testdata/fuzz/$target"/* 2>/dev/null
    rm -f "$log"
    return 1
  fi
  rm -f "$log"
}
export -f fuzz

form='^func Fuzz[A-Za-z0-9_]*\('
for package in $(grep -rlE "$form" --include='*_test.go' . | xargs -n 1 dirname | sort -u); do
  targets=$(grep -hoE "$form" "$package"/*_test.go | sed 's/^func //; s/($//' | grep -E "${TARGETS:-.}" || true)
  [ -n "$targets" ] || continue
  name=${package#./}
  binary=$binaries/${name//\//_}.test
  (cd "$package" && go test -c -fuzz=. -o "$binary" .) # with what tells the engine which way an input took
  for target in $targets; do
    echo "$binary ${package#./} $target"
  done
done >"$binaries/list"
echo "fuzzing $(wc -l <"$binaries/list" | tr -d ' ') targets, $FUZZTIME each"
xargs -P 2 -L 1 bash -c 'fuzz "$@"' fuzz <"$binaries/list"
