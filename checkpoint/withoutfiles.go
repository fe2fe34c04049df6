package checkpoint

import "slices"

// WithoutFiles is the snapshot as one whose tables all lie in chunks, for those who ask what tables there are and of which types,
// and read no rows: tables that lie in files of a state backend are empty in it. A snapshot that has no such files is given
// itself.
func (m *Manifest) WithoutFiles() *Manifest {
	inFiles := func(p *Part) bool { return p.files != nil }
	if !slices.ContainsFunc(m.Operators, func(o Operator) bool { return slices.ContainsFunc(o.Parts, inFiles) }) {
		return m
	}
	out := *m
	out.Operators = slices.Clone(m.Operators)
	for i := range out.Operators {
		o := &out.Operators[i]
		o.Parts = slices.Clone(o.Parts)
		for j, p := range o.Parts {
			if inFiles(p) {
				q := *p
				q.files, q.bases = nil, nil
				o.Parts[j] = &q
			}
		}
	}
	return &out
}
