package release

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"strings"
	"testing"

	helmrelease "helm.sh/helm/v3/pkg/release"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// bomb is data.release of a record whose JSON is head, then so often middle, then tail.
func bomb(t testing.TB, head, middle string, times int, tail string) []byte {
	t.Helper()
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err := io.WriteString(w, head)
	block := strings.Repeat(middle, 1000)
	for n := 0; n < times && err == nil; n += 1000 {
		_, err = io.WriteString(w, block)
	}
	if err == nil {
		_, err = io.WriteString(w, tail)
	}
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return toText(packed.Bytes())
}

const (
	bombHead = `{"name":"web","version":1,"info":{"status":"deployed"},`
	nothing  = " " // a byte of JSON that says nothing
)

// TestBombsAreNotUnpacked: data that would unpack to more than the limit is refused.
func TestBombsAreNotUnpacked(t *testing.T) {
	long := bomb(t, bombHead+`"manifest":"`, "x", maxSingleSecretJSON, `"}`)
	if len(long) > maxSecret {
		t.Fatalf("the bomb has %d bytes, and no Secret holds it", len(long))
	}
	for name, c := range map[string]struct {
		text []byte
		want string
	}{
		"a long manifest": {long, "unpacks to more than 64.0 MiB"},
		"many hooks":      {bomb(t, bombHead+`"hooks":[{}`, ",{}", maxElements/2+1000, `]}`), "unpacks to more than 524288 values"},
		"many values":     {bomb(t, bombHead+`"config":{"a":[0`, ",0", maxElements, `]}}`), "unpacks to more than 524288 values"},
		"deep values":     {bomb(t, bombHead+`"config":{"a":`, "[", maxElements, `}}`), "unpacks to more than 524288 values"},
	} {
		if _, err := joinRecord(c.text, nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: decode = %v, want %q", name, err, c.want)
		}
	}
}

// TestNothingIsWrittenThatIsNotRead: a record over the limits is refused although it
// would fit when packed.
func TestNothingIsWrittenThatIsNotRead(t *testing.T) {
	rec := sample("web", 1, helmrelease.StatusDeployed)
	rec.Config = map[string]any{"a": make([]any, maxElements)}
	if _, err := encode(rec); !errors.Is(err, errTooLarge) {
		t.Errorf("encode = %v, want errTooLarge", err)
	}
}

// FuzzRecordJSON is FuzzDecode for what is packed: whatever a Secret says in JSON is a
// record that can be written and read again, or an error.
func FuzzRecordJSON(f *testing.F) {
	for _, seed := range []string{
		`{"name":"web","version":1,"info":{"status":"deployed"},"hooks":[null],"chart":{"files":[null],"metadata":null}}`,
		`{"name":"web","version":3,"info":{"status":"pending-upgrade"},"config":{"a":[1e400,{"b":null}]},"deployer":{"objects":{"a/b":null}}}`,
		`{"name":"web","version":2,"info":{"last_deployed":"x"},"manifest":"\ud800","labels":{"":""}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		rec, err := joinRecord(toText(data), nil)
		if err != nil {
			return
		}
		if rec.Info == nil || rec.Name == "" || rec.Version < 1 {
			t.Fatalf("decode gives a record without its name: %+v", rec)
		}
		rec.Labels = nil
		again, err := encode(rec)
		if errors.Is(err, errTooLarge) {
			return
		}
		if err != nil {
			t.Fatalf("encode(decode(x)): %v", err)
		}
		decoded(t, again)
	})
}

// FuzzSummarize: whatever Secrets say about themselves is a summary or an error.
func FuzzSummarize(f *testing.F) {
	f.Add("sh.helm.release.v1.web.v1", "web", "1", "deployed", "2024-01-01T00:00:00Z", "v1.2.0123456789abcdef0123456789abcdef")
	f.Add("sh.helm.release.v1.a.v2.v03", "a.v2", "03", "", "", "")
	f.Fuzz(func(t *testing.T, secret, name, version, status, updated, bundle string) {
		meta := metav1.ObjectMeta{
			Name: secret, Labels: map[string]string{"name": name, "version": version, "status": status, labelBody: bundle, labelEntries: bundle},
			Annotations: map[string]string{annotationUpdated: updated},
		}
		s, err := summarize(&meta)
		if err != nil {
			if !errors.As(err, new(*CorruptError)) {
				t.Fatalf("summarize = %v, want a *CorruptError", err)
			}
			return
		}
		if SecretName(s.Name, s.Revision) != secret {
			t.Fatalf("%q is said to be revision %d of %q", secret, s.Revision, s.Name)
		}
		for _, b := range s.bundles {
			if b.count < 1 || b.count > maxParts {
				t.Fatalf("%q: %d parts", bundle, b.count)
			}
		}
	})
}
