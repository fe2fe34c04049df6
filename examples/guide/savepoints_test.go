package guide

import (
	"context"
	"fmt"
	"log"
	"maps"
	"os"
	"path/filepath"

	"github.com/flott-dev/flott/checkpoint"
)

// account is the value of a state.
type account struct {
	Owner string
	Cents int64
}

// printAccounts prints the balances in a savepoint.
func printAccounts(path string) error {
	snapshot, err := checkpoint.Open(nil, path)
	if err != nil {
		return err
	}
	for e, err := range snapshot.Values[string, account]("accounts", "account") {
		if err != nil {
			return err
		}
		fmt.Println(e.Key, e.Value.Cents)
	}
	return nil
}

// bootstrap makes a savepoint of accounts.
func bootstrap(ctx context.Context, path string, accounts map[string]account) error {
	draft := checkpoint.NewDraft("bank")
	if err := draft.Operator("accounts").SetValues("account", maps.All(accounts)); err != nil {
		return err
	}
	return draft.Write(ctx, nil, path)
}

// repair writes off debts.
func repair(ctx context.Context, from, to string) error {
	snapshot, err := checkpoint.Open(nil, from)
	if err != nil {
		return err
	}
	draft := snapshot.Draft()
	err = draft.Operator("accounts").Update("account", func(id string, a account) (account, bool) {
		a.Cents = max(a.Cents, 0)
		return a, id != ""
	})
	if err != nil {
		return err
	}
	return draft.Write(ctx, nil, to)
}

func Example_savepoints() {
	dir, err := os.MkdirTemp("", "savepoints")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	first, repaired := filepath.ToSlash(filepath.Join(dir, "first")), filepath.ToSlash(filepath.Join(dir, "repaired"))
	ctx := context.Background()
	if err := bootstrap(ctx, first, map[string]account{"a-1": {"ada", 1200}, "b-2": {"bob", -80}, "": {}}); err != nil {
		log.Fatal(err)
	}
	if err := repair(ctx, first, repaired); err != nil {
		log.Fatal(err)
	}
	if err := printAccounts(repaired); err != nil {
		log.Fatal(err)
	}
	// Unordered output:
	// a-1 1200
	// b-2 0
}
