package streaming_test

import (
	"testing"

	"github.com/flott-dev/flott/conformance"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/internal/operator/sessions"
	"github.com/flott-dev/flott/internal/operator/windows"
	"github.com/flott-dev/flott/window"
)

// sessionPath makes the driver of the fast path of session windows.
func sessionPath(_ *windowCase, spec windows.Spec, assigner any, k *windows.Incremental) operator.Operator {
	a := assigner.(window.SessionAssigner)
	return sessions.New(spec, sessions.Gap{Millis: a.Gap()}, a.Domain(), k)
}

// TestSessionPathVectors runs the cases that the plan would give to the fast path of session windows on it.
func TestSessionPathVectors(t *testing.T) {
	cases, _ := conformance.Load(t, "streaming", "window_operator")
	taken := 0
	for _, c := range cases {
		var v windowCase
		c.Decode(t, &v)
		if !ofSessionPath(&v) {
			continue
		}
		taken++
		run := func(t *testing.T, _ conformance.Case, w conformance.Way) {
			t.Run("fixed", func(t *testing.T) { runWindowLayout(t, &v, w, sessionPath, fixedWindowRecords()) })
			t.Run("text", func(t *testing.T) { runWindowLayout(t, &v, w, sessionPath, textWindowRecords()) })
			t.Run("encoded", func(t *testing.T) { runWindowLayout(t, &v, w, sessionPath, slicesOfWindowRecords()) })
		}
		t.Run(c.ID, func(t *testing.T) { conformance.EachWay(run)(t, c) })
	}
	if taken < 4 {
		t.Errorf("%d cases, want 4 at least", taken)
	}
}

// ofSessionPath says whether a case is one of the fast path.
func ofSessionPath(v *windowCase) bool {
	sessional := v.Assigner.Kind == "session_event_time" || v.Assigner.Kind == "session_processing_time"
	usual := v.Trigger.Kind == "event_time" || v.Trigger.Kind == "processing_time"
	return sessional && usual && v.Evictor == nil && v.Function.State == "reducing"
}
