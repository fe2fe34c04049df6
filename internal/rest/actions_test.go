package rest

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/flott-dev/flott/checkpoint"
	"github.com/flott-dev/flott/internal/vfs"
)

// trigger starts an operation and gives its number.
func (r *rig) trigger(status int, target, body string) string {
	r.t.Helper()
	code, answer := r.call("POST", target, body)
	var out triggerResponse
	if err := json.Unmarshal([]byte(answer), &out); err != nil || code != status || !isID(out.Request) {
		r.t.Fatalf("POST %s: %d %s", target, code, answer)
	}
	return out.Request
}

// poll gives the result of an operation when all goroutines wait.
func (r *rig) poll(target, kind string) string {
	r.t.Helper()
	synctest.Wait()
	code, answer := r.call("GET", target, "")
	if code == 200 {
		loadTypes(r.t).check(r.t, target, "async "+kind, answer)
	}
	return fmt.Sprintf("%d %s", code, strings.TrimSpace(answer))
}

const ours = "0123456789abcdef0123456789abcdef"

func TestSnapshotsAreTakenAsAskedFor(t *testing.T) {
	const location = `/savepoint-001122-0123456789ab"}}`
	for _, c := range []struct{ post, body, poll, kind, call, want string }{
		{"savepoints", `{}`, "savepoints", "SavepointInfo", "savepoint to /savepoints", `{"location":"/savepoints` + location},
		{"savepoints", ``, "savepoints", "SavepointInfo", "savepoint to /savepoints", `{"location":"/savepoints` + location},
		{"savepoints", `{"target-directory":"/x","cancel-job":true,"formatType":"NATIVE","unknown":1}`, "savepoints", "SavepointInfo", "cancel with savepoint to /x", `{"location":"/x` + location},
		{"savepoints", `{"target-directory":null,"cancel-job":false,"formatType":null,"triggerId":null}`, "savepoints", "SavepointInfo", "savepoint to /savepoints", `{"location":"/savepoints` + location},
		{"stop", `{"targetDirectory":"/x","drain":false}`, "savepoints", "SavepointInfo", "stop to /x", `{"location":"/x` + location},
		{"stop", `{"drain":true,"formatType":"CANONICAL"}`, "savepoints", "SavepointInfo", "drain to /savepoints", `{"location":"/savepoints` + location},
		{"checkpoints", `{}`, "checkpoints", "CheckpointInfo", "checkpoint", `{"checkpointId":7}}`},
		{"checkpoints", `{"checkpointType":"FULL"}`, "checkpoints", "CheckpointInfo", "full checkpoint", `{"checkpointId":7}}`},
		{"checkpoints", `{"checkpointType":"CONFIGURED","triggerId":"` + ours + `"}`, "checkpoints", "CheckpointInfo", "checkpoint", `{"checkpointId":7}}`},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			wait := make(chan struct{})
			r.running.answer = func() error { <-wait; return nil }
			id := r.trigger(202, "/jobs/"+runningID+"/"+c.post, c.body)
			at := "/jobs/" + runningID + "/" + c.poll + "/" + id
			if got := r.poll(at, c.kind); got != `200 {"status":{"id":"IN_PROGRESS"},"operation":null}` {
				t.Errorf("under way: %s", got)
			}
			close(wait)
			if got := r.poll(at, c.kind); got != `200 {"status":{"id":"COMPLETED"},"operation":`+c.want || r.running.heard() != c.call {
				t.Errorf("%s %s: %s, the job was told %q", c.post, c.body, got, r.running.heard())
			}
			if strings.Contains(c.body, ours) && id != ours {
				t.Errorf("the client's number was not taken: %s", id)
			}
		})
	}
}

func TestFailedSnapshotIsToldInTheResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.running.answer = func() error { return fmt.Errorf("take a savepoint: %w", errors.New("no room on the disk")) }
		for _, c := range [][4]string{
			{"savepoints", "savepoints", "SavepointInfo", "failure-cause"},
			{"stop", "savepoints", "SavepointInfo", "failure-cause"},
			{"checkpoints", "checkpoints", "CheckpointInfo", "failureCause"},
		} {
			id := r.trigger(202, "/jobs/"+runningID+"/"+c[0], "")
			got := r.poll("/jobs/"+runningID+"/"+c[1]+"/"+id, c[2])
			if want := `{"status":{"id":"COMPLETED"},"operation":{"` + c[3] + `":{"class":"*errors.errorString","stack-trace":"take a savepoint: no room on the disk","serialized-throwable":"rO0ABXNy`; !strings.Contains(got, want) {
				t.Errorf("%s: %s", c[0], got)
			}
		}
	})
}

func TestKnownTriggerStartsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		body := `{"target-directory":"/x","triggerId":"` + ours + `"}`
		for range 3 {
			if id := r.trigger(202, "/jobs/"+runningID+"/savepoints", body); id != ours {
				t.Errorf("answered with %s", id)
			}
			synctest.Wait()
		}
		if r.running.heard() != "savepoint to /x" {
			t.Errorf("the job was told %q", r.running.heard())
		}
		r.running.mu.Lock()
		r.running.view.Status, r.running.view.End = "FINISHED", now
		r.running.mu.Unlock()
		if id := r.trigger(202, "/jobs/"+runningID+"/savepoints", body); id != ours { // also when the job has ended meanwhile
			t.Errorf("answered with %s", id)
		}
	})
}

func TestResultsAreKeptForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		at := "/jobs/" + runningID + "/checkpoints/" + r.trigger(202, "/jobs/"+runningID+"/checkpoints", "")
		synctest.Wait()
		r.clock.Set(now + 5*60_000)
		if got := r.poll(at, "CheckpointInfo"); !strings.HasPrefix(got, "200 ") {
			t.Errorf("after five minutes: %s", got)
		}
		r.clock.Set(now + 5*60_000 + 1)
		if got := r.poll(at, "CheckpointInfo"); !strings.HasPrefix(got, "404 ") {
			t.Errorf("later: %s", got)
		}
	})
}

func TestSavepointNeedsAFolder(t *testing.T) {
	r := newRig(t)
	r.running.facts.SavepointDir = ""
	for _, what := range []string{"savepoints", "stop"} {
		if code, answer := r.call("POST", "/jobs/"+runningID+"/"+what, "{}"); code != 400 || !strings.Contains(answer, "execution.checkpointing.savepoint-dir") {
			t.Errorf("%s: %d %s", what, code, answer)
		}
	}
}

func TestSavepointIsDisposedOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		put := func(folder string, kind checkpoint.Kind) {
			t.Helper()
			if err := checkpoint.BeginSnapshot(r.disk, folder); err != nil {
				t.Fatal(err)
			}
			s, err := checkpoint.OpenStorage(r.disk, "/any")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Complete(&checkpoint.Manifest{Folder: folder, ID: 1, Kind: kind, JobName: "counting"}); err != nil {
				t.Fatal(err)
			}
		}
		put("/savepoints/one", checkpoint.Savepoint)
		put("/savepoints/two", checkpoint.Savepoint)
		put("/savepoints/chk-1", checkpoint.Checkpoint)
		dispose := func(path string) string {
			id := r.trigger(200, "/savepoint-disposal", `{"savepoint-path":"`+path+`"}`)
			return r.poll("/savepoint-disposal/"+id, "AsynchronousOperationInfo")
		}
		if got := dispose("/savepoints/one"); got != `200 {"status":{"id":"COMPLETED"},"operation":{}}` {
			t.Errorf("disposal: %s", got)
		}
		for path, want := range map[string]string{
			"/savepoints/one": "no snapshot was completed there", "/savepoints/chk-1": "it is a checkpoint of job", "hdfs://x/y": "no storage for hdfs",
		} {
			if got := dispose(path); !strings.Contains(got, "failure-cause") || !strings.Contains(got, want) {
				t.Errorf("%s: %s", path, got)
			}
		}
		for folder, want := range map[string]bool{"/savepoints/one": false, "/savepoints/two": true, "/savepoints/chk-1": true} {
			if _, err := checkpoint.Load(r.disk, folder); (err == nil) != want {
				t.Errorf("%s: %v", folder, err)
			}
		}
	})
}

