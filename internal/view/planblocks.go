package view

import (
	"fmt"
	"slices"
	"strings"

	"deployer/apply"
	"deployer/apply/ordering"
	"deployer/internal/view/textfmt"
)

// A planBlock is one entry of a plan for people: an object and what there is to
// say about it, or several objects of which the same is to be said.
type planBlock struct {
	planObject
	stage  string
	others []string // the names of the objects besides the first
	lines  []planLine
	count  int // when not 0: that many objects of one kind that are not named
}

// heading is the line of the block, free of control characters.
func (b planBlock) heading() heading {
	name, words := b.headline()
	return heading{sign: b.sign(), name: name, words: words, source: textfmt.Line(b.Source)}
}

// Bounds of a plan that is made shorter to be read, in lines.
const (
	longPlan   = 300 // a plan that is longer is made shorter
	longObject = 20  // of an object, in a plan that is made shorter
)

// everything as the budget of blocks makes nothing shorter.
const everything = -1

// blocks are the entries of a plan in the order of work. With a budget of lines
// objects of which the same is to be said share an entry; when the budget is used
// up, objects are only named, and those that are created or updated only
// counted. What is deleted or made anew is always named.
func (d planDocument) blocks(o PlanOptions, budget int) []planBlock {
	created := o.ShowCreated || d.BaseRevision > 0
	var all []planBlock
	for _, stage := range d.Stages {
		var blocks []planBlock
		for _, object := range stage.Objects {
			if object.sign() != ' ' || o.ShowUnchanged || len(object.Generated) > 0 {
				blocks = append(blocks, planBlock{planObject: object, stage: stage.Name, lines: object.details(o, created)})
			}
		}
		if budget != everything {
			blocks = together(blocks)
		}
		if stage.Kind == "wait" && d.HasChanges {
			blocks = []planBlock{{planObject: planObject{Object: stage.Name, Action: stage.Kind, Reason: stage.until()}, stage: stage.Name}}
		}
		all = append(all, blocks...)
	}
	if budget == everything {
		return all
	}
	return shortened(all, budget)
}

// until says what a wait is for.
func (s planStage) until() string {
	const named = 3
	var names []string
	for _, n := range s.After[:min(named, len(s.After))] {
		names = append(names, n.Object)
	}
	state := "ready"
	if s.After[0].State == string(ordering.Gone) {
		state = "gone"
	}
	if more := len(s.After) - named; more > 0 {
		return fmt.Sprintf("until %s and %d more are %s", strings.Join(names, ", "), more, state)
	}
	if len(names) == 1 {
		return fmt.Sprintf("until %s is %s", names[0], state)
	}
	return fmt.Sprintf("until %s are %s", textfmt.List(names), state)
}

// length is how many lines blocks take.
func length(blocks []planBlock) int {
	n := 0
	for _, b := range blocks {
		n += 1 + len(b.lines)
	}
	return n
}

// together joins blocks of which the same is to be said.
func together(blocks []planBlock) []planBlock {
	var out []planBlock
	at := map[string]int{}
	for _, b := range blocks {
		if b.Hook != nil { // their order means something
			out = append(out, b)
			continue
		}
		_, words := b.headline()
		key := fmt.Sprintf("%q", []any{kindOf(b.Object), b.Group, words, b.lines})
		i, known := at[key]
		if !known {
			at[key] = len(out)
			out = append(out, b)
			continue
		}
		out[i].others = append(out[i].others, b.Object)
		if out[i].Source != b.Source {
			out[i].Source = ""
		}
	}
	return out
}

func kindOf(object string) string {
	kind, _, _ := strings.Cut(object, "/")
	return kind
}

// ofKind is how many objects of a kind to which the same is done in a stage are
// told of, in a plan that is made shorter: the many must not hide the few.
const ofKind = 10

// shortened cuts blocks to about a number of lines.
func shortened(blocks []planBlock, budget int) []planBlock {
	var out []planBlock
	counted, nth := map[string]int{}, map[string]int{}
	used := 0
	for _, b := range blocks {
		key := fmt.Sprintf("%q", []string{b.stage, b.Action, kindOf(b.Object), b.Group})
		nth[key]++
		b.lines = b.briefly(longObject)
		switch used += 1 + len(b.lines); {
		case b.grave() && used > budget:
			b.lines = slices.DeleteFunc(b.lines, func(l planLine) bool { return l.Sign != '?' })
		case b.grave():
		case nth[key] > ofKind:
			used -= 1 + len(b.lines)
			i, known := counted[key]
			if !known {
				i = len(out)
				counted[key] = i
				out = append(out, planBlock{planObject: planObject{Object: b.Object, Group: b.Group, Action: b.Action}, stage: b.stage})
			}
			out[i].count += 1 + len(b.others)
			continue
		case used > budget:
			b.lines = nil
		}
		out = append(out, b)
	}
	return out
}

// grave tells what must not be left out of the sight of whoever approves a plan.
func (b planBlock) grave() bool {
	switch apply.Action(b.Action) {
	case apply.Recreate, apply.Delete, apply.GiveBack:
		return true
	}
	return b.Hook != nil
}

// briefly gives the names of the other objects, and as many of the lines.
func (b planBlock) briefly(most int) []planLine {
	named := 4
	if b.grave() {
		named = 50
	}
	var out []planLine
	if len(b.others) > 0 {
		names := b.others[:min(named, len(b.others))]
		text := "also " + strings.Join(names, ", ")
		if more := len(b.others) - len(names); more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		out = append(out, planLine{'?', textfmt.Line(text)})
	}
	if len(b.lines) <= most {
		return append(out, b.lines...)
	}
	out = append(out, b.lines[:most]...)
	return append(out, planLine{' ', fmt.Sprintf("... %s more", textfmt.Count(len(b.lines)-most, "line"))})
}

// headline is the object and what happens to it, or how many objects.
func (b planBlock) headline() (name, words string) {
	if b.count > 0 {
		return fmt.Sprintf("%d more %s", b.count, textfmt.Line(kindOf(b.Object))), b.Action
	}
	name, words = b.planObject.headline()
	if n := len(b.others); n > 0 {
		name += fmt.Sprintf(" and %d more", n)
	}
	return name, words
}
