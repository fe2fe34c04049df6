package loops

import "math/bits"

const batchSize = 1024

func hash(k uint64) uint64 {
	hi, lo := bits.Mul64(k^0x9E3779B97F4A7C15, 0xbf58476d1ce4e5b9)
	return hi ^ lo
}

// exchange: producers, as many as workers, scatter by hash to consumers over channels of recycled batches.
func exchange(es []Event, workers int, consume func(worker int, batch []Event)) {
	queues := make([]chan []Event, workers)
	free := make(chan []Event, workers*16)
	for i := range queues {
		queues[i] = make(chan []Event, 4)
	}
	for range cap(free) {
		free <- make([]Event, 0, batchSize)
	}
	produced := make(chan struct{}, workers)
	for p := range workers {
		go func() {
			scatter(es[len(es)*p/workers:len(es)*(p+1)/workers], queues, free)
			produced <- struct{}{}
		}()
	}
	finish(queues, free, consume, produced, workers)
}

func scatter(part []Event, queues []chan []Event, free chan []Event) {
	workers := len(queues)
	open := make([][]Event, workers)
	for i := range open {
		open[i] = <-free
	}
	for i := range part {
		t := int(hash(part[i].Key)>>32) % workers
		open[t] = append(open[t], part[i])
		if len(open[t]) == batchSize {
			queues[t] <- open[t]
			open[t] = <-free
		}
	}
	for t, b := range open {
		queues[t] <- b
	}
}

// finish consumes the queues until all producers have ended.
func finish(queues []chan []Event, free chan []Event, consume func(worker int, batch []Event), produced chan struct{}, producers int) {
	done := make(chan struct{}, len(queues))
	for c := range queues {
		go func() {
			for b := range queues[c] {
				consume(c, b)
				free <- b[:0]
			}
			done <- struct{}{}
		}()
	}
	for range producers {
		<-produced
	}
	for _, q := range queues {
		close(q)
	}
	for range queues {
		<-done
	}
}

// total adds up the values that each worker gets, apart from the others'.
type total [2]struct {
	v uint64
	_ [56]byte
}

func (t *total) add(w int, b []Event) {
	var s uint64
	for i := range b {
		s += uint64(b[i].Val)
	}
	t[w].v += s
}

// Exchange sends every event from one of two producers to one of two consumers, chosen by the key's hash.
func Exchange(es []Event) uint64 {
	var sums total
	exchange(es, 2, sums.add)
	return sums[0].v + sums[1].v
}

// Union brings the events of two inputs together at two consumers: each has a producer per input, which copies its part
// to recycled batches.
func Union(a, b []Event) uint64 {
	const workers = 2
	queues := []chan []Event{make(chan []Event, 4), make(chan []Event, 4)}
	free := make(chan []Event, workers*16)
	for range cap(free) {
		free <- make([]Event, 0, batchSize)
	}
	produced := make(chan struct{}, 2*workers)
	for _, es := range [][]Event{a, b} {
		for w := range workers {
			go func() {
				for part := es[len(es)*w/workers : len(es)*(w+1)/workers]; len(part) > 0; {
					n := min(batchSize, len(part))
					queues[w] <- append(<-free, part[:n]...)
					part = part[n:]
				}
				produced <- struct{}{}
			}()
		}
	}
	var sums total
	finish(queues, free, sums.add, produced, 2*workers)
	return sums[0].v + sums[1].v
}
