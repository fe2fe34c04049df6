// Package backendtest is the suite that every state backend must pass: what the contract in package statebackend says of
// tables, runs, addresses, namespaces, times to live, memory, snapshots, restore and timers (of stores that keep them), tried case by case and by random
// operations against models. It owns no backend and knows nothing of how one works; a backend's tests call Run.
package backendtest

import (
	"testing"

	"github.com/flott-dev/flott/statebackend"
)

// Run tests the backends that open gives. It calls open once for each store that it opens, several of them at a time and
// from several goroutines, so that a backend may be given a folder of its own each time. A store is closed by the end of
// the test that opened it.
func Run(t *testing.T, open func() statebackend.Backend) {
	t.Helper()
	for _, c := range []struct {
		name string
		f    func(t *tester)
	}{
		{"value table equals map", valueTableEqualsMap},
		{"namespaced value table equals map", namespacedValueTableEqualsMap},
		{"refused value leaves the state as it was", refusedValueLeavesTheStateAsItWas},
		{"list table equals map of slices", listTableEqualsMapOfSlices},
		{"list refuses changes while iterated", listRefusesChangesWhileIterated},
		{"long list is read in order", longListIsReadInOrder},
		{"map table equals map of maps", mapTableEqualsMapOfMaps},
		{"map may change while iterated", mapMayChangeWhileIterated},
		{"map iterations nest", mapIterationsNest},
		{"value expires", valueExpires},
		{"value time is renewed by reads if asked", valueTimeIsRenewedByReadsIfAsked},
		{"expired value is returned once if asked", expiredValueIsReturnedOnceIfAsked},
		{"slots of expired values are fresh", slotsOfExpiredValuesAreFresh},
		{"list elements expire one by one", listElementsExpireOneByOne},
		{"map entries expire one by one", mapEntriesExpireOneByOne},
		{"tables that nobody opens are kept", tablesThatNobodyOpensAreKept},
		{"values evolve at restore", valuesEvolveAtRestore},
		{"restore refuses what does not fit", restoreRefusesWhatDoesNotFit},
		{"time to live goes on over restore", timeToLiveGoesOnOverRestore},
		{"frozen rows are those of the moment", frozenRowsAreThoseOfTheMoment},
		{"addresses stay good for the whole run", addressesStayGoodForTheWholeRun},
		{"keys of a run may come twice", keysOfARunMayComeTwice},
		{"lookaheads tell no lies", lookaheadsTellNoLies},
		{"only fixed values have addresses", onlyFixedValuesHaveAddresses},
		{"values are copies", valuesAreCopies},
		{"map slots are addresses", mapSlotsAreAddresses},
		{"stores refuse what they cannot keep", storesRefuseWhatTheyCannotKeep},
		{"namespaces stay selected", namespacesStaySelected},
		{"budgets are kept", budgetsAreKept},
		{"snapshots outlive their store", snapshotsOutliveTheirStore},
		{"snapshots tell their tables", snapshotsTellTheirTables},
		{"changes make the whole", changesMakeTheWhole},
		{"changes tell what is gone", changesTellWhatIsGone},
		{"changes of unopened tables", changesOfUnopenedTables},
		{"ranges end when they are told", rangesEndWhenTheyAreTold},
		{"timers are an ordered set", timersAreAnOrderedSet},
		{"timers of one time are taken in parts", timersOfOneTimeAreTakenInParts},
		{"timers move to other key groups", timersMoveToOtherKeyGroups},
		{"timers are refused", timersAreRefused},
		{"timers that nobody opens are dropped", timersThatNobodyOpensAreDropped},
	} {
		(&tester{t, open}).Run(c.name, c.f)
	}
}
