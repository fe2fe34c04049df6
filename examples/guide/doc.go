// Package guide holds the programs of docs/guide as examples that run, and the test that holds the two together. There is
// nothing in it but tests.
package guide
