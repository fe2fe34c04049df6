package flotttest

import (
	"strings"
	"testing"
)

func lingering(stop chan struct{}, started chan<- struct{}) {
	close(started)
	<-stop
}

func TestLeftOverGoroutinesAreFoundWithTheirStacks(t *testing.T) {
	before := goroutines()
	stop, started := make(chan struct{}), make(chan struct{})
	go lingering(stop, started)
	<-started
	left := leftOver(before, 0)
	close(stop)
	if len(left) != 1 || !strings.Contains(left[0], "flotttest.lingering") {
		t.Errorf("left over: %q", left)
	}
	if left := leftOver(before, leakPatience); len(left) != 0 {
		t.Errorf("still left over: %q", left)
	}
}
