package config

import (
	"maps"
	"strings"
)

// Flatten is what layers say, the lowest first, as one: a setting of a higher layer takes the place of the same setting in lower
// ones, by whatever names they call it. Names stay as they were written. Values are not looked at: Resolve does.
func Flatten(layers ...Layer) map[string]string {
	newest := map[string]string{}
	for _, o := range Options() {
		newest[o.Key] = o.Key
		for _, older := range o.Older {
			newest[older] = o.Key
		}
	}
	all := map[string]string{}
	for _, l := range layers {
		for _, e := range l.Entries {
			key, known := newest[e.Key]
			if !known {
				continue
			}
			maps.DeleteFunc(all, func(name, _ string) bool {
				return newest[name] == key || strings.HasPrefix(name, key+".") && newest[name] == "" // an entry of a map
			})
		}
		for _, e := range l.Entries {
			all[e.Key] = e.Text
		}
	}
	return all
}
