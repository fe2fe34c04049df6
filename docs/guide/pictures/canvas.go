package main

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"math"
	"strconv"
)

// canvas is a picture on its way: shapes one after the other, later ones on top. Coordinates are pixels from the upper
// left. The class of a shape says what it means; style.go says how that looks.
type canvas struct {
	width, height float64
	title, about  string // read out by what reads pages aloud
	body          bytes.Buffer
}

// newCanvas begins a picture with its heading, a piece of code.
func newCanvas(width, height float64, title, about string) *canvas {
	return &canvas{width: width, height: height, title: title, about: about}
}

// heading puts code into the upper left corner, and words about it behind it.
func (c *canvas) heading(code, words string) {
	c.text(margin, 30, "code", code)
	c.text(margin+7.3*float64(len([]rune(code)))+14, 30, "dim", words)
}

// box is a rectangle with rounded corners.
func (c *canvas) box(class string, x, y, w, h, round float64) {
	fmt.Fprintf(&c.body, `<rect class=%q x=%q y=%q width=%q height=%q rx=%q/>`+"\n", class, num(x), num(y), num(w), num(h), num(round))
}

func (c *canvas) line(class string, x1, y1, x2, y2 float64) {
	fmt.Fprintf(&c.body, `<line class=%q x1=%q y1=%q x2=%q y2=%q/>`+"\n", class, num(x1), num(y1), num(x2), num(y2))
}

func (c *canvas) dot(class string, x, y, r float64) {
	fmt.Fprintf(&c.body, `<circle class=%q cx=%q cy=%q r=%q/>`+"\n", class, num(x), num(y), num(r))
}

// path is a line through points, or what d says in the language of SVG.
func (c *canvas) path(class, d string) {
	fmt.Fprintf(&c.body, `<path class=%q d=%q/>`+"\n", class, d)
}

// text begins at x, unless class says that it ends or is centred there. y is its base line.
func (c *canvas) text(x, y float64, class, s string) {
	fmt.Fprintf(&c.body, `<text class=%q x=%q y=%q>%s</text>`+"\n", class, num(x), num(y), escaped(s))
}

// pill is a short text on a coloured ground, centred at x, y.
func (c *canvas) pill(class string, x, y float64, s string) {
	w := 7.2*float64(len([]rune(s))) + 14
	c.box("pill "+class, x-w/2, y-10, w, 20, 10)
	c.text(x, y+4.5, "pilltext mid", s)
}

// element is an element of a stream with its value on it.
func (c *canvas) element(class string, x, y float64, s string) {
	c.dot("element "+class, x, y, elementRadius)
	if s != "" {
		c.text(x, y+4, "pilltext small mid", s)
	}
}

// arrow is a line with a head at its end.
func (c *canvas) arrow(class string, x1, y1, x2, y2 float64) {
	c.line(class, x1, y1, x2, y2)
	length := math.Hypot(x2-x1, y2-y1)
	dx, dy := (x2-x1)/length, (y2-y1)/length
	c.path(class+" head", fmt.Sprintf("M%s %sL%s %sL%s %s",
		num(x2-8*dx-4*dy), num(y2-8*dy+4*dx), num(x2), num(y2), num(x2-8*dx+4*dy), num(y2-8*dy-4*dx)))
}

// svg is the finished picture.
func (c *canvas) svg() []byte {
	var out bytes.Buffer
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %[1]s %[2]s" width=%[1]q height=%[2]q role="img" aria-labelledby="title about">`+"\n",
		num(c.width), num(c.height))
	fmt.Fprintf(&out, "<title id=\"title\">%s</title>\n<desc id=\"about\">%s</desc>\n", escaped(c.title), escaped(c.about))
	fmt.Fprintf(&out, "<style>\n%s</style>\n", style)
	fmt.Fprintf(&out, `<rect class="paper" x="0.5" y="0.5" width=%q height=%q rx="8"/>`+"\n", num(c.width-1), num(c.height-1))
	out.Write(c.body.Bytes())
	out.WriteString("</svg>\n")
	return out.Bytes()
}

// num prints a coordinate, to a tenth of a pixel.
func num(x float64) string { return strconv.FormatFloat(math.Round(x*10)/10, 'f', -1, 64) }

func escaped(s string) string {
	var b bytes.Buffer
	if err := xml.EscapeText(&b, []byte(s)); err != nil {
		panic(err) // a buffer takes everything
	}
	return b.String()
}
