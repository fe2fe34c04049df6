package rest

import (
	"maps"
	"net/http"
	"runtime"
	"slices"
	"time"

	"github.com/flott-dev/flott/internal/config"
	"github.com/flott-dev/flott/internal/host"
)

type configurationInfo struct {
	Refresh    int64    `json:"refresh-interval"`
	ZoneName   string   `json:"timezone-name"`
	ZoneOffset int      `json:"timezone-offset"`
	Version    string   `json:"flink-version"`
	Revision   string   `json:"flink-revision"`
	Features   features `json:"features"`
}

type features struct {
	Submit  bool `json:"web-submit"`
	Cancel  bool `json:"web-cancel"`
	Rescale bool `json:"web-rescale"`
	History bool `json:"web-history"`
}

func (s *Server) configuration(*http.Request) (any, error) {
	name, offset := time.UnixMilli(s.opt.Clock.Millis()).In(s.opt.Zone).Zone()
	return configurationInfo{
		Refresh: 3000, ZoneName: name, ZoneOffset: offset * 1000, Version: s.opt.Version, Revision: s.opt.Commit, Features: features{Cancel: true},
	}, nil
}

type overviewInfo struct {
	TaskManagers        int    `json:"taskmanagers"`
	SlotsTotal          int    `json:"slots-total"`
	SlotsAvailable      int    `json:"slots-available"`
	JobsRunning         int    `json:"jobs-running"`
	JobsFinished        int    `json:"jobs-finished"`
	JobsCancelled       int    `json:"jobs-cancelled"`
	JobsFailed          int    `json:"jobs-failed"`
	TaskManagersBlocked int    `json:"taskmanagers-blocked"`
	SlotsBlocked        int    `json:"slots-free-and-blocked"`
	Version             string `json:"flink-version"`
	Commit              string `json:"flink-commit"`
}

func (s *Server) overview(*http.Request) (any, error) {
	out := overviewInfo{TaskManagers: 1, Version: s.opt.Version, Commit: s.opt.Commit}
	for _, job := range s.list() {
		switch v := job.View(); v.Status {
		case "FINISHED":
			out.JobsFinished++
		case "CANCELED":
			out.JobsCancelled++
		case "FAILED":
			out.JobsFailed++
		default:
			out.JobsRunning++
		}
	}
	out.SlotsTotal, _ = s.slots()
	return out, nil
}

// slots counts the slots and tasks of running jobs: an embedded job has as many slots as it needs.
func (s *Server) slots() (slots, tasks int) {
	for _, job := range s.list() {
		v := job.View()
		if v.Terminal() {
			continue
		}
		slots += len(job.Facts().Graph.Slots)
		for i := range v.Vertices {
			for j := range v.Vertices[i].Subtasks {
				if v.Vertices[i].Subtasks[j].End < 0 {
					tasks++
				}
			}
		}
	}
	return slots, tasks
}

type setting struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// jobManagerConfig is the configuration of the last job: each of an embedded runtime has a job manager of its own.
func (s *Server) jobManagerConfig(r *http.Request) (any, error) {
	jobs := s.list()
	if len(jobs) == 0 {
		return []setting{}, nil
	}
	return configurationOf(jobs[len(jobs)-1], r)
}

func configurationOf(job Job, _ *http.Request) (any, error) {
	out := []setting{}
	shown := masked(job.Facts().Configuration)
	for _, key := range slices.Sorted(maps.Keys(shown)) {
		out = append(out, setting{key, shown[key]})
	}
	return out, nil
}

// masked are settings whose secrets are not shown.
func masked(settings map[string]string) map[string]string {
	out := map[string]string{}
	for key, value := range settings {
		if config.Secret(key) {
			value = "******"
		}
		out[key] = value
	}
	return out
}

// The one task manager: this process.
const (
	taskManagerID   = "embedded"
	taskManagerPath = "embedded"
)

type taskManagersInfo struct {
	TaskManagers []taskManagerInfo `json:"taskmanagers"`
}

