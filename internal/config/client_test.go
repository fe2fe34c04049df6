package config

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestClientsTakeTheKeysOfCallsAndTellTheRest(t *testing.T) {
	c, err := ResolveClient(Texts("-D", map[string]string{
		"rest.port": "8082", "jobmanager.rpc.address": "there", "akka.client.timeout": "5 s", "state.savepoints.dir": "/sp", "execution.target": "Remote",
		"parallelism.default": "3", "state.backend": "hashmap", "rest.adress": "x", "my.own": "1", "kubernetes.cluster-id": "k", "rest.retry.delay": "1 s",
	}))
	if err != nil {
		t.Fatal(err)
	}
	host, _ := c.Text("rest.address")
	port, _ := c.Integer("rest.port")
	patience, _ := c.Duration("client.timeout")
	dir, _ := c.Text("execution.checkpointing.savepoint-dir")
	if host != "there" || port != 8082 || patience != 5*time.Second || dir != "/sp" {
		t.Error(host, port, patience, dir)
	}
	want := []string{
		"-D: ignored, as it concerns a cluster, and what is called is the endpoint of a job: kubernetes.cluster-id",
		"-D: ignored, unknown keys: my.own, rest.adress (did you mean rest.address?)",
		"-D: ignored, as only a job that is being started takes it (flott run): parallelism.default, state.backend",
		"-D: ignored, as it is not supported: rest.retry.delay",
	}
	got := slices.Sorted(slices.Values(c.Warnings()))
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("warnings\n%s", strings.Join(got, "\n"))
	}
}

func TestMistakesInTheKeysOfCallsAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"rest.port=0":                         `-D: rest.port: "0" is less than 1`,
		"rest.port=x":                         "is no whole number",
		"client.timeout=soon":                 `-D: client.timeout: "soon" is no duration`,
		"execution.target=kubernetes-session": "is none of remote, local",
	} {
		key, value, _ := strings.Cut(text, "=")
		if _, err := ResolveClient(Texts("-D", map[string]string{key: value})); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// The keys of calls are told apart: each name is of one option, and defaults are values.
func TestEveryNameOfACallIsOfOneOption(t *testing.T) {
	seen := map[string]bool{}
	for _, o := range ClientOptions() {
		for _, name := range append([]string{o.Key}, o.Older...) {
			if seen[name] {
				t.Errorf("%s is there twice", name)
			}
			seen[name] = true
		}
		if _, err := o.parse(o.Default); o.Default != "" && err != nil || o.Meaning == "" {
			t.Errorf("%s: %q, %v", o.Key, o.Meaning, err)
		}
	}
}
