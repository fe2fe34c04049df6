//go:build !race

package filesink_test

// stride: see the file for the race detector.
const stride = 1
