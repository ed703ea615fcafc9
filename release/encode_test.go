package release

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"sort"
	"strings"
	"testing"
	"time"

	helmchart "helm.sh/helm/v3/pkg/chart"
	helmrelease "helm.sh/helm/v3/pkg/release"
	"k8s.io/apimachinery/pkg/util/uuid"
)

// decoded is what a reader of the stored record gets.
func decoded(t testing.TB, enc *encoded) *Record {
	t.Helper()
	bundles := map[string][]byte{}
	for _, b := range enc.bundles {
		var err error
		if bundles[b.label], err = b.join(b.parts); err != nil {
			t.Fatal(err)
		}
	}
	rec, err := joinRecord(enc.head, bundles)
	if err != nil {
		t.Fatalf("what was encoded can't be decoded: %v", err)
	}
	return rec
}

// trim trims a history as it is now.
func trim(ctx context.Context, store *Store, name string, keep int) error {
	all, err := store.list(ctx, name, ownerParts, ownerHelm)
	if err != nil {
		return err
	}
	return store.trim(ctx, all, keep)
}

// formOf names the form of an encoded record.
func formOf(t testing.TB, enc *encoded) string {
	t.Helper()
	form := "whole"
	if decoded(t, enc).Slim {
		form = "slim"
	}
	for _, b := range enc.bundles {
		form += map[string]string{labelBody: ", its body apart", labelEntries: ", its journal apart"}[b.label]
	}
	return form
}

// wantFits checks what the API server checks of Secrets.
func wantFits(t testing.TB, enc *encoded) {
	t.Helper()
	parts := 0
	if len(enc.head) > maxSecret {
		t.Errorf("the head has %d bytes", len(enc.head))
	}
	for _, b := range enc.bundles {
		parts += b.count
		for i, part := range b.parts {
			if len(part) > maxSecret {
				t.Errorf("part %d has %d bytes", i, len(part))
			}
		}
	}
	if parts > maxParts {
		t.Errorf("%d parts", parts)
	}
}

func encodes(t testing.TB, rec *Record) *encoded {
	t.Helper()
	enc, err := encode(rec)
	if err != nil {
		t.Fatal(err)
	}
	wantFits(t, enc)
	return enc
}

// ofObjects is a pending record of so many objects, which are planned.
func ofObjects(n int) *Record {
	rec := sample("web", 3, helmrelease.StatusPendingInstall)
	rec.Journal = &Journal{RunInfo: RunInfo{Run: "r", Attempt: "a", Holder: "me"}, Objects: map[string]ObjectState{}}
	var manifest strings.Builder
	for i := range n {
		fmt.Fprintf(&manifest, "---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: object-%d\ndata:\n  value: old\n", i)
		rec.Journal.Objects[fmt.Sprintf("ConfigMap/prod/object-%d", i)] = ObjectState{}
	}
	rec.Manifest = manifest.String()
	return rec
}

// done makes planned objects of a record applied ones, as a run records them.
func (rec *Record) done() {
	for key := range rec.Journal.Objects {
		var print [12]byte
		_, _ = rand.Read(print[:]) // never fails
		rec.Journal.Objects[key] = ObjectState{UID: string(uuid.NewUUID()), Fingerprint: base64.RawStdEncoding.EncodeToString(print[:]), Created: true}
	}
}

func TestLargeRecordsChooseTheirForm(t *testing.T) {
	pendingWith := func(change func(*Record)) *Record {
		rec := sample("web", 3, helmrelease.StatusPendingUpgrade)
		rec.Journal = &Journal{RunInfo: RunInfo{Run: "r"}}
		change(rec)
		return rec
	}
	file := &helmchart.File{Name: "dash.json", Data: []byte(noise(2 << 20))}
	for name, c := range map[string]struct {
		rec  *Record
		want string
	}{
		"small":                      {pendingWith(func(*Record) {}), "whole"},
		"large files":                {pendingWith(func(r *Record) { r.Chart.Files = append(r.Chart.Files, file) }), "slim"},
		"large manifest":             {pendingWith(func(r *Record) { r.Manifest = noise(5 << 20) }), "slim, its body apart"},
		"objects with a small chart": {ofObjects(20000), "whole, its journal apart"},
		"objects with large files": {func() *Record {
			rec := ofObjects(20000)
			rec.Chart.Files = append(rec.Chart.Files, file)
			return rec
		}(), "slim, its journal apart"},
		"objects with a large manifest": {func() *Record {
			rec := ofObjects(20000)
			rec.Manifest += noise(5 << 20)
			return rec
		}(), "slim, its body apart, its journal apart"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := formOf(t, encodes(t, c.rec)); got != c.want {
				t.Errorf("encoded %s, want %s", got, c.want)
			}
		})
	}
}

