package operator

import "testing"

func TestRecordsAreToldFromRuns(t *testing.T) {
	for text, want := range map[string]bool{
		"": false, "in a run of 3 elements": false, "in a run of 1 element": false, AtHand(Named("key", 7)): true, AtHand("element 1"): true,
	} {
		if NamesRecord(text) != want {
			t.Errorf("%q names a record: %v", text, !want)
		}
	}
}

func TestTimestampsAreTakenOutOfRecords(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "at element 7": "at element 7", "at element 7 (timestamp 12)": "at element 7",
		"at key 1, left 2 (timestamp -5), right 3 (timestamp 6)": "at key 1, left 2, right 3", "at element (timestamp": "at element (timestamp",
	} {
		if got := WithoutTimestamps(text); got != want {
			t.Errorf("%q becomes %q, not %q", text, got, want)
		}
	}
}
