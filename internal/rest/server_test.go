package rest

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// listening is the rig's endpoint at a free port, with no jobs.
func listening(t *testing.T, after func(time.Duration) <-chan time.Time) *rig {
	t.Helper()
	r := newRig(t)
	r.jobs, r.opt.Ports = nil, []int{0}
	if after != nil {
		r.opt.After = after
	}
	return r
}

func get(address, path string) (string, error) {
	resp, err := http.Get("http://" + address + path)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return string(b), err
}

func atNoTime(time.Duration) <-chan time.Time { return nil }

func TestEndpointListensWhileItIsHeld(t *testing.T) {
	r := listening(t, atNoTime)
	first, err := r.Open()
	if err != nil {
		t.Fatal(err)
	}
	second, err := r.Open()
	if err != nil {
		t.Fatal(err)
	}
	address := r.Address()
	if host, _, err := net.SplitHostPort(address); err != nil || host != "127.0.0.1" {
		t.Errorf("it listens at %s", address)
	}
	first.Serve(r.running)
	second.Release()
	second.Release()
	if answer, err := get(address, "/v1/jobs/overview"); err != nil || !strings.Contains(answer, runningID) {
		t.Errorf("%s, %v", answer, err)
	}
	r.running.end("FINISHED")
	<-first.Released()
	if answer, err := get(address, "/v1/jobs/overview"); err == nil {
		t.Errorf("it still listens: %s", answer)
	}
	third, err := r.Open()
	if err != nil || r.Address() != address {
		t.Fatalf("the next job is served at %s and was at %s, %v", r.Address(), address, err)
	}
	if answer, err := get(address, "/jobs/"+runningID+"/status"); err != nil || strings.TrimSpace(answer) != `{"status":"FINISHED"}` {
		t.Errorf("the job before: %s, %v", answer, err)
	}
	third.Release()
}

func TestEndedJobWaitsForItsResultsToBeFetched(t *testing.T) {
	for _, fetched := range []bool{true, false} {
		limit := make(chan time.Time)
		r := listening(t, func(time.Duration) <-chan time.Time { return limit })
		hold, err := r.Open()
		if err != nil {
			t.Fatal(err)
		}
		hold.Serve(r.running)
		resp, err := http.Post("http://"+r.Address()+"/jobs/"+runningID+"/stop", "application/json", strings.NewReader(`{"triggerId":"`+ours+`"}`))
		if err != nil || resp.StatusCode != 202 {
			t.Fatalf("%v, %v", resp, err)
		}
		_ = resp.Body.Close()
		r.running.end("FINISHED")
		select {
		case <-hold.Released():
			t.Error("it did not wait")
		default:
		}
		if !fetched {
			limit <- time.Time{} // nobody reads it before there is something to wait for
			<-hold.Released()
			continue
		}
		for done := false; !done; {
			answer, err := get(r.Address(), "/jobs/"+runningID+"/savepoints/"+ours)
			if err != nil {
				t.Fatal(err)
			}
			done = strings.Contains(answer, completed)
		}
		<-hold.Released()
	}
}

func TestEndedJobsAreForgotten(t *testing.T) {
	r := listening(t, atNoTime)
	r.opt.History = 2
	keep, err := r.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer keep.Release()
	var want []string
	for i := range 4 {
		f := &fake{facts: facts(t, fmt.Sprintf("%032x", i), "job"), done: make(chan struct{}), view: view("RUNNING")}
		hold, err := r.Open()
		if err != nil {
			t.Fatal(err)
		}
		hold.Serve(f)
		want = append(want, f.facts.ID)
		if i != 1 {
			f.end("CANCELED")
			<-hold.Released()
		} else {
			defer func() { f.end("CANCELED"); <-hold.Released() }()
		}
	}
	_, answer := r.call("GET", "/jobs", "")
	var out jobIDs
	if err := json.Unmarshal([]byte(answer), &out); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, j := range out.Jobs {
		got = append(got, j.ID)
	}
	if !slices.Equal(got, want[1:]) {
		t.Errorf("listed are %v, want %v", got, want[1:])
	}
}

func TestOnlyLoopbackIsServed(t *testing.T) {
	for host, ok := range map[string]bool{
		"": true, "localhost": true, "127.0.0.1": true, "127.1.2.3": true, "::1": true, "0.0.0.0": false, "::": false, "10.1.2.3": false, "example.com": false,
	} {
		if err := CheckHost(host); (err == nil) != ok || err != nil && !strings.Contains(err.Error(), "no authentication") {
			t.Errorf("%q: %v", host, err)
		}
	}
	r := listening(t, nil)
	r.opt.Host = "0.0.0.0"
	if _, err := r.Open(); err == nil {
		t.Error("all addresses are served without leave")
	}
	r.opt.Remote = true
	hold, err := r.Open()
	if err != nil {
		t.Fatal(err)
	}
	hold.Release()
}

func TestFirstFreePortIsTaken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	taken := l.Addr().(*net.TCPAddr).Port
	r := listening(t, nil)
	r.opt.Ports = []int{taken}
	if _, err := r.Open(); err == nil || !strings.Contains(err.Error(), fmt.Sprint(taken)) {
		t.Errorf("a taken port: %v", err)
	}
	r.opt.Ports = []int{taken, 0}
	hold, err := r.Open()
	if err != nil {
		t.Fatal(err)
	}
	hold.Release()
}

func TestPortsAreRead(t *testing.T) {
	for text, want := range map[string][]int{
		"8081": {8081}, "0": {0}, "8081,0": {8081, 0}, "50100-50102": {50100, 50101, 50102}, "1, 3-4": {1, 3, 4},
		"": nil, "x": nil, "-1": nil, "65536": nil, "5-4": nil, "1,": nil,
	} {
		got, err := ParsePorts(text)
		if !slices.Equal(got, want) && want != nil || (err == nil) != (want != nil) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

// Jobs that begin while others end are served at the same port.
func TestPortIsFreeForTheNextJob(t *testing.T) {
	r := listening(t, atNoTime)
	first, err := r.Open()
	if err != nil {
		t.Fatal(err)
	}
	address := r.Address()
	r.opt.Ports = nil // but the one that it has had
	for range 50 {
		released := make(chan struct{})
		go func() {
			defer close(released)
			first.Release()
		}()
		next, err := r.Open()
		if err != nil || r.Address() != address {
			t.Fatalf("served at %s and before at %s, %v", r.Address(), address, err)
		}
		<-released
		first = next
	}
	first.Release()
}
