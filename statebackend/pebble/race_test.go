//go:build race

package pebble_test

// raced says whether the race detector is at work.
const raced = true
