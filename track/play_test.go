package track

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"deployer/internal/kube"
	"deployer/track/finding"
	"deployer/track/pods"
)

// A play is a recorded sequence of what the API server shows, and the verdict
// that follows from it with a clock of its own.
type play struct {
	Name      string
	Object    map[string]any
	Previous  map[string]any
	Unchanged bool
	Foreign   bool // what it scales is neither in the release nor in the cluster
	Until     Until
	Options   struct {
		Tolerate   bool
		NoProgress metav1.Duration
	}
	Steps []step
	End   metav1.Duration // the clock stops here
	Want  struct {
		State  State
		Class  Class
		At     metav1.Duration // when the state was reached, to the second
		Text   string          // is in the message or in the notes
		Advice string
		Limit  int
		Image  string
	}
}

type step struct {
	At     metav1.Duration
	Object map[string]any // merged into the object
	Pod    *actor
	Event  *finding.Event
	Old    []oldActor // the old pods, when they are looked at
	// Revision is the one whose pods are looked at from now on.
	Revision string
	Gone     bool
	Lost     bool // the API server is out of reach
	Back     bool
}

// actor is a pod in short.
type actor struct {
	Name    string
	Node    string
	Phase   string
	Reason  string
	Waiting []string // reason, message
	Running bool
	Long    bool // it runs since half an hour before the release
	Ready   bool
	Image   bool // it is on the node
	RC      int32
	Last    []any // code, reason, message
	Pending []string
	Init    bool // all this is about an init container
	Old     bool // older than the release
	Gone    bool
	Memory  string // limit of the whole pod
	Probe   bool
	Ended   []any // code, reason, message: its state now
	Restart string
	// RestartOn are exit codes after which the container is restarted, whatever its policy.
	RestartOn []int32
	Startup   bool     // it has a startup probe
	Volume    string   // image of a volume
	Resize    []string // reason, message
	Disrupted []string // reason, message
	Sidecar   bool
	Gate      []string // a readiness gate: type, and the message of its condition
}

// oldActor is a pod that a rollout waits for.
type oldActor struct {
	actor
	Leaving    string // how long its deletion may take
	Finalizers []string
	Trouble    string // of its node
}

func (a *oldActor) pod(begin time.Time) oldPod {
	p := oldPod{Pod: a.actor.pod(begin), finalizers: a.Finalizers, node: a.Trouble}
	if a.Leaving != "" {
		p.Deleting = true
		p.leavesWithin, _ = time.ParseDuration(a.Leaving)
	}
	return p
}

