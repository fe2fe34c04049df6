// Command pictures draws the pictures of the guide's pages about windows, as SVG files in its own folder. Windows, firings
// and pairs in them are not drawn by hand: assigners, jobs and valves of this repository compute them from the elements
// shown. The test of the command fails when a file differs from what it would draw.
//
//	go run ./docs/guide/pictures
package main

import (
	"fmt"
	"log"
	"os"
	"path/filepath"
)

// picture is a file and what draws it.
type picture struct {
	name string
	draw func() ([]byte, error)
}

func pictures() []picture {
	return []picture{
		{"tumbling.svg", tumbling},
		{"offset.svg", offset},
		{"sliding.svg", sliding},
		{"sessions.svg", sessions},
		{"session-merge.svg", sessionMerge},
		{"calendar.svg", calendar},
		{"global.svg", global},
		{"triggers.svg", triggers},
		{"lateness.svg", lateness},
		{"watermarks.svg", watermarks},
		{"windowjoin.svg", windowJoin},
		{"intervaljoin.svg", intervalJoin},
	}
}

func main() {
	if err := write("docs/guide/pictures"); err != nil {
		log.Fatal(err)
	}
}

// write draws all pictures into folder.
func write(folder string) error {
	for _, p := range pictures() {
		svg, err := p.draw()
		if err != nil {
			return fmt.Errorf("draw %s: %w", p.name, err)
		}
		if err := os.WriteFile(filepath.Join(folder, p.name), svg, 0o644); err != nil {
			return fmt.Errorf("write picture: %w", err)
		}
	}
	return nil
}
