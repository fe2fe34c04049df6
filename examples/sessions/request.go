package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Request is a line of an access log.
type Request struct {
	Client string
	At     time.Time
	Method string
	Path   string
	Status int
	Bytes  int64
}

// parseRequest reads a line in the common log format:
//
//	client ident user [02/Jan/2006:15:04:05 -0700] "GET /path HTTP/1.1" status bytes
//
// Anything may follow, as in the combined format.
func parseRequest(line string) (Request, error) {
	var r Request
	client, rest, ok := strings.Cut(line, " ")
	_, rest, opened := strings.Cut(rest, "[")
	stamp, rest, closed := strings.Cut(rest, "] \"")
	request, rest, quoted := strings.Cut(rest, "\" ")
	if !ok || !opened || !closed || !quoted {
		return r, fmt.Errorf("parse a line of an access log: %q is in another format", line)
	}
	at, err := time.Parse("02/Jan/2006:15:04:05 -0700", stamp)
	if err != nil {
		return r, fmt.Errorf("parse the time of a request: %w", err)
	}
	r.Client, r.At = client, at.UTC()
	asked, answered := strings.Fields(request), strings.Fields(rest)
	if len(asked) < 2 || len(answered) < 2 {
		return r, fmt.Errorf("parse a line of an access log: %q lacks fields", line)
	}
	r.Method, r.Path = asked[0], asked[1]
	if r.Status, err = strconv.Atoi(answered[0]); err != nil {
		return r, fmt.Errorf("parse the status of a request: %w", err)
	}
	if answered[1] == "-" { // no body
		return r, nil
	}
	if r.Bytes, err = strconv.ParseInt(answered[1], 10, 64); err != nil {
		return r, fmt.Errorf("parse the size of an answer: %w", err)
	}
	return r, nil
}
