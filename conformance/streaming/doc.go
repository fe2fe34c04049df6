// Package streaming runs the vectors of streaming semantics: its tests drive the public API through package flotttest where
// a vector speaks of an operator or a job, and the pure packages where it speaks of those. It holds no code of its own.
package streaming
