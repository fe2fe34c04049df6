package config

import "strings"

// idle are keys of Flink's that do nothing here.
type idle struct {
	key string // a whole key, or with a dot or "*" at its end the beginning of keys
	why string
}

func (i *idle) matches(key string) bool {
	if start, ok := strings.CutSuffix(i.key, "*"); ok {
		return strings.HasPrefix(key, start)
	}
	return key == i.key || strings.HasSuffix(i.key, ".") && strings.HasPrefix(key, i.key)
}

// The reasons.
const (
	jvm       = "as it concerns the JVM only"
	cluster   = "as it concerns a cluster, and the job runs in this process"
	rocksdb   = "as it tunes RocksDB; pebble.Backend has the settings of the backend on disk"
	noNeed    = "as it is never needed here"
	always    = "as it is always so here"
	changelog = "as there is no changelog backend; incremental checkpoints write what has changed"
	missing   = "as it is not supported"
	inCode    = "as it is set in code here: stream.WithStorage passes the client with its settings"
	noBatch   = "as there is no batch mode"
)

// idleKeys are searched in order.
var idleKeys = [...]idle{
	{"env.java.", jvm},
	{"env.hadoop.", jvm},
	{"env.", cluster},
	{"classloader.", jvm},
	{"pipeline.jars", jvm},
	{"pipeline.classpaths", jvm},
	{"pipeline.serialization-config", jvm},
	{"pipeline.default-kryo-serializers", jvm},
	{"pipeline.registered-*", jvm},
	{"pipeline.generic-types", jvm},
	{"pipeline.force-*", jvm},
	{"pipeline.object-reuse", "as elements never change here, so that they are never copied"},
	{"pipeline.closure-cleaner-level", jvm},
	{"pipeline.time-characteristic", missing + ": env.SetStreamTimeCharacteristic sets it"},
	{"pipeline.watermark-alignment.", missing},
	{"pipeline.", missing},
	{"state.backend.async", always},
	{"state.backend.rocksdb.", rocksdb},
	{"state.backend.forst.", rocksdb},
	{"state.changelog.", changelog},
	{"state.backend.changelog.", changelog},
	{"dstl.", changelog},
	{"state.latency-track.", missing},
	{"state.size-track.", missing},
	{"state.backend.latency-track.", missing},
	{"execution.checkpointing.write-buffer-size", noNeed},
	{"state.storage.fs.write-buffer-size", noNeed},
	{"state.backend.fs.write-buffer-size", noNeed},
	{"execution.checkpointing.create-subdir", always},
	{"state.checkpoints.create-subdir", always},
	{"execution.checkpointing.cleaner.", noNeed},
	{"state.checkpoint.cleaner.", noNeed},
	{"execution.checkpointing.file-merging.", noNeed},
	{"execution.checkpointing.snapshot-compression", missing},
	{"execution.checkpointing.interval-during-backlog", missing},
	{"restart-strategy.", missing},
	{"execution.checkpointing.unaligned.forced", missing},
	{"execution.checkpointing.unaligned.", noNeed},
	{"execution.state-recovery.", missing},
	{"execution.batch*", noBatch},
	{"execution.sorted-inputs.", noBatch},
	{"execution.target", cluster},
	{"execution.attached", cluster},
	{"execution.shutdown-on-*", cluster},
	{"execution.", missing},
	{"jobmanager.", cluster},
	{"job-manager.", cluster},
	{"job-result-store.", cluster},
	{"taskmanager.", cluster},
	{"task.", missing},
	{"heartbeat.", cluster},
	{"cluster.", cluster},
	{"slot.", cluster},
	{"slotmanager.", cluster},
	{"resourcemanager.", cluster},
	{"scheduler-mode", cluster},
	{"high-availability*", cluster},
	{"recovery.", cluster},
	{"zookeeper.", cluster},
	{"kubernetes.", cluster},
	{"yarn.", cluster},
	{"$internal.", cluster},
	{"blob.", cluster},
	{"akka.", cluster},
	{"pekko.", cluster},
	{"client.", cluster},
	{"io.tmp.dirs", cluster},
	{"process.", cluster},
	{"historyserver.", cluster},
	{"web.", cluster},
	{"rest.address", "as it is the address that clients use; rest.bind-address is the server's"},
	{"rest.", missing},
	{"metrics.", missing},
	{"security.", cluster},
	{"fs.", missing},
	{"s3.", inCode},
	{"s3a.", inCode},
	{"gs.", inCode},
	{"azure.", inCode},
	{"python.", missing},
	{"table.", "as there is no SQL"},
	{"sql-*", "as there is no SQL"},
	{"plugin.", jvm},
}

// idleReason is why a key of Flink's does nothing; "": it is none of those.
func idleReason(key string) string {
	for i := range idleKeys {
		if idleKeys[i].matches(key) {
			return idleKeys[i].why
		}
	}
	return ""
}
