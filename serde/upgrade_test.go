package serde

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"testing"
	"unsafe"
)

// Three versions of what a program keeps.
type (
	priceV1 struct{ Amount string }
	priceV2 struct {
		Cents int64
		Note  string
	}
	priceV3 struct {
		Euros, Cents int64
		Currency     string
	}
)

func fromV1(p priceV1) (priceV2, error) {
	cents, err := strconv.ParseInt(p.Amount, 10, 64)
	return priceV2{Cents: cents, Note: "v1"}, err
}

func fromV2(p priceV2) (priceV3, error) {
	return priceV3{p.Cents / 100, p.Cents % 100, "EUR" + p.Note}, nil
}

// upgradedTo encodes a value of one type and reads it as another.
func upgradedTo[Old, New any](t *testing.T, old Old, opts ...Option) (now New, err error) {
	t.Helper()
	from, err := Of[Old]()
	if err != nil {
		t.Fatal(err)
	}
	to, err := Of[New](opts...)
	if err != nil {
		t.Fatal(err)
	}
	b, err := from.Append(nil, unsafe.Pointer(&old))
	if err != nil {
		t.Fatal(err)
	}
	r, err := to.Reader(from.Schema())
	if err != nil {
		return now, err
	}
	n, err := r.Read(append(b, 0xff), unsafe.Pointer(&now))
	if err == nil && n != len(b) {
		t.Errorf("read %d of %d bytes", n, len(b))
	}
	return now, err
}

func TestUpgradesMakeValuesOfOldOnes(t *testing.T) {
	both := []Option{Upgrade(fromV2), Upgrade(fromV1)}
	if p, err := upgradedTo[priceV2, priceV3](t, priceV2{1234, "x"}, both...); err != nil || p != (priceV3{12, 34, "EURx"}) {
		t.Error(p, err)
	}
	// Through two versions.
	if p, err := upgradedTo[priceV1, priceV3](t, priceV1{"567"}, both...); err != nil || p != (priceV3{5, 67, "EURv1"}) {
		t.Error(p, err)
	}
	// What is of the type itself is not touched.
	if p, err := upgradedTo[priceV3, priceV3](t, priceV3{1, 2, "USD"}, both...); err != nil || p != (priceV3{1, 2, "USD"}) {
		t.Error(p, err)
	}
	// Inside of other types.
	type oldCart struct {
		Gone  bool
		Items []priceV2
		By    map[string]*priceV1
	}
	type cart struct {
		By    map[string]*priceV3
		Items []priceV3
	}
	c, err := upgradedTo[oldCart, cart](t, oldCart{true, []priceV2{{199, ""}}, map[string]*priceV1{"a": {"250"}}}, both...)
	if err != nil || len(c.Items) != 1 || c.Items[0].Cents != 99 || *c.By["a"] != (priceV3{2, 50, "EURv1"}) {
		t.Error(c, err)
	}
}

func TestUpgradesComeBeforeWhatSchemasCanDoOnlyIfTheyFitExactly(t *testing.T) {
	type was struct{ Sum int64 }
	type now struct {
		Sum   int64
		Count int64
	}
	type wider struct {
		Sum  int64
		Kind int8
	}
	up := Upgrade(func(w was) (now, error) { return now{w.Sum, -1}, nil })
	if n, err := upgradedTo[was, now](t, was{5}, up); err != nil || n != (now{5, -1}) {
		t.Error(n, err)
	}
	if n, err := upgradedTo[wider, now](t, wider{5, 1}, up); err != nil || n != (now{5, 0}) {
		t.Error(n, err)
	}
	// From an old type that has changed itself: another order, and a field that is gone.
	type otherV2 struct {
		Extra bool
		Note  string
		Cents int64
	}
	strict := Upgrade(func(p priceV2) (string, error) { return p.Note, nil })
	if s, err := upgradedTo[otherV2, string](t, otherV2{true, "n", 1}, strict); err != nil || s != "n" {
		t.Error(s, err)
	}
}

func TestUpgradesThatCannotBeAreErrors(t *testing.T) {
	failed := errors.New("no such price")
	if _, err := upgradedTo[priceV1, priceV2](t, priceV1{"x"}, Upgrade(func(priceV1) (priceV2, error) { return priceV2{}, failed })); !errors.Is(err, failed) {
		t.Errorf("got %v", err)
	}
	if _, err := upgradedTo[bool, priceV3](t, true, Upgrade(fromV2), Upgrade(fromV1)); err == nil || !strings.Contains(err.Error(), "the snapshot has bool") {
		t.Errorf("got %v", err)
	}
	// A circle of upgrades ends.
	there := Upgrade(func(string) (int64, error) { return 1, nil })
	back := Upgrade(func(int64) (string, error) { return "", nil })
	if _, err := upgradedTo[bool, string](t, true, there, back); err == nil {
		t.Error("no error")
	}
	for want, opts := range map[string][]Option{
		"the function is nil":        {Upgrade[string, int64](nil)},
		"given twice":                {there, there},
		"functions have no encoding": {Upgrade(func(func()) (int64, error) { return 0, nil })},
	} {
		if _, err := Of[int64](opts...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestNumbersWiden(t *testing.T) {
	type was struct {
		A int8
		B int16
		C int32
		D uint8
		E uint16
		F uint32
		G float32
		H []int8
		I [2]uint8
		J uint16
	}
	type now struct {
		A int16
		B int
		C int64
		D uint16
		E int32
		F int64
		G float64
		H []int32
		I [2]int16
		J uint
	}
	old := was{-5, math.MinInt16, math.MinInt32, 200, 65000, math.MaxUint32, 1.5, []int8{-1, 2}, [2]uint8{255, 1}, 65535}
	n, err := upgradedTo[was, now](t, old)
	if err != nil {
		t.Fatal(err)
	}
	if n.A != -5 || n.B != math.MinInt16 || n.C != math.MinInt32 || n.D != 200 || n.E != 65000 || n.F != math.MaxUint32 || n.G != 1.5 ||
		n.H[0] != -1 || n.H[1] != 2 || n.I != [2]int16{255, 1} || n.J != 65535 {
		t.Errorf("got %+v", n)
	}
	if _, err := upgradedTo[int64, int32](t, 1); err == nil {
		t.Error("int64 became int32")
	}
	if _, err := upgradedTo[uint32, int32](t, 1); err == nil {
		t.Error("uint32 became int32")
	}
	if _, err := upgradedTo[int8, uint64](t, 1); err == nil {
		t.Error("int8 became uint64")
	}
	if _, err := upgradedTo[int8, float64](t, 1); err == nil {
		t.Error("int8 became float64")
	}
}
