package process

// Input1Ender is implemented by functions on two connected streams that emit when the first one has ended. The end of the
// operator, Finisher, comes after the ends of both.
type Input1Ender[R any] interface {
	EndInput1(out *Collector[R]) error
}

// Input2Ender is Input1Ender for the second stream.
type Input2Ender[R any] interface {
	EndInput2(out *Collector[R]) error
}
