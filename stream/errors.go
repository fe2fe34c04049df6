package stream

import "fmt"

func badChannel(c, channels int) error {
	return fmt.Errorf("partition an element: the partitioner answered channel %d, there are %d", c, channels)
}
