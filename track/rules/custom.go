package rules

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"

	"deployer/internal/lazyregexp"
	"deployer/track/class"
)

const (
	firstStatusTimeout     = 20 * time.Second // for a first status; configuration kinds never get one
	knownKindStatusTimeout = time.Minute      // for a first status of a well-known kind
	observeDelay           = 5 * time.Second  // for a controller that writes no observedGeneration
	falseConditionGrace    = time.Minute      // operators pass through Ready=False with reasons of failure
	stalledGrace           = 10 * time.Second
)

const (
	noController   = "no controller has written a status"
	noStatusOfKind = "its kind has no status"
)

// failureReason are reasons of Ready=False that may be final.
var failureReason = lazyregexp.New(`^(.*Failed|Failed.*|.*Failure|.*Error(ed)?|Invalid.*|Denied.*|NotFound)$`)

// evaluateByConventions evaluates an object of a kind that has no rule, by the API conventions.
// https://github.com/kubernetes/community/blob/master/contributors/devel/sig-architecture/api-conventions.md#typical-status-properties
func evaluateByConventions(in Input) Verdict {
	if v, is := intendedByAnyKind(in, variables(in)); is {
		return v
	}
	if !hasStatus(in.Object) {
		if in.HasStatus != nil && !*in.HasStatus {
			return Verdict{Phase: Ready, Unverified: true, Message: noStatusOfKind}
		}
		return unverifiedAfter(in, progressing("waiting for the controller"), firstStatusTimeout, noController)
	}
	return whenObserved(in, observeDelay, func() Verdict {
		v, ok := byConditions(in)
		switch {
		case v.Phase == Progressing && isScaledToZero(in.Object):
			return intended(scaledToZero)
		case v.Phase == Progressing && restsBy(in.Object) != "":
			return intended(restsBy(in.Object))
		case ok:
			return v
		}
		return byPhase(in)
	})
}

// The types of conditions, in the order in which the first decisive one counts.
var (
	fatalConditions  = []string{"Stalled", "Failed"}
	motionConditions = []string{"Reconciling", "Progressing", "Issuing"}
	readyConditions  = []string{"Ready", "Available", "Healthy", "Succeeded", "Established", "Complete", "Completed"}
	endConditions    = sets.New("Succeeded", "Complete", "Completed") // of what runs to its end, as long as it takes
)

// arrivedReason are reasons of Progressing=True that say that there is no more progress to make, as Deployments do.
var arrivedReason = lazyregexp.New(`^(Succeeded|Success|Completed?|.*Available|Finished|Ready|UpToDate)$`)

// rollingReason are reasons of Progressing=True by which kinds that are made of a Deployment say that new pods are on their way.
var rollingReason = lazyregexp.New(`^(New|Found)*(ReplicaSet|ReplicationController)(Updated|Created)?$`)

func byConditions(in Input) (Verdict, bool) {
	failed := func(c map[string]any, grace time.Duration) (Verdict, bool) {
		return Verdict{Phase: Failed, Class: class.ConditionFailed, Grace: grace, Message: conditionText(c)}, true
	}
	isNews := func(c map[string]any, status string) bool { return conditionIs(c, status) && isFresh(in, c) }
	if c := Condition(in.Object, "Progressing"); isNews(c, "False") && text(c, "reason") == deadlineExceeded && !isOutOfDate(in.Object, c) {
		return failed(c, stalledGrace)
	}
	for _, kind := range fatalConditions {
		if c := Condition(in.Object, kind); isNews(c, "True") {
			return failed(c, stalledGrace)
		}
	}
	if c := Condition(in.Object, "Synced"); isNews(c, "False") && failureReason().MatchString(text(c, "reason")) && !isOutOfDate(in.Object, c) {
		return failed(c, falseConditionGrace)
	}
	var arrived map[string]any
	for _, kind := range motionConditions {
		c := Condition(in.Object, kind)
		goesOn := kind == "Progressing" && conditionIs(Condition(in.Object, "Available"), "True") && !rollingReason().MatchString(text(c, "reason"))
		if !conditionIs(c, "True") || goesOn {
			continue // some kinds leave Progressing=True for ever
		}
		if kind != "Progressing" || !arrivedReason().MatchString(text(c, "reason")) || isOutOfDate(in.Object, c) {
			return progressing(JoinText(text(c, "type"), conditionText(c))), true
		}
		arrived = c
	}
	for _, kind := range readyConditions {
		c := Condition(in.Object, kind)
		switch {
		case c == nil:
			continue
		case isOutOfDate(in.Object, c):
			return progressing(notObserved), true
		case conditionIs(c, "True") && endConditions.Has(kind) && failureReason().MatchString(text(c, "reason")):
			return failed(c, stalledGrace)
		case conditionIs(c, "True"):
			return ready(conditionText(c)), true
		case isNews(c, "False") && (kind == "Succeeded" || failureReason().MatchString(text(c, "reason"))):
			return failed(c, falseConditionGrace)
		}
		v := progressing(JoinText(text(c, "type")+" is "+text(c, "status"), conditionText(c)))
		if endConditions.Has(kind) {
			v.NoProgress = -1
		}
		return v, true
	}
	if arrived == nil {
		return Verdict{}, false
	}
	return ready(conditionText(arrived)), true
}

