package plan

import (
	"context"
	"encoding/json"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"deployer/internal/deploy"
	"deployer/internal/view/page"
)

// requireTools makes tests fail instead of skip where the programs that they
// drive are missing.
const requireTools = "DEPLOYER_TEST_REQUIRE_BROWSER"

// tool finds a program that a test drives.
func tool(t *testing.T, names ...string) string {
	t.Helper()
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv(requireTools) != "" {
		t.Fatalf("none of %q is installed", names)
	}
	t.Skipf("none of %q is installed: make test-browser installs it", names)
	return ""
}

// A seen page is what a browser made of it.
type seen struct {
	log    string
	result map[string]any // of the script that was run in it
}

// browse opens a page in a real browser, without network, and runs a script in
// it: the body of a function that gets helpers and returns a value.
func browse(t *testing.T, text, script string, width int) seen {
	t.Helper()
	browser := tool(t, "chromium", "chromium-browser", "google-chrome")
	dir := t.TempDir()
	file := filepath.Join(dir, "plan.html")
	// A frame is as narrow as one likes, a window isn't.
	driver := fmt.Sprintf(`<!DOCTYPE html><meta charset="utf-8"><iframe id="f" style="width:%dpx;height:900px;border:0" srcdoc="%s"></iframe>
<pre id="result"></pre><script>
document.getElementById("f").addEventListener("load", async function () {
  var page = this.contentDocument, view = this.contentWindow, out;
  var at = id => page.getElementById(id);
  var type = (id, text) => { at(id).value = text; at(id).dispatchEvent(new view.Event("input", {bubbles: true})); };
  var key = k => page.dispatchEvent(new view.KeyboardEvent("keydown", {key: k, bubbles: true, cancelable: true}));
  var shown = () => [...page.querySelectorAll(".object")].filter(o => o.getClientRects().length > 0);
  var names = () => shown().map(o => o.querySelector(".name").textContent);
  var unfolded = () => page.querySelectorAll("details[open]").length;
  try { out = await (async function () { %s })(); } catch (e) { out = {failed: String(e)}; }
  out.fetched = view.performance.getEntriesByType("resource").map(r => r.name).join();
  document.getElementById("result").textContent = JSON.stringify(out);
});
</script>`, width, html.EscapeString(text), script)
	if err := os.WriteFile(file, []byte(driver), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute) // for a busy machine; it takes a second
	defer cancel()
	cmd := exec.CommandContext(ctx, browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
		"--user-data-dir="+filepath.Join(dir, "profile"), "--enable-logging=stderr", "--disable-background-networking",
		"--window-size=1400,1000", "--virtual-time-budget=20000", "--dump-dom", "file://"+file)
	cmd.Env = append(os.Environ(), "HOME="+dir)
	var log strings.Builder
	cmd.Stderr = &log
	dom, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, log.String())
	}
	out := seen{log: log.String()}
	m := regexp.MustCompile(`(?s)<pre id="result">(.*?)</pre>`).FindSubmatch(dom)
	if m == nil || json.Unmarshal([]byte(html.UnescapeString(string(m[1]))), &out.result) != nil {
		t.Fatalf("the script has given no result: %s\n%s", m, out.log)
	}
	if failed := out.result["failed"]; failed != nil {
		t.Fatalf("the script failed: %v\n%s", failed, out.log)
	}
	return out
}

// check compares what a script returned.
func (s seen) check(t *testing.T, want map[string]any) {
	t.Helper()
	for key, value := range want {
		if got := fmt.Sprint(s.result[key]); got != fmt.Sprint(value) {
			t.Errorf("%s = %v, want %v", key, got, value)
		}
	}
}

// quiet checks that the browser had nothing to complain of, and that the page
// has fetched nothing: what its own policy forbids would be complained of.
func (s seen) quiet(t *testing.T) {
	t.Helper()
	for _, l := range strings.Split(s.log, "\n") {
		if strings.Contains(l, "CONSOLE") {
			t.Errorf("on the console: %s", l)
		}
	}
	s.check(t, map[string]any{"fetched": ""})
}

func htmlOf(t *testing.T, op *deploy.Operation) string {
	return planOf(t, op, page.Options{Format: page.FormatHTML, Context: 3})
}

