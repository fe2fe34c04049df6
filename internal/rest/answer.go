package rest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// failure is an error with the status of its answer.
type failure struct {
	status int
	text   string
}

// Error is what the client reads.
func (f *failure) Error() string { return f.text }

func refuse(status int, format string, args ...any) error {
	return &failure{status, fmt.Sprintf(format, args...)}
}

// handle is a path's work: it gives what is answered as JSON.
type handle func(r *http.Request) (any, error)

// answer writes what h gives, with that status if it works.
func (s *Server) answer(status int, h handle) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := s.admit(r); err != nil {
			fail(w, err)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, s.opt.MaxContent)
		v, err := h(r)
		if err != nil {
			fail(w, err)
			return
		}
		send(w, status, v)
	}
}

func fail(w http.ResponseWriter, err error) {
	f, ok := errors.AsType[*failure](err)
	if !ok {
		f = &failure{http.StatusInternalServerError, err.Error()}
	}
	send(w, f.status, map[string][]string{"errors": {f.text}})
}

func send(w http.ResponseWriter, status int, v any) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		status = http.StatusInternalServerError
		b.Reset()
		fmt.Fprintf(&b, "{\"errors\":[%q]}\n", "encode the answer: "+err.Error())
	}
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	w.Header().Set("Content-Length", strconv.Itoa(b.Len()))
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // a client that has gone away
}

// admit refuses requests that a web page of somebody else makes a browser send: those from another origin, and those that
// name this address by a host name of the page's (DNS rebinding).
func (s *Server) admit(r *http.Request) error {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
	default:
		return refuse(http.StatusForbidden, "requests from pages of other origins are not answered")
	}
	if s.opt.Remote {
		return nil
	}
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = strings.Trim(r.Host, "[]")
	}
	if CheckHost(host) != nil || host == "" {
		return refuse(http.StatusForbidden, "the endpoint is called by a loopback address or localhost, not by %q", r.Host)
	}
	return nil
}

// isID reports whether a text is 32 lower-case hex digits.
func isID(s string) bool {
	return len(s) == 32 && strings.Trim(s, "0123456789abcdef") == ""
}

// pathID is a part of the path that is an id.
func pathID(r *http.Request, name string) (string, error) {
	id := r.PathValue(name)
	if !isID(id) {
		return "", refuse(http.StatusBadRequest, "Cannot resolve path parameter (%s) from value %q: it must be 32 hex digits in lower case", name, id)
	}
	return id, nil
}

// pathNumber is a part of the path that is a number.
func pathNumber(r *http.Request, name string) (int64, error) {
	n, err := strconv.ParseInt(r.PathValue(name), 10, 64)
	if err != nil {
		return 0, refuse(http.StatusBadRequest, "Cannot resolve path parameter (%s) from value %q: it must be a number", name, r.PathValue(name))
	}
	return n, nil
}

// body reads the JSON object of a request into v; an empty body is an empty object. Unknown fields are ignored, null for one
// of the primitives is refused.
func body(r *http.Request, v any, primitives ...string) error {
	var b bytes.Buffer
	if _, err := b.ReadFrom(r.Body); err != nil {
		if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
			return refuse(http.StatusRequestEntityTooLarge, "the request is larger than %d bytes", err.(*http.MaxBytesError).Limit)
		}
		return refuse(http.StatusBadRequest, "read the request: %v", err)
	}
	if len(bytes.TrimSpace(b.Bytes())) == 0 {
		return nil
	}
	var fields map[string]json.RawMessage
	err := json.Unmarshal(b.Bytes(), &fields)
	if err == nil {
		err = json.Unmarshal(b.Bytes(), v)
	}
	if err != nil {
		return refuse(http.StatusBadRequest, "Request did not match expected format: %v", err)
	}
	for _, name := range primitives {
		if string(fields[name]) == "null" {
			return refuse(http.StatusBadRequest, "Request did not match expected format: %s must not be null", name)
		}
	}
	return nil
}

// queryList is a query parameter whose values have commas between; it may be given several times.
func queryList(r *http.Request, name string) []string {
	var out []string
	for _, v := range r.URL.Query()[name] {
		for part := range strings.SplitSeq(v, ",") {
			if part = strings.TrimSpace(part); part != "" && !slices.Contains(out, part) {
				out = append(out, part)
			}
		}
	}
	return out
}
