package main

// Measures that all pictures share, in pixels.
const (
	pictureWidth  = 760
	margin        = 20
	laneLeft      = 76 // where the time axis begins, right of the names of the lanes
	laneRight     = pictureWidth - 30
	elementRadius = 9
)

// style is the sheet of each picture. Pictures bring their own ground and follow the reader's choice of light or dark, so
// that they can be read on any page. Colours are told apart by the colour-blind, and none of them is the only sign of what
// it means: lanes have names, late elements are hollow, watermarks are dashed.
const style = `text{font:13px system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif;fill:#24292f}
.code{white-space:pre;font:600 12px ui-monospace,SFMono-Regular,Menlo,"DejaVu Sans Mono",monospace}
.dim{fill:#656d76}.small{font-size:11px}.strong{font-weight:600}
.mid{text-anchor:middle}.end{text-anchor:end}
.paper{fill:#fff;stroke:#d0d7de}
.axis{stroke:#656d76;stroke-width:1.2;fill:none}.grid{stroke:#d8dee4;stroke-width:1}
.head{fill:none;stroke-linejoin:round;stroke-linecap:round}
.element{stroke:#fff;stroke-width:1.5}
.pilltext{fill:#fff;font-size:12px;font-weight:600}.pilltext.small{font-size:10.5px}
.a{fill:#0969da}.b{fill:#bc4c00}.c{fill:#0f766e}.result{fill:#24292f}
.window{stroke-width:1.4;fill-opacity:.1}
.window.a{stroke:#0969da}.window.b{stroke:#bc4c00}.window.c{stroke:#0f766e}
.gap{stroke:#656d76;stroke-width:1.4;stroke-dasharray:4 4}
.window.kept{fill-opacity:.04;stroke-dasharray:4 3}
.slice{fill:#8c959f;fill-opacity:.16;stroke:#8c959f}
.pair{stroke:#24292f;stroke-width:1.6;stroke-opacity:.65}
.fire{stroke:#24292f;stroke-width:2.2}
.watermark{stroke:#8250df;stroke-width:2;stroke-dasharray:6 4;fill:none}.watermark.band{stroke-dasharray:none;stroke-width:9;stroke-opacity:.35;stroke-linejoin:round}
.watermarktext{fill:#8250df;font-weight:600}
.inputa{stroke:#0969da;stroke-width:2;fill:none}.inputb{stroke:#bc4c00;stroke-width:2;fill:none}.quiet{stroke-dasharray:2 4}
.late{stroke:#cf222e;stroke-width:2.2;fill:#fff}.latetext{fill:#cf222e;font-weight:600}
line.late,path.late{fill:none}
@media (prefers-color-scheme:dark){
text{fill:#e6edf3}.dim{fill:#9198a1}
.paper{fill:#0d1117;stroke:#30363d}
.axis,.gap{stroke:#9198a1}.grid{stroke:#21262d}
.element{stroke:#0d1117}.pilltext{fill:#0d1117}
.a{fill:#58a6ff}.b{fill:#f0883e}.c{fill:#3fb8a9}.result{fill:#e6edf3}
.window{fill-opacity:.16}
.window.a{stroke:#58a6ff}.window.b{stroke:#f0883e}.window.c{stroke:#3fb8a9}
.window.kept{fill-opacity:.06}
.slice{fill:#6e7681;fill-opacity:.3;stroke:#6e7681}
.pair,.fire{stroke:#e6edf3}
.watermark{stroke:#bc8cff}.watermarktext{fill:#bc8cff}
.inputa{stroke:#58a6ff}.inputb{stroke:#f0883e}
.late{stroke:#ff7b72;fill:#0d1117}.latetext{fill:#ff7b72}
line.late,path.late{fill:none}
}
`
