//go:build !race

package backendtest

// rounds is how many of n rounds of random operations are tried.
func rounds(n int) int { return n }
