package chart

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
)

// registry serves web 1.0.0 and 1.2.0 as charts/web, as much of the OCI
// distribution API as pulling takes. It returns its host and the digest of 1.0.0.
func registryServer(t *testing.T) (host, digest string) {
	t.Helper()
	blobs, tags := map[string][]byte{}, map[string]string{}
	put := func(data []byte) string {
		d := fmt.Sprintf("sha256:%x", sha256.Sum256(data))
		blobs[d] = data
		return d
	}
	for _, version := range []string{"1.0.0", "1.2.0"} {
		archive, err := os.ReadFile(pack(t, t.TempDir(), version))
		if err != nil {
			t.Fatal(err)
		}
		config := []byte(`{"name":"web","version":"` + version + `"}`)
		manifest, err := json.Marshal(map[string]any{
			"schemaVersion": 2,
			"mediaType":     "application/vnd.oci.image.manifest.v1+json",
			"config":        map[string]any{"mediaType": "application/vnd.cncf.helm.config.v1+json", "digest": put(config), "size": len(config)},
			"layers": []any{map[string]any{"mediaType": "application/vnd.cncf.helm.chart.content.v1.tar+gzip",
				"digest": put(archive), "size": len(archive)}},
		})
		if err != nil {
			t.Fatal(err)
		}
		tags[version] = put(manifest)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		kind, ref, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/v2/charts/web/"), "/")
		if d, ok := tags[ref]; ok && kind == "manifests" {
			ref = d
		}
		data, ok := blobs[ref]
		switch {
		case r.URL.Path == "/v2/":
		case kind == "tags":
			w.Write([]byte(`{"name":"charts/web","tags":["1.0.0","1.2.0"]}`))
		case !ok:
			w.WriteHeader(http.StatusNotFound)
			w.Write([]byte(`{"errors":[{"code":"MANIFEST_UNKNOWN","message":"no such manifest"}]}`))
		default:
			if kind == "manifests" {
				w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
			}
			w.Header().Set("Docker-Content-Digest", ref)
			w.Header().Set("Content-Length", fmt.Sprint(len(data)))
			w.Write(data)
		}
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://"), tags["1.0.0"]
}

func TestLoadFromRegistry(t *testing.T) {
	host, digest := registryServer(t)
	base := "oci://" + host + "/charts/web"
	for name, c := range map[string]struct{ ref, version, want string }{
		"newest":         {base, "", "web-1.2.0"},
		"version":        {base, "1.0.0", "web-1.0.0"},
		"constraint":     {base, "<1.2", "web-1.0.0"},
		"tag":            {base + ":1.0.0", "", "web-1.0.0"},
		"digest":         {base + "@" + digest, "", "web-1.0.0"},
		"tag and digest": {base + ":1.0.0@" + digest, "", "web-1.0.0"},
		"absent":         {base, "3.0.0", "fetching chart " + base},
		"contradiction":  {base + ":1.0.0", "1.2.0", "mismatch"},
	} {
		t.Run(name, func(t *testing.T) {
			var said []string
			got, err := Load(context.Background(), c.ref, LoadOptions{Version: c.version, Settings: helmHome(t),
				Access: Access{PlainHTTP: true}, Progress: func(line string) { said = append(said, line) }})
			if err != nil {
				if !strings.Contains(err.Error(), c.want) {
					t.Errorf("error is %v, want %s", err, c.want)
				}
				return
			}
			if got.Name() != c.want {
				t.Errorf("got %s, want %s", got.Name(), c.want)
			}
			if !strings.Contains(strings.Join(said, "\n"), "Pulled: "+host) {
				t.Errorf("told %q", said)
			}
		})
	}
}
