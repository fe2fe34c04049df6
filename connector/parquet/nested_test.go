package parquet_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/flott-dev/flott/connector/file/filetest"
	"github.com/flott-dev/flott/connector/parquet"
	"github.com/flott-dev/flott/internal/vfs"
)

// order has structs in lists, maps and structs.
type order struct {
	ID    int64 `parquet:"id"`
	Buyer struct {
		Name  string  `parquet:"name"`
		Email *string `parquet:"email"`
		Town  string  `parquet:"town"`
	} `parquet:"buyer"`
	Items []item          `parquet:"items,list"`
	Marks map[string]mark `parquet:"marks"`
	Gift  *gift           `parquet:"gift"`
	Codes []int32         `parquet:"codes"`
}

type item struct {
	Name   string   `parquet:"name"`
	Price  float64  `parquet:"price"`
	Labels []string `parquet:"labels,list"`
}

type mark struct {
	At int64 `parquet:"at"`
	By int64 `parquet:"by"`
}

type gift struct {
	Text string `parquet:"text"`
	From string `parquet:"from"`
}

func orders(n int) []order {
	os := make([]order, n)
	for i := range os {
		o := &os[i]
		o.ID, o.Items, o.Marks, o.Codes = int64(i), []item{}, map[string]mark{}, []int32{}
		o.Buyer.Name, o.Buyer.Town = fmt.Sprint("b", i), fmt.Sprint("t", i)
		if i%3 == 0 {
			o.Buyer.Email = &o.Buyer.Name
			o.Gift = &gift{fmt.Sprint("for ", i), "us"}
		}
		for j := range i % 4 {
			it := item{Name: fmt.Sprint(i, "-", j), Price: float64(j), Labels: []string{}}
			for k := range (i + j) % 3 {
				it.Labels = append(it.Labels, fmt.Sprint(i, j, k))
			}
			o.Items = append(o.Items, it)
			o.Marks[fmt.Sprint(j)] = mark{int64(j), int64(i)}
			o.Codes = append(o.Codes, int32(i+j))
		}
	}
	return os
}

// TestPartsOfNestedValuesAreRead reads what was written, and only some of what lies in lists, maps and structs.
func TestPartsOfNestedValuesAreRead(t *testing.T) {
	want := orders(100)
	m := filetest.Disk(t, map[string][]byte{"a": filetest.Pack(t, parquet.Encoding[order](parquet.RowGroupSize(1<<10)), want)})
	got, err := filetest.Collect(parquet.Source[order]("a").On(m), 1, 9)
	if err != nil || len(got) != len(want) {
		t.Fatalf("%d rows, %v", len(got), err)
	}
	for i := range want {
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Errorf("row %d: %+v, want %+v", i, got[i], want[i])
		}
	}
	type part struct {
		Gift *struct {
			From string `parquet:"from"`
		} `parquet:"gift"`
		Codes []int64 `parquet:"codes"` // of 32 bits in the file
		Buyer struct {
			Town  string  `parquet:"town"`
			Phone *string `parquet:"phone"` // not in the file
			Email *string `parquet:"email"`
		} `parquet:"buyer"`
		Items []struct {
			Labels []string `parquet:"labels,list"`
			Price  float64  `parquet:"price"`
		} `parquet:"items,list"`
		Marks map[string]struct {
			By int64 `parquet:"by"`
		} `parquet:"marks"`
	}
	parts, err := filetest.Collect(parquet.Source[part]("a").On(m), 1, 9)
	if err != nil || len(parts) != len(want) {
		t.Fatalf("%d parts of rows, %v", len(parts), err)
	}
	for i, p := range parts {
		w := &want[i]
		ok := (p.Gift == nil) == (w.Gift == nil) && (p.Gift == nil || p.Gift.From == "us") && len(p.Codes) == len(w.Codes) &&
			p.Buyer.Town == w.Buyer.Town && p.Buyer.Phone == nil && reflect.DeepEqual(p.Buyer.Email, w.Buyer.Email) &&
			len(p.Items) == len(w.Items) && len(p.Marks) == len(w.Marks)
		for j := range p.Items {
			ok = ok && reflect.DeepEqual(p.Items[j].Labels, w.Items[j].Labels) && p.Items[j].Price == w.Items[j].Price &&
				p.Codes[j] == int64(w.Codes[j]) && p.Marks[fmt.Sprint(j)].By == int64(i)
		}
		if !ok {
			t.Errorf("row %d: %+v, want parts of %+v", i, p, *w)
		}
	}
}

// TestOptionalColumnsMayBeMissing reads optional columns that files do not have, in groups that they have and in others.
func TestOptionalColumnsMayBeMissing(t *testing.T) {
	type ours struct {
		Extra struct {
			A *int64  `parquet:"a"`
			B *string `parquet:"b"`
		} `parquet:"extra"`
		Gift *struct {
			Wrap *string `parquet:"wrap"`
			From string  `parquet:"from"`
		} `parquet:"gift"`
		Items []struct {
			Name  string `parquet:"name"`
			Count *int64 `parquet:"count"`
		} `parquet:"items,list"`
		ID    int64 `parquet:"id"`
		Owner struct {
			Name *string `parquet:"name"`
		} `parquet:"owner"`
	}
	want := orders(50)
	m := filetest.Disk(t, map[string][]byte{"a": filetest.Pack(t, parquet.Encoding[order](), want)})
	got, err := filetest.Collect(parquet.Source[ours]("a").On(m), 1, 9)
	if err != nil || len(got) != len(want) {
		t.Fatalf("%d rows, %v", len(got), err)
	}
	for i, g := range got {
		w := &want[i]
		ok := g.Extra.A == nil && g.Extra.B == nil && (g.Gift == nil) == (w.Gift == nil) && (g.Gift == nil || g.Gift.Wrap == nil && g.Gift.From == "us") &&
			len(g.Items) == len(w.Items) && g.ID == w.ID && g.Owner.Name == nil
		for j := range g.Items {
			ok = ok && g.Items[j].Name == w.Items[j].Name && g.Items[j].Count == nil
		}
		if !ok {
			t.Errorf("row %d: %+v, want parts of %+v", i, g, *w)
		}
	}
	for name, err := range map[string]error{
		"gift.paper": reads[struct {
			Gift *struct {
				Paper string `parquet:"paper"`
			} `parquet:"gift"`
		}](m),
		"owner.name": reads[struct {
			Owner struct {
				Name string `parquet:"name"`
			} `parquet:"owner"`
		}](m),
		"extra.a": reads[struct {
			ID    int64 `parquet:"id"`
			Extra *struct {
				A *int64 `parquet:"a"`
			} `parquet:"extra"`
		}](m),
		"names.list.element": reads[struct {
			Names []string `parquet:"names,list"`
		}](m),
	} {
		if err == nil || !strings.Contains(err.Error(), "no column "+name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func reads[T any](m *vfs.Mem) error {
	_, err := filetest.Collect(parquet.Source[T]("a").On(m), 1, 9)
	return err
}
