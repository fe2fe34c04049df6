// Package socket reads text from a TCP server and writes records to one. It owns connecting, and connecting again; the
// cutting of text into lines is package connector/file's. Neither side takes part in checkpoints: what is on the way when
// a connection or a job breaks is lost.
package socket

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"
)

// Dial connects to an address, as net.Dialer.DialContext does.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// pause is the time between two tries to connect.
const pause = 500 * time.Millisecond

// connectTimeout is the time that one try may take.
const connectTimeout = 30 * time.Second

// peer is the server at the other end.
type peer struct {
	address string
	dial    Dial
	retries int64 // tries after one that failed; negative: for ever
}

func newPeer(host string, port int) peer {
	d := &net.Dialer{Timeout: connectTimeout}
	return peer{address: net.JoinHostPort(host, strconv.Itoa(port)), dial: d.DialContext}
}

// connect connects, after a first pause if again is set. The connection is closed when ctx ends.
func (p *peer) connect(ctx context.Context, again bool) (net.Conn, error) {
	tries := int64(0)
	var err error
	for {
		if again {
			if p.retries >= 0 && tries >= p.retries {
				break
			}
			tries++
			if err := sleep(ctx, pause); err != nil {
				return nil, err
			}
		}
		var conn net.Conn
		if conn, err = p.dial(ctx, "tcp", p.address); err == nil {
			return newGuarded(ctx, conn), nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		again = true
	}
	if err == nil {
		return nil, errNoRetry
	}
	return nil, fmt.Errorf("connect to %s: %w", p.address, err)
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// guarded is a connection that is closed when a context ends, so that nobody waits in it for longer.
type guarded struct {
	net.Conn
	release func() bool
}

func newGuarded(ctx context.Context, conn net.Conn) *guarded {
	return &guarded{conn, context.AfterFunc(ctx, func() { _ = conn.Close() })}
}

// Close implements net.Conn.
func (g *guarded) Close() error {
	g.release()
	return g.Conn.Close()
}
