package stream_test

import (
	"context"
	"encoding/json/v2"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/flott-dev/flott/connector/csv"
	"github.com/flott-dev/flott/connector/jsonl"
	"github.com/flott-dev/flott/stream"
)

// scratch makes a folder with one file and returns the file's path; done removes it.
func scratch(name, text string) (path string, done func()) {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	path = filepath.Join(dir, name)
	if text != "" {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			panic(err)
		}
	}
	return path, func() { os.RemoveAll(dir) }
}

func ExampleEnv_ReadTextFile() {
	path, done := scratch("lines.txt", "to be\nor not\n")
	defer done()
	env := stream.NewEnv().SetParallelism(1)
	env.ReadTextFile(path).FlatMapSeq(strings.FieldsSeq).Print()
	if _, err := env.Execute(context.Background(), "lines"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// to
	// be
	// or
	// not
}

func ExampleWatch() {
	path, done := scratch("first.txt", "one file\n")
	defer done()
	ctx, cancel := context.WithCancel(context.Background())
	env := stream.NewEnv().SetParallelism(1)
	env.ReadTextFile(filepath.Dir(path), stream.Watch(time.Second)).ForEach(func(line string) {
		fmt.Println(line)
		cancel() // it would go on for ever
	})
	_, err := env.Execute(ctx, "watch")
	fmt.Println(err != nil)
	// Output:
	// one file
	// true
}

func ExampleEnv_ReadCSV() {
	path, done := scratch("trades.csv", "symbol,price,count\nAAA,1.5,2\n\"B, b\",2.5,3\n")
	defer done()
	env := stream.NewEnv().SetParallelism(1)
	env.ReadCSV[trade](path, csv.Header()).Print()
	if _, err := env.Execute(context.Background(), "trades"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// {AAA 1.5 2}
	// {B, b 2.5 3}
}

func ExampleEnv_ReadFile() {
	path, done := scratch("trades.csv", "AAA;1.5;2\nBBB;2.5;3\n")
	defer done()
	env := stream.NewEnv().SetParallelism(1)
	env.ReadFile(csv.Format[trade](csv.Comma(";")), filepath.Dir(path), stream.Recursive()).Print()
	if _, err := env.Execute(context.Background(), "trades"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// {AAA 1.5 2}
	// {BBB 2.5 3}
}

func ExampleEnv_ReadJSONLines() {
	path, done := scratch("trades.jsonl", `{"symbol":"AAA","price":1.5}`+"\n"+`{"symbol":"BBB","count":3}`+"\n")
	defer done()
	env := stream.NewEnv().SetParallelism(1)
	env.ReadJSONLines[trade](path, jsonl.Options(json.RejectUnknownMembers(true)), stream.SplitSize(1<<20)).Print()
	if _, err := env.Execute(context.Background(), "trades"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// {AAA 1.5 0}
	// {BBB 0 3}
}

func ExampleBadRecords() {
	path, done := scratch("trades.csv", "AAA,1.5,2\nBBB,cheap,3\n")
	defer done()
	env := stream.NewEnv().SetParallelism(1)
	rows := env.ReadCSV[trade](path)
	rows.Print()
	stream.BadRecords(rows).ForEach(func(b stream.BadRecord) { fmt.Printf("line %d: %s\n", b.Line, b.Record) })
	if _, err := env.Execute(context.Background(), "trades"); err != nil {
		fmt.Println(err)
	}
	// Unordered output:
	// {AAA 1.5 2}
	// line 2: BBB,cheap,3
}

// listen serves one client of a port of its own.
func listen(handle func(c net.Conn)) (port int, done func()) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if c, err := l.Accept(); err == nil {
			handle(c)
			c.Close()
		}
	}()
	return l.Addr().(*net.TCPAddr).Port, func() {
		<-ended
		l.Close()
	}
}

func ExampleEnv_SocketTextStream() {
	port, done := listen(func(c net.Conn) { fmt.Fprint(c, "hello\nworld\n") })
	defer done()
	env := stream.NewEnv().SetParallelism(1)
	env.SocketTextStream("127.0.0.1", port).Print()
	if _, err := env.Execute(context.Background(), "socket"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// hello
	// world
}

func ExampleStream_WriteToSocket() {
	port, done := listen(func(c net.Conn) {
		text, _ := io.ReadAll(c)
		fmt.Printf("received %q\n", text)
	})
	env := stream.NewEnv().SetParallelism(1)
	env.FromElements(1, 2).WriteToSocket("127.0.0.1", port, func(x int) []byte { return fmt.Appendln(nil, x) })
	if _, err := env.Execute(context.Background(), "socket"); err != nil {
		fmt.Println(err)
	}
	done()
	// Output: received "1\n2\n"
}

func ExampleStream_WriteAsText() {
	path, done := scratch("out.txt", "")
	defer done()
	env := stream.NewEnv().SetParallelism(1)
	env.FromElements(1, 2).WriteAsText(path, stream.NoOverwrite)
	if _, err := env.Execute(context.Background(), "numbers"); err != nil {
		fmt.Println(err)
	}
	text, _ := os.ReadFile(path)
	fmt.Printf("%q", text)
	// Output: "1\n2\n"
}

func ExampleStream_WriteAsCSV() {
	path, done := scratch("out.csv", "")
	defer done()
	env := stream.NewEnv().SetParallelism(1)
	env.FromElements(trade{"AAA", 1.5, 2}, trade{"B, b", 2.5, 3}).WriteAsCSV(path, stream.Overwrite, csv.Header())
	if _, err := env.Execute(context.Background(), "trades"); err != nil {
		fmt.Println(err)
	}
	text, _ := os.ReadFile(path)
	fmt.Print(string(text))
	// Output:
	// symbol,price,count
	// AAA,1.5,2
	// "B, b",2.5,3
}

func ExampleStream_WriteAsJSONLines() {
	path, done := scratch("out.jsonl", "")
	defer done()
	env := stream.NewEnv().SetParallelism(1)
	env.FromElements(trade{"AAA", 1.5, 2}).WriteAsJSONLines(path, stream.Overwrite)
	if _, err := env.Execute(context.Background(), "trades"); err != nil {
		fmt.Println(err)
	}
	text, _ := os.ReadFile(path)
	fmt.Print(string(text))
	// Output: {"symbol":"AAA","price":1.5,"count":2}
}

// console is an output format.
type console struct{}

func (console) Open(subtask, parallelism int) error {
	fmt.Printf("subtask %d of %d\n", subtask+1, parallelism)
	return nil
}

func (console) WriteRecord(x int) error {
	fmt.Println(x)
	return nil
}

func (console) Close() error { return nil }

func ExampleStream_WriteUsingOutputFormat() {
	env := stream.NewEnv().SetParallelism(1)
	env.FromElements(1, 2).WriteUsingOutputFormat(func() console { return console{} })
	if _, err := env.Execute(context.Background(), "numbers"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// subtask 1 of 1
	// 1
	// 2
}
