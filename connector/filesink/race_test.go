//go:build race

package filesink_test

// stride is how many of the places where a disk can fail are passed over: each is tried where the race detector is not at work,
// which has nothing to find in jobs of one goroutine.
const stride = 7
