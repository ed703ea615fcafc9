package rules

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"deployer/internal/lazyregexp"
)

// What a condition asks for is decided in this file: which of all conditions of a status, wherever it has them, isn't as it should be.

// Conditions returns the conditions of an object's status; none for nil.
func Conditions(obj *unstructured.Unstructured) []map[string]any {
	return Items(obj, "status", "conditions")
}

// Condition finds a condition by type, in any case of letters; nil when absent.
func Condition(obj *unstructured.Unstructured, kind string) map[string]any {
	for _, c := range Conditions(obj) {
		if strings.EqualFold(text(c, "type"), kind) {
			return c
		}
	}
	return nil
}

// conditionIs reports whether a condition has a status, in any case of letters.
func conditionIs(c map[string]any, status string) bool {
	return c != nil && strings.EqualFold(text(c, "status"), status)
}

// conditionText returns the reason and message of a condition.
func conditionText(c map[string]any) string {
	reason, message := text(c, "reason"), OneLine(text(c, "message"))
	if strings.Contains(message, reason) {
		return message
	}
	return JoinText(reason, message)
}

// The types of conditions by what they say.
var (
	// badType matches those that are bad when they are True.
	badType = lazyregexp.New(`(?i)(fail(ed|ing|ures?)?|errors?|erroroccurred|stalled|degraded|conflict(ed|s)?|un(available|healthy|schedulable)|invalid|terminal|expired|missing|not(ready|reconciled)|denied|rejected|blocked|exceeded|lost|deadlock(ed)?)$`)
	// goodType matches those without which an object isn't ready.
	goodType = lazyregexp.New(`(?i)(ready|available|healthy|accepted|programmed|resolved(refs)?|synced|synchronized|reconciled|valid(ated)?|verified|admitted|configured|deployed|installed|initiali[sz]ed|provisioned|created|applied|established` +
		`|succeeded|completed?|connected|operational|registered|issued|attached|bound|uptodate|updated|loaded|online)$`)
	// permanent matches texts of trouble that trying again doesn't heal, unless they also match transient.
	permanent = lazyregexp.New(`(?i)authenticat|unauthori[sz]ed|(access|permission) denied|forbidden|bad credentials|\b40[0134]\b|not found|n[o']t exist|no such|unknown (revision|branch|tag|authority)|couldn't find remote ref` +
		`|(manifest|name|repository).unknown|\bno .* (found|match)|invalid|malformed|unsupported|not (permitted|allowed)|host key|doesn't have correct`)
	transient = lazyregexp.New(`(?i)timeout|timed out|deadline exceeded|connection (refused|reset)|no such host|unavailable|too ?many ?requests|\b(5\d\d|429)\b|EOF|retrying`)
)

// A need is what a condition says of what its object needs. The lowest counts.
type need int

const (
	failing need = iota // a condition of failure is True
	unmet               // one without which the object isn't ready is False
	unknown             // or Unknown
	met                 // one of these is True
	none                // it says nothing
)

// A told is a condition, and what it is about if it isn't the object itself: a parent, a listener.
type told struct {
	condition map[string]any
	of        string
	need      need
}

func (t told) String() string {
	kind, status := text(t.condition, "type"), cmp.Or(text(t.condition, "status"), "True")
	return JoinText(t.of, cmp.Or(conditionText(t.condition), kind+" is "+status))
}

// worstCondition returns the first condition that isn't as it should be. Those of asked types have to be True, and go before
// others of the same need.
func worstCondition(obj *unstructured.Unstructured, asked ...string) told {
	worst, worstRank := told{need: none}, int(none)*(len(asked)+1)
	forEachCondition(obj.Object["status"], "", func(c map[string]any, of string) {
		t, i := told{c, of, needOf(c)}, slices.Index(asked, text(c, "type"))
		if i < 0 {
			i = len(asked)
		} else if t.need == none && conditionIs(c, "False") {
			t.need = unmet
		}
		if rank := int(t.need)*(len(asked)+1) + i; rank < worstRank {
			worst, worstRank = t, rank
		}
	})
	return worst
}

// needOf says what a condition says. Those of Argo CD have no status.
func needOf(c map[string]any) need {
	kind, status := text(c, "type"), strings.ToLower(text(c, "status"))
	isBad, isGood := badType().MatchString(kind), goodType().MatchString(kind)
	switch {
	case isBad && (status == "true" || status == ""):
		return failing
	case isBad:
		return none
	case isGood && status == "false":
		return unmet
	case isGood && status == "unknown":
		return unknown
	case isGood && status == "true":
		return met
	}
	return none
}

// forEachCondition calls f for each condition in a value of a status: a map of a list, of any name, that has a type and a status, or
// a message. They are below others too, such as those of each parent of a route.
func forEachCondition(value any, of string, f func(c map[string]any, of string)) {
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			forEachCondition(value[key], of, f)
		}
	case []any:
		for _, item := range value {
			c, _ := item.(map[string]any)
			status := strings.ToLower(text(c, "status"))
			switch {
			case text(c, "type") != "" && (status == "true" || status == "false" || status == "unknown" || c["status"] == nil && text(c, "message") != ""):
				f(c, of)
			case c != nil:
				forEachCondition(c, cmp.Or(text(c, "name"), text(c, "parentRef", "name"), text(c, "ancestorRef", "name"), text(c, "host"), of), f)
			}
		}
	}
}

// isPermanent reports whether a condition tells of trouble that trying again doesn't heal.
func isPermanent(c map[string]any) bool {
	said := conditionText(c)
	return permanent().MatchString(said) && !transient().MatchString(said)
}