type taskManagerInfo struct {
	ID        string          `json:"id"`
	Path      string          `json:"path"`
	DataPort  int             `json:"dataPort"`
	JMXPort   int             `json:"jmxPort"`
	Heartbeat int64           `json:"timeSinceLastHeartbeat"`
	Slots     int             `json:"slotsNumber"`
	FreeSlots int             `json:"freeSlots"`
	Total     resourceProfile `json:"totalResource"`
	Free      resourceProfile `json:"freeResource"`
	Hardware  hardware        `json:"hardware"`
	Memory    memoryConfig    `json:"memoryConfiguration"`
	Blocked   bool            `json:"blocked"`
	Tasks     int             `json:"assignedTasks"`
}

type resourceProfile struct {
	CPU            float64            `json:"cpuCores"`
	TaskHeap       int64              `json:"taskHeapMemory"`
	TaskOffHeap    int64              `json:"taskOffHeapMemory"`
	Managed        int64              `json:"managedMemory"`
	Network        int64              `json:"networkMemory"`
	ExtendedByName map[string]float64 `json:"extendedResources"`
}

type hardware struct {
	CPU      int   `json:"cpuCores"`
	Physical int64 `json:"physicalMemory"`
	Free     int64 `json:"freeMemory"`
	Managed  int64 `json:"managedMemory"`
}

type memoryConfig struct {
	FrameworkHeap    *int64 `json:"frameworkHeap"`
	TaskHeap         *int64 `json:"taskHeap"`
	FrameworkOffHeap *int64 `json:"frameworkOffHeap"`
	TaskOffHeap      *int64 `json:"taskOffHeap"`
	Network          *int64 `json:"networkMemory"`
	Managed          *int64 `json:"managedMemory"`
	Metaspace        *int64 `json:"jvmMetaspace"`
	Overhead         *int64 `json:"jvmOverhead"`
	TotalFlink       *int64 `json:"totalFlinkMemory"`
	TotalProcess     int64  `json:"totalProcessMemory"`
}

func (s *Server) taskManager() taskManagerInfo {
	slots, tasks := s.slots()
	limit := host.CgroupLimit()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	all := resourceProfile{CPU: float64(runtime.GOMAXPROCS(0)), TaskHeap: limit >> 20, ExtendedByName: map[string]float64{}}
	return taskManagerInfo{
		ID: taskManagerID, Path: taskManagerPath, DataPort: -1, JMXPort: -1, Heartbeat: s.opt.Clock.Millis(), Slots: slots,
		Total: all, Free: resourceProfile{ExtendedByName: map[string]float64{}}, Tasks: tasks,
		Hardware: hardware{CPU: runtime.NumCPU(), Physical: limit, Free: max(0, limit-int64(m.Sys))},
		Memory:   memoryConfig{TotalProcess: limit},
	}
}

func (s *Server) taskManagers(*http.Request) (any, error) {
	return taskManagersInfo{[]taskManagerInfo{s.taskManager()}}, nil
}

type taskManagerDetails struct {
	taskManagerInfo
	Allocated []allocatedSlot `json:"allocatedSlots"`
	Metrics   processMetrics  `json:"metrics"`
}

type allocatedSlot struct {
	Job      string          `json:"jobId"`
	Resource resourceProfile `json:"resource"`
	Tasks    int             `json:"assignedTasks"`
}

// processMetrics is what the process has of the metrics of a JVM.
type processMetrics struct {
	HeapUsed         int64              `json:"heapUsed"`
	HeapCommitted    int64              `json:"heapCommitted"`
	HeapMax          int64              `json:"heapMax"`
	NonHeapUsed      int64              `json:"nonHeapUsed"`
	NonHeapCommitted int64              `json:"nonHeapCommitted"`
	NonHeapMax       int64              `json:"nonHeapMax"`
	DirectCount      int64              `json:"directCount"`
	DirectUsed       int64              `json:"directUsed"`
	DirectMax        int64              `json:"directMax"`
	MappedCount      int64              `json:"mappedCount"`
	MappedUsed       int64              `json:"mappedUsed"`
	MappedMax        int64              `json:"mappedMax"`
	ShuffleAvailable int64              `json:"nettyShuffleMemorySegmentsAvailable"`
	ShuffleUsed      int64              `json:"nettyShuffleMemorySegmentsUsed"`
	ShuffleTotal     int64              `json:"nettyShuffleMemorySegmentsTotal"`
	BytesAvailable   int64              `json:"nettyShuffleMemoryAvailable"`
	BytesUsed        int64              `json:"nettyShuffleMemoryUsed"`
	BytesTotal       int64              `json:"nettyShuffleMemoryTotal"`
	Collectors       []garbageCollector `json:"garbageCollectors"`
}

