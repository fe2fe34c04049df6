package process

// InputSelection is a set of the inputs of an operator: bit i-1 stands for input i. Sets are joined by |.
type InputSelection uint64

// The selections of an operator with two inputs.
const (
	SelectFirst  InputSelection = 1
	SelectSecond InputSelection = 2
	// SelectAll is all inputs: where several have something to read, they are read in turn.
	SelectAll InputSelection = 1<<64 - 1
)

// InputSelector is implemented by functions on two connected streams, keyed or not, that choose which of them is read next
// (Flink: InputSelectable). The other one is left unread meanwhile, watermarks included, so that event time stands still,
// and its senders wait once the way to the operator is full: two streams that come from one sender can block each other in
// this way. Elements are handed over one by one, which is slower than the reading of other functions.
//
// A job with such a function takes no checkpoints and no savepoints, since a barrier on an input that is not read would
// never come: enabling checkpoints is an error.
type InputSelector interface {
	// NextSelection says what may be read next. It is asked before the first element, and again after each call of the
	// function that handled an element, the end of an input or a timer. An input that has ended counts no more; it is an
	// error to select only such inputs while another one goes on, or none.
	NextSelection() InputSelection
}