// phaseWords gives well-known phases their meaning.
var phaseWords = map[string]Phase{
	"active": Ready, "available": Ready, "bound": Ready, "complete": Ready, "completed": Ready,
	"created": Ready, "configured": Ready, "deployed": Ready, "enabled": Ready, "established": Ready, "installed": Ready, "healthy": Ready, "ok": Ready,
	"connected": Ready, "green": Ready, "insync": Ready, "online": Ready, "open": Ready, "ready": Ready, "running": Ready, "succeeded": Ready,
	"success": Ready, "successful": Ready, "synced": Ready, "up": Ready, "valid": Ready,
	"degraded": Failed, "rejected": Failed,
}

// failedWord matches phases of failure.
var failedWord = lazyregexp.New(`(?i)^(fail|invalid|error)|(fail(ed|ure)|error(ed)?)$`)

// unsettled matches other phases that tell of motion, or of trouble that may pass.
var unsettled = lazyregexp.New(`(?i)ing|^(dis|in|non?e?$|not|out|un)|abort|accept|alloc|block|bootstrap|cancel|clos|conflict|crash|critical|dead|delet|den(y|ied)|down|err|evict|fail|fault|init` +
	`|lost|new|off|partial|pend|plan|prepar|progress|queue|^red$|request|resources-?(created|updated)|retr(y|ies)|schedul|stall|start|stop|submit|terminat|time|wait|warn|yellow`)

// restingPhases are those of objects that somebody has brought to rest: nothing happens until somebody goes on.
var restingPhases = sets.New("paused", "suspended", "hibernated", "halted", "stopped", "disabled", "workflowsuspending", "requiresapproval", "pendingapproval", "waitingforapproval", "awaitingapproval")

// runToEnd matches kinds whose objects aren't ready while they run.
var runToEnd = lazyregexp.New(`(Backup|Restore|Run|Migration|Experiment|Workflow|BroadcastJob)$`)

// byReplicas evaluates an object that counts its replicas as Kubernetes' own workloads do; false when it doesn't.
func byReplicas(in Input) (Verdict, bool) {
	o := in.Object.Object
	wanted, wants := number(field(o, "spec", "replicas"))
	done, counts := number(field(o, "status", "readyReplicas"))
	if !wants || !counts {
		return Verdict{}, false
	}
	updated, tells := number(field(o, "status", "updatedReplicas"))
	if tells {
		done = min(done, updated+mayStayOld(o, wanted))
	}
	v := Verdict{Done: int(min(done, wanted)), Total: int(wanted), Message: fmt.Sprintf("%d of %d replicas ready", min(done, wanted), wanted)}
	if done < wanted {
		return v, true
	}
	if v.Phase = Ready; tells && isUpdatedOnDelete(o) {
		v.Notes = onDeleteNote(int(max(0, wanted-updated)), false)
	}
	return v, true
}

// isUpdatedOnDelete reports whether a workload of any kind leaves it to others when its pods are replaced.
func isUpdatedOnDelete(o map[string]any) bool {
	return text(o, "spec", "updateStrategy", "type") == "OnDelete" || text(o, "spec", "strategy", "type") == "OnDelete"
}

