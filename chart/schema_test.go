package chart

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	helmchart "helm.sh/helm/v3/pkg/chart"
)

// TestSchemaOfFilesAsksNoWebServer fails if a schema that refers to a file of its chart is looked for on the web server that its $id
// names, or asks another one.
func TestSchemaOfFilesAsksNoWebServer(t *testing.T) {
	asked := make(chan string, 10)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked <- r.URL.Path }))
	defer server.Close()
	for _, test := range []struct{ id, also, says string }{
		{"", "", "minLength"},
		{`"$id": "` + server.URL + `/charts/values.schema.json", `, "", "minLength"},
		{`"$id": "` + server.URL + `", `, "", "minLength"},
		{"", `, "b": {"$ref": "` + server.URL + `/b.json"}`, "can't refer to " + server.URL + "/b.json"},
	} {
		c := &helmchart.Chart{
			Metadata: &helmchart.Metadata{Name: "c"},
			Schema:   []byte(`{` + test.id + `"properties": {"a": {"$ref": "./x.json"}` + test.also + `}}`),
			Files:    []*helmchart.File{{Name: "x.json", Data: []byte(`{"minLength": 3}`)}},
		}
		err := ValidateValues(c, map[string]any{"a": "b", "b": "c"})
		if err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s%s: %v, want %s", test.id, test.also, err, test.says)
		}
		if err := ValidateValues(c, map[string]any{"a": "long enough"}); (err == nil) != (test.also == "") {
			t.Errorf("%s%s: %v", test.id, test.also, err)
		}
	}
	if len(asked) > 0 {
		t.Errorf("asked for %s", <-asked)
	}
}
