# What the scripts share. Sourced by POSIX sh from the top of the repository; sets the toolchain so that a script run by
# hand behaves as it does under make.

GOTOOLCHAIN=${GOTOOLCHAIN:-go1.27.3}
export GOTOOLCHAIN

# modules prints the folder of each module of the workspace, relative to the top, one a line. The tools' module is not
# part of the workspace: its dependencies must not take part in choosing ours.
modules() {
	go list -m -f '{{.Dir}}' | while IFS= read -r dir; do
		case $dir in
		"$PWD") echo . ;;
		*) echo "./${dir#"$PWD"/}" ;;
		esac
	done
}

# patterns prints the package patterns that name every package of every module.
patterns() {
	for m in $(modules); do printf '%s/... ' "$m"; done
}

# tool builds the named program at the version pinned in tools/go.mod, into Go's build cache, and prints its path.
tool() {
	GOWORK=off go -C tools tool -n "$1"
}

# fuzz_targets prints "package target", one a line, for every fuzz target of the packages given. A package that does not
# build is an error.
fuzz_targets() {
	for pkg in $(go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.Dir}}{{end}}' "$@"); do
		rel=./${pkg#"$PWD"/}
		grep -hoE '^func Fuzz[A-Za-z0-9_]*\(' "$pkg"/*_test.go 2>/dev/null | sed 's/^func //; s/($//' | sort -u |
			while IFS= read -r target; do echo "$rel $target"; done
	done
}

# fuzz_one TARGET PACKAGE TIME runs one fuzz target. The go command sometimes reports the end of the time itself as a
# failure ("context deadline exceeded") although no input failed; only then is the run repeated, once.
fuzz_one() {
	log=$(mktemp)
	if go test -run='^$' -fuzz="^$1\$" -fuzztime="$3" -fuzzminimizetime=1x "$2" >"$log" 2>&1; then
		tail -n 1 "$log"
		rm -f "$log"
		return 0
	fi
	cat "$log"
	if grep -q 'context deadline exceeded' "$log" && ! grep -q 'Failing input written' "$log"; then
		rm -f "$log"
		echo "repeating $1: the time was over, no input failed"
		go test -run='^$' -fuzz="^$1\$" -fuzztime="$3" -fuzzminimizetime=1x "$2"
		return
	fi
	rm -f "$log"
	return 1
}

# stage NAME COMMAND... runs a command, prints how long it took, and notes a failure in $failed; the later stages still
# run, so that one report shows everything that is wrong.
failed=
summary=
stage() {
	name=$1
	shift
	printf '\n== %s\n' "$name"
	start=$(date +%s)
	if "$@"; then
		verdict=ok
	else
		verdict=FAILED
		failed="$failed $name"
	fi
	took=$(($(date +%s) - start))
	printf '== %s: %s (%d s)\n' "$name" "$verdict" "$took"
	summary="$summary$(printf '%-14s %-7s %5d s' "$name" "$verdict" "$took")
"
}

# finish prints the table of stages and ends the script with their verdict.
finish() {
	printf '\n%s' "$summary"
	if [ -n "$failed" ]; then
		printf 'FAILED:%s\n' "$failed"
		exit 1
	fi
	echo "all stages passed"
	exit 0
}
