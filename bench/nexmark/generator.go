package nexmark

import (
	"math/bits"
	"runtime"
	"strconv"
	"sync"
)

// Data are generated events with what they point to.
type Data struct {
	Config
	Events []Event // in the order in which they come
	Side   []SideInput
}

// SideInput is a row of the bounded table that query 13 looks bids up in.
type SideInput struct {
	Key   int64
	Value string
}

// shuffle is prime: a walk by so many steps around a group meets every event of it, unless it divides the group's size.
const shuffle = 953

// block is the number of events that a worker makes at a time.
const block = 1 << 12

// Generate makes the events, with all processors.
func Generate(c Config) (*Data, error) {
	c, err := c.check()
	if err != nil {
		return nil, err
	}
	d := &Data{Config: c, Events: make([]Event, c.Events)}
	for i := range int64(sideInputWidth) {
		d.Side = append(d.Side, SideInput{i, strconv.FormatInt(i, 10)})
	}
	g := newGenerator(c)
	var workers sync.WaitGroup
	blocks := make(chan int)
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			var t text
			for from := range blocks {
				g.fill(d.Events[from:min(from+block, len(d.Events))], from, &t)
			}
		})
	}
	for from := 0; from < len(d.Events); from += block {
		blocks <- from
	}
	close(blocks)
	workers.Wait()
	return d, nil
}

// generator makes single events. Workers share it.
type generator struct {
	Config
	channels []channel
}

// channel is where a bid comes from.
type channel struct{ name, url string }

func newGenerator(c Config) *generator {
	g := &generator{Config: c}
	t := text{random: randomOf(c.Seed, 1<<63)}
	for _, name := range [...]string{"Google", "Facebook", "Baidu", "Apple"} {
		g.channels = append(g.channels, channel{name, t.baseURL()})
	}
	for i := range int32(channels) {
		url := t.baseURL()
		if t.below(10) > 0 {
			id := int64(int32(bits.Reverse32(uint32(i))))
			url += "&channel_id=" + strconv.FormatInt(max(id, -id), 10)
		}
		g.channels = append(g.channels, channel{"channel-" + strconv.Itoa(int(i)), url})
	}
	return g
}

const hotChannels = 4

func (t *text) baseURL() string {
	const site, item = "https://www.nexmark.com", "/item.htm?query=1"
	t.begin(len(site) + 3*6 + len(item))
	t.chunk.WriteString(site)
	for range 3 {
		t.chunk.WriteByte('/')
		t.put(5, '_')
	}
	t.chunk.WriteString(item)
	return t.end()
}

// number is the number of the event that comes as the i-th.
func (c Config) number(i int64) int64 {
	g := int64(c.Group)
	return i/g*g + i*shuffle%g
}

// millis is the time of event n.
func (c Config) millis(n int64) int64 { return c.Start + n*1_000_000/int64(c.Rate)/1000 }

// kind is the kind of event n.
func kind(n int64) int {
	switch offset := n % Epoch; {
	case offset < persons:
		return aPerson
	case offset < persons+auctions:
		return anAuction
	}
	return aBid
}

const (
	aPerson = iota
	anAuction
	aBid
	kinds
)

// fill makes the events that come as the from-th and following. What they point to lies in slices of its own.
func (g *generator) fill(out []Event, from int, t *text) {
	var count [kinds]int
	for i := range out {
		count[kind(g.number(int64(from+i)))]++
	}
	people, offers, bids := make([]Person, count[aPerson]), make([]Auction, count[anAuction]), make([]Bid, count[aBid])
	for i := range out {
		n := g.number(int64(from + i))
		t.random = randomOf(g.Seed, uint64(n))
		switch e := &out[i]; kind(n) {
		case aPerson:
			e.Person, people = &people[0], people[1:]
			*e.Person = g.person(n, t)
		case anAuction:
			e.Auction, offers = &offers[0], offers[1:]
			*e.Auction = g.auction(n, t)
		default:
			e.Bid, bids = &bids[0], bids[1:]
			*e.Bid = g.bid(n, t)
		}
	}
}

