package env

// idle names settings of snapshots that do nothing because of others, and what to do.
func (c *Checkpoints) idle() (all []string) {
	const p = "execution.checkpointing."
	for _, s := range []struct {
		idle bool
		text string
	}{
		{
			c.Enabled && c.Retention != NeverRetained && c.inMemory(),
			"checkpoints are to outlive the job, and lie in memory, which ends with the process: call SetCheckpointStorage, or set " + p + "dir",
		},
		{
			c.AlignedTimeout > 0 && !c.Unaligned,
			p + "aligned-checkpoint-timeout: ignored, as no checkpoint becomes unaligned: call EnableUnalignedCheckpoints, or set " + p + "unaligned.enabled",
		},
		{
			c.MinPause > 0 && c.MaxConcurrent > 1,
			p + "max-concurrent-checkpoints: ignored, as with a pause there is one checkpoint at a time: take " + p + "min-pause out to have more",
		},
		{
			len(c.Local.Dirs) > 0 && !c.Local.Backup && !c.Local.Read,
			p + "local-backup.dirs: ignored, as no local copies are kept: set " + p + "local-backup.enabled and execution.state-recovery.from-local, or call WithLocalRecovery",
		},
		{
			c.Local.Backup && !c.Local.Read,
			p + "local-backup.enabled: local copies are kept, and no restart reads them: set execution.state-recovery.from-local, too",
		},
		{
			c.Local.Read && !c.Local.Backup,
			"execution.state-recovery.from-local: restarts look for local copies, and none are kept: set " + p + "local-backup.enabled, too",
		},
		{
			(c.Local.Backup || c.Local.Read) && c.inMemory(),
			"local copies of checkpoints: there are none, as checkpoints lie in memory: call SetCheckpointStorage, or set " + p + "dir",
		},
	} {
		if s.idle {
			all = append(all, s.text)
		}
	}
	return all
}

// idleStart names settings of what the first job goes on from that do nothing, since it goes on from nothing.
func (c *Checkpoints) idleStart() (all []string) {
	const p = "execution.state-recovery."
	if c.Savepoint != "" || c.Recovery != "" {
		return nil
	}
	if c.AllowNonRestored {
		all = append(all, p+"ignore-unclaimed-state: ignored, as the job starts from no snapshot: name one by "+p+"path (flott run -s)")
	}
	if c.Claim {
		all = append(all, p+"claim-mode: ignored, as the job starts from no snapshot: name one by "+p+"path (flott run -s)")
	}
	return all
}
