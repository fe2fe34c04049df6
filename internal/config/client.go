package config

import "time"

// ClientOptions is the table of the keys that a command takes which calls the endpoint of a running job.
func ClientOptions() []Option {
	return []Option{
		{Key: "rest.address", Older: []string{"jobmanager.rpc.address"}, Type: Text, Default: "127.0.0.1", Meaning: "host of the job's REST endpoint"},
		{Key: "rest.port", Older: []string{"web.port", "jobmanager.web.port"}, Type: Integer, Default: "8081", Least: 1, Meaning: "port of the job's REST endpoint"},
		{Key: "client.timeout", Older: []string{"akka.client.timeout"}, Type: Duration, Default: "1 min", Least: int64(time.Millisecond), Meaning: "how long an answer is waited for"},
		{Key: "execution.checkpointing.savepoint-dir", Older: []string{"state.savepoints.dir", "savepoints.state.backend.fs.dir"}, Type: Text, Meaning: "folder or URL of a savepoint that is taken without one; default: that of the job"},
		{Key: "execution.target", Type: Enum, Default: "remote", Values: []string{"remote", "local"}, Meaning: "both mean the job at the endpoint"},
	}
}

// ResolveClient is Resolve for the keys of ClientOptions. Keys that a job takes when it is started do nothing for it any more,
// which is a warning.
func ResolveClient(layers ...Layer) (*Config, error) {
	options := ClientOptions()
	others := namesOf(Options())
	for name := range others {
		others[name] = "as only a job that is being started takes it (flott run)"
	}
	return resolveBy(options, notes{others: others, cluster: "as it concerns a cluster, and what is called is the endpoint of a job"}, layers)
}
