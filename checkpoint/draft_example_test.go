package checkpoint_test

import (
	"context"
	"fmt"
	"log"
	"maps"
	"os"
	"path/filepath"

	"github.com/flott-dev/flott/checkpoint"
)

// Account is the value of a state.
type Account struct {
	Owner string
	Cents int64
}

// A job begins with state that comes from elsewhere: a savepoint is made of it, with the UID of the operator and the name of
// the state in the job.
func ExampleDraft() {
	dir, err := os.MkdirTemp("", "savepoints")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	at := filepath.ToSlash(filepath.Join(dir, "first"))

	accounts := map[string]Account{"a-1": {"ada", 1200}, "a-2": {"bob", 80}}
	draft := checkpoint.NewDraft("bank")
	if err := draft.Operator("accounts").SetValues("account", maps.All(accounts)); err != nil {
		log.Fatal(err)
	}
	if err := draft.Write(context.Background(), nil, at); err != nil {
		log.Fatal(err)
	}

	snapshot, err := checkpoint.Open(nil, at)
	if err != nil {
		log.Fatal(err)
	}
	for e, err := range snapshot.Values[string, Account]("accounts", "account") {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(e.Key, e.Value.Owner, e.Value.Cents)
	}
	// Unordered output:
	// a-1 ada 1200
	// a-2 bob 80
}

// A savepoint is repaired: one state of one operator is changed, all else stays as it is.
func ExampleDraftOperator_Update() {
	dir, err := os.MkdirTemp("", "savepoints")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	at := filepath.ToSlash(filepath.Join(dir, "repaired"))

	snapshot, err := checkpoint.Open(nil, "testdata/v2/chk-8")
	if err != nil {
		log.Fatal(err)
	}
	draft := snapshot.Draft()
	type total struct {
		Sum  int64
		Name string
	}
	err = draft.Operator("prices").Update("total", func(key string, t total) (total, bool) {
		t.Name = "customer " + key
		return t, key != ""
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := draft.Write(context.Background(), nil, at); err != nil {
		log.Fatal(err)
	}
	repaired, err := checkpoint.Open(nil, at)
	if err != nil {
		log.Fatal(err)
	}
	for e, err := range repaired.Values[string, total]("prices", "total") {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(e.Key, e.Value)
	}
	// Unordered output:
	// ada {7 customer ada}
	// bob {1099511627776 customer bob}
}
