package heap

import (
	"testing"

	"github.com/flott-dev/flott/statebackend"
	"github.com/flott-dev/flott/statebackend/backendtest"
)

func TestHeapIsABackend(t *testing.T) {
	backendtest.Run(t, func() statebackend.Backend { return Backend{} })
}
