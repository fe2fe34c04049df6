package csv

import (
	"errors"
	"fmt"
)

// errNoColumn says that a mask includes nothing.
var errNoColumn = errors.New("the mask includes no column")

// ParseMask reads a mask of columns for Include: t, T and 1 stand for a column that is read, f, F and 0 for one that is
// not. Columns that are not read at the end are cut off.
func ParseMask(mask string) ([]bool, error) {
	var include []bool
	for i, c := range mask {
		switch c {
		case 't', 'T', '1':
			include = append(include, true)
		case 'f', 'F', '0':
			include = append(include, false)
		default:
			return nil, fmt.Errorf("mask %q: %q at %d is none of t, T, 1, f, F, 0", mask, c, i)
		}
	}
	return CutMask(include)
}

// MaskOf reads a mask of columns from a number: bit k, counted from the lowest, stands for column k.
func MaskOf(bits uint64) ([]bool, error) {
	include := make([]bool, 64)
	for i := range include {
		include[i] = bits>>i&1 != 0
	}
	return CutMask(include)
}

// CutMask cuts off the columns at the end that are not read. A mask without any column is an error.
func CutMask(include []bool) ([]bool, error) {
	for n := len(include); n > 0; n-- {
		if include[n-1] {
			return include[:n:n], nil
		}
	}
	return nil, errNoColumn
}
