package process

// Input1Ender is implemented by functions on two connected streams that emit when the first one ends.
type Input1Ender[R any] interface {
	// EndInput1 is called once in every subtask, after the last element of the first stream and what its watermarks made
	// fire. Finish, if there is one, comes after the ends of both streams.
	EndInput1(out *Collector[R]) error
}

// Input2Ender is Input1Ender for the second stream.
type Input2Ender[R any] interface {
	// EndInput2 is called once in every subtask, after the last element of the second stream.
	EndInput2(out *Collector[R]) error
}
