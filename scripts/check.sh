#!/bin/sh
# Everything a change must pass. Needs no network beyond Go modules and no server.
#   scripts/check.sh            all stages
#   scripts/check.sh STAGE...   these stages only (names as in the list at the end)
set -u
cd "$(dirname "$0")/.." || exit 1
. scripts/lib.sh
go version || exit 1
all=$(patterns)

# Packages whose tests are left out of the race run: the law and the examples start no goroutine of their own, and what
# bench and conformance run is the code of packages that are in it; the storages of one client library each have a few lines
# around storage/blob, which is in it, and their libraries take minutes to build.
race_packages() {
	go list $all | grep -vE '/(internal/lint|bench|examples|conformance|storage/(azure|gs|hdfs|s3))(/|$)'
}

format() {
	gofumpt=$(tool gofumpt) || return 1
	unformatted=$("$gofumpt" -l .) || return 1
	[ -z "$unformatted" ] && return 0
	printf 'not formatted (make fmt mends it):\n%s\n' "$unformatted"
	return 1
}

build() { go build $all; }

# Every build tag is vetted, so that a file behind one can't rot.
vet() {
	go vet $all && go vet -tags invariants,servers,lintcost $all
}

# With the tag invariants only the packages are looked at that have files behind it: nothing changes in the others.
staticcheck() {
	staticcheck=$(tool staticcheck) || return 1
	tagged=$(git grep -lE '^//go:build .*\binvariants\b' -- '*.go' | sed 's|^|./|; s|/[^/]*$||' | sort -u)
	"$staticcheck" $all && "$staticcheck" -tags invariants $tagged
}

tidy() {
	for m in $(modules) tools; do
		GOWORK=off go -C "$m" mod tidy -diff || return 1
	done
}

lint() { go test ./internal/lint/...; }
race() { go test -race $(race_packages); }
invariants() { go test -tags invariants $all; }
cost() { go test -count=1 -v -tags lintcost -run '^TestCost|^TestSizeOf' ./internal/lint; }
tests() { go test $all; }

# Each target has three seconds. Those of two packages are left to make soak: with their libraries instrumented, which are
# those of Parquet and of all object stores, they take minutes to build. Their seeds are run by the tests.
fuzz() {
	targets=$(fuzz_targets $all) || return 1
	targets=$(echo "$targets" | grep -vE '/(connector/parquet|cmd/flott) ')
	[ -n "$targets" ] || { echo "no fuzz target found" && return 0; }
	bad=0
	while read -r pkg target; do
		echo "$pkg $target"
		fuzz_one "$target" "$pkg" 3s || bad=1
	done <<EOF
$targets
EOF
	return $bad
}

[ $# -gt 0 ] || set -- build format tidy vet staticcheck lint test race invariants cost fuzz
for name; do
	case $name in
	test) stage test tests ;;
	build)
		stage build build
		[ -z "$failed" ] || finish # the other stages could only say the same, each in its way
		;;
	format | tidy | vet | staticcheck | lint | race | invariants | cost | fuzz) stage "$name" "$name" ;;
	*)
		echo "check.sh: no stage $name" >&2
		exit 2
		;;
	esac
done
finish