// TestBrowserPlan drives the page of a plan: search, folding, links, keys.
func TestBrowserPlan(t *testing.T) {
	s := browse(t, htmlOf(t, upgradePlan(t)), `
  var out = {all: names().length, unfolded: unfolded(), found: at("found").textContent};
  type("search", "LISTEN 8080"); out.searched = names().join();
  type("search", "deployment sidecar"); out.words = names().join();
  type("search", "no such thing"); out.none = names().length; out.says = at("none").getClientRects().length > 0;
  at("search").focus(); key("Escape"); out.cleared = names().length;
  at("close").click(); out.closed = unfolded();
  at("open").click(); out.opened = unfolded() === page.querySelectorAll("details").length;
  at("unchanged").click(); out.withUnchanged = names().length;
  at("search").blur(); key("/"); out.focused = page.activeElement.id;
  at("close").click();
  var summary = page.querySelector("details summary"); summary.click(); out.folded = unfolded();
  out.steps = [...page.querySelectorAll(".step strong")].map(s => s.textContent).join();
  out.links = [...page.querySelectorAll(".step a")].every(a => {
    var o = at(a.getAttribute("href").slice(1));
    return o.querySelector(".name").textContent === a.lastElementChild.textContent;
  });
  out.wide = page.documentElement.scrollWidth <= view.innerWidth;
  return out;`, 1200)
	s.check(t, map[string]any{
		"all": 11, "unfolded": 7, "found": "11 of 11", "searched": "ConfigMap/prod/web", "words": "Deployment/prod/web",
		"none": 0, "says": true, "cleared": 11, "closed": 0, "opened": true, "withUnchanged": 13, "focused": "search", "folded": 1,
		"steps": "crds,pre-upgrade hooks,apply 1,apply 2,wait,prune,post-upgrade hooks", "links": true, "wide": true,
	})
	s.quiet(t)
}

// TestBrowserNarrow holds that nothing sticks out of a telephone's screen.
func TestBrowserNarrow(t *testing.T) {
	s := browse(t, htmlOf(t, upgradePlan(t)), `
  var boxes = [...page.querySelectorAll(".step")].map(b => b.getBoundingClientRect());
  return {
    fits: page.documentElement.scrollWidth <= view.innerWidth, width: view.innerWidth,
    below: boxes.every((b, i) => i === 0 || b.top >= boxes[i-1].bottom),
  };`, 320)
	s.check(t, map[string]any{"fits": true, "width": 320, "below": true})
	s.quiet(t)
}

// TestBrowserHostile holds that nothing of what a cluster or a chart says is run.
func TestBrowserHostile(t *testing.T) {
	op := hostileOperation(t)
	op.Warnings = append(op.Warnings, `<img src="https://evil.example/x.png" onerror="document.title='owned'">`)
	s := browse(t, htmlOf(t, op), `return {title: page.title, images: page.images.length, scripts: page.scripts.length};`, 1200)
	s.check(t, map[string]any{"title": "Upgrade of web in prod, revision 6 → 7, chart web-1.3.0, context prod-eu (https://k8s.example.com)", "images": 0, "scripts": 1})
	s.quiet(t)
}

// TestBrowserManyChanges holds that a thousand objects are folded and found.
func TestBrowserManyChanges(t *testing.T) {
	s := browse(t, htmlOf(t, manyChanges(t)), `
  var out = {all: names().length, unfolded: unfolded()}, began = performance.now();
  for (var text of ["o", "ot", "oth", "other-500"]) { type("search", text); }
  out.searched = names().join();
  out.quick = performance.now() - began < 5000;
  at("open").click(); out.opened = unfolded() > 1000;
  return out;`, 1200)
	s.check(t, map[string]any{"all": 1037, "unfolded": 0, "searched": "ConfigMap/prod/other-500", "quick": true, "opened": true})
	s.quiet(t)
}

// TestGraphviz holds that the order of work as a graph can be drawn.
func TestGraphviz(t *testing.T) {
	dot := tool(t, "dot")
	for name, op := range map[string]*deploy.Operation{"plan": upgradePlan(t), "hostile": hostileOperation(t), "many": manyChanges(t), "nothing": {Verb: deploy.Uninstall, Release: "web"}} {
		cmd := exec.CommandContext(t.Context(), dot, "-Tsvg")
		cmd.Stdin = strings.NewReader(planOf(t, op, page.Options{Format: page.FormatDot}))
		var complaints strings.Builder
		cmd.Stderr = &complaints
		svg, err := cmd.Output()
		if err != nil || complaints.Len() > 0 {
			t.Errorf("%s: %v\n%s", name, err, complaints.String())
		}
		if steps := len(newDocument(op).Steps); strings.Count(string(svg), `class="node"`) != steps {
			t.Errorf("%s: %d boxes for %d steps", name, strings.Count(string(svg), `class="node"`), steps)
		}
	}
}
