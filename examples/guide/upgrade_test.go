package guide

import (
	"bytes"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/state"
	"github.com/flott-dev/flott/stream"
)

// oldPrice is what an earlier version of the program kept, price what it keeps now.
type (
	oldPrice struct{ Amount string }
	price    struct{ Cents int64 }
)

func upgradePrice(old oldPrice) (price, error) {
	euros, cents, _ := strings.Cut(old.Amount, ".")
	n, err := strconv.ParseInt(euros+cents, 10, 64)
	return price{Cents: n}, err
}

// catalog remembers the price of each article and those that it had.
type catalog struct {
	process.NoTimers[string, string]
	price *state.Value[price]
	past  *state.List[price]
}

func newCatalog(rt *process.Runtime) *catalog {
	return &catalog{
		price: state.NewValue[price](rt, "price", state.Upgrade(upgradePrice)),
		past:  state.NewList[price](rt, "past", state.Upgrade(upgradePrice)),
	}
}

func (c *catalog) ProcessElement(_ *process.KeyedContext[string], article string, out *process.Collector[string]) error {
	out.Collect(fmt.Sprint(article, " ", c.price.Get(), " ", c.past.Get()))
	return nil
}

// priceJob runs the present version of the program from a savepoint of the earlier one.
func priceJob(t *testing.T, at string) (string, error) {
	var out bytes.Buffer
	env := stream.NewEnv(stream.WithSavepoint(at)).SetParallelism(2)
	env.FromElements("bread", "milk").
		KeyBy(func(article string) string { return article }).
		Process(newCatalog).UID("catalog").
		PrintTo(&out).Parallelism(1)
	_, err := env.Execute(t.Context(), "prices")
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n"), err
}

// savepointOfOldPrices is one of the earlier version.
func savepointOfOldPrices(t *testing.T, prices map[string]oldPrice) string {
	t.Helper()
	at := filepath.ToSlash(filepath.Join(t.TempDir(), "savepoint"))
	draft := checkpoint.NewDraft("prices")
	o := draft.Operator("catalog")
	if err := o.SetValues("price", maps.All(prices)); err != nil {
		t.Fatal(err)
	}
	if err := o.SetLists("past", maps.All(map[string][]oldPrice{"milk": {{"0.99"}, {"1.09"}}})); err != nil {
		t.Fatal(err)
	}
	if err := draft.Write(t.Context(), nil, at); err != nil {
		t.Fatal(err)
	}
	return at
}

func TestStateOfAnEarlierProgramIsUpgraded(t *testing.T) {
	got, err := priceJob(t, savepointOfOldPrices(t, map[string]oldPrice{"bread": {"3.50"}, "milk": {"1.19"}}))
	if want := "bread {350} []\nmilk {119} [{99} {109}]"; err != nil || got != want {
		t.Errorf("%v: got %q, want %q", err, got, want)
	}
}

func TestStateThatCannotBeUpgradedFailsTheJob(t *testing.T) {
	_, err := priceJob(t, savepointOfOldPrices(t, map[string]oldPrice{"bread": {"dear"}}))
	if err == nil || !strings.Contains(err.Error(), `upgrade a value: strconv.ParseInt: parsing "dear"`) {
		t.Errorf("got %v", err)
	}
}