func (a *actor) pod(begin time.Time) pods.Pod {
	created := begin.Add(time.Second)
	if a.Old {
		created = begin.Add(-time.Hour)
	}
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: a.Name, UID: types.UID(a.Name), CreationTimestamp: metav1.NewTime(created),
		OwnerReferences: []metav1.OwnerReference{{UID: "owner", Controller: new(true)}}},
		Spec:   corev1.PodSpec{NodeName: a.Node, RestartPolicy: corev1.RestartPolicyAlways},
		Status: corev1.PodStatus{Phase: corev1.PodPhase(a.Phase), Reason: a.Reason}}
	if a.Phase == "" {
		p.Status.Phase = corev1.PodRunning
	}
	s := corev1.ContainerStatus{Name: "app", Ready: a.Ready, RestartCount: a.RC}
	if len(a.Waiting) > 0 {
		s.State.Waiting = &corev1.ContainerStateWaiting{Reason: a.Waiting[0], Message: strings.Join(a.Waiting[1:], "")}
	}
	if a.Running || a.Ready {
		s.State.Running = &corev1.ContainerStateRunning{}
	}
	if a.Long {
		s.State.Running.StartedAt = metav1.NewTime(begin.Add(-30 * time.Minute))
	}
	if a.Image {
		s.ImageID = "sha256:1"
	}
	if len(a.Last) > 0 {
		end := &corev1.ContainerStateTerminated{ExitCode: int32(a.Last[0].(float64)), Reason: a.Last[1].(string)}
		if len(a.Last) > 2 {
			end.Message = a.Last[2].(string)
		}
		s.LastTerminationState.Terminated = end
	}
	if len(a.Ended) > 0 {
		s.State.Terminated = &corev1.ContainerStateTerminated{ExitCode: int32(a.Ended[0].(float64)), Reason: a.Ended[1].(string)}
	}
	c := corev1.Container{Name: "app", Image: "r/x:1"}
	if a.Restart != "" {
		c.RestartPolicy = new(corev1.ContainerRestartPolicy(a.Restart))
	}
	if len(a.RestartOn) > 0 {
		c.RestartPolicyRules = []corev1.ContainerRestartRule{{Action: "Restart", ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{Operator: "In", Values: a.RestartOn}}}
	}
	if a.Startup {
		c.StartupProbe = &corev1.Probe{PeriodSeconds: 5, FailureThreshold: 60}
	}
	if a.Volume != "" {
		p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: a.Volume}}}}
	}
	if a.Memory != "" {
		p.Spec.Resources = &corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(a.Memory)}}
	}
	condition := func(kind corev1.PodConditionType, said []string) {
		if len(said) > 0 {
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, Reason: said[0], Message: said[1]})
		}
	}
	if len(a.Resize) > 0 && a.Resize[0] == corev1.PodReasonError {
		condition(corev1.PodResizeInProgress, a.Resize)
	} else {
		condition(corev1.PodResizePending, a.Resize)
	}
	condition(corev1.DisruptionTarget, a.Disrupted)
	if a.Probe {
		c.ReadinessProbe = &corev1.Probe{PeriodSeconds: 10, FailureThreshold: 3}
	}
	if a.Sidecar {
		c.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
	}
	if a.Init {
		p.Spec.InitContainers, p.Status.InitContainerStatuses = []corev1.Container{c}, []corev1.ContainerStatus{s}
	} else {
		p.Spec.Containers, p.Status.ContainerStatuses = []corev1.Container{c}, []corev1.ContainerStatus{s}
	}
	if a.Ready && len(a.Gate) == 0 {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue})
	}
	if len(a.Gate) > 0 {
		p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: corev1.PodConditionType(a.Gate[0])}}
	}
	if len(a.Gate) > 1 {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodConditionType(a.Gate[0]), Status: corev1.ConditionFalse, Message: a.Gate[1]})
	}
	if len(a.Pending) > 0 {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
			Reason: a.Pending[0], Message: strings.Join(a.Pending[1:], "")})
	}
	return pods.Trim(p)
}

func TestPlays(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no plays: %v", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var all []play
		if err := yaml.UnmarshalStrict(data, &all); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for i := range all {
			t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml")+"/"+all[i].Name, func(t *testing.T) { all[i].run(t) })
		}
	}
}

// TestEachClassIsPlayed holds that no class of problem is without a play, and
// none without a word in the documentation.
func TestEachClassIsPlayed(t *testing.T) {
	read := func(files ...string) (all string) {
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			all += string(data)
		}
		return all
	}
	plays, docs := read("testdata/workloads.yaml", "testdata/others.yaml"), read("../docs/tracking.md")
	classes := regexp.MustCompile(`Class += "(\w+)"`).FindAllStringSubmatch(read("class/class.go"), -1)
	if len(classes) == 0 {
		t.Fatal("no classes are found")
	}
	for _, c := range classes {
		if !strings.Contains(plays, "class: "+c[1]+",") && !strings.Contains(plays, "class: "+c[1]+"}") {
			t.Errorf("no play ends with %s", c[1])
		}
		if !strings.Contains(docs, "`"+c[1]+"`") {
			t.Errorf("docs/tracking.md doesn't have %s", c[1])
		}
	}
}

func (p *play) run(t *testing.T) {
	begin := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	s := p.tracked(t, begin)
	s.schedule.isDue = true
	next := 0
	for now := begin; !now.After(begin.Add(p.End.Duration)); now = now.Add(time.Second) {
		for next < len(p.Steps) && !now.Before(begin.Add(p.Steps[next].At.Duration)) {
			p.play(s, &p.Steps[next], begin, now)
			s.schedule.isDue = true
			next++
		}
		at := s.clock.at(now)
		if !s.schedule.isDueAt(at) {
			continue // as in a wait: time alone changes nothing before the check that the evaluation has asked for
		}
		s.status, s.schedule.recheckAt = s.evaluate(at)
		if s.schedule.isDue = false; s.status.State.IsFinal() {
			p.check(t, s.status, now.Sub(begin))
			return
		}
	}
	p.check(t, s.status, p.End.Duration)
}

