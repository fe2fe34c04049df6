// Package matrix runs one job that has every kind of state under all the ways in which its state is kept and comes back:
// state backends, parallelisms, snapshots, restarts. Each way must give the results of the job that nobody disturbs. It is
// a module of its own as it links the backend on disk.
package matrix
