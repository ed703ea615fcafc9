package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"runtime/debug"
	"strings"
	"testing"
)

// TestBillListsWhatIsInTheBinary compares the bill of this test's own binary with
// what go version -m says.
func TestBillListsWhatIsInTheBinary(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var first, second bytes.Buffer
	for _, out := range []*bytes.Buffer{&first, &second} {
		if err := write(out, self, "v1.2.3"); err != nil {
			t.Fatal(err)
		}
	}
	if first.String() != second.String() {
		t.Error("two bills of one binary differ")
	}
	var d document
	if err := json.Unmarshal(first.Bytes(), &d); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(data)
	if d.Format != "CycloneDX" || d.Metadata.Component.Version != "v1.2.3" || d.Metadata.Component.Hashes[0].Content != hex.EncodeToString(sum[:]) {
		t.Errorf("the bill is of something else: %+v", d.Metadata)
	}
	listed, err := exec.Command("go", "version", "-m", self).Output()
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{}
	for line := range strings.Lines(string(listed)) {
		if f := strings.Fields(line); len(f) >= 3 && f[0] == "dep" {
			want[f[1]+"@"+f[2]] = true
		}
	}
	got := map[string]bool{}
	for _, c := range d.Components {
		if c.Name != "stdlib" {
			got[c.Name+"@"+c.Version] = true
		}
	}
	for name := range want {
		if !got[name] {
			t.Errorf("the bill lacks %s", name)
		}
	}
	if len(got) != len(want) || len(d.Dependencies) != len(d.Components)+1 {
		t.Errorf("%d modules and %d dependencies are listed, %d are there", len(got), len(d.Dependencies), len(want))
	}
}

// What replaces a module is listed instead of it, but a directory of this repository has no version that others know.
func TestReplacedModules(t *testing.T) {
	d := describe(&debug.BuildInfo{Deps: []*debug.Module{
		{Path: "example.com/a", Version: "v1.0.0", Replace: &debug.Module{Path: "example.com/fork", Version: "v2.0.0"}},
		{Path: "example.com/b", Version: "v3.0.0", Replace: &debug.Module{Path: "./internal/b"}},
	}}, "deployer", "v1.2.3", [sha256.Size]byte{})
	for i, want := range []string{"pkg:golang/example.com/fork@v2.0.0", "pkg:golang/example.com/b@v3.0.0"} {
		if got := d.Components[i+1].PURL; got != want {
			t.Errorf("module %d is listed as %s, want %s", i, got, want)
		}
	}
}
