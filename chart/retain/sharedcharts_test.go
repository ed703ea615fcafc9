package retain

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deployer/chart"
)

// TestNoChartIsChangedByAnUpgradeWithoutAChange: what real charts generate is kept, as long as nothing is changed. What is only in
// pod templates is new each time, so that the pods restart.
func TestNoChartIsChangedByAnUpgradeWithoutAChange(t *testing.T) {
	dirs := cmp.Or(os.Getenv("DEPLOYER_TEST_CHARTS"), filepath.Join("..", "..", "..", "shared", "charts"))
	found, generated := 0, 0
	for _, dir := range filepath.SplitList(dirs) {
		files, err := filepath.Glob(filepath.Join(dir, "*", "Chart.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			found++
			name := filepath.Base(filepath.Dir(file))
			c, err := chart.Load(t.Context(), filepath.Dir(file), chart.LoadOptions{})
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			s := newStory(t)
			first, err := s.decide(c, nil, true)
			if err != nil { // some need values
				t.Logf("%s isn't rendered: %v", name, err)
				continue
			}
			s.earlier = []Revision{{Number: 1, Successful: true, Manifest: first.Manifest, Hooks: first.Hooks}}
			second, err := s.decide(c, nil, true)
			if err != nil { // some want their passwords again
				t.Logf("%s isn't rendered for an upgrade: %v", name, err)
				continue
			}
			for _, v := range second.Values {
				generated++
				if !v.Kept() && !strings.Contains(v.Reason, "restarts the pods") && !strings.Contains(v.Reason, "generated name") {
					t.Errorf("%s: %s %s is renewed: %s", name, v.ID, v.Path, v.Reason)
				}
			}
			if len(second.Values) == 0 && second.Manifest != first.Manifest {
				t.Errorf("%s: the manifest has changed, and nothing is told of as generated", name)
			}
		}
	}
	if found == 0 {
		t.Skipf("there are no charts in %s", dirs)
	}
	t.Logf("%d charts, %d generated values", found, generated)
}