func (p *play) tracked(t *testing.T, begin time.Time) *trackedObject {
	t.Helper()
	object := normalised(t, p.Object)
	object.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "deployer", Operation: "Apply", Time: &metav1.Time{Time: begin}}})
	target := Target{ID: kube.IDOf(object), Baseline: object, Changed: !p.Unchanged, Until: p.Until}
	if p.Previous != nil {
		target.Previous = normalised(t, p.Previous)
	}
	tracked := newTrackedObject(target, &Options{TolerateFailures: p.Options.Tolerate, NoProgressTimeout: p.Options.NoProgress.Duration}, begin)
	tracked.release.declares = func(kube.ID) bool { return !p.Foreign }
	tracked.release.missing = func(missingID) missingReference { return missingReference{askedAt: begin} }
	return tracked
}

// normalised gives an object the numbers that a real one has.
func normalised(t *testing.T, o map[string]any) *unstructured.Unstructured {
	t.Helper()
	if _, ok := o["metadata"]; !ok {
		o["metadata"] = map[string]any{"name": "web", "namespace": "prod", "uid": "1", "generation": float64(1)}
	}
	u := &unstructured.Unstructured{Object: o}
	data, err := u.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	if err := u.UnmarshalJSON(data); err != nil {
		t.Fatal(err)
	}
	return u
}

func (p *play) play(obj *trackedObject, st *step, begin, now time.Time) {
	if st.Object != nil {
		object := obj.observed.object.DeepCopy()
		merge(object.Object, st.Object)
		data, _ := object.MarshalJSON()
		_ = object.UnmarshalJSON(data)
		obj.update(object, now)
	}
	if a := st.Pod; a != nil && a.Gone {
		obj.deletePod(types.UID(a.Name))
	} else if a != nil {
		obj.updatePod(a.pod(begin))
	}
	if e := st.Event; e != nil {
		uid := types.UID("")
		if name, ok := strings.CutPrefix(e.Object, "Pod/"); ok {
			uid = types.UID(name)
		}
		e.Last = now
		obj.addEvent(*e, uid, now)
	}
	if st.Old != nil {
		var found []oldPod
		for i := range st.Old {
			found = append(found, st.Old[i].pod(begin))
		}
		obj.oldPods.update(found, obj.clock.at(now))
	}
	if st.Revision != "" {
		obj.newPods.revision = st.Revision
	}
	if st.Gone {
		obj.markGone(nil)
	}
	if st.Lost {
		obj.pauseTimers(now)
	}
	if st.Back {
		obj.resumeTimers(now)
	}
}

func merge(into, from map[string]any) {
	for key, value := range from {
		m, ok := value.(map[string]any)
		if old, has := into[key].(map[string]any); ok && has {
			merge(old, m)
			continue
		}
		into[key] = value
	}
}

func (p *play) check(t *testing.T, got Status, at time.Duration) {
	t.Helper()
	class := Class("")
	if got.Finding != nil {
		class = got.Finding.Class
	}
	want := p.Want
	if got.State != want.State || class != want.Class || want.At.Duration != 0 && at != want.At.Duration {
		t.Errorf("it was %s by %q after %s, want %s by %q after %s: %s", got.State, class, at, want.State, want.Class, want.At.Duration, got.Message)
	}
	if all := got.Message + strings.Join(got.Notes, ""); !strings.Contains(all, want.Text) {
		t.Errorf("it said %q, want %q in it", all, want.Text)
	}
	if got.Finding != nil && (!strings.Contains(got.Finding.Advice, want.Advice) || want.Limit != 0 && got.Finding.Limit != want.Limit || want.Image != "" && got.Finding.Image != want.Image) {
		t.Errorf("problem = %+v, want advice %q and limit %d", got.Finding, want.Advice, want.Limit)
	}
}
