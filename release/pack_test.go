package release

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	helmchart "helm.sh/helm/v3/pkg/chart"
	helmrelease "helm.sh/helm/v3/pkg/release"
	helmtime "helm.sh/helm/v3/pkg/time"
	corev1 "k8s.io/api/core/v1"
)

// sample is a small record of a status.
func sample(name string, revision int, status helmrelease.Status) *Record {
	return &Record{Release: helmrelease.Release{
		Name: name, Version: revision,
		Info: &helmrelease.Info{
			FirstDeployed: helmtime.Unix(1700000000, 0).UTC(),
			LastDeployed:  helmtime.Unix(1700000000+int64(revision), 0).UTC(),
			Status:        status, Description: "a test", Notes: "read me",
		},
		Chart: &helmchart.Chart{
			Metadata:  &helmchart.Metadata{Name: "web", Version: "1.2.3", AppVersion: "9"},
			Templates: []*helmchart.File{{Name: "templates/a.yaml", Data: []byte("kind: A")}},
			Values:    map[string]any{"replicas": 1.0},
			Files:     []*helmchart.File{{Name: "README.md", Data: []byte("hello")}, {Name: "crds/c.yaml", Data: []byte("crd")}},
		},
		Config:   map[string]any{"password": "hunter2"},
		Manifest: "---\n# Source: web/templates/a.yaml\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n",
		Hooks:    []*helmrelease.Hook{{Name: "h", Kind: "Job", Manifest: "kind: Job", Events: []helmrelease.HookEvent{helmrelease.HookPreInstall}}},
		Labels:   map[string]string{"team": "blue"},
	}}
}

// noise is text that doesn't compress well.
func noise(bytes int) string {
	r := rand.NewChaCha8([32]byte{1})
	raw := make([]byte, bytes*3/4)
	_, _ = r.Read(raw) // never fails
	return base64.StdEncoding.EncodeToString(raw)
}

func TestDecodeGivesWhatEncodeTook(t *testing.T) {
	rec := sample("web", 3, helmrelease.StatusPendingUpgrade)
	rec.ApplyMethod = ApplySSA
	rec.Journal = &Journal{RunInfo: RunInfo{Run: "r", Step: "main"}, Objects: map[string]ObjectState{"ConfigMap/x/a": {UID: "u", Created: true}}}
	enc, err := encode(rec)
	if err != nil {
		t.Fatal(err)
	}
	got, err := joinRecord(enc.head, nil)
	if err != nil {
		t.Fatal(err)
	}
	got.Labels = rec.Labels
	if !reflect.DeepEqual(got, rec) {
		t.Errorf("decode(encode(r)) = %+v\nwant %+v", got, rec)
	}
}

func TestDecodeReadsPlainRecords(t *testing.T) {
	plain := `{"name":"web","version":1,"info":{"status":"deployed"}}`
	rec, err := joinRecord([]byte(base64.StdEncoding.EncodeToString([]byte(plain))), nil)
	if err != nil || rec.Name != "web" || rec.Info.Status != helmrelease.StatusDeployed {
		t.Errorf("decode(%s) = %+v, %v", plain, rec, err)
	}
}

func TestDecodeRefuses(t *testing.T) {
	b64 := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	for name, text := range map[string]string{
		"nothing":         "",
		"no base64":       "%%%",
		"cut gzip":        b64("\x1f\x8b\x08\x00\x00"),
		"no JSON":         b64("hello"),
		"no info":         b64(`{"name":"web","version":1}`),
		"no name":         b64(`{"version":1,"info":{}}`),
		"negative number": b64(`{"name":"web","version":-1,"info":{}}`),
	} {
		if rec, err := joinRecord([]byte(text), nil); err == nil {
			t.Errorf("%s: decode(%q) = %+v, want an error", name, text, rec)
		}
	}
}

