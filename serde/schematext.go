package serde

import (
	"fmt"
	"strconv"
	"strings"
)

// maxSchemaDepth bounds how deep a schema's text nests.
const maxSchemaDepth = 1000

// ParseSchema reads the text that Schema.String writes. It accepts nothing else: the text of the result is text.
func ParseSchema(text string) (*Schema, error) {
	p := schemaParser{text: text}
	s, err := p.schema(0)
	if err == nil && p.rest() != "" {
		err = p.fail("text after the schema")
	}
	if err != nil {
		return nil, err
	}
	if s.String() != text {
		return nil, fmt.Errorf("serde: schema %.200q is not in its shortest form", text)
	}
	return s, nil
}

type schemaParser struct {
	text string
	pos  int
}

func (p *schemaParser) rest() string { return p.text[p.pos:] }

func (p *schemaParser) fail(reason string) error {
	return fmt.Errorf("serde: schema %.200q at byte %d: %s", p.text, p.pos, reason)
}

func (p *schemaParser) accept(s string) bool {
	if strings.HasPrefix(p.rest(), s) {
		p.pos += len(s)
		return true
	}
	return false
}

func (p *schemaParser) expect(s string) error {
	if !p.accept(s) {
		return p.fail("expected " + strconv.Quote(s))
	}
	return nil
}

// schema parses one schema that depth others enclose.
func (p *schemaParser) schema(depth int) (*Schema, error) {
	if depth > maxSchemaDepth {
		return nil, p.fail("nested too deep")
	}
	switch {
	case p.accept("[]"):
		return p.wrap(&Schema{Kind: Slice}, depth)
	case p.accept("*"):
		return p.wrap(&Schema{Kind: Pointer}, depth)
	case p.accept("["):
		n, err := p.number()
		if err == nil {
			err = p.expect("]")
		}
		if err != nil {
			return nil, err
		}
		return p.wrap(&Schema{Kind: Array, Len: n}, depth)
	case p.accept("^"):
		n, err := p.number()
		if err == nil && (n < 1 || n > depth) {
			err = p.fail("the recursion leads nowhere")
		}
		return &Schema{Kind: Recursion, Len: n}, err
	case p.accept("map["):
		key, err := p.schema(depth + 1)
		if err == nil {
			err = p.expect("]")
		}
		if err != nil {
			return nil, err
		}
		return p.wrap(&Schema{Kind: Map, Key: key}, depth)
	case p.accept("struct{"):
		return p.fields(&Schema{Kind: Struct}, depth)
	case p.accept("oneof{"):
		return p.fields(&Schema{Kind: Interface}, depth)
	case p.accept("custom("):
		name, err := p.quoted()
		if err == nil {
			err = p.expect(")")
		}
		return &Schema{Kind: Custom, Name: name}, err
	}
	return p.scalar()
}

func (p *schemaParser) wrap(s *Schema, depth int) (*Schema, error) {
	var err error
	s.Elem, err = p.schema(depth + 1)
	return s, err
}

// scalar parses a kind that is only a word.
func (p *schemaParser) scalar() (*Schema, error) {
	word := p.identifier()
	for k := Bool; k <= Time; k++ {
		if word != "" && k.String() == word {
			return &Schema{Kind: k}, nil
		}
	}
	return nil, p.fail("unknown kind")
}

func (p *schemaParser) identifier() string {
	rest := p.rest()
	n := 0
	for n < len(rest) && quoteName(rest[n:n+1]) == rest[n:n+1] {
		n++
	}
	p.pos += n
	return rest[:n]
}

func (p *schemaParser) number() (int, error) {
	rest := p.rest()
	n := 0
	for n < len(rest) && rest[n] >= '0' && rest[n] <= '9' {
		n++
	}
	v, err := strconv.Atoi(rest[:n])
	if err != nil {
		return 0, p.fail("expected a number")
	}
	p.pos += n
	return v, nil
}

func (p *schemaParser) quoted() (string, error) {
	q, err := strconv.QuotedPrefix(p.rest())
	if err != nil {
		return "", p.fail("expected a quoted name")
	}
	p.pos += len(q)
	name, err := strconv.Unquote(q)
	if err != nil {
		return "", p.fail("expected a quoted name")
	}
	return name, nil
}

func (p *schemaParser) fields(s *Schema, depth int) (*Schema, error) {
	for !p.accept("}") {
		if len(s.Fields) > 0 {
			if err := p.expect(";"); err != nil {
				return nil, err
			}
		}
		name := p.identifier()
		if name == "" {
			var err error
			if name, err = p.quoted(); err != nil {
				return nil, err
			}
		}
		if err := p.expect(" "); err != nil {
			return nil, err
		}
		f, err := p.schema(depth + 1)
		if err != nil {
			return nil, err
		}
		s.Fields = append(s.Fields, Field{Name: name, Schema: f})
	}
	return s, nil
}