type garbageCollector struct {
	Name  string `json:"name"`
	Count int64  `json:"count"`
	Time  int64  `json:"time"`
}

// collectorName is Go's one collector.
const collectorName = "Go"

func (s *Server) taskManagerDetails(r *http.Request) (any, error) {
	if err := checkTaskManager(r); err != nil {
		return nil, err
	}
	out := taskManagerDetails{taskManagerInfo: s.taskManager(), Allocated: []allocatedSlot{}}
	for _, job := range s.list() {
		if job.View().Terminal() {
			continue
		}
		for _, slot := range job.Facts().Graph.Slots {
			out.Allocated = append(out.Allocated, allocatedSlot{job.Facts().ID, resourceProfile{ExtendedByName: map[string]float64{}}, len(slot.Subtasks)})
		}
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	out.Metrics = processMetrics{
		HeapUsed: int64(m.HeapAlloc), HeapCommitted: int64(m.HeapSys - m.HeapReleased), HeapMax: host.CgroupLimit(),
		NonHeapUsed: int64(m.StackInuse + m.MSpanInuse + m.MCacheInuse + m.GCSys + m.OtherSys), NonHeapCommitted: int64(m.Sys - m.HeapSys), NonHeapMax: -1,
		Collectors: []garbageCollector{{collectorName, int64(m.NumGC), int64(m.PauseTotalNs / 1e6)}},
	}
	return out, nil
}

func checkTaskManager(r *http.Request) error {
	if id := r.PathValue("taskmanagerid"); id != taskManagerID {
		return refuse(http.StatusNotFound, "TaskExecutor with id %s was not found: the one of an embedded job is called %s", id, taskManagerID)
	}
	return nil
}

// processValues are the metrics of the process under the names that Flink has for those of a JVM.
func processValues() values {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	v := values{
		"Status.JVM.Memory.Heap.Used": m.HeapAlloc, "Status.JVM.Memory.Heap.Committed": m.HeapSys - m.HeapReleased, "Status.JVM.Memory.Heap.Max": host.CgroupLimit(),
		"Status.JVM.Memory.NonHeap.Used": m.StackInuse + m.MSpanInuse + m.MCacheInuse + m.GCSys + m.OtherSys, "Status.JVM.Memory.NonHeap.Committed": m.Sys - m.HeapSys,
		"Status.JVM.Threads.Count": runtime.NumGoroutine(),
	}
	for _, name := range []string{collectorName, "All"} {
		v["Status.JVM.GarbageCollector."+name+".Count"] = m.NumGC
		v["Status.JVM.GarbageCollector."+name+".Time"] = m.PauseTotalNs / 1e6
	}
	return v
}

func (s *Server) taskManagerMetrics(r *http.Request) (any, error) {
	if err := checkTaskManager(r); err != nil {
		return nil, err
	}
	return processValues().query(r), nil
}

func (s *Server) taskManagersMetrics(r *http.Request) (any, error) {
	return aggregate(r, []values{processValues()})
}

func (s *Server) jobManagerMetrics(r *http.Request) (any, error) {
	v := processValues()
	running := 0
	for _, job := range s.list() {
		if !job.View().Terminal() {
			running++
		}
	}
	slots, _ := s.slots()
	v["numRunningJobs"], v["numRegisteredTaskManagers"], v["taskSlotsTotal"], v["taskSlotsAvailable"] = running, 1, slots, 0
	return v.query(r), nil
}
