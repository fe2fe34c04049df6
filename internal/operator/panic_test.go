package operator

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// recovered is the panic of f.
func recovered(f func()) (p *Panic) {
	defer func() { p = Recovered(recover()) }()
	f()
	return nil
}

func TestPanicsSayWhereTheyWere(t *testing.T) {
	cause := errors.New("cause")
	var m map[string]int
	var zero, none []int
	for name, f := range map[string]func(){
		"own":      func() { panic(cause) },
		"index":    func() { _ = none[len(none)] },
		"nil map":  func() { m["x"] = 1 },
		"division": func() { _ = 1 / len(zero) },
		"pointer":  func() { var p *Panic; _ = p.Place },
	} {
		p := recovered(f)
		if !strings.HasPrefix(p.Place, "operator/panic_test.go:") || !strings.Contains(string(p.Stack), "TestPanicsSayWhereTheyWere") {
			t.Errorf("%s: at %q, stack %s", name, p.Place, p.Stack)
		}
		if (name == "own") != errors.Is(p, cause) {
			t.Errorf("%s: wraps the cause: %v", name, errors.Is(p, cause))
		}
		text, stack := WithoutStack(fmt.Errorf("first: %w; last", p))
		if strings.Contains(text, "\n") || !strings.HasPrefix(text, "first: panic: ") || !strings.HasSuffix(text, p.Place+"); last") || stack != string(p.Stack) {
			t.Errorf("%s: on one line: %s", name, text)
		}
	}
	if text, stack := WithoutStack(cause); text != "cause" || stack != "" {
		t.Errorf("an error without a stack: %q, %q", text, stack)
	}
}
