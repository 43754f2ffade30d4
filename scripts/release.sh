#!/usr/bin/env bash
# Builds a release: for each target a static binary in a tar.gz with its licence, its bill of materials (CycloneDX) and, for
# Linux, a Debian package; then SHA256SUMS over all. The same commit, version and Go give the same bytes. Needs GNU tar, and
# Linux with dpkg-deb for the packages.
#   VERSION             by default what git calls the commit: the tag v1.2.3, or 1.2.3+4.gabcdef0 four commits after it
#   TARGETS             by default "linux/amd64 linux/arm64 darwin/amd64 darwin/arm64"
#   DIST                where to; dist unless given. A release of before is removed from there
#   BUILD_FLAGS         -trimpath unless given. Without it the compiler can use what other builds have left, and the paths of
#                       this machine are in the binary: for the tests
#   SOURCE_DATE_EPOCH   the time of every file; by default the commit's
set -euo pipefail
umask 022 # every user may read a release, whatever the builder's umask
cd "$(dirname "$0")/.."

# version_of_commit puts git's count and hash behind a plus, where neither Debian nor semver takes them for a pre-release.
version_of_commit() {
  git describe --tags --match 'v[0-9]*' --dirty=.dirty 2>/dev/null | sed -E 's/^v//; s/-([0-9]+)-(g[0-9a-f]+)/+\1.\2/' ||
    echo "0.0.0+$(git rev-list --count HEAD).g$(git describe --always --exclude '*' --dirty=.dirty)"
}
VERSION=${VERSION:-$(version_of_commit)}
if [[ ! $VERSION =~ ^[0-9]+\.[0-9]+\.[0-9]+([-+][0-9A-Za-z.+-]+)?$ ]]; then
  echo "VERSION is to be like 1.2.3 or 1.2.3-rc.1, not $VERSION" >&2
  exit 2
fi
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
DIST=${DIST:-dist}
tar=tar
if command -v gtar >/dev/null; then tar=gtar; fi
if [[ $("$tar" --version) != *GNU* ]]; then
  echo "a release needs GNU tar, and this machine's is another: brew install gnu-tar" >&2
  exit 1
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$DIST"
rm -f "$DIST"/remit_* "$DIST"/SHA256SUMS
go build -o "$work/sbom" ./scripts/sbom

# Nothing of who builds: not their flags, not their paths, not the state of their checkout.
read -ra flags <<<"${BUILD_FLAGS--trimpath}"
export CGO_ENABLED=0 GOFLAGS='' GOEXPERIMENT='' GOAMD64=v1 GOARM64=v8.0
for target in ${TARGETS:-linux/amd64 linux/arm64 darwin/amd64 darwin/arm64}; do
  os=${target%/*} arch=${target#*/}
  name=remit_${VERSION}_${os}_$arch
  mkdir "$work/$name"
  GOOS=$os GOARCH=$arch go build ${flags[@]+"${flags[@]}"} -buildvcs=false -o "$work/$name/remit" \
    -ldflags "-s -w -buildid= -X main.version=$VERSION" .
  cp LICENSE README.md "$work/$name/"
  chmod 755 "$work/$name" "$work/$name/remit"
  chmod 644 "$work/$name/LICENSE" "$work/$name/README.md"
  "$tar" --sort=name --format=ustar --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" -C "$work" -cf - "$name" |
    gzip -9n >"$DIST/$name.tar.gz"
  "$work/sbom" -version "$VERSION" -time "$SOURCE_DATE_EPOCH" "$work/$name/remit" >"$DIST/$name.cdx.json"
  if [ "$os" = linux ]; then
    if [ "$(uname)" = Linux ] && command -v dpkg-deb >/dev/null; then # deb.sh needs GNU's install and du too
      ./scripts/deb.sh "$work/$name/remit" "$VERSION" "$arch" "$DIST"
    else
      echo "NO Debian package of $target: this machine is not Linux, or has no dpkg-deb" >&2
    fi
  fi
done

if command -v sha256sum >/dev/null; then sha256=(sha256sum); else sha256=(shasum -a 256); fi
(cd "$DIST" && "${sha256[@]}" remit_* >SHA256SUMS && "${sha256[@]}" --check SHA256SUMS)
