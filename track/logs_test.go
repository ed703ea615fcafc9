package track_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"deployer/internal/kubetest"
	"deployer/track"
)

// crowd is a manifest whose pods have many containers, each of which writes its name.
func crowd(manifest string, containers int) string {
	var list, annotations []string
	for i := range containers {
		name := fmt.Sprintf("c%02d", i)
		list = append(list, "{name: "+name+", image: r/x}")
		annotations = append(annotations, kubetest.LogsAnnotation+"."+name+": I am "+name)
	}
	manifest = strings.Replace(manifest, `containers: [{name: app, image: "r/x:1"}]`, "containers: ["+strings.Join(list, ", ")+"]", 1)
	return strings.Replace(manifest, "annotations: {", "annotations: {"+strings.Join(annotations, ", ")+", ", 1)
}

func (o *outcome) logged() map[string]bool {
	lines := map[string]bool{}
	for _, r := range o.reports {
		if r.Log != nil {
			lines[r.Log.Text] = true
		}
	}
	return lines
}

// What twenty logs at a time leave out is read when one of them has ended.
func TestContainersBeyondTwentyHaveTheirTurn(t *testing.T) {
	w := newWorld(t)
	target := w.apply(crowd(job("many", kubetest.Exits(2*time.Second, 0), "", ""), 45))
	o := w.wait(track.Options{}, 40*time.Second, target).ready(20 * time.Second)
	if got := o.logged(); len(got) != 45 {
		t.Errorf("logs of %d containers are shown, want 45", len(got))
	}
	if o.warned("not shown") {
		t.Errorf("it warned: %s", o.story())
	}
}

func TestContainersWithoutTurnAreCounted(t *testing.T) {
	w := newWorld(t)
	target := w.apply(crowd(workload("Deployment", "web", 1, kubetest.NeverReady(), ""), 23))
	o := w.wait(track.Options{Logs: track.LogsLive}, 19*time.Second, target)
	if got := o.logged(); len(got) != 20 {
		t.Errorf("logs of %d containers are shown, want 20", len(got))
	}
	if !o.warned("the logs of 3 containers are not shown: deployer follows 20 containers at a time") {
		t.Errorf("it did not count the others: %s", o.story())
	}
}

// What goes on writing although its object is ready doesn't keep others waiting.
func TestLogsOfWhatIsReadyMakeRoom(t *testing.T) {
	w := newWorld(t)
	ready := w.apply(crowd(workload("Deployment", "ready", 1, kubetest.ReadyAfter(5*time.Second), ""), 20))
	slow := w.apply(crowd(workload("Deployment", "slow", 1, kubetest.Script{
		{After: 7 * time.Second, State: kubetest.Running()}, {After: 8 * time.Second, Ready: true}}, ""), 1))
	o := w.wait(track.Options{Logs: track.LogsLive}, 50*time.Second, ready, slow).ready(30 * time.Second)
	shown := map[string]int{}
	for _, r := range o.reports {
		if r.Log != nil {
			shown[r.Status.ID.Name]++
		}
	}
	if shown["ready"] != 20 || shown["slow"] != 1 {
		t.Errorf("lines by object: %v, want 20 of ready and 1 of slow; it saw %s", shown, o.story())
	}
}

// An object that is awaited may be made anew, with other settings, while the log
// of its former self goes on. The race detector looks at this one too.
func TestSettingsOfARecreatedObjectAreItsOwn(t *testing.T) {
	w := newWorld(t)
	annotated := func(name, skip string, ready time.Duration) string {
		m := workload("Deployment", "web", 1, kubetest.ReadyAfter(ready), "")
		m = strings.Replace(m, "metadata:\n  name: web", "metadata:\n  annotations: {deployer.io/logs: all, deployer.io/logs-skip-regex: "+skip+"}\n  name: web", 1)
		return strings.Replace(m, "annotations: {sim", "annotations: {"+kubetest.LogsAnnotation+": "+name+", sim", 1)
	}
	target := w.apply(annotated("old", "none", time.Minute))
	client := w.client(target.GVK)
	target.MayAppearLater = true
	pods := map[string]string{}
	var none []string
	w.waitWith(track.Options{}, 60*time.Second, func(r track.Event) {
		switch {
		case r.Log == nil:
		case r.Log.Text == "old":
			if err := client.Delete(t.Context(), "web", metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationOrphan)}); err != nil {
				t.Error(err)
			}
			for err := error(nil); !apierrors.IsNotFound(err); {
				_, err = client.Get(t.Context(), "web", metav1.GetOptions{})
			}
			w.apply(annotated("new", "older", 9*time.Second))
			pods["old"] = r.Log.Pod
		case r.Log.Text == "new":
			pods["new"] = r.Log.Pod
			if err := w.write("none"); err != nil {
				t.Error(err)
			}
		default:
			none = append(none, r.Log.Pod)
		}
	}, target).ready(50 * time.Second)
	if len(none) != 1 || none[0] != pods["new"] || pods["new"] == pods["old"] {
		t.Errorf("the line that the old object doesn't want is shown of %q, want of %q only", none, pods["new"])
	}
}
