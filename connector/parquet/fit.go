package parquet

import (
	"fmt"
	"strings"

	pq "github.com/parquet-go/parquet-go"
)

// fits tells whether the columns of a schema can be read from a file: they are there or optional, and of a type that
// loses nothing.
func fits(want, have *pq.Schema) error {
	for _, path := range want.Columns() {
		to, _ := want.Lookup(path...)
		from, ok := have.Lookup(path...)
		name := strings.Join(path, ".")
		switch {
		case !ok && mayMiss(want, have, path):
		case !ok:
			return fmt.Errorf("the file has no column %s; a field that may be missing is a pointer to a value, not to a struct, "+
				"or has the tag optional. It has %s", name, columnNames(have))
		case to.MaxRepetitionLevel != from.MaxRepetitionLevel:
			return fmt.Errorf("column %s is a list in the file or in the struct, but not in both", name)
		case !widens(to.Node.Type(), from.Node.Type()):
			return fmt.Errorf("column %s is %s in the file, which a field of type %s does not hold", name, from.Node.Type(), to.Node.Type())
		}
	}
	return nil
}

// mayMiss tells whether a column may be missing in a file: it is optional, and so is no group around it that is missing,
// too. Of such a group the library would say that it is there or not as it sees fit, by what a list beside it holds.
func mayMiss(want, have pq.Node, path []string) bool {
	for _, name := range path {
		want, have = child(want, name), child(have, name)
		if have == nil && !want.Leaf() && !want.Required() {
			return false
		}
	}
	return want.Optional()
}

// child is a field of a group, nil if it has none of that name.
func child(n pq.Node, name string) pq.Node {
	if n == nil || n.Leaf() {
		return nil
	}
	for _, f := range n.Fields() {
		if f.Name() == name {
			return f
		}
	}
	return nil
}

// widens tells whether every value of a type is one of another.
func widens(to, from pq.Type) bool {
	switch a, b := to.Kind(), from.Kind(); {
	case a == b && a == pq.FixedLenByteArray:
		return to.Length() == from.Length()
	case a == b:
		return true
	default:
		return a == pq.Int64 && b == pq.Int32 || a == pq.Double && b == pq.Float
	}
}

// columnNames lists the first columns of a file.
func columnNames(s *pq.Schema) string {
	const most = 20
	var names []string
	for i, path := range s.Columns() {
		if i == most {
			names = append(names, "...")
			break
		}
		names = append(names, strings.Join(path, "."))
	}
	return strings.Join(names, ", ")
}
