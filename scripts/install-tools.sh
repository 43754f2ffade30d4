#!/usr/bin/env bash
# Installs what the tests need beside Go: servers to run on and beside (redis, nginx, prometheus), clients and languages to be
# used from, and tools that check. It says so first, and does nothing on a machine that has them all.
set -euo pipefail

missing=()
command -v redis-server >/dev/null || command -v valkey-server >/dev/null || missing+=(redis)
command -v redis-benchmark >/dev/null || command -v valkey-benchmark >/dev/null || [[ " ${missing[*]} " == *" redis "* ]] || missing+=(redis)
command -v redis-cli >/dev/null || [[ " ${missing[*]} " == *" redis "* ]] || missing+=(redis) # for docs/operations.md
command -v "${CC:-cc}" >/dev/null || command -v gcc >/dev/null || missing+=(compiler)
command -v curl >/dev/null || missing+=(curl)
command -v nginx >/dev/null || [ -x /usr/sbin/nginx ] || missing+=(nginx)
command -v shellcheck >/dev/null || missing+=(shellcheck)
[ "$(uname)" != Linux ] || command -v systemd-analyze >/dev/null || missing+=(systemd) # for the unit; it is not started
command -v node >/dev/null || missing+=(node)
command -v npm >/dev/null || missing+=(npm)
command -v python3 >/dev/null || missing+=(python3)
# For the keys of the Python SDK. Its tests run with the first of these that has it (test/tool).
python3 -c 'import cryptography' 2>/dev/null || /usr/bin/python3 -c 'import cryptography' 2>/dev/null || missing+=(cryptography)
python3 -c 'import setuptools, pip, wheel' 2>/dev/null || /usr/bin/python3 -c 'import setuptools, pip, wheel' 2>/dev/null ||
  missing+=(pip) # builds and installs the Python SDK
command -v mypy >/dev/null || missing+=(mypy) # checks the types of the Python SDK
command -v chromium >/dev/null || missing+=(chromium)
command -v sslscan >/dev/null || missing+=(sslscan)
command -v zsh >/dev/null || missing+=(zsh) # into which the tests paste what the pages show
command -v dash >/dev/null || missing+=(dash)
[ "$(uname)" != Linux ] || command -v pkill >/dev/null || missing+=(procps)
command -v promtool >/dev/null || missing+=(prometheus)
command -v slowhttptest >/dev/null || missing+=(slowhttptest)
command -v redis-check-aof >/dev/null || command -v valkey-check-aof >/dev/null || [[ " ${missing[*]} " == *" redis "* ]] || missing+=(redis)
[ "$(uname)" != Linux ] || command -v prlimit >/dev/null || missing+=(util-linux) # test/faults runs on Linux alone
[ "$(uname)" != Darwin ] || command -v gtar >/dev/null || missing+=(gnu-tar) # for scripts/release.sh
[ ${#missing[@]} -eq 0 ] && exit 0
echo "this machine lacks: ${missing[*]}; installing"

as_root() { if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo "$@"; fi; }

if command -v apt-get >/dev/null; then
  packages=()
  for tool in "${missing[@]}"; do
    case $tool in
      redis) packages+=(redis-server) ;;
      compiler) packages+=(gcc libc6-dev) ;;
      node) packages+=(nodejs) ;;
      cryptography) packages+=(python3-cryptography) ;;
      pip) packages+=(python3-pip python3-setuptools python3-wheel) ;;
      *) packages+=("$tool") ;;
    esac
  done
  as_root apt-get update -qq
  # The tests start servers of their own: the package must not start one beside them.
  as_root env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -y -qq --no-install-recommends "${packages[@]}"
elif command -v brew >/dev/null; then
  for tool in "${missing[@]}"; do
    case $tool in
      compiler) xcode-select --install ;;
      npm) ;; # comes with node
      pip) python3 -m pip install --user --break-system-packages setuptools wheel ;;
      *) brew install "$tool" ;;
    esac
  done
else
  echo "install ${missing[*]} with this machine's package manager, then run it again" >&2
  exit 1
fi
