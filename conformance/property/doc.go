// Package property tests programs that no vector names: random ones of order-insensitive functions over scripted
// watermarks. However a job is laid out (parallelism, chains, frames, isolation) it must give the multiset that a plain
// model gives, and the same order where order is promised. It holds no code of its own.
//
// FLOTT_SEED is the first seed, FLOTT_SOAK how many times as many programs are tried.
package property
