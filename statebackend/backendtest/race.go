//go:build race

package backendtest

// rounds is how many of n rounds of random operations are tried. The race detector makes each many times slower, and finds what
// it does where goroutines meet, which takes few rounds.
func rounds(n int) int { return n * 2 / 5 }
