package socket_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flott-dev/flott/connector"
	"github.com/flott-dev/flott/connector/file/filetest"
	"github.com/flott-dev/flott/connector/socket"
)

// server answers tries to connect, in order: with an error, or with a connection that a function serves.
type server struct {
	answers []any // error or func(net.Conn)
	times   []time.Duration
	start   time.Time
}

func (s *server) dial(context.Context, string, string) (net.Conn, error) {
	if s.start.IsZero() {
		s.start = time.Now()
	}
	s.times = append(s.times, time.Since(s.start))
	if len(s.answers) == 0 {
		return nil, syscall.ECONNREFUSED
	}
	answer := s.answers[0]
	s.answers = s.answers[1:]
	if err, ok := answer.(error); ok {
		return nil, err
	}
	client, peer := net.Pipe()
	go answer.(func(net.Conn))(peer)
	return client, nil
}

// says sends a text and hangs up.
func says(text string) func(net.Conn) {
	return func(c net.Conn) {
		_, _ = io.WriteString(c, text)
		_ = c.Close()
	}
}

// read reads a source to its end.
func read(src *socket.Source, parallelism int) ([]string, error) {
	d, err := filetest.Start(src, parallelism, 4, nil)
	if err != nil {
		return nil, err
	}
	for !d.Done() {
		if err := d.Run(); err != nil {
			return nil, errors.Join(err, d.Close())
		}
		if !d.Done() {
			<-d.Woken
		}
	}
	return slices.Concat(d.Out...), d.Close()
}

func TestLinesOfARealServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err == nil {
			says("a\r\nbb\n\nlast")(c)
		}
	}()
	got, err := read(socket.Text("127.0.0.1", l.Addr().(*net.TCPAddr).Port), 3)
	if err != nil || !slices.Equal(got, []string{"a", "bb", "", "last"}) {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestSourceConnectsAgain(t *testing.T) {
	refused := syscall.ECONNREFUSED
	half := 500 * time.Millisecond
	for name, c := range map[string]struct {
		answers []any
		retry   time.Duration
		want    []string
		err     error
		text    string
		times   []time.Duration
	}{
		"no server":        {nil, 0, nil, refused, "connect to nowhere:7", []time.Duration{0}},
		"server too late":  {[]any{refused, refused, refused}, time.Second, nil, refused, "connect to nowhere:7", []time.Duration{0, half, 2 * half}},
		"hangs up":         {[]any{says("a\nb")}, 0, []string{"a", "b"}, nil, "", []time.Duration{0}},
		"comes back":       {[]any{says("a\nb"), says("c\n"), says("d")}, half, []string{"a", "bc", "d"}, nil, "", []time.Duration{0, half, 2 * half, 3 * half}},
		"other delimiter":  {[]any{says("a$"), says("$b$$c")}, half, []string{"a", "b", "c"}, nil, "", []time.Duration{0, half, 2 * half}},
		"half of a second": {[]any{says("a\n")}, 1, []string{"a"}, nil, "", []time.Duration{0, half}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &server{answers: c.answers}
				src := socket.Text("nowhere", 7).MaxRetry(c.retry).DialWith(s.dial)
				if name == "other delimiter" {
					src = src.Delimiter("$$")
				}
				got, err := read(src, 1)
				if !slices.Equal(got, c.want) || !errors.Is(err, c.err) || (err == nil) != (c.err == nil) ||
					err != nil && !strings.Contains(err.Error(), c.text) {
					t.Errorf("got %q, %v", got, err)
				}
				if !slices.Equal(s.times, c.times) {
					t.Errorf("tries at %v, want %v", s.times, c.times)
				}
			})
		})
	}
}

func TestSourceThatTriesForEverEndsWhenClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		d, err := filetest.Start(socket.Text("nowhere", 7).MaxRetry(-time.Second).DialWith(s.dial), 1, 4, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := d.Run(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := len(s.times); n < 7200 {
			t.Errorf("%d tries in an hour", n)
		}
		if err := d.Close(); err != nil { // and the goroutine ends, or the bubble does not
			t.Error(err)
		}
	})
}

func TestABrokenConnectionIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		reset := func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := s.dial(ctx, network, address)
			return broken{c}, err
		}
		s.answers = []any{func(net.Conn) {}}
		_, err := read(socket.Text("nowhere", 7).DialWith(reset), 1)
		if !errors.Is(err, syscall.ECONNRESET) || !strings.Contains(err.Error(), "read from nowhere:7") {
			t.Errorf("got %v", err)
		}
	})
}

// broken is a connection that breaks when it is read.
type broken struct{ net.Conn }

func (broken) Read([]byte) (int, error) { return 0, syscall.ECONNRESET }

func TestSilentServerDoesNotKeepTheTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := false
		s := &server{answers: []any{func(c net.Conn) {
			_, _ = io.WriteString(c, "a\nb")
			_, err := c.Read(make([]byte, 1)) // until the source hangs up
			gone = err == io.EOF
		}}}
		d, err := filetest.Start(socket.Text("nowhere", 7).DialWith(s.dial), 1, 4, nil)
		if err != nil {
			t.Fatal(err)
		}
		for len(d.Out[0]) == 0 {
			if err := d.Run(); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		state, err := d.Snapshot()
		if err != nil || len(state.Splits) != 1 || fmt.Sprint(d.Out[0]) != "[a]" {
			t.Errorf("%v, %v, %v", d.Out, state, err)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if !gone {
			t.Error("the connection is still open")
		}
	})
}

