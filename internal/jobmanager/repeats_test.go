package jobmanager

import (
	"errors"
	"strings"
	"testing"

	"github.com/flott-dev/flott/internal/task"
)

// at is a failure of one operator at a record.
func at(record string) error {
	return &task.Error{Operator: "x", UID: "1", Record: record, Cause: errBoom}
}

// The same reason at other records is not the same record once more: people are told of each, and the job's error does not say
// that it was one.
func TestTheSameReasonAtOtherRecordsIsToldApart(t *testing.T) {
	const one, two, cut = "at element 1", "at element 2", `at element "aaa..."`
	for name, c := range map[string]struct {
		failures []error
		same     int
		record   int
		news     string // for each failure whether it is told
		want     string
	}{
		"one record":            {[]error{at(one), at(one), at(one), at(one)}, 4, 4, "yyny", "4 times in a row, at the same record each time: "},
		"with other timestamps": {[]error{at(one + " (timestamp 1)"), at(one + " (timestamp 2)")}, 2, 2, "yy", "2 times in a row, at the same record each time: "},
		"records in turn":       {[]error{at(one), at(two), at(one), at(two), at(one)}, 5, 1, "yyyyy", "5 times in a row, the last time at another record: "},
		"a new one at last":     {[]error{at(one), at(one), at(one), at(two), at(two)}, 5, 2, "yynyy", "5 times in a row, the last 2 times at the same record: "},
		"none is known":         {[]error{at(""), at(""), at("")}, 3, 0, "yyn", "3 times in a row: "},
		"runs":                  {[]error{at("in a run of 3 elements"), at("in a run of 4 elements")}, 2, 0, "yy", "2 times in a row: "},
		"known at last":         {[]error{at(""), at(""), at(one)}, 3, 1, "yyy", "3 times in a row: "},
		"not all of it":         {[]error{at(cut), at(cut)}, 2, 2, "yy", "2 times in a row: "},
		"of no operator":        {[]error{errBoom, errBoom}, 2, 0, "yy", "2 times in a row: "},
		"another reason":        {[]error{at(one), errors.New("other")}, 1, 0, "yy", "restarted once and failed again: "},
	} {
		var j Job
		news := ""
		for i, err := range c.failures {
			j.failed(i, err)
			news += map[bool]string{true: "y", false: "n"}[j.repeats.news()]
		}
		j.record.Restarts = len(c.failures) - 1
		last := j.record.Failures[0]
		if last.Same != c.same || last.SameRecord != c.record || news != c.news {
			t.Errorf("%s: %d failures, %d records, told %s", name, last.Same, last.SameRecord, news)
		}
		if text := j.gaveUp(c.failures[len(c.failures)-1]).Error(); !strings.Contains(text, c.want) {
			t.Errorf("%s: %s", name, text)
		}
	}
}
