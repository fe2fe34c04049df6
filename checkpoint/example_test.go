package checkpoint_test

import (
	"fmt"

	"github.com/flott-dev/flott/checkpoint"
)

// A tool reads a snapshot without the program that took it.
func ExampleManifest_Read() {
	snapshot, err := checkpoint.Load(nil, "testdata/v1/chk-8")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%v %d of job %q\n", snapshot.Kind, snapshot.ID, snapshot.JobName)
	operator := snapshot.Operator("prices") // by UID
	for _, t := range operator.Tables() {
		fmt.Printf("%s: %d rows, key %v, value %v\n", t.Name, t.Rows, t.Key, t.Value)
	}
	state, _, err := snapshot.Read(nil, operator.ID)
	if err != nil {
		fmt.Println(err)
		return
	}
	total, _ := state.Table("total")
	for row, err := range total.Rows {
		if err != nil {
			fmt.Println(err)
			return
		}
		key, _ := checkpoint.AppendKeyJSON(nil, total.Key, row.Key)
		value, _, _ := checkpoint.AppendJSON(nil, total.Value, row.Value)
		fmt.Printf("%s %s\n", key, value)
	}
	// Output:
	// checkpoint 8 of job "Prices"
	// total: 3 rows, key string, value struct{Sum int64;Name string}
	// seen: 3 rows, key string, value string
	// prices: 2 rows, key string, value float64
	// timers/event: 1 rows, key string, value <nil>
	// "bob" {"Sum":1099511627776,"Name":""}
	// "" {"Sum":0,"Name":"??"}
	// "ada" {"Sum":7,"Name":"Ada"}
}
