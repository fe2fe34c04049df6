package streaming_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/flott-dev/flott/conformance"
	"github.com/flott-dev/flott/flotttest"
	"github.com/flott-dev/flott/process"
	"github.com/flott-dev/flott/stream"
)

// functionSpec is the function of a case with its arguments.
type functionSpec struct {
	Name       string   `json:"name"`
	Domain     string   `json:"domain"`
	TimerTS    int64    `json:"timer_ts"`
	KeyPostfix string   `json:"key_postfix"`
	Keys       []string `json:"keys"`
	Fields     []int    `json:"fields"`
	Initial    string   `json:"initial"`
}

func (f *functionSpec) domain() process.Domain {
	switch f.Domain {
	case "event":
		return process.EventTime
	case "processing":
		return process.ProcessingTime
	}
	panic("domain " + strconv.Quote(f.Domain) + " is unknown")
}

type processCase struct {
	conformance.Head
	Operator       string        `json:"operator"`
	Function       functionSpec  `json:"function"`
	Key            string        `json:"key"`
	MaxParallelism int           `json:"max_parallelism"`
	OldParallelism int           `json:"old_parallelism"`
	NewParallelism int           `json:"new_parallelism"`
	Steps          []processStep `json:"steps"`
}

type processStep struct {
	Element         json.RawMessage                `json:"element"`
	TS              conformance.Millis             `json:"ts"`
	Input           int                            `json:"input"`
	To              string                         `json:"to"`
	ExpectError     any                            `json:"expect_error"`
	Watermark       *conformance.Millis            `json:"watermark"`
	ProcessingTime  *conformance.Millis            `json:"processing_time"`
	SnapshotRestore bool                           `json:"snapshot_restore"`
	Rescale         bool                           `json:"rescale"`
	Rule            *conformance.Rule              `json:"rule"`
	ExpectOutput    *[]conformance.Entry           `json:"expect_output"`
	ExpectSide      map[string][]conformance.Entry `json:"expect_side_output"`
	ExpectKeyed     map[string][]string            `json:"expect_keyed_state_seen_on_broadcast"`
	ExpectBroadcast map[string]int64               `json:"expect_broadcast_state_seen"`
	ExpectEach      *[]json.RawMessage             `json:"expect_output_each_subtask"`
	Order           string                         `json:"order"`
}

func TestProcessFunctionVectors(t *testing.T) {
	run := conformance.EachWay(runProcess)
	s := conformance.Suite{Folder: "streaming", Family: "process_function", Rules: processRules(), Rewrite: *rewrite, Runners: map[string]conformance.Runner{}}
	for _, kind := range []string{
		"process", "keyed_process", "co_process", "keyed_co_process", "broadcast_keyed", "broadcast_non_keyed",
		"map", "flat_map", "filter", "project", "keyed_reduce", "keyed_fold", "co_map", "co_flat_map",
	} {
		s.Runners[kind] = run
	}
	s.Absent = func(t *testing.T, c conformance.Case) string {
		var v processCase
		c.Decode(t, &v)
		if v.Function.Name == "null_output_tag" && !refusesNilTag(t) {
			return "contexts take a tag without a name for one that nobody reads"
		}
		return ""
	}
	s.Run(t)
}

// refusesNilTag reports whether emitting to the zero tag fails.
func refusesNilTag(t *testing.T) bool {
	h := flotttest.NewHarness(t, func(in *stream.Stream[int64]) *stream.Stream[string] {
		return in.Process(func(*process.Runtime) plain[int64, string] {
			return plainFunction(&functionSpec{Name: "null_output_tag"})
		})
	})
	return h.TryProcessElement(1, 1) != nil
}

