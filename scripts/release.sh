#!/bin/sh
# Builds the binaries of a release into dist/, each with its bill of materials (SBOM:
# CycloneDX, from what Go has put into the binary), the manual pages, and SHA256SUMS of all. The same commit,
# version and Go give the same bytes anywhere: nothing of the machine or the time
# goes in, nor what Go finds out about the repository, which depends on tags and on
# how it was checked out.
#   scripts/release.sh v1.2.0                  all systems
#   scripts/release.sh v1.2.0 linux/amd64      only some
set -eu
cd "$(dirname "$0")/.."
version=${1:?usage: scripts/release.sh VERSION [OS/ARCH...]}
shift
[ $# -gt 0 ] || set -- linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64
out=${OUT:-dist}
commit=$(git rev-parse HEAD)
git diff --quiet HEAD || commit=$commit-dirty

mkdir -p "$out"
rm -f "$out"/deployer-* "$out"/SHA256SUMS
for target; do
	os=${target%/*} arch=${target#*/} suffix=
	[ "$os" = windows ] && suffix=.exe
	name=deployer-$os-$arch$suffix
	echo "building $name" >&2
	CGO_ENABLED=0 GOOS=$os GOARCH=$arch GOFLAGS= GOAMD64=v1 GOARM64=v8.0 \
		go build -trimpath -buildvcs=false -mod=readonly -tags urfave_cli_no_docs \
		-ldflags "-s -w -buildid= -X main.buildVersion=$version -X main.buildCommit=$commit" \
		-o "$out/$name" ./cmd/deployer
	go run ./internal/sbom "$out/$name" "$version" >"$out/$name.cdx.json"
done
pages=$(mktemp -d)
scripts/man.sh "$pages"
tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner --mode=0644 -C "$pages" -c $(cd "$pages" && ls) | gzip -n >"$out/deployer-man.tar.gz"
rm -r "$pages"
(cd "$out" && sha256sum deployer-* >SHA256SUMS)
cat "$out/SHA256SUMS"
