package serde

import (
	"strings"
	"testing"
)

func schemaOf[T any](t *testing.T, opts ...Option) string {
	t.Helper()
	h, err := Of[T](opts...)
	if err != nil {
		t.Fatal(err)
	}
	text := h.Schema().String()
	parsed, err := ParseSchema(text)
	if err != nil {
		t.Fatal(err)
	}
	if parsed.Fingerprint() != h.Schema().Fingerprint() {
		t.Fatal("the parsed schema has another fingerprint")
	}
	return text
}

func TestSchemaNamesFieldsAndKinds(t *testing.T) {
	type renamed struct {
		Old int `flott:"new name"`
		_   int
		U   uint
	}
	for got, want := range map[string]string{
		schemaOf[int](t):           "int64",
		schemaOf[userID](t):        "int64",
		schemaOf[uintptr](t):       "uint64",
		schemaOf[uint8](t):         "uint8",
		schemaOf[complex128](t):    "complex128",
		schemaOf[renamed](t):       `struct{"new name" int64;U uint64}`,
		schemaOf[[3][]*bool](t):    "[3][]*bool",
		schemaOf[node](t):          "struct{V int64;Next *^2;Kids []^2}",
		schemaOf[sealed](t):        `custom("sealed")`,
		schemaOf[inherited](t):     "struct{Inherited uint16}",
		schemaOf[map[int16]int](t): "map[int16]int64",
		schemaOf[event](t, OneOf[event](click{}, (*view)(nil), tree{})): `oneof{click struct{X int16;Y int16};` +
			`"*view" *struct{URL string;Refs []string};tree struct{Left ^2;Right ^2}}`,
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	text := schemaOf[everything](t, everythingOptions()...)
	if !strings.HasPrefix(text, "struct{inherited struct{Inherited uint16};B bool;I8 int8;") {
		t.Error(text)
	}
}

func TestFingerprintChangesWithNamesOrderAndKinds(t *testing.T) {
	type a struct{ X, Y int32 }
	type same struct{ X, Y int32 }
	type order struct{ Y, X int32 }
	type name struct{ X, Z int32 }
	type kind struct{ X, Y uint32 }
	fp := func(h *Handle, err error) uint64 {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return h.Schema().Fingerprint()
	}
	base := fp(Of[a]())
	if fp(Of[same]()) != base {
		t.Error("the name of the type counts")
	}
	if base != 0x8da31301a8d0eaf9 {
		t.Errorf("the fingerprint, a durable format, is %#x", base)
	}
	for _, other := range []uint64{fp(Of[order]()), fp(Of[name]()), fp(Of[kind]())} {
		if other == base {
			t.Error("two schemas have one fingerprint")
		}
	}
}

func TestBadSchemaTextIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"":                             "unknown kind",
		"int":                          "unknown kind",
		"struct":                       "unknown kind",
		"int64 ":                       "text after the schema",
		"[03]bool":                     "shortest form",
		"[x]bool":                      "expected a number",
		"[3bool":                       `expected "]"`,
		"^1":                           "leads nowhere",
		"*^2":                          "leads nowhere",
		"struct{A bool B bool}":        `expected ";"`,
		"struct{A bool":                `expected ";"`,
		"struct{A}":                    `expected " "`,
		`struct{"A" bool}`:             "shortest form",
		"custom(x)":                    "expected a quoted name",
		"map[bool":                     `expected "]"`,
		strings.Repeat("*", 2000):      "nested too deep",
		strings.Repeat("map[", 100000): "nested too deep",
	} {
		if _, err := ParseSchema(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %s", text, err, want)
		}
	}
}
