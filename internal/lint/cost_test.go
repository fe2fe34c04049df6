//go:build lintcost

package lint

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

const (
	costTypes      = 30     // how many element types the larger program has more
	costBytes      = 60_000 // of binary that one more element type may cost
	costTime       = 60 * time.Millisecond
	readmeMaxBytes = 20_000_000
)

// probe builds a program inside the module without writing to the repository: its file is laid over the tree.
type probe struct {
	root, tmp, dir string
}

func newProbe(t *testing.T) *probe {
	t.Helper()
	return &probe{openHouse(t).root, t.TempDir(), "internal/lint/probe"}
}

// overlay returns the go command's flag that makes src the probe's main.go.
func (p *probe) overlay(t *testing.T, src string) string {
	t.Helper()
	file := filepath.Join(p.tmp, "main.go")
	if err := os.WriteFile(file, []byte(src), 0o644); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(map[string]map[string]string{
		"Replace": {filepath.Join(p.root, filepath.FromSlash(p.dir), "main.go"): file},
	})
	if err != nil {
		t.Fatal(err)
	}
	overlay := filepath.Join(p.tmp, "overlay.json")
	if err := os.WriteFile(overlay, text, 0o644); err != nil {
		t.Fatal(err)
	}
	return "-overlay=" + overlay
}

func (p *probe) run(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Dir = p.root
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// build compiles and links a program; the packages below it come from the build cache.
func (p *probe) build(t *testing.T, src string) (bytes int64, took time.Duration) {
	t.Helper()
	overlay := p.overlay(t, src)
	binary := filepath.Join(p.tmp, "probe")
	start := time.Now()
	p.run(t, "build", overlay, "-o", binary, "./"+p.dir)
	took = time.Since(start)
	info, err := os.Stat(binary)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size(), took
}

// The steps that each element type of a program goes through after its key: an aggregate over all time, or in windows.
const (
	rolling  = `Reduce(func(a, b element%[1]d) element%[1]d { a.Value += b.Value; return a })`
	windowed = `TimeWindow(time.Minute).Aggregate(agg.Sum(func(e element%[1]d) float64 { return e.Score }))`
)

// typesProgram is a program with n element types, each going through the common steps of a job. The salt makes every
// program's text its own, so that none comes from the build cache.
func typesProgram(n int, salt int64, step string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `package main

import (
	"context"
	"log"
	"time"

	"github.com/flott-dev/flott/agg"
	"github.com/flott-dev/flott/stream"
)

const (
	salt = %d
	_    = time.Minute
)

var _ = agg.Count[int]

func main() {
	env := stream.NewEnv()
`, salt)
	for i := range n {
		fmt.Fprintf(&b, "\tjob%d(env)\n", i)
	}
	b.WriteString(`	if _, err := env.Execute(context.Background(), "cost"); err != nil {
		log.Fatal(err)
	}
}
`)
	for i := range n {
		fmt.Fprintf(&b, `
type element%[1]d struct {
	Key   string
	Value int64
	Score float64
	F%[1]d int32
}

func job%[1]d(env *stream.Env) {
	env.FromElements(element%[1]d{Key: "a", Value: salt}, element%[1]d{Key: "b"}).
		Map(func(e element%[1]d) element%[1]d { e.Value++; return e }).
		Filter(func(e element%[1]d) bool { return e.Value > 0 }).
		KeyBy(func(e element%[1]d) string { return e.Key }).
		`+step+`.
		Print()
}
`, i)
	}
	return b.String()
}

// TestCostOfOneMoreElementType guards against engine code that is generic without need: each element type of a program
// would compile it again. Sizes are exact and fail; times depend on the machine and are printed.
func TestCostOfOneMoreElementType(t *testing.T) {
	p := newProbe(t)
	salt := time.Now().UnixNano()
	p.build(t, typesProgram(1, salt, rolling)) // fills the build cache with everything below
	for name, step := range map[string]string{"rolling": rolling, "windowed": windowed} {
		t.Run(name, func(t *testing.T) { p.cost(t, salt, step) })
	}
}

func (p *probe) cost(t *testing.T, salt int64, step string) {
	t.Helper()
	var bytes [2]int64
	var fastest [2]time.Duration
	for round := range int64(3) {
		for i, n := range []int{1, 1 + costTypes} {
			size, took := p.build(t, typesProgram(n, salt+1+round, step))
			bytes[i] = size
			if round == 0 || took < fastest[i] {
				fastest[i] = took
			}
		}
	}
	each := (bytes[1] - bytes[0]) / costTypes
	t.Logf("one more element type: %d bytes of binary (at most %d), %v to build (the law wants %v)",
		each, costBytes, (fastest[1]-fastest[0])/costTypes, costTime)
	if each > costBytes {
		t.Errorf("one more element type costs %d bytes of binary; the most is %d", each, costBytes)
	}
}

// TestSizeOfTheReadmeProgram builds what the README shows: the first program that a user tries must be small and free of
// what it does not use.
func TestSizeOfTheReadmeProgram(t *testing.T) {
	p := newProbe(t)
	readme, err := os.ReadFile(filepath.Join(p.root, "README.md"))
	if os.IsNotExist(err) {
		t.Fatal("README.md is missing: its program is the one that is built")
	}
	if err != nil {
		t.Fatal(err)
	}
	src := readmeProgram(string(readme))
	if src == "" {
		t.Fatal("README.md has no go block that begins with package main")
	}
	size, _ := p.build(t, src)
	t.Logf("the README's program has %.1f MB (at most %.1f)", float64(size)/1e6, readmeMaxBytes/1e6)
	if size > readmeMaxBytes {
		t.Errorf("the README's program has %d bytes; the most is %d", size, readmeMaxBytes)
	}
	deps := p.run(t, "list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}}", p.overlay(t, src), "./"+p.dir)
	for module := range strings.FieldsSeq(deps) {
		for _, cloud := range []string{"cloud.google.com/", "gocloud.dev", "github.com/aws/", "github.com/Azure/", "k8s.io/"} {
			if strings.HasPrefix(module, cloud) {
				t.Errorf("the README's program links %s", module)
			}
		}
	}
}

// readmeProgram is the first go block that is a whole program.
func readmeProgram(readme string) string {
	block := regexp.MustCompile("(?s)```go\n(package main\n.*?)```")
	if m := block.FindStringSubmatch(readme); m != nil {
		return m[1]
	}
	return ""
}
