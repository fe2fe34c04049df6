package nexmark

import (
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func generate(t testing.TB, c Config) *Data {
	t.Helper()
	d, err := Generate(c)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestEventsComeInTheirProportionsWithTheirIDsAndTimes(t *testing.T) {
	d := generate(t, Config{Events: 10 * Epoch, Rate: 10_000})
	for n, e := range d.Events {
		epoch, offset := int64(n/Epoch), int64(n%Epoch)
		if got, want := e.Millis(), Midnight+int64(n)/10; got != want {
			t.Fatalf("event %d is of time %d, want %d", n, got, want)
		}
		switch {
		case offset == 0:
			if !e.IsPerson() || e.IsAuction() || e.IsBid() || e.Person.ID != 1000+epoch {
				t.Fatalf("event %d is %+v, want person %d", n, e, 1000+epoch)
			}
		case offset <= 3:
			if !e.IsAuction() || e.IsPerson() || e.IsBid() || e.Auction.ID != 1000+3*epoch+offset-1 {
				t.Fatalf("event %d is %+v, want auction %d", n, e, 1000+3*epoch+offset-1)
			}
		case !e.IsBid() || e.IsPerson() || e.IsAuction():
			t.Fatalf("event %d is %+v, want a bid", n, e)
		}
	}
}

func TestSameConfigurationGivesSameEvents(t *testing.T) {
	c := Config{Events: 3*block + 7, Seed: 1}
	a := generate(t, c)
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	if b := generate(t, c); !reflect.DeepEqual(a, b) {
		t.Error("two calls give different events")
	}
	longer := generate(t, Config{Events: 4 * block, Seed: 1})
	if !reflect.DeepEqual(a.Events, longer.Events[:len(a.Events)]) {
		t.Error("more events begin with different ones")
	}
	c.Seed++
	if b := generate(t, c); reflect.DeepEqual(a.Events[4], b.Events[4]) {
		t.Error("two seeds give the same bid")
	}
}

func TestGroupsComeOutOfOrder(t *testing.T) {
	const group = 100
	ordered := generate(t, Config{Events: 20 * group, Rate: 1000})
	mixed := generate(t, Config{Events: 20 * group, Rate: 1000, Group: group})
	falls := 0
	for from := 0; from < len(ordered.Events); from += group {
		a, b := slices.Clone(ordered.Events[from:from+group]), mixed.Events[from:from+group]
		for i, e := range b {
			j := slices.IndexFunc(a, func(x Event) bool { return reflect.DeepEqual(x, e) })
			if j < 0 {
				t.Fatalf("event %d of the group at %d is not one of its", i, from)
			}
			a = slices.Delete(a, j, j+1)
			if i > 0 && e.Millis() < b[i-1].Millis() {
				falls++
			}
		}
	}
	if falls == 0 {
		t.Error("all events are in order")
	}
}

func TestImpossibleConfigurationsAreRefused(t *testing.T) {
	for _, c := range []Config{{Events: -1}, {Rate: -1}, {Events: 1, Group: -1}, {Events: 1, Group: shuffle}} {
		if _, err := Generate(c); err == nil {
			t.Errorf("%+v: no error", c)
		}
	}
}

func TestFieldsAreAsTheFactsSay(t *testing.T) {
	d := generate(t, Config{Events: 200_000})
	var n, hotSold, hotBid, hotBidding, near, numbered, plain int
	var bytes [kinds]int
	email := regexp.MustCompile(`^[a-z ]{3,6}@[a-z ]{3}[a-z ]?\.com$`)
	card := regexp.MustCompile(`^\d{4} \d{4} \d{4} \d{4}$`)
	url := regexp.MustCompile(`^https://www\.nexmark\.com/[a-z_]{3,4}/[a-z_]{3,4}/[a-z_]{3,4}/item\.htm\?query=1(&channel_id=\d+)?$`)
	for i, e := range d.Events {
		i := int64(i)
		people, offered := lastPerson(i), lastAuction(i)
		switch {
		case e.IsPerson():
			p := e.Person
			if !email.MatchString(p.EmailAddress) || !card.MatchString(p.CreditCard) || len(p.State) != 2 {
				t.Fatalf("person %+v", p)
			}
			bytes[aPerson] += 8 + len(p.Name+p.EmailAddress+p.CreditCard+p.City+p.State+p.Extra)
		case e.IsAuction():
			a := e.Auction
			if a.Category < 10 || a.Category > 14 || a.Reserve <= a.InitialBid || a.Expires <= a.DateTime || a.Expires > a.DateTime+34 ||
				a.Seller < max(1000, people+1-1000) || a.Seller > people+10+1000 || len(a.ItemName) > 19 || len(a.Description) > 99 {
				t.Fatalf("auction %+v", a)
			}
			if a.Seller == 1000+people/100*100 {
				hotSold++
			}
			bytes[anAuction] += 8 + 5*8 + len(a.ItemName+a.Description+a.Extra)
		default:
			b := e.Bid
			if b.Price < 100 || b.Price > 1e8 || !url.MatchString(b.URL) || strings.Trim(b.Extra, "abcdefghijklmnopqrstuvwxyz") != "" ||
				b.Auction < 1000 || b.Auction > 1000+offered+10 || b.Bidder < 2000+max(0, people-1000) || b.Bidder > 2000+people+10 {
				t.Fatalf("bid %+v", b)
			}
			n++
			if b.Auction == 1000+offered/100*100 {
				hotBid++
			} else if b.Auction >= 1000+offered-100 {
				near++
			}
			if b.Bidder == 2001+people/100*100 {
				hotBidding++
			}
			if strings.HasPrefix(b.Channel, "channel-") {
				plain++
				if strings.Contains(b.URL, "&channel_id=") {
					numbered++
				}
			} else if strings.Contains(b.URL, "&channel_id=") {
				t.Fatalf("bid %+v", b)
			}
			bytes[aBid] += 4*8 + len(b.Extra)
		}
	}
	about(t, "auctions of hot sellers", hotSold, 12_000, 0.75)
	about(t, "bids on hot auctions", hotBid, n, 0.5)
	about(t, "bids of hot bidders", hotBidding, n, 0.75)
	about(t, "bids on other auctions of late", near, n, 0.5)
	about(t, "bids of numbered channels", plain, n, 0.5)
	about(t, "channels with an id", numbered, plain, 0.9)
	about(t, "bytes of persons", bytes[aPerson], 4000, 200)
	about(t, "bytes of auctions", bytes[anAuction], 12_000, 500)
	about(t, "bytes of bids", bytes[aBid], n, 100)
}

// about checks a share within 3 %.
func about(t *testing.T, what string, part, of int, want float64) {
	t.Helper()
	if got := float64(part) / float64(of); got < want*0.97 || got > want*1.03 {
		t.Errorf("%s: %.3f, want about %.3f", what, got, want)
	}
}

func BenchmarkGenerate(b *testing.B) {
	g := newGenerator(Config{Rate: DefaultRate, Group: 1})
	var t text
	out := make([]Event, block)
	for i := 0; i < b.N; i += block {
		g.fill(out, i, &t)
	}
}