// A record that was begun can be finished, however many objects it has: there is room for what its run
// adds. The sizes at which one form gives way to the next are searched, and records just below and above
// them checked.
func TestLargeRecordsThatBeginCanEnd(t *testing.T) {
	const step = 50
	border := step * sort.Search(20000/step, func(n int) bool { return formOf(t, encodes(t, ofObjects(n*step))) != "whole" })
	if border < 10000 {
		t.Errorf("the journal of %d small objects doesn't fit into the head of their record", border)
	}
	for _, n := range []int{1, border - step, border, 20000, 60000} {
		rec := ofObjects(n)
		began := encodes(t, rec)
		begun := formOf(t, began)
		rec.stored = stored{uid: "u", bundles: began.refs()}
		rec.done()
		running := encodes(t, rec)
		if got := formOf(t, running); begun == "whole" && got != begun {
			t.Errorf("%d objects: begun %s, and at its end %s", n, begun, got)
		}
		t.Logf("%d objects: begun %s with %d bytes, at its end %s with %d", n, begun, len(began.head), formOf(t, running), len(running.head))
		rec.Info.Status = helmrelease.StatusDeployed
		ended := encodes(t, rec)
		for _, enc := range []*encoded{running, ended} {
			if got := decoded(t, enc); !reflect.DeepEqual(got.Journal, rec.Journal) || got.Manifest != rec.Manifest {
				t.Errorf("%d objects: %s, and read with %d of them", n, formOf(t, enc), len(got.Journal.Objects))
			}
		}
	}
}

// Records of the largest size are written, and larger ones refused when they begin.
func TestLargestRecords(t *testing.T) {
	ofSize := func(parts float64) *Record {
		rec := ofObjects(20000)
		rec.Manifest += noise(int(parts * partSize * 4 / 3))
		return rec
	}
	enc := encodes(t, ofSize(maxParts-2.5))
	if got := enc.partsAfter(growingEntries(ofSize(0)) * entryGrowth); got != maxParts {
		t.Errorf("it has %d parts at its end, want %d: then this test is about the limit", got, maxParts)
	}
	if _, err := encode(ofSize(maxParts - 1.5)); !errors.Is(err, errTooLarge) {
		t.Errorf("encode = %v, want errTooLarge: there is no place for the journal at its end", err)
	}
	entries := ofObjects(maxElements / entryElements)
	if _, err := encode(entries); !errors.Is(err, errTooLarge) {
		t.Errorf("encode = %v, want errTooLarge: the journal will have more values than are read", err)
	}
}

// Each form keeps every field of a record, also those that later versions add to the journal.
func TestFormsHoldAll(t *testing.T) {
	rec := &Record{}
	fill(reflect.ValueOf(rec).Elem())
	for _, f := range forms() {
		enc, fits, err := f.encode(rec)
		if err != nil || !fits {
			t.Fatalf("%+v: fits %v, %v", f, fits, err)
		}
		want := rec
		if f.slim {
			want = slim(rec)
		}
		got := decoded(t, enc)
		got.Labels = want.Labels
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v\njournal %+v\nwant %+v\njournal %+v", formOf(t, enc), got, got.Journal, want, want.Journal)
		}
	}
}

func packedEntries(t *testing.T, rec *Record) bundle {
	t.Helper()
	packed, _, err := pack(entriesOf(rec))
	if err != nil {
		t.Fatal(err)
	}
	return newBundle(labelEntries, packed)
}

