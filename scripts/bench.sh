#!/usr/bin/env bash
# Measures the hot paths, each beside its floor, a few times over.
#   bench.sh compare   compares with bench/recorded.txt, by benchstat
#   bench.sh record    renews bench/recorded.txt
# BENCH is a regexp of benchmarks, COUNT how often each is measured, BENCHTIME how many operations. PEERS names other programs
# to measure (docs/performance.md).
set -euo pipefail
cd "$(dirname "$0")/.."

benchstat=golang.org/x/perf/cmd/benchstat@v0.0.0-20260908200009-22c9c6c9d4da
recorded=bench/recorded.txt
new=$(mktemp)
trap 'rm -f "$new"' EXIT

# The service in the benchmark's process gets the profile that the built program has.
profile=off
if [[ -f default.pgo ]]; then profile=$PWD/default.pgo; fi

measure() {
  # The model of the processor says who owns the machine, and not how fast it was today: ratios do.
  go test -pgo "$profile" -run '^$' -bench "${BENCH:-^Benchmark(Socket|OneConnection|Batch|InProcess|Peer)$}" \
    -benchtime "${BENCHTIME:-5000x}" -count "${COUNT:-6}" -timeout 30m ./bench | sed -u '/^cpu:/d' | tee "$new"
}

case "${1:-}" in
  compare)
    measure
    go run "$benchstat" recorded="$recorded" now="$new"
    ;;
  record)
    measure
    cat "$new" >"$recorded"
    echo "$recorded is this run now"
    ;;
  *)
    echo "usage: bench.sh compare | record" >&2
    exit 2
    ;;
esac
