#!/bin/sh
# The tests that talk to real servers: the packages of those in files with the build tag servers. test/servers/README.md says
# which server each of them starts, and what it needs for that; what is missing fails it.
set -u
cd "$(dirname "$0")/.." || exit 1
. scripts/lib.sh
go version || exit 1

packages=$(git grep -lE '^//go:build .*\bservers\b' -- '*_test.go' | sed 's|^|./|; s|/[^/]*$||' | sort -u)
printf 'packages with tests that need a server:\n%s\n' "$packages"
# -count=1: a server's answer is no function of the files that the test cache looks at. The first run fetches and builds the
# servers, which alone can take longer than the ten minutes that a test binary has by default.
stage servers go test -count=1 -timeout 45m -v -tags servers $packages
finish
