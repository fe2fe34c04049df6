// Package rest serves Flink's REST API (version 1) over the jobs of one process: paths, JSON and status codes as Flink's
// clients, dashboards and operators know them. It owns the words of the protocol, the results of asynchronous operations and
// the list of jobs that have ended. It never runs or plans a job: it asks what package env hands it through the interface
// Job. It knows no authentication, and therefore listens on loopback addresses unless it is told otherwise.
package rest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/internal/clock"
)

// Options say how an endpoint behaves.
type Options struct {
	// Host is the name or address to listen at, "" is 127.0.0.1. Ports are tried in turn; 0 is any free one.
	Host  string
	Ports []int
	// Remote lets Host be an address that other machines reach.
	Remote bool
	// History is how many ended jobs stay listed.
	History int
	// Keep is how long results of asynchronous operations stay after their end.
	Keep time.Duration
	// Linger is how long an ended job waits for its results to be fetched.
	Linger time.Duration
	// MaxContent bounds the bytes of a request.
	MaxContent int64
	Clock      clock.Clock
	// After is time.After.
	After func(time.Duration) <-chan time.Time
	// Version and Commit are those of the program.
	Version, Commit string
	Zone            *time.Location
	// Disk is where savepoints are that are to be disposed of, by the path or URL that a client names.
	Disk func(path string) (checkpoint.FS, string, error)
}

// DefaultOptions are those of an endpoint for which nothing is set: port 8081, as Flink's.
func DefaultOptions() Options {
	return Options{
		Ports: []int{DefaultPort}, History: 5, Keep: 5 * time.Minute, Linger: 5 * time.Second, MaxContent: 100 << 20,
		Clock: clock.NewSystem(), After: time.After, Version: "unknown", Commit: "unknown", Zone: time.Local,
	}
}

// DefaultPort is the port of Flink's REST endpoint.
const DefaultPort = 8081

// Server is the endpoint of a process. It listens as long as somebody holds it.
type Server struct {
	opt Options
	ops *operations

	mu       sync.Mutex
	holds    int
	listener net.Listener
	http     *http.Server
	address  string // where it listens, or listened last
	jobs     []*entry
}

// entry is a job in the list.
type entry struct {
	job   Job
	facts *Facts
	ended bool
}

// New returns an endpoint that does not listen yet.
func New(opt Options) *Server { return &Server{opt: opt, ops: newOperations(opt.Clock, opt.Keep)} }

// Hold is the right of one job to be served.
type Hold struct {
	server *Server
	once   sync.Once
	over   chan struct{}
}

// Open has the endpoint listen, if it does not yet, until the hold is released. It refuses addresses that other machines
// reach unless that is allowed.
func (s *Server) Open() (*Hold, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener == nil {
		l, err := s.listen()
		if err != nil {
			return nil, err
		}
		s.listener, s.address = l, l.Addr().String()
		s.http = &http.Server{Handler: s.handler(), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 5 * time.Minute}
		go func(h *http.Server) { _ = h.Serve(l) }(s.http) // it ends with the listener
	}
	s.holds++
	return &Hold{server: s, over: make(chan struct{})}, nil
}

// Address is host and port at which the endpoint listens, or listened last; "" if it never did.
func (s *Server) Address() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.address
}

// CheckHost refuses hosts that are not on loopback.
func CheckHost(host string) error {
	if ip := net.ParseIP(host); host == "" || host == "localhost" || ip != nil && ip.IsLoopback() {
		return nil
	}
	return fmt.Errorf("%s is not a loopback address (127.0.0.1, ::1, localhost): the endpoint has no authentication yet, so that everybody who reaches it could stop jobs and delete savepoints; put a proxy with authentication before it, or allow it by AllowRemote in a network that you trust", host)
}

func (s *Server) listen() (net.Listener, error) {
	host := s.opt.Host
	if !s.opt.Remote {
		if err := CheckHost(host); err != nil {
			return nil, fmt.Errorf("serve REST: %w", err)
		}
	}
	if host == "" || host == "localhost" {
		host = "127.0.0.1"
	}
	ports := s.opt.Ports
	if _, last, err := net.SplitHostPort(s.address); err == nil { // the clients' port, if it is still free
		if n, err := strconv.Atoi(last); err == nil {
			ports = append([]int{n}, ports...)
		}
	}
	var errs []error
	for _, port := range ports {
		l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
		if err == nil {
			return l, nil
		}
		errs = append(errs, err)
	}
	return nil, fmt.Errorf("serve REST: %w", errors.Join(errs...))
}

// ParsePorts reads ports: one, several with commas between, ranges with a dash: "8081", "8081,0", "50100-50200".
func ParsePorts(text string) ([]int, error) {
	var ports []int
	for part := range strings.SplitSeq(text, ",") {
		first, last, ranged := strings.Cut(strings.TrimSpace(part), "-")
		if !ranged {
			last = first
		}
		from, err := strconv.ParseUint(first, 10, 16)
		to, err2 := strconv.ParseUint(last, 10, 16)
		if err != nil || err2 != nil || to < from {
			return nil, fmt.Errorf("%q is no port: write one from 0 (any free one) to 65535, a range (8081-8090), or several with commas between", part)
		}
		for p := from; p <= to; p++ {
			ports = append(ports, int(p))
		}
	}
	return ports, nil
}

// Serve lists a job. When the job has ended and the results of what clients asked of it are fetched, or the time for that is
// over, the hold is released.
func (h *Hold) Serve(job Job) {
	s := h.server
	job = &metered{Job: job}
	e := &entry{job: job, facts: job.Facts()}
	s.mu.Lock()
	s.jobs = append(s.jobs, e)
	s.mu.Unlock()
	go func() {
		defer h.Release()
		<-job.Done()
		archived := archive(job)
		s.mu.Lock()
		e.job, e.ended = archived, true
		s.forget()
		s.mu.Unlock()
		s.ops.settled(e.facts.ID, s.opt.After(s.opt.Linger))
	}()
}

// grace is how long answers under way are waited for: connections on which nobody has asked anything count as such.
const grace = time.Second

// Release ends the hold. The last one ends the listening, after the answers that are under way. It may be called again.
func (h *Hold) Release() {
	h.once.Do(func() {
		s := h.server
		s.mu.Lock()
		defer s.mu.Unlock()
		defer close(h.over)
		s.holds--
		if s.holds > 0 {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), grace)
		defer cancel()
		server := s.http
		_ = s.listener.Close() // at once, so that who opens the endpoint again finds the port free
		s.listener, s.http = nil, nil
		s.mu.Unlock() // requests look at the jobs
		if err := server.Shutdown(ctx); err != nil {
			_ = server.Close() // a client that does not read its answer
		}
		s.mu.Lock()
	})
}

// Released is closed when the hold has been released.
func (h *Hold) Released() <-chan struct{} { return h.over }

// forget drops the oldest ended jobs that are too many.
func (s *Server) forget() {
	ended := 0
	for _, e := range s.jobs {
		if e.ended {
			ended++
		}
	}
	kept := s.jobs[:0]
	for _, e := range s.jobs {
		if e.ended && ended > s.opt.History {
			ended--
			continue
		}
		kept = append(kept, e)
	}
	clear(s.jobs[len(kept):])
	s.jobs = kept
}

// list are the jobs, oldest first.
func (s *Server) list() []Job {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Job, len(s.jobs))
	for i, e := range s.jobs {
		out[i] = e.job
	}
	return out
}

// find is the job of that id, nil if there is none.
func (s *Server) find(id string) Job {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.jobs {
		if e.facts.ID == id {
			return e.job
		}
	}
	return nil
}