// mayStayOld returns how many replicas the update strategy of an object lets be of an earlier revision: by a partition, or
// by one for each part of it, and all of them where it doesn't say how many.
// https://openkruise.io/docs/user-manuals/cloneset, https://openkruise.io/docs/user-manuals/uniteddeployment
func mayStayOld(o map[string]any, wanted int64) (old int64) {
	if isUpdatedOnDelete(o) {
		return wanted
	}
	partitions := []any{field(o, "spec", "updateStrategy", "partition"), field(o, "spec", "updateStrategy", "rollingUpdate", "partition")}
	byPart, _ := field(o, "spec", "updateStrategy", "manualUpdate", "partitions").(map[string]any)
	for _, partition := range slices.AppendSeq(partitions, maps.Values(byPart)) {
		n, isNumber := number(partition)
		if partition != nil && !isNumber {
			return wanted
		}
		old += n
	}
	return old
}

// restsBy returns the phase by which an object is at rest; empty when it isn't.
func restsBy(obj *unstructured.Unstructured) string {
	word := strings.ToLower(Word(obj.Object["status"].(map[string]any)))
	if !restingPhases.Has(word) {
		return ""
	}
	return word
}

// Word is the word by which a status sums itself up; empty when it has none.
func Word(status map[string]any) string {
	return cmp.Or(text(status, "phase"), text(status, "state"), text(status, "health"), text(status, "health", "status"), text(status, "status"))
}

// byOtherConditions evaluates an object by conditions of any name, wherever its status has them; false when none says anything.
func byOtherConditions(in Input) (Verdict, bool) {
	worst := worstCondition(in.Object)
	switch {
	case worst.need == none:
		return Verdict{}, false
	case worst.need == met:
		return ready(""), true
	case isOutOfDate(in.Object, worst.condition):
		return progressing(notObserved), true
	case worst.need == failing || worst.need == unmet && (failureReason().MatchString(text(worst.condition, "reason")) || isPermanent(worst.condition)):
		return Verdict{Phase: Failed, Class: class.ConditionFailed, Grace: falseConditionGrace, Message: worst.String()}, true
	}
	return progressing(worst.String()), true
}

// byFlag returns what a status says by a field that is true or false.
func byFlag(status map[string]any) (isReady, tells bool) {
	for _, name := range []string{"ready", "healthy", "available", "valid", "applied", "synced"} {
		if isReady, tells = status[name].(bool); tells {
			break
		}
	}
	return isReady, tells
}

// byPhase evaluates an object whose conditions say nothing. Its controller runs: it has written the status.
func byPhase(in Input) Verdict {
	in.Workloads = Workloads{}
	status := in.Object.Object["status"].(map[string]any)
	word, message := Word(status), OneLine(cmp.Or(text(status, "message"), text(status, "error"), text(status, "reason")))
	if worst := worstCondition(in.Object); message == "" && worst.need < met {
		message = worst.String()
	}
	phase := phaseWords[strings.ToLower(word)]
	if failedWord().MatchString(word) {
		phase = Failed
	}
	counted, counts := byReplicas(in)
	told, isTold := byOtherConditions(in)
	isReady, tellsReady := byFlag(status)
	switch {
	case tellsReady && !isReady && phase != Failed:
		return progressing(cmp.Or(message, word, "not ready"))
	case word == "" && counts:
		return counted
	case word == "" && isTold:
		return told
	case word == "" && tellsReady:
		return ready("")
	case word == "":
		return unverifiedAfter(in, progressing("waiting for the controller"), observeDelay, "its status says nothing about readiness")
	case phase == Failed:
		return Verdict{Phase: Failed, Class: class.ConditionFailed, Grace: falseConditionGrace, Message: JoinText(word, message)}
	case strings.EqualFold(word, "running") && runToEnd().MatchString(in.Object.GetKind()):
		return Verdict{Message: JoinText(word, message), NoProgress: -1}
	case phase == Ready:
		return ready(word)
	case unsettled().MatchString(word):
		return progressing(JoinText(word, message))
	}
	in.AppliedAt = in.ProgressedAt // it may be on its way to another word
	return unverifiedAfter(in, progressing(JoinText(word, message)), firstStatusTimeout, "nobody knows whether "+word+" is ready")
}
