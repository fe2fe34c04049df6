package lint

import (
	"fmt"
	"go/ast"
	"go/token"
)

// Waiting checks that the engine's floors neither wait nor start goroutines nor look at the world: all waiting goes
// through internal/host, and clocks, files and randomness are injected. Only so can the real data plane run in a
// simulation and replay from a seed.
func Waiting(t *Tree) []Finding {
	var out []Finding
	for _, p := range t.Packages {
		if !still(p.Path) {
			continue
		}
		for _, f := range p.source() {
			out = append(out, t.waitingOfFile(f)...)
		}
	}
	return out
}

// still names the folders that must not wait: floors F2 to F4, and what travels through them.
func still(pkg string) bool {
	for _, root := range []string{
		"internal/frame", "internal/operator", "internal/graph", "internal/plan", "internal/exchange",
		"internal/control", "internal/task",
	} {
		if within(pkg, root) {
			return true
		}
	}
	return false
}

func (t *Tree) waitingOfFile(f *File) []Finding {
	var out []Finding
	note := func(n ast.Node, what string) {
		out = append(out, Finding{t.pos(n.Pos()), what + ": floors F2-F4 wait only through internal/host"})
	}
	for _, spec := range f.AST.Imports {
		if why := worldly(importPath(spec)); why != "" {
			out = append(out, Finding{t.pos(spec.Pos()), fmt.Sprintf("import of %s: %s", importPath(spec), why)})
		}
	}
	names := localNames(f)
	ast.Inspect(f.AST, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SendStmt:
			note(n, "channel send")
		case *ast.SelectStmt:
			note(n, "select")
		case *ast.GoStmt:
			note(n, "go statement")
		case *ast.ChanType: // without a channel type there is no range over a channel, either
			note(n, "channel type")
		case *ast.UnaryExpr:
			if n.Op == token.ARROW {
				note(n, "channel receive")
			}
		case *ast.SelectorExpr:
			if pkg, ok := n.X.(*ast.Ident); ok && waits(names[pkg.Name], n.Sel.Name) {
				note(n, pkg.Name+"."+n.Sel.Name)
			}
		}
		return true
	})
	return out
}

// waits names what blocks, or reads the machine's clock, or draws from the machine's randomness.
func waits(pkg, name string) bool {
	switch pkg {
	case "sync":
		switch name {
		case "Mutex", "RWMutex", "WaitGroup", "Cond", "NewCond", "Locker", "Once", "OnceFunc", "OnceValue", "OnceValues":
			return true
		}
	case "time":
		switch name {
		case "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker", "Now", "Since", "Until":
			return true
		}
	case "math/rand", "math/rand/v2":
		return name != "Rand" && name != "New" && name != "Source" && name != "NewSource" && name != "PCG" &&
			name != "NewPCG" && name != "ChaCha8" && name != "NewChaCha8" && name != "Zipf" && name != "NewZipf"
	case "context":
		switch name {
		case "WithTimeout", "WithDeadline", "WithTimeoutCause", "WithDeadlineCause":
			return true
		}
	}
	return false
}

// worldly says why a package is none for the floors that must replay.
func worldly(path string) string {
	switch path {
	case "os", "os/exec", "os/signal", "io/ioutil":
		return "files are injected (internal/vfs)"
	case "net", "net/http":
		return "connections are injected"
	case "crypto/rand":
		return "randomness is injected"
	}
	return ""
}
