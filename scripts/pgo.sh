#!/usr/bin/env bash
# Renews default.pgo, the CPU profile by which go build optimises the service: what it does most is inlined and laid out for
# that. Records the service while the load test's mixed scenario keeps it as busy as it can.
#   DURATION   how long; 60s unless given
#   LISTEN     where the service listens meanwhile; 127.0.0.1:18080 unless given
set -euo pipefail
cd "$(dirname "$0")/.."

listen=${LISTEN:-127.0.0.1:18080}
work=$(mktemp -d)
service=
finish() {
  if [ -n "$service" ]; then
    kill "$service" 2>/dev/null || true
    wait "$service" || true
  fi
  rm -rf "$work"
}
trap finish EXIT

# The recorded binary knows no path of this machine, and was not shaped by the profile of before.
CGO_ENABLED=0 go build -trimpath -pgo=off -tags cpuprofile -o "$work/remit" .
go build -o "$work/loadtest" ./loadtest
(
  cd "$work"
  exec env -i PATH="$PATH" TMPDIR="$work" CPUPROFILE="$work/cpu" REMIT_LISTEN="$listen" REMIT_LOG_LEVEL=warn ./remit serve
) &
service=$!
for _ in $(seq 100); do
  if REMIT_LISTEN=$listen "$work/remit" healthcheck 2>/dev/null; then break; fi
  sleep 0.1
done

"$work/loadtest" -scenario mixed -rate 0 -duration "${DURATION:-60s}" -addr "http://$listen"
kill -USR1 "$service"
for _ in $(seq 100); do
  if [ -f "$work/cpu" ]; then break; fi
  sleep 0.1
done

# pprof calls the program as it is called here, instead of by its path.
(cd "$work" && go tool pprof -proto -symbolize=none -output new.pgo remit cpu >/dev/null)
if (cd "$work" && go tool pprof -raw new.pgo) | grep -F -e "$PWD" -e "$work" -e "${HOME:-/root}/"; then
  echo "the profile names paths of this machine" >&2
  exit 1
fi
mv "$work/new.pgo" default.pgo
echo "default.pgo is renewed: $(wc -c <default.pgo) bytes"
