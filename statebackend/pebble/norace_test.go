//go:build !race

package pebble

// Raced says whether the race detector is at work.
const Raced = false
