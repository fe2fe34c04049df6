package filesink

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

func TestPatternsNameTimesAsJavaDoes(t *testing.T) {
	at := time.Date(2016, 3, 5, 7, 8, 9, 12_345_678, time.UTC)
	for _, c := range []struct{ pattern, want string }{
		{"yyyy-MM-dd--HH", "2016-03-05--07"},
		{"yyyy/MM/dd/HHmm", "2016/03/05/0708"},
		{"yy-M-d-H-m-s", "16-3-5-7-8-9"},
		{"uuuuuu-DDD", "002016-065"},
		{"y_D", "2016_65"},
		{"HH:mm:ss.SSS", "07:08:09.012"},
		{"SSSSSSSSS", "012345678"},
		{"'dt='yyyy-MM-dd'/h='HH", "dt=2016-03-05/h=07"},
		{"'it''s 'd''", "it's 5'"},
	} {
		l, err := newLayout(c.pattern, time.UTC)
		if err != nil {
			t.Errorf("%q: %v", c.pattern, err)
			continue
		}
		if got := l.name(at); got != c.want {
			t.Errorf("%q: %q, want %q", c.pattern, got, c.want)
		}
	}
}

func TestPatternsNameYearsAsJavaDoes(t *testing.T) {
	for _, c := range []struct {
		year          int
		pattern, want string
	}{{12016, "yyyy", "+12016"}, {12016, "y", "12016"}, {-5, "yyyy", "-0005"}, {1899, "yy", "99"}, {2005, "yy", "05"}, {7, "yyyy", "0007"}} {
		l, err := newLayout("'x'"+c.pattern, time.UTC)
		if err != nil {
			t.Fatal(err)
		}
		if got := l.name(time.Date(c.year, 1, 1, 0, 0, 0, 0, time.UTC)); got != "x"+c.want {
			t.Errorf("%d as %s: %q, want x%s", c.year, c.pattern, got, c.want)
		}
	}
}

func TestPatternsThatCanNotNameFoldersAreRefused(t *testing.T) {
	for _, c := range []struct{ pattern, want string }{
		{"", "empty time pattern"},
		{"yyyy-MMM", "3 times \"M\""},
		{"YYYY", "unknown letter \"Y\""},
		{"yyyy-MM-ddTHH", "unknown letter \"T\""},
		{"'open", "without its partner"},
		{"yyyy[-MM]", "stands in quotes"},
		{"/yyyy", "empty part"},
		{"yyyy//MM", "empty part"},
		{"'_'yyyy", "readers skip"},
		{"yyyy/..", "no name of a folder"},
		{`yyyy\MM`, "can't be the name of a folder"},
	} {
		if _, err := newLayout(c.pattern, time.UTC); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.pattern, err, c.want)
		}
	}
}

func TestNamesAreKeptOnlyWhileTheyAreRight(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, zone := range []string{"UTC", "Europe/Berlin", "Asia/Kathmandu", "Australia/Lord_Howe", "Africa/Monrovia", "America/St_Johns"} {
		loc, err := time.LoadLocation(zone)
		if err != nil {
			t.Fatal(err)
		}
		for _, pattern := range []string{"yyyy", "D", "yyyy-MM-dd--HH", "d-HHmm", "HHmmss", "ss-SSS"} {
			l, err := newLayout(pattern, loc)
			if err != nil {
				t.Fatal(err)
			}
			n := namer{layout: l}
			for range 50 {
				base := r.Int64N(4e12) - 2e12
				if next := time.UnixMilli(base).In(loc); r.IntN(2) == 0 {
					if _, end := next.ZoneBounds(); !end.IsZero() {
						base = end.UnixMilli()
					}
				}
				for range 40 {
					ms := base + r.Int64N(8e6) - 4e6
					if got, want := n.at(ms), l.name(time.UnixMilli(ms).In(loc)); got != want {
						t.Fatalf("%s, %s, %d: %q, want %q", zone, pattern, ms, got, want)
					}
				}
			}
		}
	}
}

func TestNamesOfExtremeTimesDoNotBreak(t *testing.T) {
	l, err := newLayout(DefaultPattern, time.Local)
	if err != nil {
		t.Fatal(err)
	}
	n := namer{layout: l}
	for _, ms := range []int64{math.MinInt64 + 1, math.MaxInt64, 0, math.MaxInt64} {
		if got, want := n.at(ms), l.name(time.UnixMilli(ms).In(time.Local)); got != want {
			t.Errorf("%d: %q, want %q", ms, got, want)
		}
	}
}
