package stream_test

import (
	"context"
	"fmt"

	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/stream"
)

// converter reads a file of rates before it reads amounts.
type converter struct {
	rates map[string]float64
	ready bool
}

type (
	rate struct {
		Currency string
		Euros    float64
	}
	amount struct {
		Currency string
		Value    float64
	}
)

func (c *converter) NextSelection() process.InputSelection {
	if c.ready { // set by EndInput1
		return process.SelectSecond
	}
	return process.SelectFirst
}

func (c *converter) ProcessElement1(_ *process.Context, r rate, _ *process.Collector[string]) error {
	c.rates[r.Currency] = r.Euros
	return nil
}

func (c *converter) EndInput1(*process.Collector[string]) error {
	c.ready = true
	return nil
}

func (c *converter) ProcessElement2(_ *process.Context, a amount, out *process.Collector[string]) error {
	out.Collect(fmt.Sprintf("%.2f EUR", a.Value*c.rates[a.Currency]))
	return nil
}

func ExampleConnectedStreams_Process_inputSelection() {
	env := stream.NewEnv().SetParallelism(1)
	rates := env.FromElements(rate{"GBP", 1.25}, rate{"USD", 0.5})
	amounts := env.FromElements(amount{"USD", 3}, amount{"GBP", 4})
	// converter is a process.InputSelector: all rates are read before the first amount.
	rates.Connect(amounts).
		Process(func(*process.Runtime) *converter { return &converter{rates: map[string]float64{}} }).
		Print()
	if _, err := env.Execute(context.Background(), "converter"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 1.50 EUR
	// 5.00 EUR
}
