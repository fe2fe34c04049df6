package host

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
)

func TestLettersAreTakenOnceInTheOrderOfPosting(t *testing.T) {
	w := newAlarm()
	m := NewMailbox(w)
	if m.Take() != nil {
		t.Error("an empty mailbox has letters")
	}
	var read []int
	open := func() {
		for _, letter := range m.Take() {
			if err := letter(); err != nil {
				t.Error(err)
			}
		}
	}
	for round := range 3 {
		for i := range 4 {
			m.Post(func() error {
				read = append(read, 10*round+i)
				return nil
			})
		}
		w.Wait(Idle, Forever) // posting woke it
		open()
		open() // nothing twice
	}
	if want := []int{0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23}; !slices.Equal(read, want) {
		t.Errorf("read %v, want %v", read, want)
	}
}

func TestLetterOfALetterIsTakenNextTime(t *testing.T) {
	m := NewMailbox(newAlarm())
	m.Post(func() error {
		m.Post(func() error { return nil })
		return nil
	})
	for range 2 {
		letters := m.Take()
		if len(letters) != 1 {
			t.Fatalf("%d letters, want 1", len(letters))
		}
		if err := letters[0](); err != nil {
			t.Error(err)
		}
	}
	if m.Take() != nil {
		t.Error("a letter was left")
	}
}

// Memory is shared by all subtasks: what is reserved and released adds up, and a refusal takes nothing.
func TestMemoryReservesUpToItsLimit(t *testing.T) {
	m := NewMemory(100)
	for _, c := range []struct {
		reserve int64
		refused bool
		used    int64
	}{
		{60, false, 60}, {41, true, 60}, {40, false, 100}, {1, true, 100}, {0, false, 100},
	} {
		err := m.Reserve(c.reserve)
		if (err != nil) != c.refused || m.Used() != c.used {
			t.Errorf("reserve %d: %v, %d are in use, want %d", c.reserve, err, m.Used(), c.used)
		}
		if want := "reserve 41 bytes: 60 of 100 bytes are in use; raise the memory setting or use a disk state backend"; c.reserve == 41 && err.Error() != want {
			t.Errorf("got %q, want %q", err, want)
		}
	}
	m.Release(100)
	if m.Used() != 0 || m.Limit() != 100 {
		t.Errorf("%d of %d bytes are in use after all were released", m.Used(), m.Limit())
	}
}

func TestMemoryWithoutLimitOnlyCounts(t *testing.T) {
	m := NewMemory(0)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 1000 {
				if err := m.Reserve(1 << 40); err != nil {
					t.Error(err)
				}
				m.Release(1<<40 - 1)
			}
		})
	}
	group.Wait()
	if m.Used() != 8000 {
		t.Errorf("%d bytes are in use, want 8000", m.Used())
	}
}

func TestGuardLetsOneInAtATime(t *testing.T) {
	var g Guard
	n, inside := 0, 0
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 500 {
				g.Enter()
				if inside++; inside != 1 {
					t.Errorf("%d are inside", inside)
				}
				n++
				inside--
				g.Leave()
			}
		})
	}
	group.Wait()
	if n != 4000 {
		t.Errorf("counted %d, want 4000", n)
	}
}

func TestSpawnerWaitsForAllItsGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Spawner
		s.Wait() // for nobody
		release := make(chan struct{})
		for range 3 {
			s.Go(func() { <-release })
		}
		over := false
		go func() {
			s.Wait()
			over = true
		}()
		for range 3 {
			synctest.Wait()
			if over {
				t.Fatal("it did not wait for all")
			}
			release <- struct{}{}
		}
		synctest.Wait()
		if !over {
			t.Error("all have returned, and it still waits")
		}
	})
}

func TestSpawnerRefusesInTheSimulation(t *testing.T) {
	s := Spawner{Refuse: true}
	defer func() {
		if p := recover(); p != ErrNoGoroutines {
			t.Errorf("panic %v", p)
		}
		s.Wait() // for nobody
	}()
	s.Go(func() { t.Error("started") })
	t.Error("not refused")
}

func TestNoMemoryIsWithoutLimit(t *testing.T) {
	var m *Memory
	if err := m.Reserve(1 << 60); err != nil {
		t.Error(err)
	}
	m.Release(1 << 60)
}
