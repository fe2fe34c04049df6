package source

import (
	"context"
	"fmt"

	"github.com/flott-dev/flott/connector"
	"github.com/flott-dev/flott/internal/operator"
	"github.com/flott-dev/flott/serde"
)

// enumerator is the coordinator of a split source.
type enumerator[T, S any] struct {
	src   connector.Source[T, S]
	split *serde.Handle
	enum  connector.Enumerator[S]
}

// Enumerator returns the coordinator of a split source.
func Enumerator[T, S any](split *serde.Handle, src connector.Source[T, S]) operator.Coordinator {
	return &enumerator[T, S]{src: src, split: split}
}

func (e *enumerator[T, S]) Start(ctx operator.CoordinatorContext, restored []byte) (err error) {
	e.enum, err = e.src.Enumerator(enumeratorContext[S]{ctx, e.split}, restored)
	if err != nil {
		return fmt.Errorf("open the enumerator: %w", err)
	}
	return e.enum.Start()
}

func (e *enumerator[T, S]) Handle(subtask int, event []byte) error {
	if kind := eventKind(event); kind != eventRequest {
		return fmt.Errorf("handle an event of subtask %d: unknown kind %d", subtask, kind)
	}
	return e.enum.Request(subtask)
}

func (e *enumerator[T, S]) Snapshot(id int64) ([]byte, error) { return e.enum.Snapshot(id) }

func (e *enumerator[T, S]) Close() error {
	if e.enum == nil {
		return nil
	}
	return e.enum.Close()
}

type enumeratorContext[S any] struct {
	operator.CoordinatorContext
	split *serde.Handle
}

// Assign implements connector.EnumeratorContext. Splits are of a type whose codec was compiled at graph time; one that
// can't be encoded all the same (a value outside a closed set) is a mistake in the connector.
func (c enumeratorContext[S]) Assign(subtask int, splits ...S) {
	event, err := encodeSplits(c.split, splits)
	if err != nil {
		c.Do(0, func(context.Context) error { return err }, nil)
		return
	}
	c.Send(subtask, event)
}

func (c enumeratorContext[S]) NoMoreSplits(subtask int) { c.Send(subtask, []byte{eventNoMore}) }
