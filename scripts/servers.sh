#!/bin/sh
# The tests that talk to real servers: those in files with the build tag servers. test/servers/README.md says which
# server each of them expects, and how it is told where that is.
set -u
cd "$(dirname "$0")/.." || exit 1
. scripts/lib.sh
go version || exit 1

tagged=$(git grep -lE '^//go:build .*\bservers\b' -- '*_test.go')
if [ -z "$tagged" ]; then
	echo '****************************************************************'
	echo '*  NO TEST NEEDS A SERVER YET: nothing carries the tag servers. *'
	echo '*  The tests below are those that `make test` runs as well.     *'
	echo '****************************************************************'
else
	printf 'tests that need a server:\n%s\n' "$tagged"
fi
# -count=1: a server's answer is no function of the files that the test cache looks at. The first run fetches and builds the
# servers, which alone can take longer than the ten minutes that a test binary has by default.
stage servers go test -count=1 -timeout 45m -tags servers $(patterns)
finish
