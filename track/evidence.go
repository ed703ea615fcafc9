package track

import (
	"context"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"deployer/internal/kube"
	"deployer/track/class"
	"deployer/track/finding"
	"deployer/track/logs"
	"deployer/track/pods"
)

const getLogs = "get pods/log" // what reading logs needs a permission for

const (
	maxEvidence      = 5  // objects whose logs are read for a report
	eventsShown      = 10 // of one problem
	maxLogContainers = 2  // containers of a pod whose logs are read
	tailLines        = 20 // of a log
)

// addEvidence adds events and log lines to the problems that a report will show.
func (d diagnosis) addEvidence(ctx context.Context) {
	ctx, stop := context.WithTimeout(ctx, lookupTimeout)
	defer stop()
	var all sync.WaitGroup
	read := 0
	for _, group := range d.groupByCause() {
		obj := group[0]
		p := *obj.status.Finding
		p.Events = obj.eventsAbout(&p)
		obj.status.Finding = &p
		if p.Class == class.ClaimUnbound {
			all.Go(func() { p.Events = append(p.Events, d.claimEvents(ctx, obj, &p)...) })
		}
		if obj.logMode() == LogsNone || !obj.hasLogs() || !class.InfoOf(p.Class).Logs || read >= maxEvidence {
			continue
		}
		read++
		all.Go(func() { p.Logs = d.logTails(ctx, obj, &p) })
	}
	all.Wait()
}

// eventsAbout are the newest events about a problem.
func (t *trackedObject) eventsAbout(p *Finding) []finding.Event {
	about := map[string]bool{t.target.ID.Kind + "/" + t.target.ID.Name: true}
	for _, name := range p.Pods {
		about["Pod/"+name] = true
	}
	var out []finding.Event
	for _, e := range t.events.kept {
		if about[e.Object] || len(p.Pods) == 0 {
			out = append(out, e)
		}
	}
	slices.SortStableFunc(out, func(a, b finding.Event) int { return a.Last.Compare(b.Last) })
	return out[max(0, len(out)-eventsShown):]
}

// claimEvents reads the events of the claims that a pod waits for: they tell of a
// missing StorageClass or of a provisioner's trouble.
func (d diagnosis) claimEvents(ctx context.Context, obj *trackedObject, p *Finding) []finding.Event {
	pod, _ := d.examplePod(ctx, obj, p)
	var out []finding.Event
	for _, name := range pod.Volumes.Claims {
		of := fields.Set{"involvedObject.kind": "PersistentVolumeClaim", "involvedObject.name": name}
		found, err := d.typed.CoreV1().Events(pod.Namespace).List(ctx, metav1.ListOptions{FieldSelector: of.String(), Limit: eventsShown})
		if err != nil {
			return out // events are only hints
		}
		for i := range found.Items {
			out = append(out, eventOf(&found.Items[i]))
		}
	}
	return out
}

// logTails reads the ends of the logs of the pod that shows the problem best.
func (d diagnosis) logTails(ctx context.Context, obj *trackedObject, p *Finding) []finding.Log {
	pod, ok := d.examplePod(ctx, obj, p)
	if !ok {
		return nil
	}
	containers := suspectContainers(pod, p)
	if len(p.Pods) == 0 {
		addExamplePod(p, pod, containers)
	}
	var out []finding.Log
	for _, c := range containers {
		if !obj.settings.logs.wantsContainer(c.PlainName) {
			continue
		}
		tail := finding.Log{Pod: pod.Name, Container: c.PlainName, Lines: []string{}}
		tail.Previous = c.LastTermination != nil && (!c.Running && c.Terminated == nil || c.Running && p.Class != class.ReadinessProbeFailed)
		d.readTail(ctx, &tail, pod.Namespace, obj)
		out = append(out, tail)
	}
	return out
}

// addExamplePod names a pod that shows the problem of its workload, and how its
// container has ended.
func addExamplePod(p *Finding, pod pods.Pod, containers []pods.Container) {
	p.Pods = []string{pod.Name}
	if pod.Node != "" {
		p.Nodes = []string{pod.Node}
	}
	for _, c := range containers {
		if c.Terminated != nil && c.Terminated.ExitCode != 0 {
			p.Container, p.ExitCode, p.Reason = c.Name, &c.Terminated.ExitCode, c.Terminated.Reason
			return
		}
	}
}

func (d diagnosis) readTail(ctx context.Context, t *finding.Log, namespace string, obj *trackedObject) {
	body, err := d.typed.CoreV1().Pods(namespace).GetLogs(t.Pod, &corev1.PodLogOptions{
		Container: t.Container, Previous: t.Previous, TailLines: new(int64(tailLines)),
	}).Stream(ctx)
	if err != nil && t.Previous {
		t.Previous = false // the node may have cleaned it up
		d.readTail(ctx, t, namespace, obj)
		return
	}
	if err != nil {
		t.UnavailableReason = refusalText(err, getLogs, namespace)
		return
	}
	defer body.Close()
	err = logs.Read(body, false, func(l logs.Line) {
		if obj.settings.logs.wantsLine(t.Container, l.Text) {
			t.Lines = append(t.Lines, l.Text)
			t.Lines = t.Lines[max(0, len(t.Lines)-tailLines):] // not every server keeps to TailLines
		} else {
			t.UnavailableReason = "the annotations filter out all of its last lines"
		}
	})
	if len(t.Lines) > 0 {
		t.UnavailableReason = ""
	} else if err != nil {
		t.UnavailableReason = refusalText(err, getLogs, namespace)
	}
}

// examplePod is the pod that a problem names first; of a Job the one that failed last.
func (d diagnosis) examplePod(ctx context.Context, obj *trackedObject, p *Finding) (pods.Pod, bool) {
	all := obj.newPods.list()
	for _, name := range p.Pods {
		if i := slices.IndexFunc(all, func(pod pods.Pod) bool { return pod.Name == name }); i >= 0 {
			return all[i], true
		}
	}
	if obj.gk == kube.JobKind {
		if found, err := d.listPodsOfJob(ctx, obj.target.ID.Namespace, obj.observed.object.GetUID()); err == nil {
			all = found
		}
	}
	if len(all) == 0 {
		return pods.Pod{}, false
	}
	slices.SortFunc(all, func(a, b pods.Pod) int { return b.Created.Compare(a.Created) })
	failing := slices.IndexFunc(all, func(pod pods.Pod) bool {
		return obj.gk != kube.JobKind && !pod.Ready || pod.Phase == corev1.PodFailed
	})
	return all[max(0, failing)], true
}

// suspectContainers returns the containers whose logs may explain a problem: the one that
// it names, otherwise those that failed or aren't ready.
func suspectContainers(pod pods.Pod, p *Finding) []pods.Container {
	var out, rest []pods.Container
	for _, c := range pod.Containers {
		failed := c.Terminated != nil && c.Terminated.ExitCode != 0 || c.LastTermination != nil
		switch {
		case !c.Running && c.Terminated == nil && c.LastTermination == nil:
		case c.Name == p.Container, p.Container == "" && failed:
			out = append(out, c)
		case p.Container == "" && !c.Ready && !c.Init:
			rest = append(rest, c)
		}
	}
	out = append(out, rest...)
	return out[:min(len(out), maxLogContainers)]
}