// fill gives each field that is in the JSON a value, so that none is left out by accident.
func fill(v reflect.Value) {
	switch v.Type() {
	case reflect.TypeFor[json.RawMessage]():
		v.SetBytes([]byte(`{"a":1}`))
		return
	case reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Unix(1700000000, 0).UTC()))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("text of " + v.Type().Name())
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int:
		v.SetInt(7)
	case reflect.Uint8:
		v.SetUint(7)
	case reflect.Interface:
		if v.NumMethod() == 0 { // others, objects of Helm's status, aren't stored
			v.Set(reflect.ValueOf("text"))
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key)
		fill(value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Struct:
		for i := range v.NumField() {
			if field := v.Type().Field(i); field.IsExported() && field.Tag.Get("json") != "-" {
				fill(v.Field(i))
			}
		}
	default:
		panic("fill a " + v.Kind().String())
	}
}

// A record that another tool has written again has no journal, even if it still has the labels of one.
func TestJournalIsGoneWhenAnotherToolWrites(t *testing.T) {
	rec := ofObjects(1)
	enc := encodes(t, &Record{Release: rec.Release})
	enc.bundles = []bundle{packedEntries(t, rec)}
	if got := decoded(t, enc); got.Journal != nil {
		t.Errorf("read with the journal %+v", got.Journal)
	}
}

// TestLargeRecordIsSplit is about records whose body is in parts.
func TestLargeRecordIsSplit(t *testing.T) {
	rec := sample("web", 3, helmrelease.StatusPendingUpgrade)
	rec.Manifest = noise(5 << 20)
	rec.Journal = &Journal{RunInfo: RunInfo{Run: "r"}}
	rec.Hooks[0].LastRun.Phase = helmrelease.HookPhaseSucceeded
	enc := encodes(t, rec)
	want := slim(rec)
	got := decoded(t, enc)
	got.Labels = want.Labels
	if !reflect.DeepEqual(got, want) {
		t.Errorf("a record of %d bytes came back different: description %q, hooks %+v", len(rec.Manifest), got.Info.Description, got.Hooks[0])
	}

	t.Run("Helm sees why not", func(t *testing.T) {
		var seen helmrelease.Release
		data, err := unpack(enc.head)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(data, &seen); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(seen.Manifest, largeKind) || !strings.HasSuffix(seen.Info.Description, largeSuffix) {
			t.Errorf("Helm sees description %q, manifest %q", seen.Info.Description, seen.Manifest)
		}
	})
	t.Run("status changes leave the parts alone", func(t *testing.T) {
		rec.stored = stored{uid: "u", bundles: enc.refs()}
		rec.Info.Status, rec.Info.Description = helmrelease.StatusDeployed, "done"
		rec.Journal.Step = "main"
		if again := encodes(t, rec); !reflect.DeepEqual(again.refs(), enc.refs()) || again.bundles[0].parts != nil {
			t.Errorf("bundles %v, want %v, which are stored", again.refs(), enc.refs())
		}
	})
	t.Run("parts that went with their head are others than the new ones", func(t *testing.T) {
		rec.stored = stored{lost: 1}
		if again := encodes(t, rec); again.bundles[0].digest == enc.bundles[0].digest {
			t.Error("the parts have the names of those that the cluster is about to delete")
		}
	})
	t.Run("damaged parts are noticed", func(t *testing.T) {
		enc.bundles[0].parts[1][7] ^= 1
		if _, err := enc.bundles[0].join(enc.bundles[0].parts); err == nil {
			t.Error("damaged parts were joined")
		}
	})
}

func TestBundleLabelIsOfItsRevision(t *testing.T) {
	ref := bundleRef{labelEntries, strings.Repeat("ab", 16), 3}
	labels := map[string]string{labelEntries: ref.labelValue(7)}
	if got := bundlesOf(labels, 7); len(got) != 1 || got[0] != ref {
		t.Errorf("bundlesOf(%v, 7) = %v, want %v", labels, got, ref)
	}
	// Helm copies labels to the next revision.
	if got := bundlesOf(labels, 8); len(got) != 0 {
		t.Errorf("bundlesOf(%v, 8) = %v, want none", labels, got)
	}
	if value := labels[labelEntries]; len(value) > 63 {
		t.Errorf("%q is too long for a label", value)
	}
}
