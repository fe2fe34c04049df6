package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/flott-dev/flott/internal/config"
)

// defaultEndpoint is where a job is looked for if the user does not say.
const defaultEndpoint = "127.0.0.1:8081"

// savepointKey names where savepoints lie that are taken without a folder.
const savepointKey = "execution.checkpointing.savepoint-dir"

// endpoint is which endpoint a command calls, and how, as its flags say.
type endpoint struct {
	flags *flag.FlagSet
	m     string            // of -m
	keys  map[string]string // of -D
	saves bool              // the command takes savepoints
}

// endpointFlags declares the flags that name the endpoint. saves says that the command takes savepoints.
func endpointFlags(f *flag.FlagSet, saves bool) *endpoint {
	e := &endpoint{flags: f, keys: map[string]string{}, saves: saves}
	f.StringVar(&e.m, "m", defaultEndpoint, "`HOST:PORT` of the job's REST endpoint")
	f.StringVar(&e.m, "jobmanager", defaultEndpoint, "the same as -m `HOST:PORT`")
	usage := "set a key for this call: `KEY=VALUE`, several times; rest.address and rest.port do what -m does, client.timeout is how long an answer is waited for"
	if saves {
		usage += ", " + savepointKey + " is DIR if there is none"
	}
	keysFlag(f, e.keys, usage)
	return e
}

// named says whether the user has said which endpoint he means.
func (e *endpoint) named(c *config.Config) bool {
	_, host := c.Entry("rest.address")
	_, port := c.Entry("rest.port")
	return host || port || isSet(e.flags, "m", "jobmanager")
}

// configuration is what the keys say.
func (e *endpoint) configuration() (*config.Config, error) {
	c, err := config.ResolveClient(config.Texts("-D", e.keys))
	if err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	return c, nil
}

// address is host and port: those of -m, else of the keys.
func (e *endpoint) address(c *config.Config) (string, error) {
	if isSet(e.flags, "m", "jobmanager") || !e.named(c) {
		host, port, err := net.SplitHostPort(e.m)
		if err != nil || port == "" {
			return "", &usageError{text: fmt.Sprintf("-m %q is no endpoint: write HOST:PORT, as in %s", e.m, defaultEndpoint)}
		}
		if host == "" {
			return "127.0.0.1:" + port, nil
		}
		return e.m, nil
	}
	host, port, _ := net.SplitHostPort(defaultEndpoint)
	if h, ok := c.Text("rest.address"); ok {
		host = h
	}
	if p, ok := c.Integer("rest.port"); ok {
		port = strconv.Itoa(p)
	}
	return net.JoinHostPort(host, port), nil
}

// client calls a job's REST endpoint.
type client struct {
	address    string
	http       *http.Client
	patience   time.Duration
	savepoints string // where they are to lie if the user names no folder; "": the job knows
}

// minute is how long a client waits for an answer, as Flink's does.
const minute = time.Minute

// client is one that calls the endpoint. Keys that do nothing for the command are told.
func (a *app) client(e *endpoint) (*client, error) {
	keys, err := e.configuration()
	if err != nil {
		return nil, err
	}
	address, err := e.address(keys)
	if err != nil {
		return nil, err
	}
	a.warn(keys.Warnings())
	c := &client{address: address, patience: cmp.Or(a.patience, minute)}
	if d, ok := keys.Duration("client.timeout"); ok {
		c.patience = d
	}
	if c.savepoints, _ = keys.Text(savepointKey); c.savepoints != "" && !e.saves {
		a.warn([]string{"-D: ignored, as the command takes no savepoint: " + savepointKey})
	}
	c.http = &http.Client{Timeout: c.patience}
	return c, nil
}

// statusError is an answer that is an error.
type statusError struct {
	status int
	texts  []string
}

// Error is what the endpoint said.
func (e *statusError) Error() string {
	return fmt.Sprintf("%s (HTTP status %d)", strings.Join(e.texts, "; "), e.status)
}

// do makes a request; in, unless nil, is its body, and the answer goes to out, unless that is nil.
func (c *client) do(method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return fmt.Errorf("encode the request: %w", err)
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(context.Background(), method, "http://"+c.address+"/v1"+path, body)
	if err != nil {
		return fmt.Errorf("call the job's endpoint: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.http.Do(req)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("no job is served at %s: start a program by flott run, or with stream.WithREST, or name another endpoint by -m: %w", c.address, err)
	case err != nil:
		return fmt.Errorf("call the endpoint at %s: %w", c.address, err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Errorf("read the answer of %s: %w", c.address, err)
	}
	if resp.StatusCode >= 300 {
		var e struct{ Errors []string }
		if json.Unmarshal(b, &e) != nil || len(e.Errors) == 0 {
			e.Errors = []string{fmt.Sprintf("%s answered %q, and is no endpoint of a job", c.address, firstLine(string(b)))}
		}
		return &statusError{resp.StatusCode, e.Errors}
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(b, out); err != nil {
		return fmt.Errorf("read the answer of %s, which is no endpoint of a job: %w", c.address, err)
	}
	return nil
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line[:min(len(line), 200)]
}

// cause is a failure in the result of an operation.
type cause struct {
	Class string `json:"class"`
	Stack string `json:"stack-trace"`
}

func (c *cause) err() error {
	if c == nil {
		return nil
	}
	if c.Stack == "" {
		return errors.New(c.Class)
	}
	return errors.New(c.Stack)
}

// operation is the result of an operation of any kind.
type operation struct {
	Location        string `json:"location"`
	CheckpointID    int64  `json:"checkpointId"`
	FailureCause    *cause `json:"failure-cause"`
	CheckpointCause *cause `json:"failureCause"`
}

// trigger starts an operation and gives its number.
func (c *client) trigger(path string, body any) (string, error) {
	var started struct {
		Request string `json:"request-id"`
	}
	err := c.do("POST", path, body, &started)
	return started.Request, err
}

// await asks for the result of an operation, less and less often, until it is there.
func (c *client) await(path string) (*operation, error) {
	deadline := time.Now().Add(c.patience)
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, time.Second/2) {
		var answer struct {
			Status    struct{ ID string }
			Operation *operation
		}
		if err := c.do("GET", path, nil, &answer); err != nil {
			return nil, err
		}
		if answer.Status.ID == "COMPLETED" && answer.Operation != nil {
			if err := errors.Join(answer.Operation.FailureCause.err(), answer.Operation.CheckpointCause.err()); err != nil {
				return nil, err
			}
			return answer.Operation, nil
		}
		if time.Now().Add(pause).After(deadline) {
			return nil, fmt.Errorf("there was no answer for %v; what was asked for goes on", c.patience)
		}
		time.Sleep(pause)
	}
}

// checkID refuses what is no job's id.
func checkID(command, id string) error {
	if len(id) != 32 || strings.Trim(id, "0123456789abcdefABCDEF") != "" {
		return &usageError{command, fmt.Sprintf("%q is not a valid job ID: it has 32 hex digits, and flott list shows it", id)}
	}
	return nil
}
