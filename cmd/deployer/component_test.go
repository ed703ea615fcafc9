package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"filippo.io/age"
	"github.com/rogpeppe/go-internal/testscript"
	"sigs.k8s.io/yaml"
)

// A component is one of our examples that others include: a composite action of GitHub.
type component struct {
	Runs struct{ Steps []componentStep }
}

type componentStep struct {
	Name, Run string
	Env       map[string]string
}

// runComponent runs a step of a composite action, or a job of a GitLab component, as its
// runner would. The script has each input in $inputs_NAME, github.sha in $github_sha.
func runComponent(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: [!] component FILE STEP")
	}
	text, err := os.ReadFile(filepath.Join(ts.Getenv("TESTDATA"), "../../../examples", args[0]))
	ts.Check(err)
	script := ""
	if _, jobs, found := strings.Cut(string(text), "\n---\n"); found {
		script = gitlabScript(ts, jobs, args[1])
	} else {
		script = actionScript(ts, text, args[1])
	}
	err = ts.Exec("bash", "-eo", "pipefail", "-c", script)
	if (err != nil) != neg {
		ts.Fatalf("%s\n%v", script, err)
	}
}

func actionScript(ts *testscript.TestScript, text []byte, name string) string {
	var c component
	ts.Check(yaml.Unmarshal(text, &c))
	for _, step := range c.Runs.Steps {
		if step.Name == name {
			for key, value := range step.Env {
				ts.Setenv(key, expanded(ts, value))
			}
			return expanded(ts, step.Run)
		}
	}
	ts.Fatalf("no step %s", name)
	return ""
}

func gitlabScript(ts *testscript.TestScript, text, name string) string {
	text = strings.ReplaceAll(strings.ReplaceAll(text, "$[[", "${{"), "]]", "}}")
	var jobs map[string]struct {
		Script    []string
		Variables map[string]string
	}
	ts.Check(yaml.Unmarshal([]byte(expanded(ts, text)), &jobs))
	job, ok := jobs[name]
	if !ok {
		ts.Fatalf("no job %s", name)
	}
	for key, value := range job.Variables {
		ts.Setenv(key, value)
	}
	return strings.Join(job.Script, "\n")
}

// makeIdentity makes a key of age: $NAME has what files are encrypted to, file NAME what
// decrypts them.
func makeIdentity(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: identity NAME")
	}
	key, err := age.GenerateX25519Identity()
	ts.Check(err)
	ts.Setenv(args[0], key.Recipient().String())
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(key.String()+"\n"), 0o600))
}

// A forge is as much of the APIs of GitHub and GitLab as our examples call: comments, files
// and the request that a commit comes from.
type forge struct {
	mutex    sync.Mutex
	comments []forgeComment
	files    map[string][]byte
	head     string // of the merged request
}

// forgePage is how many comments a page of them has.
const forgePage = 100

type forgeComment struct {
	ID   int    `json:"id"`
	Body string `json:"body"`
}

// startForge starts a forge whose merged request has a head; its URL is in $NAME.
func startForge(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: forge NAME HEAD")
	}
	f := &forge{files: map[string][]byte{}, head: args[1]}
	for i := range 2*forgePage - 1 { // of other people
		f.comments = append(f.comments, forgeComment{i + 1, "well done"})
	}
	server := httptest.NewServer(f)
	ts.Defer(server.Close)
	ts.Setenv(args[0], server.URL)
}

// ServeHTTP answers by the last words of a path, which say what it is in both APIs.
func (f *forge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	words := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	last := words[len(words)-1]
	var answer any
	switch {
	case r.Method == http.MethodPost: // comments, notes
		f.comments = append(f.comments, forgeComment{len(f.comments) + 1, r.FormValue("body")})
	case r.Method == http.MethodPatch || r.Method == http.MethodPut && words[len(words)-2] == "notes":
		i := 0
		if _, err := fmt.Sscan(last, &i); err != nil || i < 1 || i > len(f.comments) {
			http.Error(w, "no such comment", http.StatusNotFound)
			return
		}
		f.comments[i-1].Body = r.FormValue("body")
	case r.Method == http.MethodPut:
		f.files[r.URL.Path], _ = io.ReadAll(r.Body) // what is missing is missed when it is read
	case last == "comments" || last == "notes":
		page := 1
		_, _ = fmt.Sscan(r.FormValue("page"), &page) // the first without
		answer = f.comments[min(len(f.comments), (page-1)*forgePage):min(len(f.comments), page*forgePage)]
	case last == "pulls":
		answer = []any{map[string]any{"merged_at": "2026-01-01", "head": map[string]any{"sha": f.head}}}
	case last == "merge_requests":
		answer = []any{map[string]any{"state": "merged", "sha": f.head}}
	case f.files[r.URL.Path] != nil:
		_, _ = w.Write(f.files[r.URL.Path])
		return
	default:
		http.NotFound(w, r)
		return
	}
	_ = json.NewEncoder(w).Encode(answer) // the client sees what it didn't get
}
