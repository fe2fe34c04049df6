#!/bin/sh
# Long runs, for the night: what make check does with few seeds and seconds, done with many.
#   scripts/soak.sh            all stages
#   scripts/soak.sh STAGE...   these stages only: seeds, invariants, repeat, fuzz, mutation
#   FLOTT_SOAK    how many times as many seeds the property and simulation tests take (default 50)
#   SOAK_FUZZ     time for each fuzz target (default 60s)
#   SOAK_REPEAT   how many times the race run is repeated, each time in another order (default 3)
#   SOAK_MUTANTS  how many conditions the mutation check flips at most (default 200); it has ten minutes for each unit of
#                 FLOTT_SOAK, and keeps what it found when it is interrupted
#   SOAK_LOG      where the mutation check writes what it finds, too (default: a file for each seed in the temporary folder)
#   SOAK_SEED     chooses the conditions and the order of tests; printed, so that a night can be repeated
set -u
cd "$(dirname "$0")/.." || exit 1
. scripts/lib.sh
go version || exit 1
all=$(patterns)
seed=${SOAK_SEED:-$(date +%s)}
FLOTT_SOAK=${FLOTT_SOAK:-50}
export FLOTT_SOAK
echo "FLOTT_SOAK=$FLOTT_SOAK SOAK_SEED=$seed"

seeds() { go test -count=1 -timeout 4h $all; }
invariants() { go test -count=1 -timeout 4h -tags invariants $all; }

repeat() {
	FLOTT_SOAK=1 go test -race -count="${SOAK_REPEAT:-3}" -shuffle="$seed" -timeout 4h $all
}

fuzz() {
	targets=$(fuzz_targets $all) || return 1
	bad=0
	while read -r pkg target; do
		[ -n "$pkg" ] || continue
		echo "$pkg $target"
		fuzz_one "$target" "$pkg" "${SOAK_FUZZ:-60s}" || bad=1
	done <<EOF
$targets
EOF
	return $bad
}

# A flip that the tests of its package let pass is shown to those of the packages that depend on it, the nearest first, for a
# minute for each unit of FLOTT_SOAK.
mutation() {
	log=${SOAK_LOG:-${TMPDIR:-/tmp}/flott-mutation-$seed.log}
	echo "outcomes are kept in $log"
	minutes=$FLOTT_SOAK
	FLOTT_SOAK=1 go run ./internal/lint/mutate -n "${SOAK_MUTANTS:-200}" -seed "$seed" \
		-for "$((minutes * 10))m" -wide "${minutes}m" -min 90 -log "$log"
}

[ $# -gt 0 ] || set -- seeds invariants repeat fuzz mutation
for name; do
	case $name in
	seeds | invariants | repeat | fuzz | mutation) stage "$name" "$name" ;;
	*)
		echo "soak.sh: no stage $name" >&2
		exit 2
		;;
	esac
done
finish
