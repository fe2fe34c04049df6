//go:build servers && unix

package servers_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"testing"

	"github.com/flott-dev/flott/internal/vfs"
	"github.com/flott-dev/flott/storage/hdfs"
)

// hadoopProject makes Maven copy what the program below needs.
const hadoopProject = `<project xmlns="http://maven.apache.org/POM/4.0.0">
<modelVersion>4.0.0</modelVersion><groupId>flott</groupId><artifactId>hadoop</artifactId><version>1</version>
<dependencies><dependency>
<groupId>org.apache.hadoop</groupId><artifactId>hadoop-client-minicluster</artifactId><version>3.4.2</version>
</dependency></dependencies>
</project>`

// hadoopProgram is a cluster of one name node and one data node.
const hadoopProgram = `
import java.io.File;
import org.apache.hadoop.hdfs.HdfsConfiguration;
import org.apache.hadoop.hdfs.MiniDFSCluster;

public class Cluster {
    public static void main(String[] args) throws Exception {
        new MiniDFSCluster.Builder(new HdfsConfiguration(), new File(args[1]))
            .nameNodePort(Integer.parseInt(args[0])).numDataNodes(1).build().waitActive();
        new java.net.ServerSocket(Integer.parseInt(args[2])); // says that the data node is there, too
        Thread.currentThread().join();
    }
}
`

// hdfsServer starts a cluster; its superuser is the one that runs the test.
func hdfsServer(t *testing.T) (listens string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"pom.xml": hadoopProject, "Cluster.java": hadoopProgram} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	fetch := command("mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory="+filepath.Join(dir, "jars"))
	fetch.Dir = dir
	run(t, fetch)
	host, port := address(t)
	_, ready := address(t)
	cluster := exec.Command("java", "-cp", filepath.Join(dir, "jars", "*"), "Cluster.java", port, filepath.Join(dir, "data"), ready)
	cluster.Dir = dir
	serve(t, host+":"+ready, cluster)
	return host + ":" + port
}

func TestHDFS(t *testing.T) {
	node := hdfsServer(t)
	where := "hdfs://" + node + "/flott"
	f, dir := opened(t, hdfs.Opener{}, where)
	if err := f.MkdirAll(dir); err != nil { // by the cluster's superuser
		t.Fatal(err)
	}
	storageAt(t, hdfs.Opener{}, where)
	t.Run("somebody else", func(t *testing.T) {
		f, dir := opened(t, hdfs.Opener{User: "nobody"}, where)
		if err := vfs.WriteFile(f, path.Join(dir, "file"), []byte("text")); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("write: %v", err)
		}
	})
	t.Run("synced is seen", func(t *testing.T) {
		name := path.Join(dir, "open")
		w, err := f.Create(name, vfs.Exclusive)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte("text")); err != nil {
			t.Fatal(err)
		}
		if err := w.Sync(); err != nil {
			t.Fatal(err)
		}
		other, _ := opened(t, hdfs.Opener{}, where)
		if _, err := other.Create(name, vfs.Exclusive); !errors.Is(err, fs.ErrExist) {
			t.Errorf("another writer of a file that is being written: %v", err)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
		if b, err := vfs.ReadFile(other, name); string(b) != "text" || err != nil {
			t.Errorf("read %q, %v", b, err)
		}
	})
}
