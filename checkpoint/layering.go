package checkpoint

import (
	"errors"
	"fmt"
	"slices"

	"github.com/flott-dev/flott/statebackend"
)

// layUpon finds what the tables of changes lie upon: tables of the earlier part, whose chunks become chunks of this one, or
// the files of the backend.
func (p *partWriter) layUpon(state *State) error {
	bases := make([]base, len(state.Tables))
	var upon []int // tables that lie on the earlier part's
	for i := range state.Tables {
		switch t := &state.Tables[i]; {
		case !t.Changes:
		case !layerable(t.Kind) && !(fileable(t.Kind) && len(state.Files) > 0):
			return fmt.Errorf("table %q holds %s: only values, lists and maps have changes", t.Name, t.Kind)
		case len(state.Files) > 0:
			bases[i].files = true
		default:
			upon = append(upon, i)
		}
	}
	if len(upon) > 0 {
		if err := p.carry(state, upon, bases); err != nil {
			return err
		}
	}
	for i := range bases {
		if !state.Tables[i].Changes {
			bases[i].layer = p.layer
		}
	}
	p.part.bases = bases
	return nil
}

// carry takes over the chunks of the earlier part that have rows of tables, and numbers the layers anew: those that nothing is
// left of don't count.
func (p *partWriter) carry(state *State, upon []int, bases []base) error {
	if state.Earlier == nil {
		return fmt.Errorf("table %q has changes, but there is no earlier part to apply them to", state.Tables[upon[0]].Name)
	}
	earlier, err := state.Earlier.Reuse(state.EarlierFolder, p.folder)
	if err != nil {
		return err
	}
	if earlier.Subtask != p.part.Subtask || earlier.FirstGroup != p.part.FirstGroup || earlier.LastGroup != p.part.LastGroup {
		return errors.New("the earlier part is that of another subtask")
	}
	places := map[int]int{} // from earlier tables to those of this part
	var layers []int
	for _, i := range upon {
		at, err := earlier.below(&state.Tables[i])
		if err != nil {
			return err
		}
		places[at] = i
		layers = append(layers, earlier.base(at).layer)
		bases[i] = earlier.base(at)
	}
	for i := range earlier.chunks {
		c := earlier.chunks[i]
		if c.replace(places) {
			p.part.chunks = append(p.part.chunks, c)
			layers = append(layers, c.layer)
		}
	}
	slices.Sort(layers)
	layers = slices.Compact(layers)
	for i := range p.part.chunks {
		c := &p.part.chunks[i]
		c.layer, _ = slices.BinarySearch(layers, c.layer)
	}
	for _, i := range upon {
		bases[i].layer, _ = slices.BinarySearch(layers, bases[i].layer)
	}
	p.layer = len(layers)
	return nil
}

// below finds the table that changes are applied to.
func (p *Part) below(t *statebackend.FrozenTable) (int, error) {
	at := slices.IndexFunc(p.Tables, func(e statebackend.TableInfo) bool { return e.Name == t.Name })
	switch {
	case at < 0:
		return 0, fmt.Errorf("table %q has changes, but the earlier part has no such table", t.Name)
	case !sameTable(&p.Tables[at], &t.TableInfo):
		return 0, fmt.Errorf("table %q has changes, but in the earlier part it is another kind of table", t.Name)
	case p.base(at).files:
		return 0, fmt.Errorf("table %q has changes without files, but in the earlier part it lies in files of a backend", t.Name)
	}
	return at, nil
}

// replace gives the sections of a chunk their places in another part; false: it needs none of them.
func (c *chunk) replace(places map[int]int) bool {
	needed := false
	c.sections = slices.Clone(c.sections)
	for i := range c.sections {
		s := &c.sections[i]
		to, ok := places[s.place]
		if s.place == nobody || !ok {
			to = nobody
		}
		s.place = to
		needed = needed || ok
	}
	return needed
}
