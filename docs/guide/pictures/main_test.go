package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

func TestCommittedPicturesAreWhatTheProgramDraws(t *testing.T) {
	for _, p := range pictures() {
		want, err := p.draw()
		if err != nil {
			t.Errorf("%s: %v", p.name, err)
			continue
		}
		got, err := os.ReadFile(p.name)
		if err != nil {
			t.Error(err)
			continue
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is not what the program draws: go run ./docs/guide/pictures", p.name)
		}
	}
}

func TestEveryPictureIsOnAPage(t *testing.T) {
	pages, err := filepath.Glob("../*.md")
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, page := range pages {
		b, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		text.Write(b)
	}
	known := map[string]bool{}
	for _, p := range pictures() {
		known[p.name] = true
		if !strings.Contains(text.String(), "](pictures/"+p.name+")") {
			t.Errorf("%s is on no page", p.name)
		}
	}
	files, err := filepath.Glob("*.svg")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !known[f] {
			t.Errorf("%s is drawn by nobody", f)
		}
	}
}

// What is drawn lies within the picture: text, too, as wide as it is with the widest of the fonts that may be taken.
func TestNothingLeavesThePicture(t *testing.T) {
	for _, p := range pictures() {
		svg, err := p.draw()
		if err != nil {
			t.Errorf("%s: %v", p.name, err)
			continue
		}
		if err := inside(svg); err != nil {
			t.Errorf("%s: %v", p.name, err)
		}
	}
}

// inside reads the picture as XML and finds the first shape that leaves it.
func inside(svg []byte) error {
	d := xml.NewDecoder(bytes.NewReader(svg))
	var width, height float64
	var text *extent
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch token := token.(type) {
		case xml.StartElement:
			a := attributes(token)
			switch token.Name.Local {
			case "svg":
				width, height = a.number("width"), a.number("height")
			case "rect", "circle", "line":
				if e := shape(token.Name.Local, a); !e.within(width, height) {
					return errors.New(token.Name.Local + " " + a["class"] + " leaves the picture")
				}
			case "text":
				text = &extent{x0: a.number("x"), y0: a.number("y"), class: a["class"]}
			}
		case xml.CharData:
			if text != nil {
				if e := text.spread(string(token)); !e.within(width, height) {
					return errors.New("text leaves the picture: " + string(token))
				}
				text = nil
			}
		}
	}
}

type attributeValues map[string]string

func attributes(s xml.StartElement) attributeValues {
	a := attributeValues{}
	for _, attr := range s.Attr {
		a[attr.Name.Local] = attr.Value
	}
	return a
}

func (a attributeValues) number(name string) float64 {
	x, err := strconv.ParseFloat(a[name], 64)
	if err != nil {
		return -1 // outside
	}
	return x
}

type extent struct {
	x0, y0, x1, y1 float64
	class          string
}

func shape(kind string, a attributeValues) extent {
	switch kind {
	case "rect":
		x, y := a.number("x"), a.number("y")
		return extent{x0: x, y0: y, x1: x + a.number("width"), y1: y + a.number("height")}
	case "circle":
		x, y, r := a.number("cx"), a.number("cy"), a.number("r")
		return extent{x0: x - r, y0: y - r, x1: x + r, y1: y + r}
	}
	x1, y1, x2, y2 := a.number("x1"), a.number("y1"), a.number("x2"), a.number("y2")
	return extent{x0: min(x1, x2), y0: min(y1, y2), x1: max(x1, x2), y1: max(y1, y2)}
}

func (e extent) spread(s string) extent {
	width := 7.2 * float64(len([]rune(s)))
	if strings.Contains(e.class, "small") {
		width *= 11.0 / 13
	}
	e.y1, e.y0 = e.y0+3, e.y0-10
	switch {
	case strings.Contains(e.class, "mid"):
		e.x0, e.x1 = e.x0-width/2, e.x0+width/2
	case strings.Contains(e.class, "end"):
		e.x0, e.x1 = e.x0-width, e.x0
	default:
		e.x1 = e.x0 + width
	}
	return e
}

func (e extent) within(width, height float64) bool {
	return e.x0 >= 0 && e.y0 >= 0 && e.x1 <= width && e.y1 <= height && e.x0 <= e.x1 && e.y0 <= e.y1
}
