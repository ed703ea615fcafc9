package plan

import (
	"fmt"
	"slices"
	"strings"

	"deployer/apply/decide"
	"deployer/apply/ordering"
	"deployer/internal/deploy"
	"deployer/internal/view/page"
	"deployer/internal/view/textfmt"
)

// An item is an entry of a plan for people: one object, or several with the same change.
type item struct {
	object object
	step   string
	others []string // the names of the objects besides the first
	lines  []page.Line
	count  int // if not 0, the number of objects of one kind that aren't named
}

func (i item) entry() page.Entry {
	name, words := i.headline()
	heading := page.Heading{Sign: i.object.sign(), Name: name, Words: words, Source: i.object.Source}
	return page.Entry{Heading: heading, Lines: i.lines, Class: string(i.object.Action)}
}

// section has the entries of items.
func section(items []item) page.Section {
	var out page.Section
	for _, i := range items {
		out.Entries = append(out.Entries, i.entry())
	}
	return out
}

// headline is the object and what happens to it, or how many objects.
func (i item) headline() (name, words string) {
	if i.count > 0 {
		return fmt.Sprintf("%d more %s", i.count, kindOf(i.object.Object)), string(i.object.Action)
	}
	name, words = i.object.headline()
	return name + textfmt.AndMore(len(i.others)), words
}

// Bounds of a plan that is made shorter to be read, in lines.
const (
	longPlan   = 300 // a longer plan is shortened
	longObject = 20  // lines of an object in a shortened plan
)

// unlimited as the budget of items makes nothing shorter.
const unlimited = -1

// items are the entries of a plan in the order of work. With a budget of lines,
// objects with the same change share an entry. When the budget is used up, objects
// are only named, and created or updated ones only counted. Deleted and recreated
// objects are always named.
func (d Document) items(o page.Options, budget int) []item {
	created := d.BaseRevision > 0  // on a first install, where all are new, objects are only named
	unverified := map[string]int{} // by reason, how many objects aren't verified for it
	for _, s := range d.Steps {
		for _, o := range s.Objects {
			unverified[o.Unverified]++
		}
	}
	var all []item
	for _, s := range d.Steps {
		var items []item
		for _, object := range s.Objects {
			if object.sign() != ' ' || o.ShowUnchanged || len(object.Generated) > 0 {
				object.Unverified = takeReason(unverified, object.Unverified)
				items = append(items, item{object: object, step: s.Name, lines: object.details(o, created)})
			}
		}
		if budget != unlimited {
			items = joinAlike(items)
		}
		if s.Kind == deploy.StepWait && d.HasChanges {
			items = []item{{object: object{Object: s.Name, Action: actionWait, Reason: s.until()}, step: s.Name}}
		}
		all = append(all, items...)
	}
	if budget == unlimited {
		return all
	}
	return shorten(all, budget)
}

// takeReason returns a reason and how many objects share it, and for all but the first of them
// nothing: on a first install most objects have the same.
func takeReason(counts map[string]int, reason string) string {
	n := counts[reason]
	delete(counts, reason)
	switch {
	case reason == "" || n == 0:
		return ""
	case n == 1:
		return reason
	}
	return fmt.Sprintf("%s; the same for %s", reason, textfmt.Count(n-1, "more object"))
}

// until says what a wait is for.
func (s step) until() string {
	const named = 3
	var names []string
	for _, n := range s.After {
		names = append(names, n.Object)
	}
	text := textfmt.List(names)
	if len(names) > named {
		text = textfmt.First(names, named)
	}
	verb, state := "are", "ready"
	if len(names) == 1 {
		verb = "is"
	}
	if s.After[0].State == ordering.Gone {
		state = "gone"
	}
	return fmt.Sprintf("until %s %s %s", text, verb, state)
}

// length is how many lines items take.
func length(items []item) int {
	n := 0
	for _, i := range items {
		n += 1 + len(i.lines)
	}
	return n
}

// joinAlike joins items with the same change.
func joinAlike(items []item) []item {
	var out []item
	at := map[string]int{}
	for _, i := range items {
		if i.object.Hook != nil { // their order means something
			out = append(out, i)
			continue
		}
		_, words := i.headline()
		key := fmt.Sprintf("%q", []any{kindOf(i.object.Object), i.object.Group, words, i.lines})
		n, known := at[key]
		if !known {
			at[key] = len(out)
			out = append(out, i)
			continue
		}
		out[n].others = append(out[n].others, i.object.Object)
		if out[n].object.Source != i.object.Source {
			out[n].object.Source = ""
		}
	}
	return out
}

func kindOf(object string) string {
	kind, _, _ := strings.Cut(object, "/")
	return kind
}

// maxOfKind is how many objects of a kind to which the same is done in a step are
// named, in a plan that is made shorter: the many must not hide the few.
const maxOfKind = 10

// shorten cuts items to about a number of lines.
func shorten(items []item, budget int) []item {
	var out []item
	counted, nth := map[string]int{}, map[string]int{}
	used := 0
	for _, i := range items {
		o := i.object
		key := fmt.Sprintf("%q", []string{i.step, string(o.Action), kindOf(o.Object), o.Group})
		nth[key]++
		i.lines = i.firstLines(longObject)
		switch used += 1 + len(i.lines); {
		case o.needsAttention() && used > budget:
			i.lines = slices.DeleteFunc(i.lines, func(l page.Line) bool { return l.Sign != '?' })
		case o.needsAttention():
		case nth[key] > maxOfKind:
			used -= 1 + len(i.lines)
			n, known := counted[key]
			if !known {
				n = len(out)
				counted[key] = n
				out = append(out, item{object: object{Object: o.Object, Group: o.Group, Action: o.Action}, step: i.step})
			}
			out[n].count += 1 + len(i.others)
			continue
		case used > budget:
			i.lines = nil
		}
		out = append(out, i)
	}
	return out
}

// needsAttention reports whether a reviewer of the plan must not overlook the change.
func (o object) needsAttention() bool {
	switch o.Action {
	case decide.Recreate, decide.Delete, decide.GiveBack:
		return true
	}
	return o.Hook != nil
}

// firstLines are the names of the other objects, and the first of the lines.
func (i item) firstLines(limit int) []page.Line {
	named := 4
	if i.object.needsAttention() {
		named = 50
	}
	var out []page.Line
	if len(i.others) > 0 {
		out = append(out, page.Remark("also %s", textfmt.First(i.others, named)))
	}
	if len(i.lines) <= limit {
		return append(out, i.lines...)
	}
	out = append(out, i.lines[:limit]...)
	return append(out, page.Context("... %s more", textfmt.Count(len(i.lines)-limit, "line")))
}