func runProcess(t *testing.T, c conformance.Case, w conformance.Way) {
	var v processCase
	c.Decode(t, &v)
	for name, build := range subjects(t, &v) {
		t.Run(name, func(t *testing.T) {
			see := &seen{}
			opts := append(sideOptions(), wayOptions(w)...)
			if v.MaxParallelism > 0 {
				opts = append(opts, flotttest.WithMaxParallelism(v.MaxParallelism))
			}
			b := processBench{c: &v, subject: build(t, opts, see), see: see}
			if v.OldParallelism > 0 {
				b.all = fresh(t, b.subject, v.OldParallelism)
				b.subject = b.all[0]
			}
			b.pending = pending{to: b.subject, way: w, input: 1}
			for i := range v.Steps {
				b.step(t, i, &v.Steps[i])
			}
			if err := b.pending.flush(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// processBench runs the steps of one case.
type processBench struct {
	c       *processCase
	subject subject
	see     *seen
	pending pending
	all     []subject // the subtasks of a case with several; new says that they are those after the rescaling
	new     bool
}

// fresh are the subtasks of an operator of which a subject was made for another parallelism.
func fresh(t *testing.T, s subject, parallelism int) []subject {
	t.Helper()
	all := make([]subject, parallelism)
	for i := range all {
		all[i] = s.again(t, flotttest.WithSubtask(i, parallelism))
	}
	return all
}

func (b *processBench) step(t *testing.T, i int, s *processStep) {
	t.Helper()
	if s.Order != "" && s.Order != "any" && s.Order != "exact" {
		t.Fatalf("step %d: order %q is unknown", i, s.Order)
	}
	input := max(1, s.Input)
	if s.To != "" {
		b.pushAll(t, i, s)
		return
	}
	if s.Element != nil && s.ExpectError == nil {
		if err := b.pending.add(input, rawElement{s.Element, int64(s.TS)}); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
		return
	}
	if err := b.pending.flush(); err != nil {
		t.Fatalf("before step %d: %v", i, err)
	}
	var err error
	switch {
	case s.Element != nil:
		if b.subject.push(input, []rawElement{{s.Element, int64(s.TS)}}) == nil {
			t.Fatalf("step %d: no error, want %v", i, s.ExpectError)
		}
	case s.Watermark != nil:
		err = b.subject.watermark(input, int64(*s.Watermark))
	case s.ProcessingTime != nil:
		err = b.subject.clock(int64(*s.ProcessingTime))
	case s.SnapshotRestore:
		b.subject = restarted(t, b.subject)
		b.pending.to = b.subject
	case s.Rescale:
		b.all, b.new = rescaled(t, b.all, b.c.NewParallelism), true
	default:
		b.expect(t, i, s)
	}
	if err != nil {
		t.Fatalf("step %d: %v", i, err)
	}
}

// pushAll hands an element to every subtask.
func (b *processBench) pushAll(t *testing.T, i int, s *processStep) {
	t.Helper()
	if s.Element == nil || b.all == nil || s.To != map[bool]string{false: "every_old_subtask", true: "every_new_subtask"}[b.new] {
		t.Fatalf("step %d: nothing that can be done %q", i, s.To)
	}
	for _, sub := range b.all {
		if err := sub.push(max(1, s.Input), []rawElement{{s.Element, int64(s.TS)}}); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
	}
}

func (b *processBench) expect(t *testing.T, i int, s *processStep) {
	t.Helper()
	switch {
	case s.ExpectOutput != nil:
		compare(t, i, "output", b.subject.output(), conformance.Texts(*s.ExpectOutput), s.Order == "any")
	case s.ExpectSide != nil:
		for tag, want := range s.ExpectSide {
			compare(t, i, "side output "+tag, sides(t, b.subject, tag), conformance.Texts(want), s.Order == "any")
		}
	case s.ExpectEach != nil:
		for _, sub := range b.all {
			var want []string
			for _, raw := range *s.ExpectEach {
				want = append(want, string(raw))
			}
			compare(t, i, "output of a subtask", sub.output(), want, s.Order == "any")
		}
	case s.ExpectKeyed != nil:
		if got, want := conformance.Text(b.see.keyed), conformance.Text(s.ExpectKeyed); got != want {
			t.Fatalf("step %d: the broadcast side saw %s, want %s", i, got, want)
		}
	case s.ExpectBroadcast != nil:
		if got, want := conformance.Text(b.see.broadcast), conformance.Text(s.ExpectBroadcast); got != want {
			t.Fatalf("step %d: the main side saw %s, want %s", i, got, want)
		}
	default:
		t.Fatalf("step %d is unknown", i)
	}
}

type subjectMaker func(t *testing.T, opts []flotttest.Option, see *seen) subject

// subjects are the ways to build the operator of a case: one, or one for each layout of its state.
func subjects(t *testing.T, c *processCase) map[string]subjectMaker {
	t.Helper()
	out := map[string]subjectMaker{}
	switch c.Function.Name {
	case "stateful_timer", "co_stateful_timer":
		for name, cells := range layouts() {
			out[name] = func(t *testing.T, opts []flotttest.Option, see *seen) subject { return c.subject(t, opts, see, cells) }
		}
		return out
	case "sum":
		out["fixed"] = func(t *testing.T, opts []flotttest.Option, _ *seen) subject {
			return sumSubject(t, c, opts, fixedNumber())
		}
		out["text"] = func(t *testing.T, opts []flotttest.Option, _ *seen) subject {
			return sumSubject(t, c, opts, textNumber())
		}
		out["encoded"] = func(t *testing.T, opts []flotttest.Option, _ *seen) subject {
			return sumSubject(t, c, opts, encodedNumber())
		}
		return out
	case "concat_decimal":
		out["text"] = func(t *testing.T, opts []flotttest.Option, _ *seen) subject { return foldText(t, c, opts) }
		out["encoded"] = func(t *testing.T, opts []flotttest.Option, _ *seen) subject { return foldBytes(t, c, opts) }
		return out
	}
	out["one layout"] = func(t *testing.T, opts []flotttest.Option, see *seen) subject {
		return c.subject(t, opts, see, cells(fixedNumber()))
	}
	return out
}

func (c *processCase) subject(t *testing.T, opts []flotttest.Option, see *seen, cells cellMaker) subject {
	t.Helper()
	var s subject
	switch c.Operator {
	case "process":
		if f := plainFunction(&c.Function); f != nil {
			s = newOne(t, opts, func(in *stream.Stream[int64]) *stream.Stream[string] {
				return in.Process(func(*process.Runtime) plain[int64, string] { return f })
			})
		}
	case "keyed_process":
		s = c.keyedSubject(t, opts, cells)
	case "co_process":
		if f := coFunction(&c.Function); f != nil {
			s = newTwo(t, opts, func(a *stream.Stream[int64], b *stream.Stream[string]) *stream.Stream[string] {
				return a.Connect(b).Process(f)
			})
		}
	case "keyed_co_process":
		if f := coKeyedFunction(&c.Function, cells); f != nil && c.Key == "string_of_value" {
			s = newTwo(t, opts, func(a *stream.Stream[int64], b *stream.Stream[string]) *stream.Stream[string] {
				return a.Connect(b).KeyBy(decimal, func(x string) string { return x }).Process(f)
			})
		}
	case "broadcast_keyed", "broadcast_non_keyed":
		s = c.broadcastSubject(t, opts, see)
	default:
		s = c.simpleSubject(t, opts)
	}
	if s == nil {
		t.Fatalf("operator %q with function %q and key %q is unknown", c.Operator, c.Function.Name, c.Key)
	}
	return s
}

func decimal(x int64) string { return strconv.FormatInt(x, 10) }

func (c *processCase) keyedSubject(t *testing.T, opts []flotttest.Option, cells cellMaker) subject {
	t.Helper()
	switch {
	case c.Function.Name == "emit_second_field_checking_key" && c.Key == "first_field":
		return newOne(t, opts, func(in *stream.Stream[pair]) *stream.Stream[string] {
			return in.KeyBy(func(p pair) int64 { return p.A }).Process(secondField)
		})
	case c.Key == "identity":
		return keyedBy(t, c, opts, cells, func(x int64) int64 { return x })
	case c.Key == "string_of_value":
		return keyedBy(t, c, opts, cells, decimal)
	}
	return nil
}

func keyedBy[K comparable](t *testing.T, c *processCase, opts []flotttest.Option, cells cellMaker, key func(int64) K) subject {
	t.Helper()
	if c.Function.Name == "emit_and_timer_plus_5" {
		f := timerPlusFive[K](c.Function.domain())
		return newOne(t, opts, func(in *stream.Stream[int64]) *stream.Stream[int64] { return in.KeyBy(key).Process(f) })
	}
	f := keyedFunction[K](&c.Function, cells)
	if f == nil {
		return nil
	}
	return newOne(t, opts, func(in *stream.Stream[int64]) *stream.Stream[string] { return in.KeyBy(key).Process(f) })
}

func (c *processCase) broadcastSubject(t *testing.T, opts []flotttest.Option, see *seen) subject {
	t.Helper()
	st := newStates()
	type texts = *stream.Stream[string]
	type numbers = *stream.Stream[int64]
	switch {
	case c.Operator == "broadcast_non_keyed":
		if f := bcPlainFunction(&c.Function, st); f != nil {
			return newTwo(t, opts, func(a texts, b numbers) texts { return a.ConnectBroadcast(b.BroadcastState(st.all()...)).Process(f) })
		}
	case c.Key == "first_field" && c.Function.Name == "emit_second_field_checking_key":
		return newTwo(t, opts, func(a *stream.Stream[pair], b numbers) texts {
			return a.KeyBy(func(p pair) int64 { return p.A }).ConnectBroadcast(b.BroadcastState(st.all()...)).Process(bcSecondField)
		})
	case c.Key == "identity":
		if f := bcKeyedFunction(&c.Function, st, see); f != nil {
			return newTwo(t, opts, func(a texts, b numbers) texts {
				return a.KeyBy(func(x string) string { return x }).ConnectBroadcast(b.BroadcastState(st.all()...)).Process(f)
			})
		}
	}
	return nil
}

// five is a tuple of numbers and texts, three what the vectors project of it.
type (
	five struct {
		A int64
		B string
		C int64
		D string
		E int64
	}
	three struct {
		A, B int64
		C    string
	}
)

func (f *five) UnmarshalJSON(b []byte) error { return tuple(b, &f.A, &f.B, &f.C, &f.D, &f.E) }

func (p three) MarshalJSON() ([]byte, error) { return json.Marshal([]any{p.A, p.B, p.C}) }

func (c *processCase) simpleSubject(t *testing.T, opts []flotttest.Option) subject {
	t.Helper()
	type numbers = *stream.Stream[int64]
	switch c.Operator + " " + c.Function.Name {
	case "map plus_one_string":
		return newOne(t, opts, func(in numbers) *stream.Stream[string] {
			return in.Map(func(x int64) string { return "+" + decimal(x+1) })
		})
	case "flat_map even_and_square":
		return newOne(t, opts, func(in numbers) numbers {
			return in.FlatMap(func(x int64, emit func(int64)) {
				if x%2 == 0 {
					emit(x)
					emit(x * x)
				}
			})
		})
	case "filter even":
		return newOne(t, opts, func(in numbers) numbers { return in.Filter(func(x int64) bool { return x%2 == 0 }) })
	case "project project":
		return newOne(t, opts, func(in *stream.Stream[five]) *stream.Stream[three] { return in.Project[three](c.Function.Fields...) })
	case "co_map to_string":
		return newTwo(t, opts, func(a *stream.Stream[float64], b numbers) *stream.Stream[string] {
			return a.Connect(b).Map(func(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }, decimal)
		})
	case "co_flat_map chars_or_string":
		return newTwo(t, opts, func(a *stream.Stream[string], b numbers) *stream.Stream[string] {
			return a.Connect(b).FlatMap(func(x string, emit func(string)) {
				for _, r := range x {
					emit(string(r))
				}
			}, func(x int64, emit func(string)) { emit(decimal(x)) })
		})
	}
	return nil
}

// sumSubject is the rolling reduce with numbers kept as V.
func sumSubject[V any](t *testing.T, c *processCase, opts []flotttest.Option, as asNumber[V]) subject {
	t.Helper()
	sum := func(a, b V) V { return as.to(as.from(a) + as.from(b)) }
	s := newOne(t, opts, func(in *stream.Stream[V]) *stream.Stream[V] {
		if c.Key == "string_of_value" {
			return in.KeyBy(func(x V) string { return decimal(as.from(x)) }).Reduce(sum)
		}
		return in.KeyBy(as.from).Reduce(sum)
	})
	s.read = func(elements []rawElement) ([]flotttest.Element[V], error) {
		xs, err := read[int64](elements)
		var out []flotttest.Element[V]
		for _, x := range xs {
			out = append(out, flotttest.Element[V]{Value: as.to(x.Value), Time: x.Time})
		}
		return out, err
	}
	s.text = func(v V) string { return conformance.Text(as.from(v)) }
	return s
}

func foldText(t *testing.T, c *processCase, opts []flotttest.Option) subject {
	t.Helper()
	f := func(acc string, x int64) string { return acc + decimal(x) }
	return newOne(t, opts, func(in *stream.Stream[int64]) *stream.Stream[string] {
		if c.Key == "string_of_value" {
			return in.KeyBy(decimal).Fold(c.Function.Initial, f)
		}
		return in.KeyBy(func(x int64) int64 { return x }).Fold(c.Function.Initial, f)
	})
}

// foldBytes appends to what it gets, which must be the key's own.
func foldBytes(t *testing.T, c *processCase, opts []flotttest.Option) subject {
	t.Helper()
	initial := append(make([]byte, 0, 64), c.Function.Initial...)
	f := func(acc []byte, x int64) []byte { return strconv.AppendInt(acc, x, 10) }
	s := newOne(t, opts, func(in *stream.Stream[int64]) *stream.Stream[[]byte] {
		if c.Key == "string_of_value" {
			return in.KeyBy(decimal).Fold(initial, f)
		}
		return in.KeyBy(func(x int64) int64 { return x }).Fold(initial, f)
	})
	s.text = func(v []byte) string { return conformance.Text(string(v)) }
	return s
}

// processRules are tests of the family's prose rules.
func processRules() map[string]func(*testing.T) {
	return map[string]func(*testing.T){
		"StreamGroupedReduceTest/testOpenClose": func(t *testing.T) {
			checkLife(t, func(calls *[]string, in *stream.Stream[int64]) *stream.Stream[int64] {
				return in.KeyBy(func(x int64) int64 { return x % 3 }).Process(func(rt *process.Runtime) *lifeKeyed { return newLifeKeyed(rt, calls) })
			})
		},
		"StreamGroupedFoldTest/testOpenClose": func(t *testing.T) {
			checkLife(t, func(calls *[]string, in *stream.Stream[int64]) *stream.Stream[int64] {
				return in.KeyBy(decimal).Process(func(rt *process.Runtime) *lifeText { return newLifeText(rt, calls) })
			})
		},
		"CoStreamMapTest/testOpenClose":     func(t *testing.T) { checkLife(t, connectedLife) },
		"CoStreamFlatMapTest/testOpenClose": func(t *testing.T) { checkLife(t, connectedLife) },
	}
}

// checkLife runs a job whose function notes its construction, elements and end.
func checkLife(t *testing.T, build func(calls *[]string, in *stream.Stream[int64]) *stream.Stream[int64]) {
	t.Helper()
	var calls []string
	got := flotttest.Run(t, func(env *stream.Env) *stream.Stream[int64] {
		return build(&calls, env.SetParallelism(1).FromElements[int64](1, 2, 3))
	})
	if len(got) == 0 {
		t.Error("no output")
	}
	if text := strings.Join(calls, " "); text != "open"+strings.Repeat(" element", len(calls)-2)+" close" || len(calls) < 5 {
		t.Errorf("calls: %s", text)
	}
}
