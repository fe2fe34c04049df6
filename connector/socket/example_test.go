package socket_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/flott-dev/flott/connector/socket"
	"github.com/flott-dev/flott/stream"
)

// Lines from one server in capitals to another.
func Example() {
	from, to := listen(), listen()
	defer from.Close()
	defer to.Close()
	received := make(chan string)
	go func() {
		if c, err := from.Accept(); err == nil {
			_, _ = io.WriteString(c, "hello\nworld\n")
			_ = c.Close()
		}
	}()
	go func() {
		if c, err := to.Accept(); err == nil {
			text, _ := io.ReadAll(c)
			received <- string(text)
		}
	}()
	env := stream.NewEnv().SetParallelism(1)
	env.FromSource(socket.Text("127.0.0.1", port(from)), "lines").
		Map(strings.ToUpper).
		SinkTo(socket.NewSink("127.0.0.1", port(to), socket.Line))
	if _, err := env.Execute(context.Background(), "capitals"); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(<-received)
	// Output:
	// HELLO
	// WORLD
}

func listen() net.Listener {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	return l
}

func port(l net.Listener) int { return l.Addr().(*net.TCPAddr).Port }
