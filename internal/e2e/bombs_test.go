package e2e

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"
)

// secretOf writes a Secret as Helm's for a revision of a release, with that content.
func (w *world) secretOf(release, version string, packed []byte) string {
	w.Helper()
	name := "sh.helm.release.v1." + release + ".v" + version
	text := base64.StdEncoding.EncodeToString([]byte(base64.StdEncoding.EncodeToString(packed)))
	w.create("secrets", "helm", fmt.Sprintf(`{apiVersion: v1, kind: Secret, type: helm.sh/release.v1,
metadata: {name: %s, labels: {owner: helm, name: %s, version: %q, status: deployed}}, data: {release: %s}}`, name, release, version, text))
	return name
}

// packedRecord is the gzip of a record whose manifest has so many bytes, all the same.
func packedRecord(t *testing.T, name string, bytesOf int) []byte {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(w, `{"name":%q,"version":1,"info":{"status":"deployed"},"manifest":"`, name)
	block := strings.Repeat("x", 1<<20)
	for n := 0; n < bytesOf; n += len(block) {
		io.WriteString(w, block)
	}
	io.WriteString(w, `"}`)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestLargeBadRecordsDoNotTakeTheListDown has records that unpack to 700 MB, that are cut
// off, and that contradict themselves, among good ones.
func TestLargeBadRecordsDoNotTakeTheListDown(t *testing.T) {
	w := newWorld(t)
	const most = 400 << 10 // KiB; half of what unpacking one of them would take
	w.ok("install", "good", w.chart(configMap("a", "1")))
	for i := range 4 {
		name := fmt.Sprintf("bomb%d", i)
		w.secretOf(name, "1", packedRecord(t, name, 700_000_000))
	}
	w.secretOf("cut", "1", packedRecord(t, "cut", 0)[:30])
	w.secretOf("theirs", "1", packedRecord(t, "theirs", 0))
	odd := w.secretOf("odd", "1", packedRecord(t, "odd", 0))
	w.patch("secrets", odd, "helm", `{"metadata":{"labels":{"version":"7"}}}`)

	run := func(args ...string) result {
		w.Helper()
		cmd, done := w.command(deployerBinary, args...)
		r := done(cmd.Run())
		if used := cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss; used > most {
			w.Errorf("it took %d MiB:\n%s", used>>10, r.line)
		}
		if r.code != 0 {
			w.Fatalf("want exit code 0:\n%s", r)
		}
		return r
	}
	for _, args := range [][]string{{"list"}, {"list", "-A"}} {
		r := run(args...)
		w.says(r, "stdout", `good\s[^\n]*deployed`, `bomb0\s[^\n]*unreadable`, `bomb3\s[^\n]*unreadable`, `cut\s[^\n]*unreadable`,
			`theirs\s[^\n]*deployed`, odd+`\s[^\n]*unreadable`)
		w.says(r, "stderr", "Warning: Secret/"+w.ns+"/sh.helm.release.v1.bomb0.v1 can't be read as a release record: .*it unpacks to more than 64.0 MiB")
	}
	var listed []struct{ Name, Status, Error string }
	r := run("list", "-o", "json", "--date")
	if err := json.Unmarshal([]byte(r.out), &listed); err != nil || len(listed) != 8 {
		t.Fatalf("%v: %d releases:\n%s", err, len(listed), r)
	}
	for _, l := range listed {
		good := l.Name == "good" || l.Name == "theirs"
		if good != (l.Status == "deployed") || good != (l.Error == "") {
			t.Errorf("list -o json says %+v", l)
		}
	}
	w.says(run("list", "-q"), "stdout", "(?m)^bomb0$.*^good$")
	w.says(run("history", "bomb0"), "stdout", "1 .*unreadable")
	w.says(w.exits(1, "get", "manifest", "bomb0"), "stderr", "it unpacks to more than 64.0 MiB")
	w.says(w.exits(1, "upgrade", "bomb0", w.chart(configMap("a", "1"))), "stderr", "it unpacks to more than 64.0 MiB")
}