func TestPagesOfOthersAreNotAnswered(t *testing.T) {
	r := newRig(t)
	for _, c := range []struct {
		host, site string
		status     int
	}{
		{"127.0.0.1:8081", "", 202},
		{"localhost:8081", "", 202},
		{"[::1]:8081", "", 202},
		{"127.0.0.1", "", 202},
		{"127.0.0.1:8081", "same-origin", 202},
		{"127.0.0.1:8081", "none", 202},
		{"127.0.0.1:8081", "cross-site", 403},
		{"127.0.0.1:8081", "same-site", 403},
		{"evil.example:8081", "", 403},
		{"evil.example", "", 403},
	} {
		req := httptest.NewRequest("GET", "http://"+c.host+"/jobs/"+runningID+"/yarn-cancel", nil)
		if c.site != "" {
			req.Header.Set("Sec-Fetch-Site", c.site)
		}
		w := httptest.NewRecorder()
		before := r.running.heard()
		r.handler().ServeHTTP(w, req)
		if w.Code != c.status || (r.running.heard() == before) != (c.status == 403) {
			t.Errorf("%s from %q: %d %s", c.host, c.site, w.Code, w.Body)
		}
	}
}

func TestLargeRequestIsRefused(t *testing.T) {
	r := newRig(t)
	r.opt.MaxContent = 100
	if code, answer := r.call("POST", "/jobs/"+runningID+"/savepoints", `{"target-directory":"`+strings.Repeat("x", 100)+`"}`); code != 413 {
		t.Errorf("%d %s", code, answer)
	}
}

// The object is as a Java virtual machine writes it: magic, class descriptors from the lowest class, fields from the highest.
func TestThrowableIsAJavaObject(t *testing.T) {
	got := javaThrowable("*os.PathError", "boom\x00é€😀")
	want := "aced0005" + "7372" + "0029" + hex.EncodeToString([]byte("org.apache.flink.util.SerializedThrowable")) + "65169df51fa713f3"
	if !strings.HasPrefix(hex.EncodeToString(got), want) {
		t.Errorf("begins %x", got[:60])
	}
	for _, part := range [][]byte{
		[]byte("t\x00\x11boom\xc0\x80\xc3\xa9\xe2\x82\xac\xed\xa0\xbd\xed\xb8\x80"), []byte("t\x00\x0d*os.PathError"),
		[]byte("java.lang.Exception"), []byte("\xd0\xfd\x1f\x3e\x1a\x3b\x1c\xc4\x02\x00\x00xr\x00\x13java.lang.Throwable\xd5\xc6\x35\x27\x39\x77\xb8\xcb\x03\x00\x04"),
		[]byte("ur\x00\x02[B\xac\xf3\x17\xf8\x06\x08\x54\xe0\x02\x00\x00xp\x00\x00\x00\x00"),
	} {
		if !bytes.Contains(got, part) {
			t.Errorf("there is no %q in %q", part, got)
		}
	}
	if long := modifiedUTF8(strings.Repeat("€", 1<<16)); len(long) > 0xffff || len(long)%3 != 0 {
		t.Errorf("a long text has %d bytes", len(long))
	}
	if b, err := base64.StdEncoding.DecodeString(newThrowable("c", "t").Serialized); err != nil || string(b[:4]) != javaMagic {
		t.Errorf("%q, %v", b, err)
	}
}

func TestFailureIsNamedByItsLastCause(t *testing.T) {
	err := fmt.Errorf("outer: %w", &vfsError{})
	if got := ErrorClass(err); got != "*rest.vfsError" {
		t.Errorf("class %s", got)
	}
	if got := ErrorClass(errors.Join(err, err)); got != "*errors.joinError" {
		t.Errorf("class of several %s", got)
	}
}

type vfsError struct{}

func (*vfsError) Error() string { return vfs.ErrNoSpace.Error() }
