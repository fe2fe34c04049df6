package config

import (
	"maps"
	"testing"
)

func TestFlattenedLayersKeepTheStrongestNameOfASetting(t *testing.T) {
	layer := func(pairs ...string) (l Layer) {
		for i := 0; i < len(pairs); i += 2 {
			l.Entries = append(l.Entries, Entry{Key: pairs[i], Text: pairs[i+1]})
		}
		return l
	}
	for name, c := range map[string]struct {
		layers []Layer
		want   map[string]string
	}{
		"nothing":                 {nil, map[string]string{}},
		"an older name above":     {[]Layer{layer("state.backend.type", "hashmap", "x.y", "1"), layer("state.backend", "pebble")}, map[string]string{"state.backend": "pebble", "x.y": "1"}},
		"the newer name above":    {[]Layer{layer("state.backend.fs.checkpointdir", "/a", "state.checkpoints.dir", "/b"), layer("execution.checkpointing.dir", "/c")}, map[string]string{"execution.checkpointing.dir": "/c"}},
		"two names in one layer":  {[]Layer{layer("state.backend", "a", "state.backend.type", "b")}, map[string]string{"state.backend": "a", "state.backend.type": "b"}},
		"the last of equal keys":  {[]Layer{layer("memory", "1g", "memory", "2g")}, map[string]string{"memory": "2g"}},
		"unknown keys":            {[]Layer{layer("x", "1", "y", "2"), layer("x", "3")}, map[string]string{"x": "3", "y": "2"}},
		"an entry to a map":       {[]Layer{layer("pipeline.global-job-parameters", "a:1"), layer("pipeline.global-job-parameters.b", "2")}, map[string]string{"pipeline.global-job-parameters": "a:1", "pipeline.global-job-parameters.b": "2"}},
		"a map above its entries": {[]Layer{layer("pipeline.global-job-parameters.b", "2"), layer("pipeline.global-job-parameters", "a:1")}, map[string]string{"pipeline.global-job-parameters": "a:1"}},
		"keys below a key":        {[]Layer{layer("state.backend.incremental", "true"), layer("state.backend", "pebble")}, map[string]string{"state.backend": "pebble", "state.backend.incremental": "true"}},
	} {
		if got := Flatten(c.layers...); !maps.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