// lastPerson is the number of the last person up to event n.
func lastPerson(n int64) int64 { return n/Epoch*persons + min(n%Epoch, persons-1) }

// lastAuction is the number of the last auction up to event n; -1 if there is none yet.
func lastAuction(n int64) int64 {
	epoch, offset := n/Epoch, n%Epoch
	if offset < persons {
		return epoch*auctions - 1
	}
	return epoch*auctions + min(offset-persons, auctions-1)
}

// active is the number of a person who is active at event n, or will be soon.
func (r *random) active(n int64) int64 {
	people := lastPerson(n) + 1
	active := min(people, activePeople)
	return people - active + r.below(active+personLead)
}

func hot(last int64) int64 { return max(last, 0) / hotStride * hotStride }

func (g *generator) person(n int64, t *text) Person {
	first := [...]string{"Anna", "Boris", "Carla", "Dmitri", "Edda", "Felix", "Greta", "Hugo", "Ines", "Jakob", "Klara"}
	last := [...]string{"Abel", "Brandt", "Conrad", "Dorn", "Ebert", "Fuchs", "Graf", "Hahn", "Iversen"}
	cities := [...]string{"Phoenix", "Los Angeles", "San Francisco", "Boise", "Portland", "Bend", "Redmond", "Seattle", "Kent", "Cheyenne"}
	states := [...]string{"AZ", "CA", "ID", "OR", "WA", "WY"}
	p := Person{ID: lastPerson(n) + FirstPerson, DateTime: g.millis(n)}
	f, l := first[t.below(int64(len(first)))], last[t.below(int64(len(last)))]
	t.begin(len(f) + 1 + len(l))
	t.chunk.WriteString(f)
	t.chunk.WriteByte(' ')
	t.chunk.WriteString(l)
	p.Name = t.end()
	t.begin(7 + 1 + 5 + 4)
	t.put(7, ' ')
	t.chunk.WriteByte('@')
	t.put(5, ' ')
	t.chunk.WriteString(".com")
	p.EmailAddress = t.end()
	p.CreditCard = t.digits()
	p.City, p.State = cities[t.below(int64(len(cities)))], states[t.below(int64(len(states)))]
	p.Extra = t.padding(8+len(p.Name)+len(p.EmailAddress)+len(p.CreditCard)+len(p.City)+len(p.State), personBytes)
	return p
}

func (g *generator) auction(n int64, t *text) Auction {
	a := Auction{ID: lastAuction(n) + FirstAuction, DateTime: g.millis(n)}
	if t.below(hotSellers) > 0 {
		a.Seller = hot(lastPerson(n))
	} else {
		a.Seller = t.active(n)
	}
	a.Seller += FirstPerson
	a.Category = FirstCategory + t.below(categories)
	a.InitialBid = t.price()
	a.Reserve = a.InitialBid + t.price()
	horizon := g.millis(n+inFlight*Epoch/auctions) - a.DateTime
	a.Expires = a.DateTime + 1 + t.below(max(2*horizon, 1))
	a.ItemName, a.Description = t.words(20, ' '), t.words(100, ' ')
	a.Extra = t.padding(8+len(a.ItemName)+len(a.Description)+5*8, auctionBytes)
	return a
}

func (g *generator) bid(n int64, t *text) Bid {
	b := Bid{DateTime: g.millis(n)}
	last := lastAuction(n)
	if t.below(hotAuctions) > 0 {
		b.Auction = hot(last)
	} else {
		least := max(last-inFlight, 0)
		b.Auction = least + t.below(last+auctionLead-least+1)
	}
	b.Auction += FirstAuction
	if t.below(hotBidders) > 0 {
		b.Bidder = hot(lastPerson(n)) + 1
	} else {
		b.Bidder = t.active(n)
	}
	b.Bidder += FirstPerson + bidderQuirk
	b.Price = t.price()
	c := t.below(hotChannels)
	if t.below(2) > 0 {
		c = hotChannels + t.below(channels)
	}
	b.Channel, b.URL = g.channels[c].name, g.channels[c].url
	b.Extra = t.padding(4*8, bidBytes)
	return b
}