func TestEditInfoKeepsWhatWeDontKnow(t *testing.T) {
	text := toText([]byte(`{"name":"web","version":1,"future":{"a":[1,2]},"info":{"status":"deployed","rollback_revision":7}}`))
	edited, err := editInfo(text, map[string]any{"status": "superseded"})
	if err != nil {
		t.Fatal(err)
	}
	data, err := unpack(edited)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"future":{"a":[1,2]},"info":{"rollback_revision":7,"status":"superseded"},"name":"web","version":1}`
	if string(data) != want+"\n" {
		t.Errorf("editInfo = %s, want %s", data, want)
	}
	for _, without := range []string{`{}`, `{"info":null}`, `[]`} {
		if _, err := editInfo(toText([]byte(without)), map[string]any{"status": "superseded"}); err == nil {
			t.Errorf("editInfo(%s) succeeds", without)
		}
	}
}

// TestFullRecordOfHelmIsRecovered: a record of Helm that all but fills its Secret has room for what recovery says of it.
func TestFullRecordOfHelmIsRecovered(t *testing.T) {
	rec := sample("web", 1, helmrelease.StatusPendingInstall)
	random := rand.New(rand.NewPCG(1, 2))
	var manifest strings.Builder
	secret := &corev1.Secret{Data: map[string][]byte{}}
	full := 0 // bytes of the record
	for maxSecret-full > 100 {
		for range (maxSecret - full) / 16 { // an object takes 14 of them
			fmt.Fprintf(&manifest, "kind: ConfigMap\nmetadata:\n  name: web-%d\n---\n", random.Uint64())
		}
		rec.Manifest = manifest.String()
		secret.Data[dataKey] = byHelm(t, rec)
		full = len(secret.Data[dataKey])
	}
	if full > maxSecret {
		t.Fatalf("the record has %d bytes, and isn't one of Helm's", full)
	}
	secret.Labels = map[string]string{"status": "pending-install", "version": "1"}
	description := "failed: interrupted, or given up; recovered by deployer on runner-7f9c, pid 4711, https://gitlab.example.com/group/project/-/jobs/123456"
	patched, err := patchSecret(secret, helmrelease.StatusFailed, description)
	if err != nil {
		t.Fatal(err)
	}
	if size := len(patched.Data[dataKey]); size > maxSecret {
		t.Errorf("a record of %d bytes would have %d, and a Secret holds %d", full, size, maxSecret)
	}
	got, err := joinRecord(patched.Data[dataKey], nil)
	if err != nil || got.Info.Status != helmrelease.StatusFailed || got.Manifest == "" {
		t.Errorf("the record is %v, %v", got, err)
	}
}

// byHelm is a record as Helm stores it. (helm.sh/helm/v3/pkg/storage/driver/util.go, encodeRelease)
func byHelm(t *testing.T, rec *Record) []byte {
	t.Helper()
	data, err := json.Marshal(&rec.Release)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	zipped, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := zipped.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	return toText(out.Bytes())
}

func FuzzDecode(f *testing.F) {
	enc, err := encode(sample("web", 1, helmrelease.StatusDeployed))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(enc.head)
	for _, seed := range []string{
		`{"name":"web","version":1,"info":{}}`, `{"name":"web","version":1,"info":{"first_deployed":""},"hooks":[null],"chart":null}`,
	} {
		f.Add(toText([]byte(seed)))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		rec, err := joinRecord(text, nil)
		if err != nil {
			return
		}
		// Whatever we accept, we must be able to write again.
		if _, err := encode(rec); err != nil {
			t.Errorf("encode(decode(%q)): %v", text, err)
		}
		if _, _, err := (form{slim: true, bodyApart: true}).encode(rec); err != nil {
			t.Errorf("split(decode(%q)): %v", text, err)
		}
		if _, err := editInfo(text, map[string]any{"status": "failed"}); err != nil {
			t.Errorf("editInfo(%q): %v", text, err)
		}
	})
}

func TestNames(t *testing.T) {
	for name, ok := range map[string]bool{
		"web": true, "a.b-c": true, strings.Repeat("a", 53): true,
		"": false, "Web": false, "a_b": false, "-a": false, strings.Repeat("a", 54): false,
	} {
		if err := ValidateName(name); (err == nil) != ok {
			t.Errorf("ValidateName(%q) = %v, want ok=%v", name, err, ok)
		}
	}
	for driver, ok := range map[string]bool{"": true, "secret": true, "secrets": true, "configmap": false, "sql": false, "memory": false, "x": false} {
		if err := ValidateDriver(driver); (err == nil) != ok {
			t.Errorf("ValidateDriver(%q) = %v, want ok=%v", driver, err, ok)
		}
	}
	for _, key := range []string{"name", "owner", "status", "version", "createdAt", "modifiedAt", "deployer.io/x", "no good"} {
		if err := ValidateLabels(map[string]string{key: "v"}); err == nil {
			t.Errorf("ValidateLabels(%q) accepted it", key)
		}
	}
	if err := ValidateLabels(map[string]string{"team": "blue", "example.com/x": ""}); err != nil {
		t.Errorf("ValidateLabels: %v", err)
	}
	for _, name := range []string{"web", "a.v7.b", "x.v1"} {
		got, rev, ok := parseSecretName(SecretName(name, 12))
		if got != name || rev != 12 || !ok {
			t.Errorf("parseSecretName(SecretName(%q, 12)) = %q, %d, %v", name, got, rev, ok)
		}
	}
}

func TestAnnotationsHoldNoValues(t *testing.T) {
	rec := sample("web", 1, helmrelease.StatusDeployed)
	text := fmt.Sprint(annotations(rec))
	for _, secret := range []string{"hunter2", "read me", "kind: A"} {
		if strings.Contains(text, secret) {
			t.Errorf("annotations %s contain %q", text, secret)
		}
	}
	if _, err := time.Parse(time.RFC3339Nano, annotations(rec)[annotationUpdated]); err != nil {
		t.Error(err)
	}
}

// TestRecordsOfOthersAreRead: testdata/records has what Helm and older builds of deployer have written.
func TestRecordsOfOthersAreRead(t *testing.T) {
	for name, journal := range map[string]bool{
		"chart-packed-by-itself": true, "journal-in-record": true, "killed-with-journal-in-record": true, "helm-4": false,
	} {
		text, err := os.ReadFile(filepath.Join("testdata", "records", name+".txt"))
		if err != nil {
			t.Fatal(err)
		}
		rec, err := joinRecord(text, nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if rec.Chart.Name() != "web" || !strings.Contains(rec.Manifest, "kind: Deployment") || len(rec.Chart.Templates) == 0 || rec.ApplyMethod != ApplySSA {
			t.Errorf("%s: chart %q with %d templates, applied by %q, and the manifest\n%s", name, rec.Chart.Name(), len(rec.Chart.Templates), rec.ApplyMethod, rec.Manifest)
		}
		if got := rec.Journal != nil && len(rec.Journal.Objects) > 0; got != journal {
			t.Errorf("%s: a journal with objects: %v, want %v", name, got, journal)
		}
		if _, err := editInfo(text, map[string]any{"status": "superseded"}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
