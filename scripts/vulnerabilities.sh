#!/usr/bin/env bash
# Looks for known vulnerabilities in what the program and its tests call. It needs the Go vulnerability database, over the
# network or, with GOVULNDB=file://…, as a copy. Without it nothing is known, and that is what is said.
#   UNCHECKED   a file for that, too
set -euo pipefail
cd "$(dirname "$0")/.."
. ./scripts/modules.sh

govulncheck=golang.org/x/vuln/cmd/govulncheck@v1.8.0
database=${GOVULNDB:-https://vuln.go.dev}

reachable() {
  case $database in
    file://*) [ -f "${database#file://}/index/db.json" ] ;;
    *) curl --silent --fail --max-time 10 --output /dev/null "$database/index/db.json" ;;
  esac
}
if ! reachable; then
  echo "NOT CHECKED for known vulnerabilities: $database cannot be reached from here" | tee -a ${UNCHECKED:+"$UNCHECKED"} >&2
  exit 0
fi
go run "$govulncheck" -test -db "$database" "${packages[@]}"