func TestSourceReadsNoFurtherThanASmallBuffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sent := 0
		line := []byte(strings.Repeat("x", 1023) + "\n")
		s := &server{answers: []any{func(c net.Conn) {
			for {
				if _, err := c.Write(line); err != nil {
					return
				}
				sent += len(line)
			}
		}}}
		d, err := filetest.Start(socket.Text("nowhere", 7).DialWith(s.dial), 1, 4, nil)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if _, err := d.Step(); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		if sent == 0 || sent > 1<<20 {
			t.Errorf("the server could send %d bytes to a source that nobody polls", sent)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestSourceIsReadAnewAfterARestore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{answers: []any{says("b\n")}}
		src := socket.Text("nowhere", 7).DialWith(s.dial)
		d, err := filetest.Start(src, 2, 4, &filetest.State[socket.Split]{Enumerator: []byte{1}, Splits: []socket.Split{{Address: "nowhere:7"}}})
		if err != nil {
			t.Fatal(err)
		}
		for !d.Done() {
			if err := d.Run(); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		if got := slices.Concat(d.Out...); !slices.Equal(got, []string{"b"}) {
			t.Errorf("got %q", got)
		}
		if _, err := filetest.Start(src, 1, 4, &filetest.State[socket.Split]{Enumerator: []byte{9}}); err == nil {
			t.Error("a damaged snapshot is no error")
		}
	})
}

func TestSinkSendsToARealServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	got := make(chan string)
	go func() {
		c, err := l.Accept()
		if err != nil {
			got <- err.Error()
			return
		}
		text, _ := io.ReadAll(c)
		got <- string(text)
	}()
	sink := socket.NewSink("127.0.0.1", l.Addr().(*net.TCPAddr).Port, socket.Line)
	if err := filetest.Write(sink, &filetest.WriterContext{}, "a", "b"); err != nil {
		t.Fatal(err)
	}
	if text := <-got; text != "a\nb\n" {
		t.Errorf("the server got %q", text)
	}
}

// hears reads n lines, notes them and hangs up.
func hears(n int, lines *[]string) func(net.Conn) {
	return func(c net.Conn) {
		r := bufio.NewReaderSize(c, 16)
		for range n {
			line, err := r.ReadString('\n')
			if err != nil {
				break
			}
			*lines = append(*lines, strings.TrimSpace(line))
		}
		_ = c.Close()
	}
}

func TestSinkSendsUnsentRecordsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var first, second []string
		s := &server{answers: []any{hears(1, &first), syscall.ECONNREFUSED, hears(9, &second)}}
		w, err := socket.NewSink("nowhere", 7, socket.Line).Retries(2).DialWith(s.dial).Writer(&filetest.WriterContext{})
		if err != nil {
			t.Fatal(err)
		}
		xs := []string{"0123456789abcde", "1-----------", "2-----------"}
		if err := w.(connector.RunWriter[string]).WriteRun(xs, nil); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(w.Write("3", connector.ElementContext{}), w.Flush(true), w.Close()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if !slices.Equal(first, xs[:1]) || !slices.Equal(second, append(xs[1:], "3")) {
			t.Errorf("the servers got %q and %q", first, second)
		}
	})
}

func TestSinkFailsWithoutAServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := socket.NewSink("nowhere", 7, socket.Line)
		_, err := sink.DialWith((&server{}).dial).Writer(&filetest.WriterContext{})
		if !errors.Is(err, syscall.ECONNREFUSED) || !strings.Contains(err.Error(), "nowhere:7") {
			t.Errorf("at the begin: %v", err)
		}
		for retries := range 2 {
			s := &server{answers: []any{func(c net.Conn) { _ = c.Close() }}}
			err = filetest.Write(sink.Retries(retries).DialWith(s.dial), &filetest.WriterContext{}, "a", "b")
			if !errors.Is(err, io.ErrClosedPipe) || !strings.Contains(err.Error(), "write to nowhere:7") ||
				errors.Is(err, syscall.ECONNREFUSED) != (retries > 0) {
				t.Errorf("later, with %d retries: %v", retries, err)
			}
		}
		bad := socket.NewSink("nowhere", 7, func(string) ([]byte, error) { return nil, syscall.EDOM })
		err = filetest.Write(bad.DialWith((&server{answers: []any{says("")}}).dial), &filetest.WriterContext{}, "a")
		if !errors.Is(err, syscall.EDOM) {
			t.Errorf("an element that can't be encoded: %v", err)
		}
		if err := socket.NewSink[string]("nowhere", 7, nil).Check(); err == nil {
			t.Error("no encode function is no error")
		}
	})
}

func TestSinkToAServerThatDoesNotReadEndsWithTheTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cause := errors.New("cancelled by the test")
		ctx, cancel := context.WithCancelCause(context.Background())
		s := &server{answers: []any{func(net.Conn) {}}}
		w, err := socket.NewSink("nowhere", 7, socket.Line).Retries(-1).DialWith(s.dial).Writer(&filetest.WriterContext{Ctx: ctx})
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error)
		go func() { done <- w.Write("a", connector.ElementContext{}) }()
		synctest.Wait()
		select {
		case err := <-done:
			t.Fatalf("Write did not wait: %v", err)
		default:
		}
		cancel(cause)
		if err := <-done; !errors.Is(err, cause) {
			t.Errorf("got %v", err)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
}
