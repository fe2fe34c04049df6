package slices

// epoch is what came before the clock of processing time went back. Its windows up to until have fired; elements that come
// now make them anew, without what they had. Its other windows get what comes now as well.
type epoch struct {
	until   int64
	shelf   shelf
	tangles *tangles
}

// onTime is called once the clock is past a time.
func (o *driver) onTime(at int64) error {
	o.alarm = nil
	o.RT.At, o.RT.Run = o.RT, nil
	if err := o.advance(at); err != nil {
		return err
	}
	return o.settle()
}

// schedule sets the alarm for the window that ends first.
func (o *driver) schedule() {
	o.stale = false
	due, ok := o.next(&o.shelf, o.passed)
	for i := range o.hidden {
		if at, is := o.next(&o.hidden[i].shelf, o.hidden[i].until); is && (!ok || at < due) {
			due, ok = at, true
		}
	}
	if o.alarm != nil && ok && due == o.due {
		return
	}
	if o.alarm != nil {
		o.RT.Timers.Cancel(o.alarm)
		o.alarm = nil
	}
	if ok {
		o.due = due
		o.alarm = o.RT.Timers.Schedule(due, o.ring)
	}
}

// next is the end of the first window of slices that has not fired.
func (o *driver) next(h *shelf, passed int64) (int64, bool) {
	if o.cover == nil {
		if len(h.list) == 0 {
			return 0, false
		}
		return h.list[0].last.MaxTimestamp(), true
	}
	floor, ok := o.floor(passed)
	if !ok {
		return 0, false
	}
	w, ok := nextWindow(h, &floor)
	return w.MaxTimestamp(), ok
}

// hide puts away what there is, because the clock went back behind windows that have fired.
func (o *driver) hide(now int64) error {
	if err := o.reunite(); err != nil {
		return err
	}
	o.uncover()
	if len(o.shelf.list)+len(o.shelf.wholes) == 0 {
		o.passed = now - 1
		return nil
	}
	o.hidden = append(o.hidden, epoch{o.passed, o.shelf, o.tangles})
	o.shelf, o.passed = shelf{}, now-1
	if o.tangles != nil {
		o.tangles = newTangles(o)
	}
	return nil
}

// uncover empties the cover.
func (o *driver) uncover() {
	o.cover.clear()
	o.covering, o.current = false, &o.nowhere
}

// unhide brings back what was put away last, when the clock is where it was: what came since comes behind it.
func (o *driver) unhide() error {
	o.uncover()
	n := len(o.hidden) - 1
	came, tangled := o.shelf, o.tangles
	o.shelf, o.tangles = o.hidden[n].shelf, o.hidden[n].tangles
	o.hidden[n] = epoch{}
	o.hidden = o.hidden[:n]
	for _, s := range came.list {
		if err := o.append(s); err != nil {
			return err
		}
	}
	if err := o.unite(came.wholes); err != nil || tangled == nil {
		return err
	}
	return o.tangles.take(tangled)
}

// reunite brings back what was put away when the clock stood where it is now.
func (o *driver) reunite() error {
	for n := len(o.hidden); n > 0 && o.hidden[n-1].until <= o.passed; n = len(o.hidden) {
		if err := o.unhide(); err != nil {
			return err
		}
	}
	return nil
}

// append adds what is in a slice behind what there is.
func (o *driver) append(s *slice) error {
	into := o.shelf.at(s.lo)
	if into == nil {
		into = o.shelf.put(s.stretch)
		if o.tangles == nil {
			into.column, s.column = s.column, column{}
			return nil
		}
	}
	if err := s.shadows.KeepAll(); err != nil { // they are moved, or spoiled
		return err
	}
	m := &o.k.Accs
	for o.cursor.start(); o.cursor.next(&s.column); {
		for i, id := range o.cursor.ids {
			acc := m.At(s.accs, int(o.cursor.at[i]))
			if o.tangles != nil {
				if err := o.tangles.append(id, s.stretch, acc); err != nil {
					return err
				}
				continue
			}
			at, fresh, err := o.columns.insert(&into.column, id, o.keys.limit)
			if err == nil {
				err = into.shadows.Keep(at)
			}
			if err != nil {
				return err
			}
			if fresh {
				m.Move(m.At(into.accs, int(at)), acc, 1)
			} else {
				o.k.Merge(m.At(into.accs, int(at)), acc)
			}
		}
	}
	o.columns.free(&s.column)
	return nil
}
