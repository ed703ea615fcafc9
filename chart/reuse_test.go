package chart

import (
	"context"
	"encoding/json"
	"io"
	"testing"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chartutil"
	kubefake "helm.sh/helm/v3/pkg/kube/fake"
	helmrelease "helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage"
	"helm.sh/helm/v3/pkg/storage/driver"
)

var reuseModes = []ReuseMode{ReuseDefault, ResetValues, ReuseValues, ResetThenReuseValues}

func TestReusedIsWhatHelmUpgradesWith(t *testing.T) {
	template := "kind: ConfigMap\nmetadata: {name: a}\nvalues: {{ toJson .Values }}\n"
	sub := map[string]string{"charts/sub/Chart.yaml": "apiVersion: v2\nname: sub\nversion: 1.0.0\n", "charts/sub/values.yaml": "s: 1\n"}
	with := func(values string) map[string]string {
		files := map[string]string{"templates/t.yaml": template, "values.yaml": values}
		for name, text := range sub {
			files[name] = text
		}
		return files
	}
	oldChart := with("a: old\nb: {x: old, y: old}\nonly: old\nlist: [1, 2]\n")
	newChart := with("a: new\nb: {x: new, z: new}\nlist: [3]\nsub: {s: 2}\n")
	for name, c := range map[string]struct{ old, new string }{
		"nothing at all":     {`{}`, `{}`},
		"only old":           {`{"b":{"x":"user"},"list":[9]}`, `{}`},
		"only new":           {`{}`, `{"b":{"y":"now"}}`},
		"both":               {`{"a":"user","b":{"x":"user","n":1},"sub":{"s":5}}`, `{"b":{"x":"now"},"c":true}`},
		"null deletes":       {`{"a":"user","b":{"x":"user"}}`, `{"b":null,"only":null}`},
		"null in old":        {`{"a":null,"b":{"x":null}}`, `{"c":1}`},
		"map over scalar":    {`{"a":{"m":1}}`, `{"b":7}`},
		"scalar over a list": {`{"list":1}`, `{"list":[4,5]}`},
	} {
		for _, mode := range reuseModes {
			t.Run(name+" "+string(mode), func(t *testing.T) {
				previous := Previous{Chart: load(t, oldChart).Helm, Values: decodeValues(t, c.old)}
				want := helmUpgrade(t, mode, previous, load(t, newChart), decodeValues(t, c.new))

				previous, values := Previous{Chart: load(t, oldChart).Helm, Values: decodeValues(t, c.old)}, decodeValues(t, c.new)
				before, next := jsonOf(t, previous.Values, previous.Chart.Values, values), load(t, newChart)
				chart, config, err := next.WithPreviousValues(mode, previous, values)
				if err != nil {
					t.Fatal(err)
				}
				got, err := chart.Render(context.Background(), Input{Release: "shop", Upgrade: true, Revision: 2, Values: config})
				if err != nil {
					t.Fatal(err)
				}
				if jsonOf(t, config) != jsonOf(t, want.Config) {
					t.Errorf("values are %s, want %s", jsonOf(t, config), jsonOf(t, want.Config))
				}
				if got.Manifest != want.Manifest {
					t.Errorf("manifest is\n%s\nwant\n%s", got.Manifest, want.Manifest)
				}
				if jsonOf(t, got.Chart.Values) != jsonOf(t, want.Chart.Values) {
					t.Errorf("the chart's values are %s, want %s", jsonOf(t, got.Chart.Values), jsonOf(t, want.Chart.Values))
				}
				if after := jsonOf(t, previous.Values, previous.Chart.Values, values); after != before {
					t.Errorf("arguments were %s, are %s", before, after)
				}
				if jsonOf(t, next.Helm.Values) != jsonOf(t, load(t, newChart).Helm.Values) {
					t.Errorf("the chart was changed: %s", jsonOf(t, next.Helm.Values))
				}
			})
		}
	}
}

// helmUpgrade is what Helm's own upgrade would record, with memory for a cluster.
func helmUpgrade(t *testing.T, mode ReuseMode, previous Previous, next *Chart, values map[string]any) *helmrelease.Release {
	t.Helper()
	memory := driver.NewMemory()
	memory.SetNamespace("default")
	cfg := &action.Configuration{
		Releases:     storage.Init(memory),
		KubeClient:   &kubefake.PrintingKubeClient{Out: io.Discard},
		Capabilities: chartutil.DefaultCapabilities,
		Log:          func(string, ...any) {},
	}
	err := cfg.Releases.Create(&helmrelease.Release{Name: "shop", Namespace: "default", Version: 1, Chart: previous.Chart,
		Config: previous.Values, Info: &helmrelease.Info{Status: helmrelease.StatusDeployed}})
	if err != nil {
		t.Fatal(err)
	}
	u := action.NewUpgrade(cfg)
	u.DryRun, u.DryRunOption = true, "client"
	u.ResetValues, u.ReuseValues, u.ResetThenReuseValues = mode == ResetValues, mode == ReuseValues, mode == ResetThenReuseValues
	r, err := u.Run("shop", next.Helm, values)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func decodeValues(t *testing.T, text string) map[string]any {
	t.Helper()
	var out map[string]any
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func jsonOf(t *testing.T, values ...any) string {
	t.Helper()
	text, err := json.Marshal(values)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestReusedWithoutPrevious(t *testing.T) {
	c := load(t, nil)
	for _, mode := range reuseModes {
		got, values, err := c.WithPreviousValues(mode, Previous{}, map[string]any{"a": 1})
		if err != nil || got != c || jsonOf(t, values) != `[{"a":1}]` {
			t.Errorf("%q: %v, %v, %v", mode, got, values, err)
		}
	}
	if _, _, err := c.WithPreviousValues("--nonsense", Previous{}, nil); err == nil {
		t.Error("an unknown mode is taken")
	}
}
