package guide

import (
	"fmt"
	"time"

	"github.com/flott-dev/flott/stream"
	"github.com/flott-dev/flott/window"
)

// Ad is an advertisement that was shown or clicked.
type Ad struct {
	ID string
	At time.Time
}

func (a Ad) id() string      { return a.ID }
func (a Ad) time() time.Time { return a.At }

func shownAds(env *stream.Env) *stream.Stream[Ad] {
	return env.FromElements(Ad{"shoes", clock(10, 0, 5)}, Ad{"tea", clock(10, 0, 30)}, Ad{"shoes", clock(10, 0, 50)}, Ad{"tea", clock(10, 1, 20)}).
		AssignAscendingTimestamps(Ad.time)
}

func clickedAds(env *stream.Env) *stream.Stream[Ad] {
	return env.FromElements(Ad{"shoes", clock(10, 0, 12)}, Ad{"shoes", clock(10, 0, 55)}, Ad{"tea", clock(10, 1, 25)}).
		AssignAscendingTimestamps(Ad.time)
}

func Example_windowJoin() {
	env := stream.NewEnv().SetParallelism(1)
	impressions, clicks := shownAds(env), clickedAds(env)
	impressions.Join(clicks).
		Where(Ad.id).EqualTo(Ad.id).
		Window(window.Tumbling(time.Minute)).
		Apply(func(shown, clicked Ad) string {
			return fmt.Sprintf("%s: shown %s, clicked %s", shown.ID, shown.At.Format(time.TimeOnly), clicked.At.Format(time.TimeOnly))
		}).
		Print()
	execute(env)
	// Unordered output:
	// shoes: shown 10:00:05, clicked 10:00:12
	// shoes: shown 10:00:05, clicked 10:00:55
	// shoes: shown 10:00:50, clicked 10:00:12
	// shoes: shown 10:00:50, clicked 10:00:55
	// tea: shown 10:01:20, clicked 10:01:25
}

func Example_windowCoGroup() {
	env := stream.NewEnv().SetParallelism(1)
	impressions, clicks := shownAds(env), clickedAds(env)
	impressions.CoGroup(clicks).
		Where(Ad.id).EqualTo(Ad.id).
		Window(window.Tumbling(time.Minute)).
		Apply(func(i window.Info[string, window.Time], shown, clicked []Ad, emit func(string)) {
			emit(fmt.Sprintf("%s: shown %d times, clicked %d times", i.Key, len(shown), len(clicked)))
		}).
		Print()
	execute(env)
	// Unordered output:
	// shoes: shown 2 times, clicked 2 times
	// tea: shown 1 times, clicked 0 times
	// tea: shown 1 times, clicked 1 times
}

func Example_guideIntervalJoin() {
	env := stream.NewEnv().SetParallelism(1)
	impressions, clicks := shownAds(env), clickedAds(env)
	impressions.KeyBy(Ad.id).
		IntervalJoin(clicks.KeyBy(Ad.id)).
		Between(0, 10*time.Second).
		Join(func(shown, clicked Ad) string {
			return fmt.Sprintf("%s: shown %s, clicked %s", shown.ID, shown.At.Format(time.TimeOnly), clicked.At.Format(time.TimeOnly))
		}).
		Print()
	execute(env)
	// Unordered output:
	// shoes: shown 10:00:05, clicked 10:00:12
	// shoes: shown 10:00:50, clicked 10:00:55
	// tea: shown 10:01:20, clicked 10:01:25
}
