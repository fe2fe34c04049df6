package main

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Lists that the engine writes itself, with items of its own: docs/formats/snapshot.md describes them.
const (
	channelList  = "channels"
	positionList = "source/position"
	splitList    = "source/splits"
)

// channel is an item of the list "channels": how far event time had come on one input channel of a subtask.
type channel struct {
	Input       int    `json:"input"`
	Subtask     int    `json:"subtask"`
	Parallelism int    `json:"parallelism"`
	Peer        int    `json:"peer"`
	Peers       int    `json:"peers"`
	Watermark   string `json:"watermark"`
	Millis      int64  `json:"watermarkMillis"`
	Idle        bool   `json:"idle"`
	Behind      bool   `json:"behind"`
}

// The flags of an item.
const (
	channelIdle = 1 << iota
	channelBehind
)

var errItem = errors.New("the item is malformed")

// uvarints reads numbers from the front of b.
func uvarints(b []byte, to ...*int) (rest []byte, err error) {
	for _, n := range to {
		v, used := binary.Uvarint(b)
		if used <= 0 || v > 1<<30 {
			return nil, errItem
		}
		*n, b = int(v), b[used:]
	}
	return b, nil
}

func decodeChannel(b []byte) (c channel, err error) {
	b, err = uvarints(b, &c.Input, &c.Subtask, &c.Parallelism, &c.Peer, &c.Peers)
	if err != nil || len(b) != 9 || b[8]&^(channelIdle|channelBehind) != 0 {
		return channel{}, fmt.Errorf("decode the event time of a channel: %w", errItem)
	}
	c.Millis = int64(binary.LittleEndian.Uint64(b))
	c.Watermark = eventTime(c.Millis)
	c.Idle, c.Behind = b[8]&channelIdle != 0, b[8]&channelBehind != 0
	return c, nil
}

// position is an item of the list "source/position": where a subtask of a source that counts was. What the two numbers of a
// stretch mean is the source's own.
type position struct {
	Subtask     int        `json:"subtask"`
	Parallelism int        `json:"parallelism"`
	Stretches   [][2]int64 `json:"stretches"`
}

func decodePosition(b []byte) (p position, err error) {
	b, err = uvarints(b, &p.Subtask, &p.Parallelism)
	p.Stretches = [][2]int64{}
	for err == nil && len(b) > 0 {
		var stretch [2]int64
		for i := range stretch {
			v, used := binary.Varint(b)
			if used <= 0 {
				return position{}, fmt.Errorf("decode the position of a source: %w", errItem)
			}
			stretch[i], b = v, b[used:]
		}
		p.Stretches = append(p.Stretches, stretch)
	}
	if err != nil {
		return position{}, fmt.Errorf("decode the position of a source: %w", err)
	}
	return p, nil
}
